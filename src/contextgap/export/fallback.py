"""A safe arm in exports: the ranges of numbers that count as seen, as exports compare with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from contextgap.base.arrays import FloatArray
from contextgap.export.answers import Answers
from contextgap.export.columns import How, spread_numbers
from contextgap.export.rule import DecisionRule
from contextgap.policy.fallback import Fallback, Status
from contextgap.tables.eligible import Mask

# Sines and cosines of two libraries differ by less than so many roundings of 1.
_ROUNDINGS = 16


def seen_ranges(
    fallback: Fallback, rule: DecisionRule, dtype: DTypeLike
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest of each number that kernels see and that counts as seen.

    A column of a cycle that never changed has a range of no length, which the target's own sine may
    miss by a rounding. So ranges of sines and cosines are longer by as much as that.
    """
    if not fallback.low:  # every number is below 1 or above 0, and so outside
        return np.ones(rule.dimension), np.zeros(rule.dimension)
    low, high = np.array(fallback.low), np.array(fallback.high)
    if rule.table is not None:
        circles = [each.how in (How.COSINE, How.SINE) for each in spread_numbers(rule.table)]
        slack = _ROUNDINGS * float(np.finfo(dtype).eps) * np.array(circles)
        low, high = low - slack, high + slack
    return low, high


def possible_answers(fallback: Fallback | None, answers: Answers, slack: FloatArray) -> Mask:
    """Say which arms, shape (m, arms), may be answered if numbers are wrong by up to ``slack``."""
    tied = answers.tied(slack)
    if fallback is None:
        return tied
    tolerance = np.inf if fallback.tolerance is None else fallback.tolerance
    excess, wrong_by = answers.bounds - tolerance, slack[:, None]
    outside = answers.status[:, None] == Status.OUTSIDE  # which compares what is exact
    recommended = tied & (excess <= wrong_by) & ~outside
    falls = outside | (tied & ~(excess <= -wrong_by))
    is_fallback = np.arange(tied.shape[1]) == fallback.column
    answered = recommended | (is_fallback & falls.any(axis=1, keepdims=True))
    eligible = np.isfinite(answers.mean[:, [fallback.column]])
    return np.asarray(np.where(eligible, answered, tied))


def is_near_tie(fallback: Fallback | None, answers: Answers, slack: FloatArray) -> Mask:
    """Say where rounding by up to ``slack`` may change the answer, or why it is given."""
    found = answers.tied(slack).sum(axis=1) > 1
    if fallback is None:
        return np.asarray(found)
    if fallback.tolerance is not None:
        bound = answers.bounds[np.arange(len(found)), answers.recommended]
        found |= np.abs(bound - fallback.tolerance) <= slack
    return np.asarray(found & (answers.status != Status.OUTSIDE))
