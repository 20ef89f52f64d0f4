"""Kernels for contexts whose last numbers are codes of categories: the same, or not the same.

A category is like a corner of a simplex. With one column per level, √½ for the level that a context
has and 0 elsewhere, any two levels are at distance 1, and a level never met before is as far from
all others as they are from each other. Codes give the same distances and inner products at the cost
of one number per category.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels.base import Kernel

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
