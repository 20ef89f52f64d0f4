"""The text of the exported self-test: Python's answers, and how to compare with them."""

from __future__ import annotations

import numpy as np

from contextgap.export.answers import Answers
from contextgap.export.c.fallback import expected_statuses
from contextgap.export.c.filling import fill
from contextgap.export.c.layout import Layout
from contextgap.export.c.literals import array, integers
from contextgap.export.c.naming import named
from contextgap.export.fallback import is_near_tie
from contextgap.export.rule import DecisionRule

_AMONG_AGREES = """ &&
           among_agrees(context, status, decision)"""


def self_test(
    rule: DecisionRule,
    layout: Layout,
    expected: Answers,
    tolerance: float,
    prefix: str,
    eligible: bool,
) -> str:
    """Return the text of ``contextgap_selftest.c``."""
    real, plain = layout.real, rule.table is None
    same_answer, other_status = "decision->arm == arms[vector]", "status != CONTEXTGAP_OK"
    if rule.table is not None or rule.fallback is not None:
        other_status = "status != statuses[vector]"
    if rule.fallback is not None:  # rounding may decide for it
        same_answer += " && !near_tie[vector]"
        other_status = f"(!near_tie[vector] && {other_status})"
    return fill(
        "selftest.c",
        prefix,
        count=len(expected.arm),
        real_max="FLT_MAX" if real.float32 else "DBL_MAX",
        tolerance=real.literal(tolerance, "the tolerance"),
        data=named("\n".join(_data(rule, layout, expected, tolerance)), prefix),
        math="" if plain else "#include <math.h>\n",
        bad_kinds="3" if plain else "bad_kinds[place]",
        among_test=fill("among_test.c", prefix) if eligible else "",
        among_agrees=_AMONG_AGREES if eligible else "",
        same_answer=same_answer,
        other_status=named(other_status, prefix),
    )


def _data(rule: DecisionRule, layout: Layout, expected: Answers, tolerance: float) -> list[str]:
    """The definitions of contexts and of what Python answers there."""
    real, fallback = layout.real, rule.fallback
    near = is_near_tie(fallback, expected, np.full(len(expected.arm), tolerance)).astype(int)
    answered = "recommended" if fallback is None else "answered"
    data = [
        array(real, "contexts", expected.contexts, "one after the other", gaps=True),
        array(real, "means", expected.mean, "of every arm"),
        integers("arms", "int", expected.arm.tolist(), answered),
        integers("near_tie", "unsigned char", near.tolist(), "whether rounding may decide"),
    ]
    if layout.form.has_widths:
        data.append(array(real, "widths", 2 * expected.half_width, "full ones, of every arm"))
        data.append(array(real, "gaps", expected.gap, "of every arm"))
        data.append(array(real, "certificates", expected.certificate, f"of the {answered} arm"))
    if rule.table is not None or fallback is not None:
        statuses = expected_statuses(rule, expected).tolist()
        meaning = "3 if a level is unknown" if fallback is None else "why it is answered"
        data.append(integers("statuses", "int", statuses, meaning))
    if rule.table is not None:
        # The last of the three bad inputs is NaN, which is none where there may be gaps.
        kinds = [2 if coding.kind.missing else 3 for coding in rule.table.codings]
        data.append(integers("bad_kinds", "int", kinds, "whether NaN is bad input, too"))
    return data
