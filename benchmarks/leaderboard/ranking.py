"""Ranks of methods over blocks, and which differences between them are more than chance.

A block is one place where all methods were measured, such as a problem at a noise level; tables
have one row per block and one column per method. J. Demšar, *Statistical Comparisons of
Classifiers over Multiple Data Sets*, JMLR 7 (2006), has the tests and a worked example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray

DRAWS = 10_000


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of "all methods do equally well", with the correction for ties.

    χ² and p are not a number with fewer than three methods.
    """

    statistic: float
    p_value: float
    blocks: int


def ranks(scores: Any) -> FloatArray:
    """Return the rank of every method in every block, 1 for the lowest score; ties share a mean.

    Examples
    --------
    >>> ranks([[0.3, 0.1, 0.1], [0.0, 0.2, 0.5]])
    array([[3. , 1.5, 1.5],
           [1. , 2. , 3. ]])
    """
    from scipy.stats import rankdata  # slow to load

    return np.asarray(rankdata(_table("scores", scores), axis=1), dtype=np.float64)


def friedman(scores: Any) -> Friedman:
    """Return Friedman's test of scores or of ranks."""
    from scipy.stats import friedmanchisquare

    table = _table("scores", scores)
    blocks, methods = table.shape
    if methods < 3:
        return Friedman(math.nan, math.nan, blocks)
    if (table == table[:, :1]).all():  # nothing but ties, which the correction divides by
        return Friedman(0.0, 1.0, blocks)
    found = friedmanchisquare(*table.T)
    return Friedman(float(found.statistic), float(found.pvalue), blocks)


def critical_difference(methods: int, blocks: int, level: float = 0.05) -> float:
    """Return Nemenyi's critical difference of two average ranks, q √(k (k + 1) / (6 N)).

    There are k methods and N blocks. The level is the probability of any difference being found
    where there is none.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)  # Demšar's example
    1.25
    """
    from scipy.stats import studentized_range

    methods = checks.whole("methods", methods, least=2)
    blocks = checks.whole("blocks", blocks, least=1)
    # The range of k standard normals; over √2 it is one of differences of two.
    q = float(studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * blocks))


def cliques(average_ranks: Any, difference: float) -> list[tuple[int, ...]]:
    """Return the largest sets of neighbours in rank that lie within a difference of each other.

    Examples
    --------
    >>> cliques([1.0, 3.5, 2.0, 3.0], 1.25)
    [(0, 2), (2, 3), (3, 1)]
    """
    values = np.asarray(average_ranks, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    found: list[tuple[int, ...]] = []
    end = 0
    for start in range(len(order)):
        reach = int(np.searchsorted(values[order], values[order[start]] + difference, "right"))
        if reach > end and reach - start > 1:
            found.append(tuple(order[start:reach].tolist()))
        end = max(end, reach)
    return found


@dataclass(frozen=True)
class Intervals:
    """Estimates, and quantiles of them over data drawn again, arrays of one shape."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def bootstrap_means(values: Any, groups: Sequence[Any]) -> Intervals:
    """Return column means with 95 % bootstrap intervals, whole groups of rows being drawn again.

    Rows of one group, such as the noise levels of one problem, are not independent of each other;
    groups are taken to be.
    """
    table = _table("values", values)
    sums, sizes = _by_group(table, groups)
    shares = np.full(len(sizes), 1 / len(sizes))
    counts = np.random.default_rng(0).multinomial(len(sizes), shares, DRAWS)
    means = (counts @ sums) / (counts @ sizes)[:, None]
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return Intervals(table.mean(axis=0), low, high)


def log_ratios(scores: Any, reference: int) -> FloatArray:
    """Return the logarithm of every score over that of a reference column in the same block.

    A score of zero, which has no logarithm, counts as half the smallest positive one of its block;
    where all are zero, all are equal.

    Examples
    --------
    >>> np.exp(log_ratios([[0.2, 0.1], [0.0, 0.4]], 1)).round(3).tolist()
    [[2.0, 1.0], [0.5, 1.0]]
    """
    table = _table("scores", scores)
    if (table < 0).any():
        raise ValueError(f"scores must not be negative, got {float(table.min())}")
    positive = np.where(table > 0, table, np.inf).min(axis=1, keepdims=True)
    floor = np.where(np.isfinite(positive), positive / 2, 1.0)
    logs = np.log(np.where(table > 0, table, floor))
    return np.asarray(logs - logs[:, [reference]])


def pairwise_ratios(scores: Any, groups: Sequence[Any]) -> Intervals:
    """Return the geometric mean of score ratios of all pairs, shape (methods, methods).

    Entry (i, j) is method i's scores over method j's; intervals as in ``bootstrap_means``.
    """
    columns = range(_table("scores", scores).shape[1])
    found = [bootstrap_means(log_ratios(scores, j), groups) for j in columns]
    parts = ("estimate", "low", "high")
    return Intervals(
        *(np.exp(np.stack([getattr(one, part) for one in found], axis=1)) for part in parts)
    )


def _table(name: str, values: Any) -> FloatArray:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} must have the shape (blocks, methods), got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError(f"{name} must be finite, got {table[~np.isfinite(table)][0]}")
    return table


def _by_group(table: FloatArray, groups: Sequence[Any]) -> tuple[FloatArray, IntArray]:
    """Return the sum and the number of rows of each group."""
    labels = list(dict.fromkeys(groups))
    if len(groups) != len(table):
        raise ValueError(f"groups must name the {len(table)} rows' groups, got {len(groups)}")
    member = np.array([[group == label for group in groups] for label in labels], dtype=np.float64)
    return member @ table, member.sum(axis=1).astype(np.intp)
