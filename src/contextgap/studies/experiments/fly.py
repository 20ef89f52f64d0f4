"""A flight: explore where the truth is known, deploy elsewhere, alternating along the orbit.

This is the setting of the paper's section 2, which its experiments left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.names import study_import
from contextgap.learner import Learner
from contextgap.methods.explorers import Explorer
from contextgap.methods.method import Method
from contextgap.policy import Policy
from contextgap.studies.experiments.compare import Entry, ScaledWidth
from contextgap.studies.experiments.tasks import Result, Task, execute_labelled
from contextgap.studies.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame


class PhasedProblem(Protocol):
    """A problem in time order that says at which rows feedback is available."""

    contexts: FloatArray
    rewards: FloatArray
    observations: FloatArray
    arms: tuple[Any, ...]
    known: Any
    orbit_number: IntArray

    @property
    def regret_table(self) -> FloatArray:
        """Simple regret of every arm at every row."""


@dataclass(frozen=True)
class FlightTrace:
    """What happened on a flight.

    Parameters
    ----------
    arms
        The arm used at every step, as an index: tried where the truth is known, deployed elsewhere.
    deployed
        Whether the step was one without feedback.
    regret
        Simple regret at every step; only deployed steps count.
    orbits
        Numbers of the orbits with deployed steps.
    average_regret
        Average regret over the deployed steps of each of those orbits.
    best_single
        The same for always using the one arm that is best over all deployed steps.
    random
        The same for a random arm at every step.
    policy
        What the learner would deploy after the flight.
    """

    arms: IntArray
    deployed: Any
    regret: FloatArray
    orbits: IntArray
    average_regret: FloatArray
    best_single: FloatArray
    random: FloatArray
    policy: Policy


def fly(
    problem: PhasedProblem,
    method: str | Method | Explorer = "auto",
    *,
    seed: int | None = 0,
    **settings: Any,
) -> FlightTrace:
    """Fly through windows with and without feedback, in time order.

    Before the first window with feedback, the first arm is deployed.

    Parameters
    ----------
    problem
        A problem whose ``known`` says where the truth is known, such as ``problems.Flight``.
    method
        A name from ``METHODS``, a ``Method``, or an explorer.
    seed
        Makes everything random repeatable.
    settings
        For the ``Learner``, such as ``kernel`` and ``ridge``; it learns what is left out.

    Examples
    --------
    >>> flight = cg.problems.Spacecraft(telemetry="currents").sample(400, seed=0)
    >>> trace = cg.experiments.fly(flight, kernel=cg.Gaussian(1.0))
    >>> trace.policy.arms
    ('top deck', 'bottom deck', 'boom')
    """
    if not hasattr(problem, "known"):
        raise TypeError(
            "problem must say by known where the truth is known, as problems.Flight does, "
            f"got {problem!r}"
        )
    learner = Learner(problem.arms, method=method, seed=seed, **settings)
    place = {arm: i for i, arm in enumerate(problem.arms)}
    known = np.asarray(problem.known, dtype=bool)
    arms = np.empty(len(known), dtype=np.intp)
    for first, end in _windows(known):
        if known[first]:
            for row in range(first, end):
                arm = learner.ask(problem.contexts[row])
                arms[row] = place[arm]
                observed = problem.observations[row, arms[row]]
                learner.tell(problem.contexts[row], arm, float(observed))
        elif any(learner.counts.values()):  # nothing is learnt on the way: a window at once
            deployed = learner.recommend(problem.contexts[first:end])
            arms[first:end] = [place[arm] for arm in deployed]
        else:
            arms[first:end] = 0
    return _trace(problem, arms, ~known, learner.freeze())


def _windows(known: Any) -> Iterator[tuple[int, int]]:
    """Stretches of rows over which ``known`` does not change."""
    edges = np.flatnonzero(np.diff(known)) + 1
    ends = [*edges.tolist(), len(known)]
    yield from zip([0, *ends[:-1]], ends, strict=True)


def _trace(problem: PhasedProblem, arms: IntArray, deployed: Any, policy: Policy) -> FlightTrace:
    table = problem.regret_table
    regret = table[np.arange(len(arms)), arms]
    if not deployed.any():
        raise ValueError("the truth is known at every row, so that nothing is ever deployed")
    single = table[:, table[deployed].mean(axis=0).argmin()]
    orbits = np.unique(problem.orbit_number[deployed])

    def by_orbit(values: FloatArray) -> FloatArray:
        rows = [deployed & (problem.orbit_number == orbit) for orbit in orbits]
        return np.array([values[each].mean() for each in rows])

    return FlightTrace(
        arms=arms,
        deployed=deployed,
        regret=regret,
        orbits=orbits,
        average_regret=by_orbit(regret),
        best_single=by_orbit(single),
        random=by_orbit(table.mean(axis=1)),
        policy=policy,
    )


def fly_all(missions: Sequence[Problem], entries: Sequence[Entry], **how: Any) -> DataFrame:
    """Fly every mission, its place the seed, with every entry; return regret by orbit."""
    pandas = study_import("pandas")
    places = [
        (
            {"method": entry.label, "seed": seed},
            Task(fly_once, {"mission": mission, **entry.settings, "seed": seed}),
        )
        for entry in entries
        for seed, mission in enumerate(missions)
    ]
    tables = [
        pandas.DataFrame({**label, **result}).drop(columns="seconds")
        for label, result in execute_labelled(places, **how)
    ]
    return pandas.concat(tables, ignore_index=True)


def fly_once(mission: Any, *, scale: float, width: ScaledWidth, **how: Any) -> Result:
    """Return one flight's regret by orbit; ``how`` is for ``fly``."""
    trace = fly(mission, width=replace(width, scale=scale), **how)
    deployed = mission.orbit_number[trace.deployed]
    return {
        "orbit": trace.orbits.tolist(),
        "steps": [int((deployed == orbit).sum()) for orbit in trace.orbits],
        "average_regret": trace.average_regret.tolist(),
        "best_single": trace.best_single.tolist(),
        "random": trace.random.tolist(),
    }
