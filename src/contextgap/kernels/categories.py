"""Contexts as kernels see them: skewed numbers on a logarithmic scale, and codes of categories.

A category is like a corner of a simplex. With one column per level, √½ for the level that a context
has and 0 elsewhere, any two levels are at distance 1, and a level never met before is as far from
all others as from each other. Codes give the same distances and inner products at the cost
of one number per category.

Tuning spreads codes out into those columns, so that slopes with respect to bandwidths are those of
numbers, summed over the columns that share a bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels.base import Kernel, Pair, Scaled, check_count
from contextgap.tables.columns import Layout
from contextgap.tables.contexts import far_beyond

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


_MANY = 2**14  # number of pairs from which a matrix product is faster


@dataclass(frozen=True)
class Categorical(Kernel):
    """A kernel that may see the last ``categories`` numbers of a context as codes."""

    categories: int = field(default=0, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", checks.whole("categories", self.categories, least=0))

    def check_dimension(self, dimension: int) -> None:
        if self.categories > dimension:
            raise ValueError(
                f"categories must be at most the {dimension} numbers of a context, "
                f"got {self.categories}"
            )

    def describe(self) -> dict[str, Any]:
        described = super().describe()
        if not self.categories:  # as it was before there were any
            del described["categories"]
        return described


def check_categories(kernel: Kernel, categories: int) -> None:
    """Raise unless a kernel sees as many codes of categories as contexts have."""
    for part in (getattr(kernel, name, None) for name in ("left", "right", "kernel")):
        if isinstance(part, Kernel):
            check_categories(part, categories)
    if isinstance(kernel, Categorical) and kernel.categories != categories:
        raise ValueError(
            f"kernel must see the last {categories} numbers of a context as codes of categories, "
            f"got categories={kernel.categories} in {kernel!r}; leave the kernel out, or have "
            "Gaussian.from_contexts make one from a table"
        )


def _unlike_by_product(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
    """Do as ``unlike`` by one product of matrices with a column per level."""
    levels = [np.unique(column) for column in right.T]
    x, y = (
        np.hstack([side[:, [place]] == own for place, own in enumerate(levels)]).astype(np.float64)
        for side in (left, right)
    )
    alike = x @ (y * np.repeat(weight, [len(own) for own in levels])).T
    return np.asarray(np.maximum(weight.sum() - alike, 0.0))


def weights(scale: Any, count: int) -> FloatArray:
    """Return scale⁻² for each of the last ``count`` numbers; the scale is one number or several."""
    each = np.asarray(scale, dtype=np.float64)
    return np.broadcast_to(each if each.ndim == 0 else each[-count:], count) ** -2.0


def unlike(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weights of the codes that differ, summed up, for all pairs of rows."""
    if len(left) * len(right) >= _MANY:
        return _unlike_by_product(left, right, weight)
    total = np.zeros((len(left), len(right)))
    differ = np.empty(total.shape, dtype=bool)
    for column, each in enumerate(weight.tolist()):
        np.not_equal(left[:, column, None], right[None, :, column], out=differ)
        np.add(total, each, out=total, where=differ)
    return total


K = TypeVar("K", bound=Kernel)


