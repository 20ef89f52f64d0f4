"""Keeps a few far rewards from deciding which scales explain all others.

The criteria count squared errors. Where a few rewards carry most of the variance, as in payments of
which most are zero, bandwidths would follow those few. They are learnt from rewards that are
brought within limits; noise, reward scale and mean, which promises rest on, from the rewards as
they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from contextgap.base.arrays import FloatArray

Limits: TypeAlias = tuple[float, float]

_FAR = 3.0  # standard deviations from the mean
# Rounds in which limits are found for what lies within the last ones: so many, and up to so many
# more while hardly any reward is beyond them, since a single one may be far beyond imagination.
_TIMES, _MORE, _FEW = 3, 50, 0.01
# The share of the variance that far rewards carry, from which they are too heavy: 0.03 of normally
# distributed rewards, 0.3 of exponential ones, 0.6 of log-normal ones with deviation 1.
_HEAVY = 0.5


def heavy_tails(rewards: Sequence[FloatArray]) -> Limits | None:
    """Return limits for rewards of which a few carry most of the variance; None for others."""
    everything = np.concatenate(rewards)
    # Of two values, limits would only change the unit.
    if not _is_heavy(everything) or len(np.unique(everything)) < 3:
        return None
    within = everything
    for times in range(_TIMES + _MORE):
        enough = np.mean(within != everything) > _FEW or not _is_heavy(within)
        if times >= _TIMES and enough:
            break
        middle, reach = float(within.mean()), _FAR * float(within.std())
        within = np.clip(everything, middle - reach, middle + reach)
    return middle - reach, middle + reach


def _is_heavy(rewards: FloatArray) -> bool:
    away = np.square(rewards - rewards.mean())
    return bool(away[away > _FAR**2 * rewards.var()].sum() > _HEAVY * away.sum())
