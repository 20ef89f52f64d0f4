"""Skewed numbers of contexts, such as amounts and counts, on a logarithmic scale.

Most values of a skewed column lie close together, and a few far away. One bandwidth cannot suit
both, so that a kernel sees either the many as equal or every large value as unlike all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels.base import Kernel, check_count

# Columns of more distinct values than this may be skewed, from this skewness on, if so large a
# share of the values other than the median are closer to it than this many times their median.
_VALUES, _SKEWNESS, _SHARE, _FAR = 10, 2.0, 0.98, 6.0
_LEAST = 1e-100  # of a unit; distances in smaller ones could be infinite


class Warp(NamedTuple):
    """x becomes sign(x − centre)·ln(1 + |x − centre| / unit); where unit is 0, it stays x."""

    centre: tuple[float, ...]
    unit: tuple[float, ...]

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return contexts with their skewed numbers on a logarithmic scale."""
        places = np.flatnonzero(self.unit)
        away = contexts[:, places] - np.asarray(self.centre)[places]
        found = np.array(contexts, dtype=np.float64)
        found[:, places] = np.copysign(np.log1p(np.abs(away) / np.asarray(self.unit)[places]), away)
        return found


@dataclass(frozen=True)
class Warped(Kernel):
    """A kernel that sees skewed numbers of contexts on a logarithmic scale.

    Instead of x_j, the kernel sees::

        sign(x_j − centre_j) · ln(1 + |x_j − centre_j| / unit_j)

    Without a kernel, learners choose such scales by themselves if rewards have two values.

    .. versionadded:: 0.3

    Parameters
    ----------
    kernel
        The kernel of the changed contexts.
    centre
        One number per number of a context, where the scale begins: usual values are near it.
    unit
        One per number of a context: how far from the centre the scale stops being linear. 0 leaves
        the number as it is, as codes of categories need.

    Examples
    --------
    >>> kernel = cg.kernels.Warped(cg.Gaussian(1.0), centre=[0.0, 0.0], unit=[10.0, 0.0])
    >>> kernel(np.array([[1000.0, 1.0]]), np.array([[2000.0, 1.0]])).round(2)
    array([[0.79]])
    """

    kernel: Kernel
    centre: Sequence[float]
    unit: Sequence[float]

    def __post_init__(self) -> None:
        checks.instance("kernel", self.kernel, Kernel, "Gaussian(1.0)")
        centre = tuple(checks.real(f"centre[{i}]", x) for i, x in enumerate(self.centre))
        unit = tuple(checks.real(f"unit[{i}]", x) for i, x in enumerate(self.unit))
        if len(centre) != len(unit) or min(unit, default=-1.0) < 0:
            raise ValueError(
                "centre and unit must have one entry per number of a context, and those of unit "
                f"must not be negative, got {self.centre!r} and {self.unit!r}"
            )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "unit", unit)

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.kernel(self.warp(left), self.warp(right))

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return self.kernel.diagonal(self.warp(contexts))

    def highest(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.kernel.highest(self.warp(left), self.warp(right))

    def check_dimension(self, dimension: int) -> None:
        check_count("unit", self.unit, dimension)
        self.kernel.check_dimension(dimension)

    @property
    def warp(self) -> Warp:
        """What becomes of contexts."""
        return Warp(tuple(self.centre), tuple(self.unit))


def warp_for(contexts: FloatArray, numbers: int) -> Warp | None:
    """Return a logarithmic scale for skewed columns among the first ``numbers``, if there are any.

    Its centre is the column's median, its unit the median distance of other values from there.
    """
    centre, unit = np.zeros((2, contexts.shape[1]))
    rows = contexts[:, :numbers]
    with np.errstate(all="ignore"):  # a constant column is not skewed, nor one of huge numbers
        skewness = np.mean(((rows - rows.mean(axis=0)) / rows.std(axis=0)) ** 3, axis=0)
    for place in np.flatnonzero(np.abs(skewness) > _SKEWNESS):
        middle = float(np.median(rows[:, place]))
        away = np.abs(rows[:, place] - middle)
        usual, large = np.quantile(away[away > 0], (0.5, _SHARE))
        if large > _FAR * usual > _LEAST and len(np.unique(rows[:, place])) > _VALUES:
            centre[place], unit[place] = middle, usual
    return Warp(tuple(centre.tolist()), tuple(unit.tolist())) if unit.any() else None
