"""What the page draws of many trials: at most so many bins and points, however many there are."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.labels import decode_label
from contextgap.team.campaign.trial import STATES
from contextgap.team.service.page.tally import Counted

BINS, POINTS, SHOWN = 120, 500, 8
"""The most bins along time, the most single rewards, and the most arms with a colour of their own.

Where there are more arms, the ones picked least are drawn as one.
"""

_FINE = 2.0  # bins per square root of the number of trials, so that shares mean something


def by_state(trials: Counted) -> dict[str, int]:
    """Return how many trials there are in each state."""
    counts = np.bincount(trials.state, minlength=len(STATES))
    return dict(zip(STATES, counts.tolist(), strict=True))


def by_arm(trials: Counted) -> list[dict[str, Any]]:
    """Return of each arm how often it was picked, how many rewards count, and their mean."""
    told = trials.are("told")
    size = len(trials.arms)
    picks = np.bincount(trials.arm, minlength=size)
    rewards = np.bincount(trials.arm[told], minlength=size)
    sums = np.bincount(trials.arm[told], trials.reward[told], minlength=size)
    return [
        {
            "key": key,
            "text": text_of(key),
            "picks": int(picks[place]),
            "rewards": int(rewards[place]),
            "mean": float(sums[place] / rewards[place]) if rewards[place] else None,
        }
        for place, key in enumerate(trials.arms)
    ]


def over_time(trials: Counted) -> dict[str, Any]:
    """Return picks and rewards by bins of the trials' numbers, for the arms that are shown.

    A bin is given by the numbers of its first and last trial; ``null`` is a mean of nothing. With
    more arms than can be shown, the last series is of all others.
    """
    shown = _shown(trials)
    series = np.full(len(trials.arms), len(shown), dtype=np.intp)
    series[shown] = np.arange(len(shown))
    arms: list[dict[str, Any]] = [
        {"key": trials.arms[place], "text": text_of(trials.arms[place])} for place in shown
    ]
    if len(shown) < len(trials.arms):
        arms.append({"key": None, "text": "all others"})
    own, edges = series[trials.arm], _edges(len(trials.arm))
    told = trials.are("told")
    return {
        "event": trials.event,
        "arms": arms,
        "bins": [[int(a) + 1, int(b)] for a, b in pairwise(edges)],
        "picks": _counts(own, edges, len(arms)).tolist(),
        "rewards": _means(own, told, trials.reward, edges, len(arms)),
        "points": _points(own, told, trials.reward),
    }


def told_order(trials: Counted, places: Sequence[int]) -> list[int | None]:
    """Return the numbers of trials by their places among the rewards that count, as told."""
    (told,) = np.nonzero(trials.are("told"))
    order = told[np.lexsort((told, trials.told_by[told]))] + 1
    return [int(order[place]) if place < len(order) else None for place in places]


def text_of(key: str) -> str:
    """Return an arm as people read it."""
    return str(decode_label(json.loads(key)))


def _shown(trials: Counted) -> list[int]:
    count = len(trials.arms)
    if count <= SHOWN:
        return list(range(count))
    picks = np.bincount(trials.arm, minlength=count)
    return sorted(np.argsort(-picks, kind="stable")[: SHOWN - 1].tolist())


def _edges(count: int) -> IntArray:
    bins = min(BINS, count, round(_FINE * math.sqrt(count)))
    return np.linspace(0, count, bins + 1).round().astype(np.intp)


def _bin_of(numbers: IntArray, edges: IntArray) -> IntArray:
    return np.searchsorted(edges, numbers, side="right") - 1


def _counts(own: IntArray, edges: IntArray, arms: int) -> IntArray:
    bins = _bin_of(np.arange(len(own)), edges)
    size = (len(edges) - 1) * arms
    counts = np.bincount(bins * arms + own, minlength=size)
    return np.asarray(counts.reshape(-1, max(arms, 1)), dtype=np.intp)


def _means(
    own: IntArray, told: Any, rewards: FloatArray, edges: IntArray, arms: int
) -> list[list[float | None]]:
    (numbers,) = np.nonzero(told)
    cells, size = _bin_of(numbers, edges) * arms + own[numbers], (len(edges) - 1) * arms
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, rewards[numbers], minlength=size)
    with np.errstate(invalid="ignore"):
        means = (sums / counts).reshape(-1, max(arms, 1)).tolist()
    return [[None if mean != mean else mean for mean in row] for row in means]


def _points(own: IntArray, told: Any, rewards: FloatArray) -> list[list[float]]:
    """Return some rewards, evenly spread over time: trial, series, reward."""
    (numbers,) = np.nonzero(told)
    chosen = evenly(numbers, POINTS)
    return [[int(i) + 1, int(own[i]), float(rewards[i])] for i in chosen]
