"""Kernels of the inner product of two contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels.base import Kernel, check_count, per_dimension
from contextgap.kernels.categories import Categorical, unlike, weights


@dataclass(frozen=True)
class Linear(Categorical):
    """The linear kernel Σ_j (x_j − centre_j)(y_j − centre_j) / unit_j²: rewards linear in x.

    There is no constant term; add ``Constant()`` for one.

    Parameters
    ----------
    unit
        Divides each number of a context: one number, or one per dimension.
    centre
        Subtracted first, but not from codes of categories: one number, or one per dimension.
    categories
        How many numbers at the end of a context are codes of categories. Each adds 1/(2 unit²)
        where two codes are the same, so that every level has an effect of its own.

    Examples
    --------
    >>> import numpy as np
    >>> Linear(unit=10.0, centre=300.0)(np.array([[310.0]]), np.array([[320.0]]))
    array([[2.]])
    """

    unit: float | Sequence[float] = 1.0
    centre: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        unit = per_dimension("unit", self.unit, "about the standard deviation of the column")
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "centre", _finite_per_dimension("centre", self.centre))

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        values = self.standardised(left) @ self.standardised(right).T
        if self.categories:
            codes = slice(-self.categories, None)
            half = 0.5 * weights(self.unit, self.categories)
            values += half.sum() - unlike(left[:, codes], right[:, codes], half)
        return values

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        rows = self.standardised(contexts)
        level = 0.5 * weights(self.unit, self.categories).sum() if self.categories else 0.0
        return np.asarray(np.einsum("ij,ij->i", rows, rows)) + level

    def check_dimension(self, dimension: int) -> None:
        super().check_dimension(dimension)
        check_count("unit", self.unit, dimension)
        check_count("centre", self.centre, dimension)

    @property
    def plain(self) -> bool:
        """Whether the kernel is x·y, without unit, centre and codes."""
        return self.unit == 1.0 and self.centre == 0.0 and not self.categories

    def standardised(self, contexts: FloatArray) -> FloatArray:
        """Return (contexts − centre) / unit, without codes of categories."""
        if self.plain:
            return contexts
        centre, unit = np.asarray(self.centre), np.asarray(self.unit)
        if self.categories:
            numbers = slice(None, -self.categories)
            contexts = contexts[:, numbers]
            centre, unit = (each[numbers] if each.ndim else each for each in (centre, unit))
        return np.asarray((contexts - centre) / unit)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel (x·y + offset)^degree.

    Parameters
    ----------
    degree
        Whole number of at least 1.
    offset
        Not negative; the weight of lower degrees.

    Examples
    --------
    >>> kernel = cg.Polynomial(degree=2, offset=1.0)
    >>> kernel(np.zeros((1, 1)), np.ones((1, 1))).round(3)
    array([[1.]])
    """

    degree: int
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", checks.whole("degree", self.degree, least=1))
        object.__setattr__(self, "offset", checks.at_least("offset", self.offset, 0))

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return (left @ right.T + self.offset) ** self.degree

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        squared_norm = Linear().diagonal(contexts)
        return (squared_norm + self.offset) ** self.degree


def _finite_per_dimension(name: str, value: Any) -> float | tuple[float, ...]:
    """Return a finite number, or a tuple of them, one per context dimension."""
    if np.ndim(value) == 0:
        return checks.real(name, value)
    return tuple(checks.finite_vector(name, value).tolist())
