"""The prior on scales: normal distributions of their logarithms.

A handful of rewards, or many that are mostly noise, cannot tell a rough function from noise.
The prior decides then, and informative rewards override it. Bandwidths are counted in
units of √d standard deviations of their column, as in ``Gaussian.from_contexts``: in those
units the distance between two contexts does not depend on how many numbers a context has.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray

LEVEL_SPREAD = 0.7  # of all bandwidths together, around 1
WEIGHT, WEIGHT_SPREAD = -2.0, 2.0  # of a linear trend, and of the constant part
RATIO, RATIO_SPREAD = math.log(0.01), 3.0  # of the ridge over the reward scale
LOGIT_SPREAD = 2.0  # of the logit of the correlation between arms, around 0
FEATURES_LOGIT = 3.0  # where it is around this if arms have features, which users choose to matter
TRUST = 1.0  # observations that the first guess of the reward scale is worth


class Apart(NamedTuple):
    """How far single bandwidths are from the others: a Student t distribution.

    ``spread`` is its scale, ``tail`` its degrees of freedom: the fewer, the farther may a few
    bandwidths stand out.
    """

    spread: float
    tail: float


LOOSE = Apart(0.3, 1.0)
# Squared errors of rewards that are one of two values, or of which a few are far away, seem to say
# more than they do.
TIGHT = Apart(0.2, 4.0)


def bandwidth_beliefs(bandwidths: FloatArray, apart: Apart) -> tuple[float, FloatArray]:
    """Return minus the log density of log bandwidths, up to a constant, and its slope."""
    level, (spread, tail) = float(bandwidths.mean()), apart
    away = bandwidths - level
    stretched = 1.0 + (away / spread) ** 2 / tail
    loss = 0.5 * (level / LEVEL_SPREAD) ** 2 + 0.5 * (tail + 1) * float(np.log(stretched).sum())
    pull = (tail + 1) / tail * away / (spread**2 * stretched)
    return loss, level / (len(bandwidths) * LEVEL_SPREAD**2) + pull - pull.mean()


def weight_beliefs(weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the same for logarithms: of the weights of trend and constant part, then the ratio."""
    centre, spread = np.full((2, len(weights)), [[WEIGHT], [WEIGHT_SPREAD]])
    centre[-1], spread[-1] = RATIO, RATIO_SPREAD
    away = (weights - centre) / spread
    return 0.5 * float(away @ away), away / spread
