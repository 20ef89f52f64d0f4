"""Exact means at once, bounds on standard deviations that get closer as far as they are needed.

A mean costs one product with weights that are kept; a standard deviation costs a forward
substitution. But a decision that is the same for all standard deviations between two bounds does
not need them, and bounds are cheap. With λ_j and e_j the eigenvalues and eigenvectors of the arm's
kernel matrix K, k = k(x, X) and c_j = e_j·k,

    std² = k(x, x) − Σ c_j²/(λ_j + ridge) = Σ_{j ≤ m} ridge·c_j²/(λ_j·(λ_j + ridge)) + h − q

where h = k(x, x) − Σ_{j ≤ m} c_j²/λ_j and q = Σ_{j > m} c_j²/(λ_j + ridge). The first m
eigenvectors give the first two terms, and nearly all of q: writing u_j = c_j²/λ_j, q is the sum of
u_j·λ_j/(λ_j + ridge), where Σ u_j ≤ h and Σ u_j·λ_j = |k|² − Σ_{j ≤ m} c_j² =: r are known, and
λ_j ≤ λ_{m+1}. As t/(t + ridge) is concave, its chord and Jensen's inequality bound q on both sides:

    r/(λ_{m+1} + ridge) ≤ q ≤ h·r/(r + ridge·h).

With m = 0 the right side needs no eigenvector at all; nor does std² ≤ k(x, x) − k_i²/(k(x_i, x_i)
+ ridge), what the observation at x_i tells alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.models.arm import ROUNDING
from contextgap.models.exact import ExactModel
from contextgap.models.spectrum import STAGES, Spectrum, leading_spectrum

_TINY = float(np.finfo(np.float64).tiny)
# Rounding in a mean, in units of the sum of its terms' sizes.
_MEAN_ROUNDING = 1e-13
# Relative errors of variances beyond which bounds are of no use.
_TOLERABLE = 1e-3


class StillModel:
    """A model that does not change any more, prepared for many contexts.

    Parameters
    ----------
    model
        The posterior.
    arms
        Which arms.
    """

    def __init__(self, model: ExactModel, arms: Sequence[int]) -> None:
        states = [model.arm(arm) for arm in arms]
        self.kernel: Kernel = model.kernel
        self.ridge = model.ridge
        self.prior = model.prior()
        self.weights = [state.dual(self.prior) for state in states]  # of kernel values in a mean
        self.sizes = np.array([len(state) for state in states])
        # All arms' points, one arm after the other, so that one call gives all kernel values.
        self.points = model.contexts[np.concatenate([state.places.view for state in states])]
        ends = self.sizes.cumsum()
        self.columns = [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]
        self.largest = float(self.kernel.diagonal(self.points).max(initial=0.0))
        # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
        size = max(float(np.abs(weights).sum()) for weights in self.weights)
        self.reach = size * math.sqrt(self.largest)
        self.spectra: list[Spectrum] = []  # if they were found

    def values(self, contexts: FloatArray) -> FloatArray:
        """Return kernel values between contexts and all points."""
        if not len(self.points):
            return np.empty((len(contexts), 0))
        return self.kernel(contexts, self.points)

    def find_spectra(self) -> None:
        """Compute every arm's spectrum, which takes time in n³; keep them if rounding allows."""
        own = [self.points[columns] for columns in self.columns]
        try:
            found = [
                leading_spectrum(self.kernel(x, x) if len(x) else np.empty((0, 0)), self.ridge)
                for x in own
            ]
        except LinAlgError:  # it did not converge; decisions can do without
            return
        if max(spectrum.tolerance for spectrum in found) <= _TOLERABLE:
            self.spectra = found


class NarrowingPosterior:
    """Means, and bounds on standard deviations that get closer stage by stage.

    Parameters
    ----------
    model
        The posterior.
    contexts
        Shape (m, d).
    """

    def __init__(self, model: StillModel, contexts: FloatArray) -> None:
        self._model = model
        self._taken = 0  # eigenvectors of each arm
        shape = (len(contexts), len(model.weights))
        prior_variance = model.kernel.diagonal(contexts)
        self.mean = np.full(shape, model.prior)
        self.slack = _MEAN_ROUNDING * (abs(model.prior) + model.reach * np.sqrt(prior_variance))
        self._prior_variance = prior_variance[:, None]
        self._values = model.values(contexts)
        self._told = np.zeros(shape)  # the sum over the first m eigenvectors
        self._unexplained = np.repeat(self._prior_variance, shape[1], axis=1)  # h
        self._rest = np.zeros(shape)  # r
        self._nearest = np.zeros(shape)  # what one observation explains
        for arm, (columns, weights) in enumerate(zip(model.columns, model.weights, strict=True)):
            if len(weights):
                values = self._values[:, columns]
                self.mean[:, arm] += values @ weights
                self._rest[:, arm] = np.einsum("ij,ij->i", values, values)
                told = values.max(axis=1) / math.sqrt(model.largest + model.ridge)
                self._nearest[:, arm] = told**2

    @property
    def can_narrow(self) -> bool:
        """Whether there are eigenvectors to take in."""
        return any(self._taken < len(spectrum.values) for spectrum in self._model.spectra)

    @property
    def least(self) -> FloatArray:
        """Lower bounds of the standard deviations."""
        ridge, h = self._model.ridge, self._unexplained
        bound = self._told + h * (ridge * h / np.maximum(self._rest + ridge * h, _TINY))
        bound -= self._spoilt()
        return np.sqrt(np.maximum(bound, 0.0, out=bound), out=bound)

    @property
    def most(self) -> FloatArray:
        """Upper bounds of the standard deviations."""
        bound = self._prior_variance - self._nearest
        if self._model.spectra:
            others = [spectrum.bound_after(self._taken) for spectrum in self._model.spectra]
            rest = self._rest / (np.array(others) + self._model.ridge)
            np.minimum(bound, self._told + self._unexplained - rest, out=bound)
        bound += self._spoilt()
        return np.sqrt(np.maximum(bound, 0.0, out=bound), out=bound)

    def keep(self, which: IntArray) -> None:
        """Go on with some of the contexts only."""
        self.mean, self.slack = self.mean[which], self.slack[which]
        self._told, self._unexplained = self._told[which], self._unexplained[which]
        self._rest, self._prior_variance = self._rest[which], self._prior_variance[which]
        self._nearest, self._values = self._nearest[which], self._values[which]

    def narrow(self) -> None:
        """Take in the next eigenvectors of every arm."""
        first, ridge = self._taken, self._model.ridge
        self._taken = next(end for end in STAGES if end > first)
        for arm, spectrum in enumerate(self._model.spectra):
            found = spectrum.values[first : self._taken]
            if not len(found):
                continue
            values = self._values[:, self._model.columns[arm]]
            squares = values @ spectrum.vectors[:, first : self._taken]
            np.square(squares, out=squares)
            told = ridge / (found * (found + ridge))
            sums = squares @ np.column_stack([told, 1 / found, np.ones(len(found))])
            self._told[:, arm] += sums[:, 0]
            self._unexplained[:, arm] -= sums[:, 1]
            self._rest[:, arm] -= sums[:, 2]
        np.maximum(self._unexplained, 0.0, out=self._unexplained)
        np.maximum(self._rest, 0.0, out=self._rest)

    def _spoilt(self) -> FloatArray:
        """How wrong rounding may make a variance, here and where it is computed in full."""
        relative = ROUNDING * (self._model.sizes + 1)
        if self._model.spectra:
            relative = relative + [spectrum.tolerance for spectrum in self._model.spectra]
        return np.asarray(relative * self._prior_variance)
