"""What tuning learns about how alike arms are: one correlation, and bandwidths of arm features."""

from __future__ import annotations

import math

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models import Alike, Features
from contextgap.models.tuning.beliefs import FEATURES_LOGIT, LOGIT_SPREAD, TIGHT, bandwidth_beliefs

_LOGITS = (-7.0, 7.0)
_BANDWIDTHS = (math.log(1e-2), math.log(1e2))  # in units of √p standard deviations over the arms


class Sharing:
    """The part of the search variable that says how alike arms are.

    It holds the logit of the correlation and the logarithms of the features' bandwidths.

    Parameters
    ----------
    counts
        How many observations each of the arms has; observations come arm after arm.
    features
        Of those arms; None if they have none.
    """

    def __init__(self, counts: IntArray, features: Features | None = None) -> None:
        self.counts, self.features = counts, features
        self.reference = np.empty(0) if features is None else features.usual_bandwidths
        self.size = 1 + len(self.reference)
        self.bounds = [_LOGITS, *[_BANDWIDTHS] * len(self.reference)]
        self._logit = 0.0 if features is None else FEATURES_LOGIT
        self._firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def start(self) -> FloatArray:
        """Return the point that is believed in most."""
        return np.append(self._logit, np.zeros(self.size - 1))

    def beliefs(self, part: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log density of a point, up to a constant, and its slope."""
        away = (part[0] - self._logit) / LOGIT_SPREAD
        loss, slope = 0.5 * away**2, np.array([away / LOGIT_SPREAD])
        if self.size > 1:
            more, slopes = bandwidth_beliefs(part[1:], TIGHT)
            return loss + more, np.append(slope, slopes)
        return loss, slope

    def alike(self, part: FloatArray) -> Alike:
        """Return the correlations at a point."""
        sharing = 1 / (1 + math.exp(-part[0]))
        if self.features is None:
            return Alike(sharing)
        rows = tuple(map(tuple, self.features.rows.tolist()))
        bandwidths = tuple((self.reference * np.exp(part[1:])).tolist())
        return Alike(sharing, rows, bandwidths, self.features.categories)

    def spread(self, matrix: FloatArray) -> FloatArray:
        """Return a table of arms as one of observations."""
        return np.repeat(np.repeat(matrix, self.counts, axis=0), self.counts, axis=1)

    def slopes(self, part: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the slope of Σ weights · B, both tables of observations."""
        alike = self.alike(part)
        by_arm = np.add.reduceat(np.add.reduceat(weights, self._firsts, 0), self._firsts, 1)
        common = alike.similar * by_arm
        rho = alike.sharing
        slopes = [rho * (1 - rho) * (common.sum() - by_arm.trace())]
        if self.features is not None:
            numbers = len(alike.bandwidths) - self.features.categories
            for place, width in enumerate(alike.bandwidths):
                column = self.features.rows[:, place]
                apart = column[:, None] - column
                if place >= numbers:
                    apart = (apart != 0).astype(np.float64)
                slopes.append(rho * (common * np.square(apart / width)).sum())
        return np.array(slopes)
