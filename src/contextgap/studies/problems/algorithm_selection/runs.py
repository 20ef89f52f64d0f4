"""The performance of every algorithm on every instance."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.studies.problems.algorithm_selection.description import Description
from contextgap.studies.problems.algorithm_selection.relation import INSTANCE, Relation

PENALTY = 10.0  # PAR10: a run that did not finish counts ten times the cutoff


@dataclass(frozen=True, eq=False)
class Runs:
    """Performance, shape (instances, algorithms) and averaged over repetitions; lower is better.

    Instances and algorithms are in the order of their first run.
    """

    instances: tuple[str, ...]
    algorithms: tuple[str, ...]
    performance: FloatArray


def read_runs(
    relation: Relation, description: Description, known: Container[str], penalty: float
) -> Runs:
    """Return the table of performance from the runs, one per row of ``relation``.

    ``known`` holds the instances that other files of the scenario mention; a run that did not
    finish in time counts as ``penalty`` times the cutoff.
    """
    for row, name in enumerate(relation.instances):
        if name not in known:
            raise ValueError(
                f"{relation.place(row, INSTANCE)}: the instance {name!r} is unknown; "
                "neither features nor cross-validation folds mention it"
            )
    names = relation.texts("algorithm")
    instances = tuple(dict.fromkeys(relation.instances))
    algorithms = tuple(dict.fromkeys(names))
    if len(algorithms) < 2:
        raise ValueError(f"{relation.path}: runs of at least two algorithms are needed")
    if description.runtime:
        values, failure = _runtimes(relation, description, penalty)
    else:
        values, failure = _qualities(relation, description)
    cells = _places(relation.instances, instances) * len(algorithms) + _places(names, algorithms)
    size = len(instances) * len(algorithms)
    total = np.bincount(cells, values, size)
    count = np.bincount(cells, minlength=size)
    if math.isinf(failure) and not count.all():
        raise ValueError(_no_cutoff(description, "some algorithms were not run on all instances"))
    mean = np.where(count > 0, total / np.maximum(count, 1), failure)
    return Runs(instances, algorithms, mean.reshape(len(instances), len(algorithms)))


def _places(names: tuple[str, ...], among: tuple[str, ...]) -> IntArray:
    places = {name: place for place, name in enumerate(among)}
    return np.array([places[name] for name in names], dtype=np.intp)


def _measured(relation: Relation, description: Description) -> FloatArray:
    if description.measure not in relation.names:
        raise ValueError(
            f"{description.path}: performance_measures names {description.measure!r}, which is no "
            f"attribute of {relation.path}; those are {list(relation.names)}"
        )
    return relation.numbers(description.measure)


def _runtimes(
    relation: Relation, description: Description, penalty: float
) -> tuple[FloatArray, float]:
    """Return seconds per run, and what an unfinished run counts as."""
    seconds = _measured(relation, description)
    finished = np.array([str(status).lower() == "ok" for status in relation.column("runstatus")])
    for problem, wrong in (("missing", np.isnan(seconds)), ("negative", seconds < 0)):
        bad = np.flatnonzero(finished & wrong)
        if bad.size:
            raise ValueError(
                f"{relation.place(int(bad[0]), description.measure)}: the runtime is {problem}, "
                "but the run's status is ok"
            )
    # A crash after a second is not a fast run: failed runs count by the cutoff, not their time.
    finished &= ~(seconds > description.cutoff)
    failure = penalty * description.cutoff
    if math.isinf(failure) and not finished.all():
        row = int(np.flatnonzero(~finished)[0])
        raise ValueError(
            _no_cutoff(description, f"the run in {relation.places[row]} of {relation.path} ")
            + "did not finish"
        )
    return np.where(finished, seconds, failure), failure


def _no_cutoff(description: Description, why: str) -> str:
    return f"{description.path}: algorithm_cutoff_time is needed, since {why}"


def _qualities(relation: Relation, description: Description) -> tuple[FloatArray, float]:
    """Return the quality per run, lower is better, and what a run without one counts as."""
    quality = _measured(relation, description)
    present = ~np.isnan(quality)
    if not present.any():
        raise ValueError(f"{relation.path}: all values of {description.measure!r} are missing")
    # Subtracted, not negated, to avoid -0.
    quality = 0.0 - quality if description.maximize else quality
    worst = float(quality[present].max())
    return np.where(present, quality, worst), worst
