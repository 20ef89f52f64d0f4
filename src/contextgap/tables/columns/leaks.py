"""Columns from which the reward can be read, as from an outcome that is written down afterwards.

A single number may predict everything that one arm gives where there is no noise. But arms differ,
and a context does not know which one will be tried. So a column is suspicious only if it orders
the rewards of all arms together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray

_PERFECT = 1 - 1e-12
_IN_ORDER = 0.995  # of the pairs of rows, by a category or flag
_IN_ORDER_NUMBERS = 0.999  # by a number: arms that hardly differ come close to that
_LOOKED_AT = 600  # rows
_OTHERS = 5  # rows that must differ from the most frequent value: fewer may do so by chance


def reveals(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray, arms: IntArray
) -> str | None:
    """Return in words how far a column reveals the reward; None where that is not suspicious.

    ``levels`` are the column's ``count`` different values as whole numbers, ``numbers`` the values
    if they are numbers.
    """
    if rewards.min() == rewards.max():
        return None
    if _linear_or_constant(levels, count, numbers, rewards):
        return "predicts the reward perfectly"
    share = _share_in_order(levels, count, numbers, rewards, arms)
    if share is None:
        return None
    return f"orders {100 * share:.4g} % of pairs of rows as the reward of all arms does"


def filling_reveals(missing: IntArray, rewards: FloatArray, arms: IntArray) -> str | None:
    """Return as ``reveals`` does how far the reward can be read from where a column has gaps."""
    if _all_alike(missing):
        return None
    return reveals(missing, 2, None, rewards, arms)


def copies_arm(levels: IntArray, arms: IntArray) -> bool:
    """Whether a column that is not constant is the same wherever an arm was tried.

    Every arm must have been tried several times, so that this does not happen by chance.
    """
    tried, counts = np.unique(arms, return_counts=True)
    if len(tried) < 2 or counts.min() < _OTHERS:
        return False
    return len(np.unique(arms * (levels.max() + 1) + levels)) == len(tried)


def _linear_or_constant(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray
) -> bool:
    """Whether rewards are a linear function of a column, or the same wherever a level is."""
    if numbers is not None and abs(np.corrcoef(numbers, rewards)[0, 1]) > _PERFECT:
        return True
    if count > len(rewards) / 10:
        return False
    high, low = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(high, levels, rewards)
    np.minimum.at(low, levels, rewards)
    return bool((high == low).all())


def _share_in_order(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray, arms: IntArray
) -> float | None:
    """Return the share of pairs of rows that a column orders as rewards do, if suspicious."""
    few = count <= len(rewards) / 10
    if len(np.unique(arms)) < 2 or _all_alike(levels) or _all_alike(rewards):
        return None
    if numbers is None and not few:
        return None
    means = np.bincount(levels, rewards) / np.bincount(levels)
    order = means[levels] if numbers is None else numbers
    rows = np.unique(np.linspace(0, len(rewards) - 1, _LOOKED_AT).astype(np.intp))
    share = _concordance(order[rows], rewards[rows])
    if share < (_IN_ORDER if few else _IN_ORDER_NUMBERS):
        return None
    return None if few and _stands_apart(levels, means, rewards) else share


def _all_alike(values: Any) -> bool:
    """Whether nearly all values are the same."""
    return bool(len(values) - np.unique(values, return_counts=True)[1].max() < _OTHERS)


def _concordance(first: FloatArray, second: FloatArray) -> float:
    """Return how many of the pairs that one of both tells apart the other orders, either way round.

    A verdict tells fewer pairs apart than rewards do, and wins and losses fewer than a number.
    Pairs that are told apart by the one and not by the other count as half.
    """
    one, other = (np.sign(each[:, None] - each) for each in (first, second))
    told = min(np.count_nonzero(one), np.count_nonzero(other))
    return float(0.5 + 0.5 * abs((one * other).sum()) / told) if told else 0.0


def _stands_apart(levels: IntArray, means: FloatArray, rewards: FloatArray) -> bool:
    """Whether most levels have rewards that are far from those of all others.

    A verdict cuts rewards in two wherever its threshold is, and neighbours on both sides are as
    close as neighbours are elsewhere. A context that matters much for all arms leaves a gap.
    """
    usual = max(20 * rewards.std() / len(rewards), 1.01 * np.median(np.diff(np.unique(rewards))))
    high, low = np.full(len(means), -np.inf), np.full(len(means), np.inf)
    np.maximum.at(high, levels, rewards)
    np.minimum.at(low, levels, rewards)
    ranked = np.argsort(means)
    return bool(np.median(low[ranked[1:]] - high[ranked[:-1]]) > usual)
