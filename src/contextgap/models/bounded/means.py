"""Means from kernel values alone, with all that does not depend on the context computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.models.answers import Bounds

# Rounding in a mean, in units of the sum of its terms' sizes.
_MEAN_ROUNDING = 1e-13


@dataclass(frozen=True)
class Means:
    """Means at any context: the prior's plus kernel values times weights, a column for each arm.

    ``largest`` bounds the sum of the sizes of a mean's terms, in units of √k(x, x).
    """

    kernel: Kernel
    points: FloatArray
    weights: FloatArray
    prior: float
    largest: float

    @classmethod
    def of(cls, kernel: Kernel, points: FloatArray, weights: FloatArray, prior: float) -> Self:
        """Return the means that weights of kernel values with points make."""
        largest = 0.0
        if len(points):
            # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
            own = float(kernel.diagonal(points).max())
            largest = float(np.abs(weights).sum(axis=0).max()) * math.sqrt(own)
        return cls(kernel, points, weights, prior, largest)

    def bounds(self, contexts: FloatArray) -> Bounds:
        """Return means, and standard deviations between 0 and the prior's."""
        mean, slack, most = self._means(contexts)
        wide = (most * (1 + 1e-9))[:, None] * np.ones(mean.shape[1])
        return Bounds(mean, np.zeros(mean.shape), wide, slack)

    def means(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means, and by how much they may be wrong."""
        return self._means(contexts)[:2]

    def _means(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means, by how much they may be wrong, and the prior's standard deviation."""
        if len(self.points):
            mean = self.kernel(contexts, self.points) @ self.weights
            mean += self.prior
        else:
            mean = np.full((len(contexts), self.weights.shape[1]), self.prior)
        most = np.sqrt(np.maximum(self.kernel.diagonal(contexts), 0.0))
        return mean, _MEAN_ROUNDING * (abs(self.prior) + self.largest * most), most
