"""Posteriors at very many contexts, by products with inverses that are computed once.

A triangular solve and a product with the inverse of the triangle take the same operations. But all
arms ask about the same φ, so their inverses, one above the other, make one large product of it; and
numpy lets other threads run during a product, which scipy does not during a solve.

Rounding: q = R⁻ᵀφ by the inverse of Rᵀ is as accurate as by a solve, since RᵀR is at least I, and φ
by the inverse of L since every diagonal entry of L is above a tenth of √ridge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.lapack import dtrtri

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.models.answers import Posterior
from contextgap.models.arm import root
from contextgap.models.bounded.arm import Folded, squares
from contextgap.models.bounded.dictionary import Dictionary
from contextgap.models.triangle import Triangle

_PANEL = 64  # rows of an inverse that are used at once; of what is above its diagonal, few
_BLOCK = 2**23  # numbers held at once


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


@dataclass(frozen=True)
class ManyContexts:
    """Computes what ``BoundedModel.posterior`` does, to rounding, until the model changes.

    ``fits`` are R⁻ᵀ Σ w·φ·(y − prior), a row for each arm.
    """

    kernel: Kernel
    points: FloatArray
    prior: float
    fits: FloatArray
    like: Posterior  # whose means and deviations are to be replaced
    lower: _Inverses
    roots: _Inverses

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        dictionary: Dictionary,
        arms: Sequence[Folded],
        prior: float,
        like: Posterior,
    ) -> Self:
        """Return what computes posteriors of arms all of whose rows are folded in."""
        fits = np.stack([arm.fit[0] - prior * arm.fit[1] for arm in arms])
        lower, roots = _Inverses([dictionary.factor]), _Inverses([arm.root for arm in arms])
        return cls(kernel, dictionary.points, prior, fits, like, lower, roots)

    def __call__(self, contexts: FloatArray) -> Posterior:
        """Return the posterior at contexts of shape (n, d)."""
        arms, points = self.fits.shape
        mean, variance = np.empty((2, arms, len(contexts)))
        size = max(64, _BLOCK // (2 * points + arms * _PANEL))
        for first in range(0, len(contexts), size):
            block = slice(first, first + size)
            mean[:, block], variance[:, block] = self._block(contexts[block])
        return self.like._replace(mean=mean.T.copy(), std=root(variance.T.copy()))

    def _block(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances, arms by contexts."""
        values = np.ascontiguousarray(self.kernel(self.points, contexts))
        features = np.empty_like(values)
        for rows, (product,) in self.lower.times(values):
            features[rows] = product
        residual = np.maximum(self.kernel.diagonal(contexts) - squares(features), 0.0)
        mean = np.full((len(self.fits), len(contexts)), self.prior)
        variance = np.tile(residual, (len(self.fits), 1))
        for rows, q in self.roots.times(features):
            mean += (self.fits[:, None, rows] @ q)[:, 0]
            variance += np.einsum("aij,aij->aj", q, q)
        return mean, variance
