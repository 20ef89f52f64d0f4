"""How long to let a run go on: a cutoff for each arm, where costs are times to be kept low.

The time T of a run is believed to be normal with mean μ and variance v = s² + ridge, s² being the
variance of its expectation f, and positive. A run that ends at t ≤ c leaves f with the mean
μ + (t − μ)·s²/v; of one that is cut off at c it is known that T > c, and the mean is the average of
those. So the gain

    E[lowest mean now − lowest mean then]

of a cutoff c, the other arms' means being fixed, is an average over quantiles of T. An arm that
seems slower than the best other one need run only until it is known not to be faster: a longer
cutoff has the same gain and takes more time. The cutoff is the one of C, C/2, C/4, ... with the
highest gain per expected time E[min(T, c)]; none is shorter than half the shortest run so far that
was not cut off. Where no cutoff gains anything, it is the shortest of at least twice the lowest
mean, which tells whether an arm is about as fast as the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label
from contextgap.beliefs.belief import Belief

_HALVINGS = 12  # of the longest cutoff
_QUANTILES = 200
_ENOUGH = 2.0  # times the lowest mean, where nothing is to be gained
_FIRST = 7  # halvings, for the very first run


class Pick(NamedTuple):
    """An arm to try, and how long to let it run.

    Parameters
    ----------
    arm
        The label of the arm.
    cutoff
        When to stop the run; tell it as ``censored`` then.
    """

    arm: Label
    cutoff: float


class Cutoffs(NamedTuple):
    """The cutoff of each arm, and how long its run is expected to take."""

    cutoffs: FloatArray
    expected: FloatArray


def best_cutoffs(belief: Belief, ridge: float, most: float, least: float = 0.0) -> Cutoffs:
    """Return cutoffs for all arms at one context, where rewards are minus times."""
    from scipy.special import ndtr, ndtri

    grid = most * 0.5 ** np.arange(_HALVINGS, -1.0, -1.0)
    grid = grid[grid >= min(least, most)]
    mean, variance = -belief.mean, np.square(belief.std)
    v = variance + ridge
    above = ndtr(mean / np.sqrt(v))[:, None]  # the probability of times that there can be
    z = -ndtri(above * (np.arange(_QUANTILES) + 0.5) / _QUANTILES)[:, ::-1]
    times = mean[:, None] + np.sqrt(v)[:, None] * z  # arms by quantiles
    then = mean[:, None] + (variance / np.sqrt(v))[:, None] * z
    cut = times[:, None] > grid[:, None]  # arms by cutoffs by quantiles
    expected = np.minimum(times[:, None], grid[:, None]).mean(axis=-1)
    given = np.where(cut, then[:, None], 0.0).sum(axis=-1) / np.maximum(cut.sum(axis=-1), 1)
    found = np.where(cut, given[..., None], then[:, None])
    others = np.array([np.delete(mean, arm).min(initial=np.inf) for arm in range(len(mean))])
    now = np.minimum(then.mean(axis=-1), others)[:, None]
    gain = now - np.minimum(found, others[:, None, None]).mean(axis=-1)
    places = (gain / expected).argmax(axis=1)  # of equals the shortest
    enough = min(int(np.searchsorted(grid, _ENOUGH * mean.min())), len(grid) - 1)
    places[gain.max(axis=1) <= 1e-9 * np.sqrt(v)] = enough
    return Cutoffs(grid[places], np.take_along_axis(expected, places[:, None], axis=1)[:, 0])


def first_cutoff(longest: float, most: float) -> float:
    """Return the cutoff of a run before there are beliefs: twice the longest time told so far."""
    return min(most, 2 * longest) if longest > 0 else most * 0.5**_FIRST
