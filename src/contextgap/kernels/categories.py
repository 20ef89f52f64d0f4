"""Contexts whose last numbers are codes of categories: the same, or not the same.

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
from typing import Any, TypeVar, cast

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels.base import Kernel, Pair, Scaled
from contextgap.kernels.warped import Warp, Warped, warp_for
from contextgap.tables.columns import Layout
from contextgap.tables.contexts import far_beyond

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
