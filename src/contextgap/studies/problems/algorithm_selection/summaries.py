"""The usual summaries of algorithm selection: single and virtual best solver, closed gap, folds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.studies.problems.algorithm_selection.scenario import Scenario

_DEALT_FOLDS = 10


def single_best(scenario: Scenario) -> int:
    """Return the index of the algorithm with the best mean performance.

    Parameters
    ----------
    scenario
        The instances to choose it on, usually the training part.
    """
    return int(scenario.performance.mean(axis=0).argmin())


def virtual_best(scenario: Scenario) -> IntArray:
    """Return the index of the best algorithm for each instance: what a perfect selector picks.

    Parameters
    ----------
    scenario
        The instances.
    """
    return np.asarray(scenario.performance.argmin(axis=1))


def selected_performance(scenario: Scenario, arms: Any) -> FloatArray:
    """Return the performance of one pick per instance, in the scenario's own unit.

    Parameters
    ----------
    scenario
        The instances.
    arms
        Indices 0..A-1, one per row; or one index for all rows.
    """
    picks = np.broadcast_to(np.asarray(arms), (len(scenario),)) if np.ndim(arms) == 0 else arms
    scenario.regret(picks)  # raises if these are not picks
    performance: FloatArray = scenario.performance[np.arange(len(scenario)), picks]
    return performance


def closed_gap(scenario: Scenario, arms: Any, *, train: Scenario | None = None) -> float:
    """Return which share of the gap between single and virtual best solver the picks close.

    (SBS − selected) / (SBS − VBS) in mean performance: 1 for perfect picks, 0 for picks as good as
    the single best solver, negative for worse ones; NaN where there is no gap.

    Parameters
    ----------
    scenario
        The instances that were picked for.
    arms
        Indices 0..A-1, one per row.
    train
        The instances to choose the single best solver on; by default those of ``scenario``.
    """
    single = selected_performance(scenario, single_best(scenario if train is None else train))
    gap = single.mean() - scenario.performance.min(axis=1).mean()
    if gap == 0:
        return math.nan
    return float((single.mean() - selected_performance(scenario, arms).mean()) / gap)


def folds(scenario: Scenario) -> Iterator[tuple[Scenario, Scenario]]:
    """Yield a training and a test part for each of the scenario's cross-validation folds.

    Instances without a fold are trained on and never tested. A scenario that has no folds at all
    is dealt into ten, always the same.

    Parameters
    ----------
    scenario
        What to divide.
    """
    numbers = scenario.folds if scenario.folds.any() else _dealt(len(scenario))
    present = np.unique(numbers[numbers > 0])
    if len(scenario) < 2 or (len(present) == 1 and (numbers > 0).all()):
        raise ValueError(f"{scenario.name!r} has one fold only, which leaves nothing to train on")
    for number in present:
        test = numbers == number
        yield scenario.take(~test), scenario.take(test)


def _dealt(rows: int) -> IntArray:
    return np.random.default_rng(0).permutation(rows) % _DEALT_FOLDS + 1
