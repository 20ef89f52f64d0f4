"""The inducing points that all arms share, and what rewards say about them as sums over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.factor import Triangle

# Added to the diagonal of K_ZZ, relative to its largest entry: rounding in a factorisation of a
# few thousand points stays below it, and it changes no variance that a ridge would leave to see.
_JITTER = 1e-10
_PROPOSALS = 64  # points proposed at once
_SAMPLE = 8192  # contexts among which points are chosen


class Whitened(NamedTuple):
    """Contexts as the dictionary sees them."""

    # φ = L⁻¹k_Z(x), shape (points, contexts), C-ordered, or (points,) for one context.
    features: FloatArray
    # δ = max(k(x, x) − |φ|², 0): the part of the prior variance that the points do not explain.
    residual: FloatArray


class Dictionary:
    """Inducing points Z and L with L·Lᵀ = K_ZZ + 1e-10·I.

    The points are chosen so that each has a residual of its own (above a hundredth of the ridge),
    which is the square of its diagonal entry of L: L is far from singular, and φ is as accurate as
    kernel values are.
    """

    def __init__(self, points: FloatArray, factor: Triangle) -> None:
        self.points = points  # Z, shape (m, d)
        self.factor = factor  # L

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def of(cls, kernel: Kernel, points: FloatArray) -> Self:
        """Return the dictionary of given points."""
        if not len(points):
            return cls(points, Triangle(np.empty(0), 0))
        gram = kernel(points, points)
        jitter = _JITTER * float(gram.diagonal().max())
        while True:
            try:
                lower = cholesky(gram + jitter * np.eye(len(points)), lower=True)
            except LinAlgError:
                jitter *= 10.0
            else:
                return cls(points, Triangle.of(lower))

    @classmethod
    def chosen(cls, kernel: Kernel, contexts: FloatArray, most: int, tolerance: float) -> Self:
        """Return a dictionary of at most ``most`` of the contexts, chosen as ``choose`` does."""
        seen = sample(contexts)
        return cls.of(kernel, seen[choose(kernel, seen, most, tolerance)])

    def whiten(self, kernel: Kernel, contexts: FloatArray) -> Whitened:
        """Return φ and δ of contexts, shape (n, d), or of one, shape (d,)."""
        points = np.atleast_2d(contexts)
        values = np.ascontiguousarray(kernel(self.points, points)) if len(self) else None
        diagonal = kernel.diagonal(points)
        if contexts.ndim == 1:
            features = np.empty(0) if values is None else self.factor.solve(values[:, 0])
            return Whitened(features, np.maximum(diagonal[0] - features @ features, 0.0))
        features = np.empty((0, len(points))) if values is None else values
        self.factor.solve_many(features)
        return Whitened(
            features, np.maximum(diagonal - np.einsum("ij,ij->j", features, features), 0.0)
        )

    def mean_residual(self, kernel: Kernel, contexts: FloatArray) -> tuple[float, float]:
        """Return the mean and the largest δ of a sample of the contexts."""
        residual = self.whiten(kernel, sample(contexts)).residual
        return float(residual.mean()), float(residual.max())


def sample(contexts: FloatArray) -> FloatArray:
    """Return at most 8192 of the contexts at random; for the same number always the same ones."""
    if len(contexts) <= _SAMPLE:
        return contexts
    rng = np.random.default_rng(len(contexts))
    return contexts[np.sort(rng.choice(len(contexts), _SAMPLE, replace=False))]


def choose(kernel: Kernel, contexts: FloatArray, most: int, tolerance: float) -> IntArray:
    """Return places of contexts whose residuals, given each other, leave little of the others'."""
    # Randomly pivoted Cholesky draws points with probabilities in proportion to δ. Here many are
    # drawn at once, and one that those before it have explained by now is rejected with the
    # probability by which its δ fell, so that points are distributed as if drawn one by one
    # (Epperly, Tropp and Webber, "Embrace rejection: Kernel matrix approximation by accelerated
    # randomly pivoted Cholesky", 2024). It ends with ``most`` points, or when every δ is within the
    # tolerance; contexts that are within it already are not drawn.
    rng = np.random.default_rng(len(contexts))
    left = kernel.diagonal(contexts).copy()
    rows = np.empty((min(most, len(contexts)), len(contexts)))  # of the partial factor, transposed
    chosen: list[int] = []
    while len(chosen) < len(rows):
        chance = np.where(left > tolerance, left, 0.0)
        total = float(chance.sum())
        if total <= 0.0:
            break
        count = min(_PROPOSALS, len(rows) - len(chosen))
        proposed = rng.choice(len(contexts), count, p=chance / total)
        known = rows[: len(chosen)]
        gram = kernel(contexts[proposed], contexts[proposed])
        gram -= known[:, proposed].T @ known[:, proposed]
        accepted, lower = _accepted(gram, left[proposed], tolerance, rng.uniform(size=count))
        new = proposed[accepted]
        values = kernel(contexts[new], contexts) - known[:, new].T @ known
        added = rows[len(chosen) : len(chosen) + len(new)]
        added[:] = solve_triangular(lower, values, lower=True)
        left -= np.einsum("ij,ij->j", added, added)
        left[new] = 0.0
        chosen.extend(new.tolist())
    return np.array(chosen, dtype=np.intp)


