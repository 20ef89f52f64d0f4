"""Which points to keep: forward selection, each time the point that lowers the error most.

The error says how far a policy is from another, as a quadratic form in the weights of its points.

With e_a the error of arm a's function, what counts is

    Σ_x Σ_b ω_b(x)·(e_d(x) − e_b(x))²  +  τ Σ_x Σ_a e_a(x)²        over reference contexts x
      + μ (Σ_a |e_a − ē|² + τ Σ_a |e_a|²)                            in the kernel's norm

where d is the arm deployed at x. Errors that all arms share change no decision and count little
(τ): one function fewer to represent. ω is large where an arm is close to the deployed one. The
norm keeps functions together away from the reference contexts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.compression.sample import margins, usual_margin
from contextgap.kernels import Kernel

_LEVELS = 0.003  # τ
_NORM = 2e-3  # μ per reference context and unit of prior variance
_CLOSE = 2.0  # arms up to so many usual margins below the deployed one are close to it
# A candidate whose share of the matrix's diagonal left is below this is a combination of others.
_SINGULAR = 1e-10


class Equations(NamedTuple):
    """The normal equations ``matrix @ weights = rhs`` of all candidates.

    ``arm`` holds the arm of each of the n candidates, ascending; ``contexts`` has shape (n, d).
    """

    matrix: FloatArray
    rhs: FloatArray
    arm: IntArray
    contexts: FloatArray


def normal_equations(
    kernel: Kernel,
    contexts: FloatArray,
    wanted: FloatArray,
    deployed: IntArray,
    candidates: FloatArray,
    arm: IntArray,
    wanted_there: FloatArray,
) -> Equations:
    """Return the normal equations of candidates, of which ``arm`` says whose point each may become.

    ``wanted`` and ``wanted_there`` hold the functions to fit, less the prior mean: at the reference
    contexts, shape (m, arms), and at the candidates, shape (n, arms).
    """
    arms = wanted.shape[1]
    importance = _importance(wanted, deployed)
    norm = _NORM * len(contexts) * float(kernel.diagonal(contexts).mean())
    in_norm = norm * ((1 + _LEVELS) * np.eye(arms) - 1 / arms)
    own = [np.flatnonzero(arm == a) for a in range(arms)]
    values = [kernel(contexts, candidates[places]) for places in own]
    matrix, rhs = np.empty((len(arm), len(arm))), np.empty(len(arm))
    pulled = np.einsum("xab,xb->xa", importance, wanted)
    for a, left in enumerate(own):
        rhs[left] = values[a].T @ pulled[:, a] + wanted_there[left] @ in_norm[a]
        for b, right in enumerate(own[a:], start=a):
            between = importance[:, a, b]
            rows = np.flatnonzero(between)  # most contexts concern few pairs of arms
            block = values[a][rows].T @ (between[rows, None] * values[b][rows])
            block += in_norm[a, b] * kernel(candidates[left], candidates[right])
            matrix[np.ix_(left, right)] = block
            matrix[np.ix_(right, left)] = block.T
    return Equations(matrix, rhs, arm, candidates)


def _importance(wanted: FloatArray, deployed: IntArray) -> FloatArray:
    """The quadratic form in the arms' errors at each context, shape (m, arms, arms)."""
    rows, arms = np.arange(len(wanted)), wanted.shape[1]
    far = _CLOSE * usual_margin(wanted)
    close = far**2 / (far**2 + margins(wanted, deployed) ** 2)
    close[rows, deployed] = 0.0
    form = np.zeros((len(wanted), arms, arms))
    for b in range(arms):
        form[rows, b, b] += close[:, b] + _LEVELS
        form[rows, deployed, b] -= close[:, b]
        form[rows, b, deployed] -= close[:, b]
    form[rows, deployed, deployed] += close.sum(axis=1)
    return form


class Selection:
    """An order of candidates, of which any first k can be kept, with weights refitted.

    A partial Cholesky factor of the normal equations' matrix, whose pivot is the candidate that
    lowers the squared error most once all weights are refitted (orthogonal least squares). An
    arm may have ``most_per_arm`` points, by default any number.
    """

    def __init__(self, equations: Equations, most_per_arm: int | None = None) -> None:
        self._equations = equations
        self._most = len(equations.arm) if most_per_arm is None else most_per_arm
        self._counts = np.zeros_like(np.bincount(equations.arm))
        self._chosen: list[int] = []
        self._solved: list[float] = []  # L⁻¹ rhs
        self._columns = np.empty((len(equations.rhs), 16), order="F")  # of L, all candidates' rows
        self._left = equations.matrix.diagonal().copy()
        self._floor = _SINGULAR * self._left
        self._residual = equations.rhs.copy()
        self._open = np.ones(len(equations.rhs), dtype=bool)

    def reach(self, size: int) -> int:
        """Choose until there are ``size`` points, or no more that help; return how many."""
        while len(self._chosen) < size and self._choose():
            pass
        return min(size, len(self._chosen))

    def points(self, size: int) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return contexts, arms and weights of the first ``size`` points, if there are so many."""
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
