"""Values far beyond all others of their column, as placeholders for missing ones are."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray

# Interquartile ranges beyond which a value is no usual one. So far out are placeholders and lost
# decimal points; tails of log-normal columns with deviation 2 are not.
_REACH = 50.0


def far_beyond(columns: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the limits of usual values, if a column has others that are far beyond them.

    Usual are the middle half of a column's different values, and what is not too far from them.
    Columns without other values have no limits.
    """
    limits = np.full((2, columns.shape[1]), [[-np.inf], [np.inf]])
    deviations, (lower, upper) = columns.std(axis=0), np.quantile(columns, (0.25, 0.75), axis=0)
    for place in np.flatnonzero(deviations > _REACH * (upper - lower)):
        # Where a gap was filled, or a flag is rare, one value may be most of the column.
        low, high = np.quantile(np.unique(columns[:, place]), (0.25, 0.75))
        reach = _REACH * (high - low)
        if deviations[place] > reach > 0:
            limits[:, place] = low - reach, high + reach
    return (limits[0], limits[1]) if np.isfinite(limits).any() else None


def usual_range(columns: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the limits of usual values, given a sample of ``count`` contexts.

    A single value beyond them makes the column's deviation exceed what ``far_beyond`` allows.
    Columns whose middle half is a single value have no limits.
    """
    limits = np.full((2, columns.shape[1]), [[-np.inf], [np.inf]])
    for place, column in enumerate(columns.T):
        low, high = np.quantile(np.unique(column), (0.25, 0.75))
        reach = _REACH * (high - low) * np.sqrt(count)
        if reach > 0:
            limits[:, place] = low - reach, high + reach
    return limits[0], limits[1]
