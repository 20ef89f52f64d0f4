"""Kernels of the inner product of two contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contextgap import checks
from contextgap.arrays import FloatArray
from contextgap.kernels.base import Kernel


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel x·y: rewards linear in the context, with no constant term.

    Add a constant column to the contexts, or use ``Polynomial(1, offset)``, for one.
    """

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left @ right.T

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", contexts, contexts))


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel (x·y + offset)^degree.

    Parameters
    ----------
    degree
        Whole number of at least 1.
    offset
        Not negative; the weight of lower degrees.
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
