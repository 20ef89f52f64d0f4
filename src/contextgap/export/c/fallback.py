"""A safe arm in C: where it is answered in place of the recommended one, and why."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.answers import Answers
from contextgap.export.c.columns import Words
from contextgap.export.c.filling import fill
from contextgap.export.c.layout import Layout
from contextgap.export.c.literals import array
from contextgap.export.columns import has_unknown_level
from contextgap.export.fallback import seen_ranges
from contextgap.export.rule import DecisionRule
from contextgap.policy.fallback import Status

_STATUS = {
    Status.RECOMMENDED: 0,
    Status.BOUND_TOO_LARGE: 4,
    Status.OUTSIDE: 5,
    Status.NO_FALLBACK: 6,
}
_LEVEL_UNKNOWN = 3
_STATUSES = """\
#define CONTEXTGAP_BOUND_TOO_LARGE 4   /* the fallback: the recommended arm's bound is too large */
#define CONTEXTGAP_OUTSIDE 5           /* the fallback: a number lies outside what was seen */
"""
_NO_FALLBACK = """\
#define CONTEXTGAP_NO_FALLBACK 6       /* recommended: the fallback is wanted, but not eligible */
"""
_BEST_ON_AVERAGE = """\
The arm for contexts at which nothing can be computed: the one with the highest mean,
 * averaged over all observed contexts."""
_SAFE = """\
The safe arm, in place of the recommended one where {bound}a number
 * that kernels see lies outside what was seen, or nothing can be computed."""
_TOO_LARGE = """\
    if (!(decision->certificate <= {tolerance})) {{
        reason = CONTEXTGAP_BOUND_TOO_LARGE;
    }}
"""
_ANY_BOUND = """\
    (void)decision;
"""


def words_around(words: Words, rule: DecisionRule) -> Words:
    """Return what the code of a rule is called, and says, with its fallback."""
    if rule.fallback is None:
        return words
    return words._replace(
        if_failed="If the result is CONTEXTGAP_INPUT_NOT_FINITE or\n"
        " * CONTEXTGAP_RESULT_NOT_FINITE, the arm is the fallback",
        if_unknown="where too little is known",
    )


def words_inside(words: Words, rule: DecisionRule) -> Words:
    """Return what the code that recommends is called, which the fallback is put around."""
    if rule.fallback is None:
        return words
    return words._replace(
        linkage="static ", decide="decide_recommended", recommend_checked="recommend_only"
    )


def header_words(rule: DecisionRule) -> dict[str, str]:
    """Return what the header says about the fallback."""
    if rule.fallback is None:
        return {"fallback_statuses": "", "fallback_arm": "", "default_meaning": _BEST_ON_AVERAGE}
    bound = ""
    if rule.tolerance is not None:
        bound = f"its\n * certificate exceeds {rule.tolerance:g}, "
    return {
        "fallback_statuses": _STATUSES,
        "fallback_arm": f"#define CONTEXTGAP_FALLBACK_ARM {rule.fallback.column}\n",
        "default_meaning": _SAFE.format(bound=bound),
    }


def among_words(rule: DecisionRule) -> dict[str, str]:
    """Return what the header says about the fallback where arms may be eligible or not."""
    if rule.fallback is None:
        return {"also": "", "no_fallback": ""}
    return {"also": ", and\n * CONTEXTGAP_NO_FALLBACK", "no_fallback": _NO_FALLBACK}


def range_tables(rule: DecisionRule, layout: Layout) -> list[str]:
    """Return the definitions of the ranges that count as seen; none without a fallback."""
    if rule.fallback is None:
        return []
    low, high = seen_ranges(rule.fallback, rule, layout.real.dtype)
    return [
        array(layout.real, "seen_low", low, "the lowest of each number that counts as seen"),
        array(layout.real, "seen_high", high, "the highest"),
    ]


def fallback_part(rule: DecisionRule, layout: Layout, words: Words) -> str:
    """Return the functions that answer the fallback; nothing, where there is none."""
    if rule.fallback is None:
        return ""
    called = words_around(words, rule)._asdict()
    too_large = _ANY_BOUND
    if rule.tolerance is not None:
        literal = layout.real.literal(rule.tolerance, "the fallback's tolerance")
        too_large = _TOO_LARGE.format(tolerance=literal)
    recommend = fill("fallback_recommend.c", **called) if layout.form.mean_from_weights else ""
    return fill("fallback.c", too_large=too_large, **called) + recommend


def statuses_in_python(rule: DecisionRule, contexts: FloatArray, statuses: IntArray) -> IntArray:
    """Return what the exported functions returned as ``Policy.status`` has it.

    It is −1 where there is no answer, and −2 where a level is known and said to be unknown, or the
    other way round.
    """
    found = np.full(len(statuses), -1)
    for python, ours in _STATUS.items():
        found[statuses == ours] = python
    unknown = has_unknown_level(rule.table, contexts)
    found[statuses == _LEVEL_UNKNOWN] = Status.RECOMMENDED
    wrong = np.where(unknown, statuses == Status.RECOMMENDED, statuses == _LEVEL_UNKNOWN)
    found[wrong] = -2
    return found


def expected_statuses(rule: DecisionRule, expected: Answers) -> IntArray:
    """Return what the exported functions are to return at the contexts of the self-test."""
    statuses = expected.status.copy()
    for python, ours in _STATUS.items():
        statuses[expected.status == python] = ours
    unknown = has_unknown_level(rule.table, expected.contexts)
    statuses[(expected.status == Status.RECOMMENDED) & unknown] = _LEVEL_UNKNOWN
    return statuses