@dataclass(frozen=True)
class Spread:
    """How numbers and codes of contexts are spread out into columns.

    ``tied`` says which bandwidth each column has; None if each has its own. ``source`` says which
    number or code it comes from, and ``levels`` holds the codes of every category that were met.
    ``warp`` puts skewed numbers on a logarithmic scale.
    """

    tied: tuple[int, ...] | None = None
    source: tuple[int, ...] = ()
    levels: tuple[FloatArray, ...] = ()
    warp: Warp | None = None

    @classmethod
    def of(
        cls, contexts: Sequence[FloatArray], layout: Layout | None, *, warped: bool = False
    ) -> Spread:
        """Return how to spread out contexts, given by arm; without a layout, not at all."""
        rows = np.vstack(contexts)
        numbers = rows.shape[1] - (0 if layout is None else layout.categories)
        warp = warp_for(rows, numbers) if warped else None
        if layout is None:
            return cls(warp=warp)
        codes = rows[:, numbers:]
        levels = tuple(np.unique(column) for column in codes.T)
        widths = [1] * numbers + [len(each) for each in levels]
        source = np.repeat(np.arange(len(layout.tied)), widths)
        tied = np.asarray(layout.tied)[source]
        return cls(tuple(tied.tolist()), tuple(source.tolist()), levels, warp)

    def columns(self, contexts: FloatArray) -> FloatArray:
        """Return contexts spread out into columns."""
        contexts = contexts if self.warp is None else self.warp(contexts)
        if not self.levels:
            return contexts
        numbers = contexts.shape[1] - len(self.levels)
        corners = [
            math.sqrt(0.5) * (contexts[:, [numbers + place]] == own)
            for place, own in enumerate(self.levels)
        ]
        return np.hstack([contexts[:, :numbers], *corners])

    def centre(self, columns: FloatArray) -> FloatArray:
        """Return the mean of every column; 0 for those of levels, which inner products need."""
        mean = np.asarray(columns.mean(axis=0))
        if self.levels:
            mean[-sum(map(len, self.levels)) :] = 0.0
        return mean

    def of_codes(self, kernel: K) -> K:
        """Return the kernel of codes that has the values of a kernel of columns."""
        first = np.unique(self.source, return_index=True)[1]
        found = self._changed(kernel, first, len(self.levels))
        return cast(K, found if self.warp is None else Warped(found, *self.warp))

    def of_columns(self, kernel: K) -> K:
        """Return the kernel of columns that has the values of a kernel of codes; none is warped."""
        return cast(K, self._changed(kernel, np.asarray(self.source), 0))

    def _changed(self, kernel: Any, places: IntArray, categories: int) -> Any:
        if not self.levels:
            return kernel
        if isinstance(kernel, Pair):
            sides = (
                self._changed(each, places, categories) for each in (kernel.left, kernel.right)
            )
            return type(kernel)(*sides)
        if isinstance(kernel, Scaled):
            return kernel.factor * self._changed(kernel.kernel, places, categories)
        if not isinstance(kernel, Categorical):
            return kernel
        names = [name for name in ("bandwidth", "unit", "centre") if hasattr(kernel, name)]
        changed = {name: _picked(getattr(kernel, name), places) for name in names}
        return replace(kernel, **changed, categories=categories)


def _picked(value: Any, places: IntArray) -> Any:
    return value if isinstance(value, float) else tuple(np.asarray(value)[places].tolist())


def deviations(
    columns: FloatArray, tied: tuple[int, ...] | None, *, far: bool = False
) -> FloatArray:
    """Return, for every bandwidth, √(number of bandwidths) standard deviations of its columns."""
    # Constant columns count as having standard deviation 1. Placeholders such as -9999, which are
    # far beyond all other values, count only if ``far`` is true. In tables, two levels are as far
    # apart however rare they are, so that the deviation of a category, and of the indicator of
    # missing values, is what it would be if two contexts always differed: √½ of the distance. (By
    # its own deviation, a value missing in every tenth row would be more than three deviations
    # away.)
    largest, deviation = np.abs(columns).max(axis=0), columns.std(axis=0)
    limits = None if far else far_beyond(columns)
    if limits is not None:
        usual = (columns >= limits[0]) & (columns <= limits[1])
        deviation = columns.std(axis=0, where=usual)
    if tied is not None:
        deviation = np.sqrt(np.bincount(tied, deviation**2))
        by_column, largest = largest, np.zeros(len(deviation))
        np.maximum.at(largest, np.asarray(tied), by_column)
        deviation[(deviation > 0) & _are_levels(columns, np.asarray(tied))] = math.sqrt(0.5)
    # Rounding leaves a constant column with a deviation of some ulps of its value.
    deviation[deviation <= 1e-12 * largest] = 1.0
    return np.asarray(math.sqrt(len(deviation)) * deviation)


def _are_levels(columns: FloatArray, tied: IntArray) -> Any:
    """Say which bandwidths belong to levels that are at distance 1 from each other."""
    # Those of a category, whose columns are the corners of a simplex, and those of a column that is
    # 0 or 1, as the indicator of missing values.
    found = np.zeros(tied.max() + 1, dtype=bool)
    for bandwidth in range(len(found)):
        own = columns[:, tied == bandwidth]
        corner = math.sqrt(0.5) if own.shape[1] > 1 else 1.0
        found[bandwidth] = np.isin(own, (0.0, corner)).all() and (own > 0).sum(axis=1).max() == 1
    return found
