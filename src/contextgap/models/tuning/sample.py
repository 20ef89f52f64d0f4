"""Chooses the observations that tuning uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray, evenly

# A criterion costs as much as factorising every arm's covariance; this many operations, those of
# two arms with 600 observations each, are some seconds for a whole search.
MOST_OPERATIONS = 2 * 600**3


Data: TypeAlias = tuple[list[FloatArray], list[FloatArray]]  # contexts and rewards, by arm


def part_of(data: Data, operations: float, power: int = 3) -> Data:
    """Return each arm's observations, thinned out to the number that may be used."""
    contexts, rewards = data
    places = looked_at(contexts, rewards, operations, power)
    return (
        [x[own] for x, own in zip(contexts, places, strict=True)],
        [y[own] for y, own in zip(rewards, places, strict=True)],
    )


def looked_at(
    contexts: Sequence[FloatArray],
    rewards: Sequence[FloatArray],
    operations: float = MOST_OPERATIONS,
    power: int = 3,
) -> list[IntArray]:
    """Return, for every arm, the places of the observations to use, evenly spread over time.

    Those of an arm with n of them cost n to the power given; all together cost at most
    ``operations``.

    Repeated observations at one context count once if they always agree to the last digit: their
    noise does not change between visits, so it would be mistaken for no noise, and the function for
    noise. If any two disagree, every visit has noise of its own and counts.
    """
    places = [np.arange(len(y)) for y in rewards]
    firsts = [_first_visits(x, y) for x, y in zip(contexts, rewards, strict=True)]
    if all(first is not None for first in firsts):
        places = [first for first in firsts if first is not None]
    most = _most_each([len(own) for own in places], operations, power)
    return [evenly(own, most) for own in places]


def repetitions(contexts: FloatArray, rewards: FloatArray) -> IntArray | None:
    """Return how often each observation's context was visited; None if any two visits disagree."""
    if not len(rewards):
        return np.empty(0, dtype=np.intp)
    _, group, counts = np.unique(contexts, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    highest, lowest = np.full(len(counts), -np.inf), np.full(len(counts), np.inf)
    np.maximum.at(highest, group, rewards)
    np.minimum.at(lowest, group, rewards)
    if (highest != lowest).any():
        return None
    return np.asarray(counts[group])


def _first_visits(contexts: FloatArray, rewards: FloatArray) -> IntArray | None:
    """Return the places of every context's first visit; None if any two visits disagree."""
    if repetitions(contexts, rewards) is None:
        return None
    if not len(rewards):
        return np.empty(0, dtype=np.intp)
    return np.asarray(np.sort(np.unique(contexts, axis=0, return_index=True)[1]))


def _most_each(counts: Sequence[int], operations: float, power: int = 3) -> int:
    """Return how many observations each arm may have, if n of them cost n to a power."""
    ordered = np.sort(np.asarray(counts, dtype=np.float64))
    below = np.concatenate([[0.0], np.cumsum(ordered**power)[:-1]])
    left = np.arange(len(ordered), 0, -1)
    allowed = (np.maximum(operations - below, 0.0) / left) ** (1 / power) + 1e-9
    fits = np.flatnonzero(allowed < ordered)
    return int(allowed[fits[0]]) if len(fits) else int(ordered[-1])


def nearest_distance(contexts: FloatArray, most: int = 1500) -> float:
    """Return the median distance from a context to the nearest other one; 0 if there is none."""
    from scipy.spatial import cKDTree  # slow to load

    distinct = np.unique(contexts, axis=0)
    distinct = distinct[evenly(np.arange(len(distinct)), most)]
    if len(distinct) < 2:
        return 0.0
    distances = np.asarray(cKDTree(distinct).query(distinct, k=2)[0])
    return float(np.median(distances[:, 1]))
