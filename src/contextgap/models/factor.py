"""A Cholesky factor that grows by rows and never moves them.

The lower triangle L is kept in panels of 256 rows. A panel is a rectangle, left of the diagonal,
and a packed triangle on it::

    ┌╲
    │T╲                T: rows one after the other, 1 + 2 + 3 + ... numbers
    ├──┬╲              R: 256 × (256·panel) numbers
    │R │T╲
    ├──┴──┬╲           row n is written once, at the end of the last panel
    │ R   │T╲

A new row never copies an old one and there is no wasted upper half. Forward substitution is a
matrix–vector product per rectangle and a packed solve per triangle; with many right-hand sides, a
matrix–matrix product and a triangular solve, so batches run at BLAS-3 speed without unpacking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.linalg.blas import dtpsv, dtrsm
from scipy.linalg.lapack import dtpttr, dtrttp

from contextgap.base.arrays import FloatArray, Rows

ROWS = 256
_TRIANGLE = ROWS * (ROWS + 1) // 2
# numpy asks for huge pages from 4 MB on, with which reading a factor from memory is faster; what is
# never written to is not resident.
_SLAB = 2**19 + 512


class PanelFactor:
    """The lower Cholesky factor L of a growing positive definite matrix."""

    def __init__(self) -> None:
        self.size = 0
        self._rectangles: list[FloatArray] = []
        self._triangles: list[FloatArray] = []
        self._diagonal = Rows()

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal of L."""
        return self._diagonal.view[: self.size]

    def solve(self, right: FloatArray) -> None:
        """Overwrite ``right`` (contiguous, n rows) with L⁻¹·right, for the first n rows of L."""
        for panel, first in enumerate(range(0, len(right), ROWS)):
            part = right[first : first + ROWS]
            if first:
                part -= self._rectangles[panel][: len(part)] @ right[:first]
            # Rows of a lower triangle are columns of its transpose, hence trans=1.
            dtpsv(len(part), self._triangles[panel], part, trans=1, overwrite_x=1)

    def solve_many(self, right: FloatArray) -> None:
        """Do the same to every column of ``right``, which is C-ordered."""
        for panel, first in enumerate(range(0, len(right), ROWS)):
            above = [right[:first]] if first else []
            self.solve_panel(panel, right[first : first + ROWS], above)

    def solve_panel(self, panel: int, part: FloatArray, above: Sequence[FloatArray]) -> None:
        """Do the same for one panel's rows, given the solved rows above as one or more blocks."""
        rectangle, first = self._rectangles[panel][: len(part)], 0
        for solved in above:
            part -= rectangle[:, first : first + len(solved)] @ solved
            first += len(solved)
        # (T·X)ᵀ = Xᵀ·Tᵀ: a C-ordered array is its transpose in BLAS's order.
        dtrsm(1.0, self._triangle(panel, len(part)), part.T, side=1, overwrite_b=1)

    def solve_transposed(self, right: FloatArray) -> None:
        """Overwrite ``right``, a vector, with L⁻ᵀ·right."""
        for panel in reversed(range(-(-len(right) // ROWS))):
            first = panel * ROWS
            part = right[first : first + ROWS]
            dtpsv(len(part), self._triangles[panel], part, overwrite_x=1)
            if first:
                right[:first] -= part @ self._rectangles[panel][: len(part)]

    def solved_transposed(self, columns: FloatArray) -> FloatArray:
        """Return L⁻ᵀ·columns, transposed."""
        rows = columns.T.copy()
        for row in rows:
            self.solve_transposed(row)
        return rows

    def append(self, row: FloatArray, diagonal: float) -> None:
        """Add the row (``row``, ``diagonal``) to L."""
        panel, place = divmod(self.size, ROWS)
        if panel == len(self._triangles):
            self._add_panel()
        first = panel * ROWS
        self._rectangles[panel][place] = row[:first]
        start = place * (place + 1) // 2
        self._triangles[panel][start : start + place] = row[first:]
        self._triangles[panel][start + place] = diagonal
        if len(self._diagonal) > self.size:  # rows beyond were truncated away
            self._diagonal.view[self.size] = diagonal
        else:
            self._diagonal.append(diagonal)
        self.size += 1

    def row(self, place: int) -> FloatArray:
        """Return a row of L up to and including the diagonal."""
        panel, within = divmod(place, ROWS)
        start = within * (within + 1) // 2
        triangle = self._triangles[panel][start : start + within + 1]
        return np.concatenate([self._rectangles[panel][within], triangle])

    def truncate(self, size: int) -> None:
        """Forget all rows from ``size`` on, and a panel that an interrupt left unfinished."""
        self.size = size
        del self._rectangles[len(self._triangles) :]

    def snapshot(self) -> Self:
        """Return a factor that shares the current rows; rows added later do not show in it."""
        other = type(self)()
        other.size = self.size
        other._rectangles = list(self._rectangles)
        other._triangles = list(self._triangles)
        other._diagonal = Rows.of(self.diagonal)
        return other

    def packed(self) -> FloatArray:
        """Return L's rows one after the other, the form files use."""
        flat = np.empty(self.size * (self.size + 1) // 2)
        for panel in range(len(self._triangles)):
            first = panel * ROWS
            count = max(0, min(ROWS, self.size - first))
            triangle = self._triangle(panel, count).T
            for place in range(count):
                n = first + place
                start = n * (n + 1) // 2
                flat[start : start + first] = self._rectangles[panel][place]
                flat[start + first : start + n + 1] = triangle[place, : place + 1]
        return flat

    @classmethod
    def from_packed(cls, flat: FloatArray, size: int) -> Self:
        """Return the factor that ``packed`` was called on."""
        if flat.shape != (size * (size + 1) // 2,):
            raise ValueError(f"a factor of {size} rows cannot have {flat.size} entries")
        factor = cls()
        for n in range(size):
            row = flat[n * (n + 1) // 2 :][: n + 1]
            factor.append(row[:-1], row[-1])
        if size and factor.diagonal.min() <= 0:
            raise ValueError("a factor's diagonal is not positive")
        return factor

    def _add_panel(self) -> None:
        width = len(self._triangles) * ROWS
        slab = np.empty(max(ROWS * width, _SLAB) if width else 0)
        self._rectangles.append(slab[: ROWS * width].reshape(ROWS, width))
        self._triangles.append(np.empty(_TRIANGLE))

    def _triangle(self, panel: int, count: int) -> FloatArray:
        """The first ``count`` rows of a panel's triangle, transposed and unpacked."""
        transposed, _ = dtpttr(count, self._triangles[panel][: count * (count + 1) // 2])
        return np.asarray(transposed)


class Triangle:
    """A lower triangle T of n rows, one after the other, made once and solved with many times.

    One right-hand side reads the n(n + 1)/2 numbers once; for many, they are unpacked first. Rows
    of a lower triangle are columns of its transpose, hence ``trans=1`` where BLAS is called.
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


def reserved(buffer: FloatArray, rows: int, columns: int) -> FloatArray:
    """Return a buffer, or a copy of it with more room than is wanted where there is too little."""
    have = buffer.shape
    if have[0] >= rows and have[1] >= columns:
        return buffer
    sizes = zip(buffer.shape, (rows, columns), strict=True)
    # Twice as much of what is small; of much, memory between rows would take long to touch.
    more = [size if size >= need else need + max(need // 4, min(need, 64)) for size, need in sizes]
    grown = np.zeros(more)
    grown[: have[0], : have[1]] = buffer
    return grown
