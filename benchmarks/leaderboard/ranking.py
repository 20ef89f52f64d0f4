"""Which differences between methods are more than chance: errors of pairs, ranks, ratios.

A table has one column per method. Its rows are the seeds of one cell, which is a problem at a
budget, or the cells themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing

from contextgap.base.arrays import FloatArray

BoolArray = numpy.typing.NDArray[np.bool_]

DRAWS = 10_000
ERRORS = 2.0  # differences beyond so many standard errors are significant


@dataclass(frozen=True)
class Means:
    """Means of columns over seeds, and their standard errors."""

    mean: FloatArray
    error: FloatArray

    @property
    def significant(self) -> BoolArray:
        """Whether a mean is more than two standard errors from 0."""
        return np.asarray(np.abs(self.mean) > ERRORS * self.error)


def means(table: Any) -> Means:
    """Return the mean of every column with its standard error.

    Examples
    --------
    >>> found = means([[1.0, 5.0], [3.0, 5.0]])
    >>> found.mean.tolist(), found.error.tolist()
    ([2.0, 5.0], [1.0, 0.0])
    """
    values = _table(table)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    # Rounding in equal values is no spread; nor is it a difference.
    error[np.ptp(values, axis=0) == 0] = 0.0
    return Means(values.mean(axis=0), error)


def differences(table: Any, reference: int) -> Means:
    """Return how much higher every column is than the reference, seed by seed.

    Seeds share rows and noise among methods, so what makes a seed hard for all cancels.
    """
    values = _table(table)
    return means(values - values[:, [reference]])


def winners(table: Any) -> BoolArray:
    """Return which columns have the lowest mean, or no significant difference from it.

    Examples
    --------
    >>> winners([[1.0, 1.2, 3.0], [2.0, 1.9, 4.0], [1.5, 1.6, 3.6]]).tolist()
    [True, True, False]
    """
    values = _table(table)
    return ~differences(values, int(values.mean(axis=0).argmin())).significant


def chance_alarms(seeds: int) -> float:
    """Return the probability that equal methods differ significantly, if differences are Gaussian.

    Examples
    --------
    >>> round(chance_alarms(10), 3)
    0.077
    """
    from scipy.stats import t  # slow to load

    return float(2 * t.sf(ERRORS, seeds - 1))


def ranks(table: Any) -> FloatArray:
    """Return the rank of every method in every row, 1 for the lowest; ties share a mean.

    Examples
    --------
    >>> ranks([[0.3, 0.1, 0.1], [0.0, 0.2, 0.5]])
    array([[3. , 1.5, 1.5],
           [1. , 2. , 3. ]])
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(_table(table), axis=1), dtype=np.float64)


def log_ratios(table: Any, reference: int) -> FloatArray:
    """Return the logarithm of every value over that of the reference column in the same row.

    A zero, which has no logarithm, counts as half the smallest positive value of its row; where all
    are zero, all are equal.

    Examples
    --------
    >>> np.exp(log_ratios([[0.2, 0.1], [0.0, 0.4]], 1)).round(3).tolist()
    [[2.0, 1.0], [0.5, 1.0]]
    """
    values = _table(table)
    if (values < 0).any():
        raise ValueError(f"values must not be negative, got {float(values.min())}")
    positive = np.where(values > 0, values, np.inf).min(axis=1, keepdims=True)
    floor = np.where(np.isfinite(positive), positive / 2, 1.0)
    logs = np.log(np.where(values > 0, values, floor))
    return np.asarray(logs - logs[:, [reference]])


@dataclass(frozen=True)
class Intervals:
    """Means of columns, and 95 % intervals of them."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def bootstrap_means(table: Any, groups: Sequence[Any]) -> Intervals:
    """Return column means with 95 % bootstrap intervals, whole groups of rows being drawn again.

    Rows of one group, such as the noise levels of one problem, are not independent of each other;
    groups are taken to be.
    """
    values = _table(table)
    labels = list(dict.fromkeys(groups))
    if len(groups) != len(values):
        raise ValueError(f"groups must name the {len(values)} rows' groups, got {len(groups)}")
    member = np.array([[group == label for group in groups] for label in labels], dtype=np.float64)
    shares = np.full(len(labels), 1 / len(labels))
    counts = np.random.default_rng(0).multinomial(len(labels), shares, DRAWS)
    drawn = (counts @ (member @ values)) / (counts @ member.sum(axis=1))[:, None]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return Intervals(values.mean(axis=0), low, high)


def _table(given: Any) -> FloatArray:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"a table must have the shape (rows, methods), got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"a table must be finite, got {values[~np.isfinite(values)][0]}")
    return values
