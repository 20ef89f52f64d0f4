"""Whether arms have something in common: the same kernel once more, with arms that share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.models import Features
from contextgap.models.tuning.sample import Data, part_of
from contextgap.models.tuning.search import Scales, Search
from contextgap.models.tuning.sharing import Sharing
from contextgap.models.tuning.tails import Limits
from contextgap.models.tuning.terms import Terms

# Rewards up to which arms may share: the model keeps as many numbers as their square.
MOST_SHARED = 3000
# One factor over all observations takes time in the cube of their number: what is first looked at,
# and what is looked at in all.
_FEW, _MOST = 300, 750
_STEPS = 25


class Shared(NamedTuple):
    """The best scales of arms that share, and how much better they are.

    ``gain`` is in nats, over the same kernel with arms that have nothing in common; ``rewards`` are
    those looked at, by arm.
    """

    scales: Scales
    gain: float
    rewards: list[FloatArray]


def shared(
    terms: Terms,
    theta: FloatArray,
    data: Data,
    criterion: str,
    features: Features | None,
    limits: Limits | None = None,
) -> Shared | None:
    """Return the best scales of arms that share, or None where they are no better than alone.

    ``terms`` and ``theta`` are the kernel and the best scales of arms that have nothing in common;
    ``features`` has a row for each arm; ``limits`` are those of ``Search``.
    """
    point = np.empty(0)
    for most in (_FEW, _MOST):
        part = part_of(data, most, power=1)
        sharing = Sharing(np.array([len(y) for y in part[1]]), features)
        together = Search(terms, *part, criterion, sharing, limits)
        alone, own = Search(terms, *part, criterion, None, limits).descend(theta, _STEPS)
        start = point if len(point) else _joined(own, sharing.start())
        loss, point = together.descend(start, _STEPS)
        if loss >= alone:
            return None
        if sum(map(len, part[1])) == sum(map(len, data[1])):
            break
    return Shared(together.scales(point), alone - loss, part[1])


def _joined(theta: FloatArray, alike: FloatArray) -> FloatArray:
    """Return the point of arms that share, from that of arms alone: the ratio stays last."""
    return np.concatenate([theta[:-1], alike, theta[-1:]])
