"""Which points to keep: forward selection, each time the point that lowers the error most."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.compression.equations import Equations

# A candidate whose share of the matrix's diagonal left is below this is a combination of others.
_SINGULAR = 1e-10


class Selection:
    """An order of candidates, of which any first k can be kept, with weights refitted.

    A partial Cholesky factor of the normal equations' matrix, whose pivot is the candidate that
    lowers the squared error most once all weights are refitted (orthogonal least squares).

    Parameters
    ----------
    equations
        The normal equations of all candidates.
    most_per_arm
        Points that an arm may have; None for any number.
    """

    def __init__(self, equations: Equations, most_per_arm: int | None = None) -> None:
        self._equations = equations
        self._most = len(equations.arm) if most_per_arm is None else most_per_arm
        self._counts = np.bincount(equations.arm)
        self._counts[:] = 0
        self._chosen: list[int] = []
        self._solved: list[float] = []  # L⁻¹ rhs
        self._columns = np.empty((len(equations.rhs), 16), order="F")  # of L, all candidates' rows
        self._left = equations.matrix.diagonal().copy()
        self._floor = _SINGULAR * self._left
        self._residual = equations.rhs.copy()
        self._open = np.ones(len(equations.rhs), dtype=bool)

    def reach(self, size: int) -> int:
        """Choose until there are ``size`` points, or no more that help; return how many there are.

        Parameters
        ----------
        size
            Points of all arms together.
        """
        while len(self._chosen) < size and self._choose():
            pass
        return min(size, len(self._chosen))

    def points(self, size: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return contexts, arms and weights of the first ``size`` points.

        Parameters
        ----------
        size
            At most what ``reach`` returned.
        """
        chosen = self._chosen[:size]
        factor = self._columns[chosen, :size]
        weights = np.empty(0)
        if chosen:
            weights = solve_triangular(factor, self._solved[:size], lower=True, trans=1)
        return self._equations.contexts[chosen], self._equations.arm[chosen], weights

    def _choose(self) -> bool:
        self._open &= self._left > self._floor
        if not self._open.any():
            return False
        gain = np.zeros_like(self._left)
        np.divide(self._residual**2, self._left, out=gain, where=self._open)
        best = int(gain.argmax())
        if gain[best] <= 0:
            return False
        size, root = len(self._chosen), np.sqrt(self._left[best])
        known = self._columns[:, :size]
        column = (self._equations.matrix[:, best] - known @ known[best]) / root
        self._append(column)
        solved = float(self._residual[best] / root)
        self._left -= column**2
        self._residual -= solved * column
        self._chosen.append(best)
        self._solved.append(solved)
        self._open[best] = False
        arm = self._equations.arm[best]
        self._counts[arm] += 1
        if self._counts[arm] >= self._most:
            self._open[self._equations.arm == arm] = False
        return True

    def _append(self, column: FloatArray) -> None:
        size = len(self._chosen)
        if size == self._columns.shape[1]:
            grown = np.empty((len(column), 2 * size), order="F")
            grown[:, :size] = self._columns
            self._columns = grown
        self._columns[:, size] = column
