"""Whether arms share what they learn, and how alike they are.

The same kernel is fitted once more, with one correlation of all arms and bandwidths of their
features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models import Alike, Features
from contextgap.models.tuning.criteria import Data, Limits, noise_of, part_of
from contextgap.models.tuning.descent import Steps
from contextgap.models.tuning.search import (
    FEATURES_LOGIT,
    LOGIT_SPREAD,
    TIGHT,
    Hyperparameters,
    Search,
    Terms,
    bandwidth_loss,
)

_LOGITS = (-7.0, 7.0)
_BANDWIDTHS = (math.log(1e-2), math.log(1e2))  # in units of √p standard deviations over the arms


class Sharing:
    """The part of the search variable that says how alike arms are.

    It holds the logit of the correlation and the logarithms of the features' bandwidths. Arms have
    ``counts`` observations, which come arm after arm.
    """

    def __init__(self, counts: IntArray, features: Features | None = None) -> None:
        self.counts, self.features = counts, features
        self.reference = np.empty(0) if features is None else features.usual_bandwidths
        self.size = 1 + len(self.reference)
        self.bounds = [_LOGITS, *[_BANDWIDTHS] * len(self.reference)]
        self._logit = 0.0 if features is None else FEATURES_LOGIT
        self._firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def start(self) -> FloatArray:
        """Return the most probable point of the prior."""
        return np.append(self._logit, np.zeros(self.size - 1))

    def prior_loss(self, part: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log density of a point, up to a constant, and its slope."""
        away = (part[0] - self._logit) / LOGIT_SPREAD
        loss, slope = 0.5 * away**2, np.array([away / LOGIT_SPREAD])
        if self.size > 1:
            more, slopes = bandwidth_loss(part[1:], TIGHT)
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


# Rewards up to which arms may share: the model keeps as many numbers as their square.
MOST_SHARED = 3000
# One factor over all observations takes time in the cube of their number: of the first search,
# and of the last.
_FEW, _MOST = 200, 400
_STEPS, _AGAIN = 25, 6  # from a new start, and from where another search ended
_PROMISING = 1.0  # nats by which arms that share must be better for the last search to be made


class Shared(NamedTuple):
    """The best hyperparameters of arms that share, and how much better they are."""

    found: Hyperparameters
    gain: float  # in nats, over the same kernel with arms that have nothing in common
    rewards: list[FloatArray]  # those used, by arm
    end: tuple[float, ...]  # where the search ended


def shared(
    terms: Terms,
    theta: FloatArray,
    start: Sequence[float] | None,
    data: Data,
    criterion: str,
    features: Features | None,
    limits: Limits | None = None,
) -> Steps[Shared | None]:
    """Return the best fit of arms that share, or None where it is no better than alone.

    ``terms`` and ``theta`` are the best kernel and point for arms that have nothing in common;
    ``start`` is where the last search ended, None if there was none; ``features`` has a row for
    each arm; ``limits`` are those of ``Search``.
    """
    point = np.empty(0) if start is None else np.array(start)
    steps = _STEPS if start is None else _AGAIN
    for most in (_FEW, _MOST) if start is None else (_MOST,):
        part = part_of(data, most, power=1)
        sharing = Sharing(np.array([len(y) for y in part[1]]), features)
        noise = noise_of(part)
        together = Search(terms, part[0], part[1], criterion, sharing, limits, noise)
        single = Search(terms, part[0], part[1], criterion, None, limits, noise)
        alone, own = yield from single.descend(theta, steps)
        if len(point) != len(own) + sharing.size:
            # Of arms alone, with how alike they are: the ratio stays last.
            point = np.concatenate([own[:-1], sharing.start(), own[-1:]])
        loss, point = yield from together.descend(point, steps)
        if loss > alone - (_PROMISING if most == _FEW else 0.0):
            return None
        if sum(map(len, part[1])) == sum(map(len, data[1])):
            break
    found = yield from together.hyperparameters(point)
    return Shared(found, alone - loss, part[1], tuple(point.tolist()))
