"""What the bounded model says at very many contexts, by products computed once for all arms.

A triangular solve and a product with the inverse of the triangle take the same operations. But all
arms ask about the same φ, so their inverses, one above the other, make one large product of it; and
numpy lets other threads run during a product, which scipy does not during a solve.

Rounding: q = R⁻ᵀφ by the inverse of Rᵀ is as accurate as by a solve, since RᵀR is at least I, and φ
by the inverse of L since every diagonal entry of L is above a tenth of √ridge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from contextgap.base.arrays import FloatArray
from contextgap.base.components import lazy
from contextgap.models.arm import MEAN_ROUNDING, root
from contextgap.models.base import Posterior, Predictor
from contextgap.models.bounded_arm import squares
from contextgap.models.factor import Triangle

if TYPE_CHECKING:
    from contextgap.models.bounded import BoundedModel

_PANEL = 64  # rows of an inverse that are used at once; of what is above its diagonal, few
_BLOCK = 2**23  # numbers held at once
# Contexts, for each number that one of them takes, from which on preparing inverses pays.
_MANY = 4


class _Inverses:
    """T⁻¹ of some lower triangles of the same size, in panels of rows one above the other."""

    def __init__(self, triangles: Sequence[Triangle]) -> None:
        inverses = [dtrtri(each.transposed())[0].T for each in triangles]
        size = triangles[0].size
        self._count = len(triangles)
        self._panels = [
            np.vstack([each[first : first + _PANEL, : first + _PANEL] for each in inverses])
            for first in range(0, size, _PANEL)
        ]

    def times(self, columns: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield rows of T⁻¹·columns: which, and their values for every T."""
        for place, panel in enumerate(self._panels):
            end = panel.shape[1]
            product = panel @ columns[:end]
            yield slice(place * _PANEL, end), product.reshape(self._count, -1, columns.shape[1])


class _Prepared(NamedTuple):
    """What posteriors are computed from: all rows of all arms folded in."""

    prior: float
    fits: FloatArray  # R⁻ᵀ Σ w·φ·(y − prior), a row for each arm
    like: Posterior  # whose means and deviations are to be replaced
    lower: _Inverses
    roots: _Inverses


class BoundedPredictor(Predictor):
    """Posteriors by products with inverses, and means by products with kernel values."""

    model: BoundedModel

    def posterior(self, contexts: FloatArray, among: int = 0) -> Posterior:
        """Return what ``BoundedModel.posterior`` does, to rounding."""
        enough = among >= _MANY * self.model.numbers_per_context
        if not enough or not len(self.model.dictionary):
            return self.model.posterior(contexts, self.arms)
        mean, variance = np.empty((2, len(self.arms), len(contexts)))
        size = max(64, _BLOCK // (2 * len(self.model.dictionary) + len(self.arms) * _PANEL))
        for first in range(0, len(contexts), size):
            block = slice(first, first + size)
            mean[:, block], variance[:, block] = self._block(contexts[block])
        return self._prepared.like._replace(mean=mean.T.copy(), std=root(variance.T.copy()))

    def means(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prior's mean plus kernel values times weights."""
        model, (weights, largest) = self.model, self._weights
        if len(model.dictionary):
            mean = model.kernel(contexts, model.dictionary.points) @ weights
            mean += model.prior()
        else:
            mean = np.full((len(contexts), len(self.arms)), model.prior())
        deviation = np.sqrt(np.maximum(model.kernel.diagonal(contexts), 0.0))
        return mean, MEAN_ROUNDING * (abs(model.prior()) + largest * deviation)

    @lazy
    def _weights(self) -> tuple[FloatArray, float]:
        """Weights of kernel values, a column for each arm, and a bound on a mean's terms' sizes."""
        model = self.model
        weights = np.stack([model.weights(arm) for arm in self.arms], axis=1)
        if not len(model.dictionary):
            return weights, 0.0
        # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
        own = float(model.kernel.diagonal(model.dictionary.points).max())
        return weights, float(np.abs(weights).sum(axis=0).max()) * math.sqrt(own)

    @lazy
    def _prepared(self) -> _Prepared:
        model, prior = self.model, self.model.prior()
        folded = [model.arm(arm).all_folded() for arm in self.arms]
        fits = np.stack([arm.fit[0] - prior * arm.fit[1] for arm in folded])
        lower, roots = _Inverses([model.dictionary.factor]), _Inverses([arm.root for arm in folded])
        like = model.posterior(model.dictionary.points[:0], self.arms)
        return _Prepared(prior, fits, like, lower, roots)

    def _block(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances, arms by contexts."""
        model, (prior, fits, _, lower, roots) = self.model, self._prepared
        values = np.ascontiguousarray(model.kernel(model.dictionary.points, contexts))
        features = np.empty_like(values)
        for rows, (product,) in lower.times(values):
            features[rows] = product
        residual = np.maximum(model.kernel.diagonal(contexts) - squares(features), 0.0)
        mean = np.full((len(fits), len(contexts)), prior)
        variance = np.tile(residual, (len(fits), 1))
        for rows, q in roots.times(features):
            mean += (fits[:, None, rows] @ q)[:, 0]
            variance += np.einsum("aij,aij->aj", q, q)
        return mean, variance
