"""A triangle that is made once and solved with many times."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.linalg.blas import dtpmv, dtpsv, dtrsm
from scipy.linalg.lapack import dtpttr, dtrttp

from contextgap.base.arrays import FloatArray


class Triangle:
    """A lower triangle T, its rows one after the other.

    One right-hand side reads the n(n + 1)/2 numbers once; for many, they are unpacked first. Rows
    of a lower triangle are columns of its transpose, hence ``trans=1`` where BLAS is called.

    Parameters
    ----------
    packed
        The rows of T, n(n + 1)/2 numbers.
    size
        n.
    """

    def __init__(self, packed: FloatArray, size: int) -> None:
        self.packed = packed
        self.size = size

    @classmethod
    def of(cls, square: FloatArray) -> Self:
        """Return the lower triangle of a square matrix."""
        return cls.of_transposed(np.ascontiguousarray(square).T)

    @classmethod
    def of_transposed(cls, upper: FloatArray) -> Self:
        """Return the transpose of an upper triangle; what is below its diagonal does not matter."""
        packed, _ = dtrttp(upper)  # without a copy if it is in LAPACK's order
        return cls(np.asarray(packed), len(upper))

    @classmethod
    def identity(cls, size: int) -> Self:
        """Return the triangle of the identity matrix."""
        return cls.of(np.eye(size))

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of T."""
        return np.asarray(self.packed[np.cumsum(np.arange(1, self.size + 1)) - 1])

    def square(self) -> FloatArray:
        """Return T as a square matrix, C-ordered and with zeros above the diagonal."""
        return np.ascontiguousarray(self.transposed().T)

    def transposed(self) -> FloatArray:
        """Return Tᵀ as a square matrix in LAPACK's order, with zeros below the diagonal."""
        if not self.size:
            return np.empty((0, 0))
        return np.asarray(dtpttr(self.size, self.packed)[0])

    def times(self, vector: FloatArray) -> FloatArray:
        """Return T·vector."""
        return np.asarray(dtpmv(self.size, self.packed, vector, trans=1)) if self.size else vector

    def solve(self, vector: FloatArray) -> FloatArray:
        """Return T⁻¹·vector."""
        return np.asarray(dtpsv(self.size, self.packed, vector, trans=1)) if self.size else vector

    def solve_transposed(self, vector: FloatArray) -> FloatArray:
        """Return T⁻ᵀ·vector."""
        return np.asarray(dtpsv(self.size, self.packed, vector)) if self.size else vector

    def solve_many(self, columns: FloatArray) -> None:
        """Overwrite every column of ``columns``, which is C-ordered, with T⁻¹·column."""
        if columns.size:
            # (T·X)ᵀ = Xᵀ·Tᵀ: a C-ordered array is its transpose in BLAS's order.
            dtrsm(1.0, self.transposed(), columns.T, side=1, overwrite_b=1)
