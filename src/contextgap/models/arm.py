"""One arm's posterior as a Cholesky factor and two vectors; it takes kernel values as given.

With L·Lᵀ = K + ridge·I, keep z = L⁻¹y and w = L⁻¹1. At a context, one forward substitution
v = L⁻¹k gives everything:

    mean = m + v·(z − m·w)        std² = k(x, x) − v·v

Observing a reward r appends the row (v, d), d = √(std² + ridge), to L, and (r − v·z)/d to z. No
inverse, no refactorisation, no jitter: d² ≥ ridge whatever the rounding. Since w is kept beside z,
the prior mean m may change at any time at no cost. A reward may have a noise variance of its own,
which is added to the ridge in its row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtpttr, dtrtri

from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.models.factor import PanelFactor
from contextgap.models.observations import check_floats

# The rounding error that each row of a factor may add to a variance, relative to the prior's.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
MEAN_ROUNDING = 1e-13  # in a mean, in units of the sum of its terms' sizes


class Arm:
    """The rewards of one arm and the posterior they give."""

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.factor = PanelFactor()
        self.z = Rows()
        self.w = Rows()
        self.noise = Rows()  # the variance of every reward's noise, ridge included
        self.gain = 0.0  # ½ ln det(I + K/noise)
        self.assumed: list[FloatArray] = []  # contexts whose rewards are still to come
        self._assumed_rows = Rows(0)
        self._dual: tuple[tuple[float, int], FloatArray] | None = None

    def __len__(self) -> int:
        return len(self.z.view)

    def observe(
        self, v: FloatArray, prior_variance: float, reward: float, noise: float = 0.0
    ) -> None:
        """Take in one reward at a context with v = L⁻¹k, and noise besides the ridge."""
        self.retract()
        self._append(v, self._pivot(v, prior_variance, noise), reward, self.ridge + noise)

    def observe_many(
        self, v: FloatArray, gram: FloatArray, rewards: FloatArray, noise: FloatArray
    ) -> None:
        """Take in many rewards at contexts with v = L⁻¹K(old, new) and gram = K(new, new)."""
        self.retract()
        rows = new_rows(v, gram, self.ridge + noise)
        for i, (reward, own) in enumerate(zip(rewards.tolist(), noise.tolist(), strict=True)):
            n = len(v) + i
            self._append(rows[i, :n], float(rows[i, n]), reward, self.ridge + own)

    def assume(self, context: FloatArray, v: FloatArray, prior_variance: float) -> None:
        """Count an observation whose reward is not known yet."""
        self._count(context, v, self._pivot(v, prior_variance))

    def assume_many(self, contexts: Sequence[FloatArray], v: FloatArray, gram: FloatArray) -> None:
        """Count many, with v = L⁻¹K(old, new), those assumed before included, and K(new, new)."""
        rows = new_rows(v, gram, np.full(len(contexts), self.ridge))
        for n, (context, row) in enumerate(zip(contexts, rows, strict=True), len(v)):
            self._count(context, row[:n], float(row[n]))

    @property
    def assumed_rows(self) -> FloatArray:
        """The contexts whose rewards are still to come, as rows."""
        return self._assumed_rows.view

    def retract(self) -> None:
        """Forget the assumed observations."""
        if self.assumed:
            self.factor.truncate(len(self))
            self.assumed, self._assumed_rows = [], Rows(0)

    def rewind(self, size: int, gain: float) -> None:
        """Go back to the first ``size`` observations, none assumed, whatever was done since."""
        for rows in (self.z, self.w, self.noise):
            rows.truncate(size)
        self.factor.truncate(size)
        self.gain, self._dual = gain, None
        self.assumed, self._assumed_rows = [], Rows(0)

    def weights(self, prior: float) -> FloatArray:
        """Return z − prior·w: the mean is prior + v·weights."""
        return self.z.view if prior == 0 else self.z.view - prior * self.w.view

    def dual(self, prior: float) -> FloatArray:
        """Return the weights of kernel values: the mean is prior + weights·k."""
        # Kept until the next observation: a frozen policy computes them once.
        if self._dual is None or self._dual[0] != (prior, len(self)):
            weights = self.weights(prior).copy()
            self.factor.solve_transposed(weights)
            self._dual = (prior, len(self)), weights
        return self._dual[1]

    def precisions(self) -> FloatArray:
        """Return the diagonal of (K + noise)⁻¹."""
        # Rows of L, packed, are columns of its transpose, an upper triangle.
        upper, _ = dtpttr(len(self), self.arrays()["factor"], uplo="U")
        inverse, _ = dtrtri(upper)
        return np.asarray(np.einsum("ij,ij->i", inverse, inverse))

    def retold(self, rewards: FloatArray) -> Arm:
        """Return a copy that was told other rewards; the factor is shared, not copied."""
        copy, z = self.snapshot(), np.array(rewards)
        copy.factor.solve(z)
        copy.z = Rows.of(z)
        return copy

    def path(
        self,
        v: FloatArray,
        prior: float,
        prior_variance: FloatArray,
        start: int,
        out: tuple[FloatArray, FloatArray],
    ) -> FloatArray:
        """Write mean and std after ``start`` observations, one more, ..., all to ``out``; spoils v.

        L of an earlier step is a leading block of L, so prefixes of v give earlier posteriors.
        Returns the information gain after each.
        """
        weights = self.weights(prior)
        mean, variance = out
        mean[0] = weights[:start] @ v[:start] + prior
        np.multiply(v[start:], weights[start:, None], out=mean[1:])
        _accumulate(mean)
        np.square(v, out=v)
        variance[0] = prior_variance - v[:start].sum(axis=0)
        np.negative(v[start:], out=variance[1:])
        _accumulate(variance)
        root(variance)
        gains = np.log(self.factor.diagonal[: len(self)]) - 0.5 * np.log(self.noise.view)
        gain = gains[:start].sum() + np.concatenate([[0.0], gains[start:].cumsum()])
        return np.asarray(gain[:, None])

    def snapshot(self) -> Arm:
        """Return a copy that later observations do not change; the factor is shared, not copied."""
        copy = Arm(self.ridge)
        copy.factor = self.factor.snapshot()
        copy.factor.truncate(len(self))
        copy.z, copy.w = Rows.of(self.z.view), Rows.of(self.w.view)
        copy.noise = Rows.of(self.noise.view)
        copy.gain = self.gain
        return copy

    def arrays(self) -> dict[str, FloatArray]:
        """Return what a file needs besides the observations."""
        packed = self.factor.packed()[: len(self) * (len(self) + 1) // 2]
        return {"factor": packed, "z": self.z.view, "w": self.w.view}

    @classmethod
    def restored(cls, ridge: float, noise: FloatArray, arrays: dict[str, NDArray[Any]]) -> Arm:
        """Return the arm that ``arrays`` was called on; ``noise`` is that besides the ridge."""
        size = len(noise)
        check_floats(arrays["factor"], (size * (size + 1) // 2,))
        check_floats(arrays["z"], (size,))
        check_floats(arrays["w"], (size,))
        other = cls(ridge)
        other.factor = PanelFactor.from_packed(arrays["factor"], size)
        other.z, other.w = Rows.of(arrays["z"]), Rows.of(arrays["w"])
        other.noise = Rows.of(ridge + noise)
        # One by one in order of arrival, so that a restored arm does not differ by a bit.
        for entry, own in zip(other.factor.diagonal.tolist(), other.noise.view, strict=True):
            other.gain += math.log(entry) - 0.5 * math.log(own)
        return other

    def _count(self, context: FloatArray, row: FloatArray, diagonal: float) -> None:
        self.factor.append(row, diagonal)
        if not self.assumed:
            self._assumed_rows = Rows(len(context))
        self._assumed_rows.append(context)
        self.assumed.append(context)

    def _pivot(self, v: FloatArray, prior_variance: float, noise: float = 0.0) -> float:
        return pivot(float(prior_variance - v @ v), self.ridge + noise, prior_variance, len(v))

    def _append(self, v: FloatArray, diagonal: float, reward: float, noise: float) -> None:
        self.factor.append(v, diagonal)
        self.z.append((reward - v @ self.z.view) / diagonal)
        self.w.append((1.0 - v @ self.w.view) / diagonal)
        self.noise.append(noise)
        self.gain += math.log(diagonal) - 0.5 * math.log(noise)


def root(variance: FloatArray) -> FloatArray:
    """Overwrite variances with standard deviations; rounding below zero counts as zero."""
    np.maximum(variance, 0.0, out=variance)
    return np.sqrt(variance, out=variance)


def pivot(variance: float, ridge: float, prior_variance: float, size: int) -> float:
    """Return √(std² + ridge), the factor's next diagonal entry after ``size`` rows."""
    # Rounding leaves an error of about n·ε·k(x, x) in std² = k(x, x) − v·v. With a ridge below
    # that, errors would grow from row to row, so the entry is kept above it.
    return math.sqrt(max(max(variance, 0.0) + ridge, ROUNDING * (size + 1) * prior_variance))