def _accepted(
    gram: FloatArray, before: FloatArray, tolerance: float, draws: FloatArray
) -> tuple[list[int], FloatArray]:
    """Return which proposals to accept, and their residual covariance's factor; spoils ``gram``."""
    accepted: list[int] = []
    lower = np.zeros_like(gram)
    for i, draw in enumerate(draws):
        now = gram[i, i]
        if accepted and (now <= tolerance or draw * before[i] >= now):
            continue
        column = gram[:, i] / np.sqrt(max(now, np.finfo(np.float64).tiny))
        lower[:, len(accepted)] = column
        gram -= np.outer(column, column)
        accepted.append(i)
    return accepted, np.tril(lower[np.ix_(accepted, range(len(accepted)))])


_BLOCK = 2**21  # numbers of φ held at once


@dataclass(frozen=True)
class Statistics:
    """Sums over some rows of one arm, with w = 1/(ridge + δ).

    Numbers lose about one digit in sixteen for every hundredfold of rows that are added, however
    they are grouped, and the Cholesky factor of I + ``gram`` no more than that: the smallest
    eigenvalue of I + ``gram`` is at least 1. v is an importance weight, 1 where none was given.
    """

    gram: FloatArray  # Σ w·φφᵀ, shape (m, m)
    moments: FloatArray  # Σ w·φ·y and Σ w·φ, shape (2, m)
    unexplained: float  # Σ ln(1 + δ/ridge)
    count: int  # the number of rows
    seen: FloatArray  # Σ φ and Σ v·φ, shape (2, m)
    weighted: FloatArray  # Σ v and Σ v·y

    @classmethod
    def of(
        cls,
        rows: Whitened,
        rewards: FloatArray,
        ridge: float | FloatArray,
        weights: FloatArray | None = None,
    ) -> Self:
        """Return the sums over rows whose ``features`` have shape (m, rows)."""
        weight = 1.0 / (ridge + rows.residual)
        scaled = rows.features * np.sqrt(weight)
        told = np.stack([rewards * np.sqrt(weight), np.sqrt(weight)])
        unexplained = float(np.log1p(rows.residual / ridge).sum())
        ones = np.ones(len(rewards))
        both = np.stack([ones, ones if weights is None else weights])
        return cls(
            scaled @ scaled.T,
            told @ scaled.T,
            unexplained,
            len(rewards),
            both @ rows.features.T,
            both[1] @ np.stack([ones, rewards], axis=1),
        )

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(**{name: vars(self)[name] + vars(other)[name] for name in vars(self)})


def sums_by_arm(
    dictionary: Dictionary,
    kernel: Kernel,
    ridge: float,
    contexts: FloatArray,
    arms: IntArray,
    rewards: FloatArray,
    weights: FloatArray | None = None,
    noise: FloatArray | None = None,
) -> dict[int, Statistics]:
    """Return the sums over each arm's rows; ``weights`` are importance weights."""
    variances = None if noise is None else ridge + noise
    sums: dict[int, Statistics] = {}
    for block in blocks(len(rewards), len(dictionary)):
        # By arm, so that an arm's columns are a view.
        order = block.start + np.argsort(arms[block], kind="stable")
        features, residual = dictionary.whiten(kernel, contexts[order])
        tried, first = np.unique(arms[order], return_index=True)
        for arm, start, end in zip(tried.tolist(), first, [*first[1:], len(order)], strict=True):
            part = Whitened(features[:, start:end], residual[start:end])
            given = None if weights is None else weights[order[start:end]]
            own = ridge if variances is None else variances[order[start:end]]
            found = Statistics.of(part, rewards[order[start:end]], own, given)
            sums[arm] = sums[arm] + found if arm in sums else found
    return sums


def blocks(rows: int, points: int) -> Iterator[slice]:
    """Yield slices of rows for whose φ, of so many points, there is memory enough."""
    size = max(64, _BLOCK // max(1, points))
    for first in range(0, rows, size):
        yield slice(first, min(first + size, rows))
