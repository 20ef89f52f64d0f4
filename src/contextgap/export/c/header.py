"""``contextgap_policy.h``: the interface, and what a call costs."""

from __future__ import annotations

import textwrap
from dataclasses import asdict

from contextgap.export.c.cost import Operations
from contextgap.export.c.data import column_names
from contextgap.export.c.literals import Real, comment_text
from contextgap.export.c.precision import Precision
from contextgap.export.c.shape import Form, Shape
from contextgap.export.c.source import EXPORT_ID
from contextgap.export.c.template import fill
from contextgap.export.rule import DecisionRule

_FIELDS = """\
    /* Full widths of the intervals: upper = mean + width / 2. */
    contextgap_real width[CONTEXTGAP_ARMS];
    /* Highest upper of the other arms minus own lower. */
    contextgap_real gap[CONTEXTGAP_ARMS];
    /* The arm's regret is at most this where intervals hold: max(0, {gap}).
     * {promise} */
    contextgap_real certificate;
"""
_EXPLAINED = """\
 * contextgap_decide also solves with the arms' factors, {entries} numbers, for widths and gaps.
"""


def header(
    rule: DecisionRule,
    shape: Shape,
    real: Real,
    *,
    version: str,
    operations: Operations,
    number_bytes: int,
    rom_bytes: int,
    ram_bytes: int,
    fallback: int,
    precision: Precision,
) -> str:
    """Return the text of ``contextgap_policy.h``, but for the export's id.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    shape
        Form and sizes of the code.
    real
        The type to compute in.
    version
        Of this library.
    operations
        Of one recommendation.
    number_bytes, rom_bytes, ram_bytes
        Bytes of real numbers, of all constants and of arrays on the stack.
    fallback
        The arm where nothing can be computed.
    precision
        How far results may be from Python's.
    """
    names = (f" *   [{i}] {comment_text(name)}" for i, name in enumerate(column_names(rule)))
    explained = shape.form is Form.MEANS_EXPLAINED
    return fill(
        "policy.h",
        version=version,
        export_id=EXPORT_ID,
        recommender=type(rule.recommender).__name__,
        arms=shape.arms,
        points=shape.points,
        kernel=_wrapped(comment_text(str(rule.kernel))),
        dimension=shape.dimension,
        columns="\n".join(names),
        **asdict(operations),
        multiply_adds=operations.multiply_adds,
        explained_cost=_EXPLAINED.format(entries=shape.factor_entries) if explained else "",
        number_bytes=number_bytes,
        rom_bytes=rom_bytes,
        ram_bytes=ram_bytes,
        precision=_wrapped(precision.sentence),
        real=real.name,
        has_widths=int(shape.form.has_widths),
        fallback=fallback,
        decision_fields=_fields(rule, shape),
        failed_fields=", all else is HUGE_VAL" if shape.form.has_widths else "",
    )


def _fields(rule: DecisionRule, shape: Shape) -> str:
    if not shape.form.has_widths:
        return ""
    gap = "its gap at the step it was chosen for" if shape.form is Form.LOOK_BACK else "its gap"
    promise = "Heuristic: the width promises nothing."
    if rule.probability is not None:
        promise = f"All hold at once with probability {rule.probability:g}."
    return _FIELDS.format(gap=gap, promise=promise)


def _wrapped(text: str) -> str:
    return "\n * ".join(textwrap.wrap(text, 92, break_long_words=False))