def pivots(variance: FloatArray, ridge: float, prior_variance: FloatArray, size: int) -> FloatArray:
    """Return the same for many variances."""
    least = ROUNDING * (size + 1) * prior_variance
    return np.sqrt(np.maximum(np.maximum(variance, 0.0) + ridge, least))


def factorised(half: FloatArray, noise: FloatArray, least: float) -> bool:
    """Replace the lower half of K, C-ordered, by the factor of K + diag(noise), if it has one.

    Return whether it has: squares of its diagonal are at least ``least`` and the noise, but for
    rounding. What is above the diagonal stays.
    """
    half.flat[:: len(half) + 1] += noise
    # What is below the diagonal here is above it in LAPACK's order, in which this is in place.
    _, wrong = dpotrf(half.T, lower=0, clean=0, overwrite_a=1)
    floor = np.maximum(noise * (1 - 1e-6), least)
    return not wrong and bool((half.diagonal() ** 2 >= floor).all())


def new_rows(v: FloatArray, gram: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the factor's new rows [Vᵀ, C], where C·Cᵀ = gram + diag(noise) − VᵀV."""
    old, new = v.shape
    schur = gram - v.T @ v if old else gram
    corner = np.ascontiguousarray(np.tril(schur))
    if factorised(corner, noise, ROUNDING * (old + new + 1) * gram.diagonal().max()):
        return np.hstack([v.T, corner]) if old else corner
    # Nearly singular: row by row, as single observations are, no pivot can vanish.
    rows = np.zeros((new, old + new))
    rows[:, :old] = v.T
    factor = PanelFactor()
    for i in range(new):
        row = schur[:i, i].copy()
        factor.solve(row)
        rows[i, old : old + i] = row
        variance = float(schur[i, i] - row @ row)
        rows[i, old + i] = pivot(variance, float(noise[i]), gram[i, i], old + i)
        factor.append(row, rows[i, old + i])
    return rows


def _accumulate(rows: FloatArray) -> None:
    """Replace every row by the sum of the rows up to it; ``np.cumsum`` along columns is slow."""
    for previous, row in pairwise(rows):
        row += previous


_COLUMNS = 256


def left_out(
    arm: Arm, prior: float, places: IntArray, visits: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return errors and variances of predictions of some rewards from the arm's others.

    ``places`` are positions among the arm's own observations; ``visits`` says how many to leave out
    with each, itself included. Variances are those of the expected reward, without noise.
    """
    others_out, variance = precisions_without(arm, places, visits)
    return arm.dual(prior)[places] / others_out, variance


def precisions_without(
    arm: Arm, places: IntArray, visits: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return by what dual weights are divided to leave rewards out, and the variances then."""
    precision = np.empty(len(places))
    for first in range(0, len(places), _COLUMNS):
        own = places[first : first + _COLUMNS]
        columns = np.zeros((len(arm), len(own)))
        columns[own, np.arange(len(own))] = 1.0
        arm.factor.solve_many(columns)
        precision[first : first + len(own)] = np.einsum("ij,ij->j", columns, columns)
    # One of a single visit is exact; others lose digits where the ridge is tiny.
    noise = arm.noise.view[places]
    known = np.maximum(1.0 / noise - precision, 0.0)
    others_out = np.where(visits == 1, precision, 1.0 / noise - visits * known)
    others_out = np.maximum(others_out, np.finfo(np.float64).tiny)
    variance = np.maximum(1.0 / np.maximum(precision, np.finfo(np.float64).tiny) - noise, 0.0)
    many = known * noise / np.maximum(others_out, np.finfo(np.float64).tiny)
    return others_out, np.where(visits == 1, variance, many)
