"""Algorithm selection: which solver to run on which instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.studies.problems.algorithm_selection.description import read_description
from contextgap.studies.problems.algorithm_selection.features import (
    mean_per_instance,
    read_features,
)
from contextgap.studies.problems.algorithm_selection.relation import (
    INSTANCE,
    REPETITION,
    Relation,
    read_relation,
)
from contextgap.studies.problems.algorithm_selection.runs import PENALTY, read_runs
from contextgap.studies.problems.algorithm_selection.scenario import Scenario
from contextgap.studies.problems.maker import FixedData
from contextgap.tables.files import read_path

SHORTEST = 1e-3
"""Runtimes below this many seconds count as this many: solvers' clocks resolve no more."""

_PENALTIES = {"par10": PENALTY, "raw": 1.0}


@dataclass(frozen=True)
class AlgorithmSelection(FixedData):
    """A scenario of the Algorithm Selection Library (ASlib): a folder of ARFF files.

    The arms are the algorithms, the rows the instances, the contexts their features. Where
    performance is a runtime t, the reward is −log10(t), with t not below ``SHORTEST``; where it is
    the quality of a solution, the reward is that quality, negated where lower is better.
    Repetitions are averaged before. A run that is missing counts as one that failed.

    Features that are the same for all instances are left out; very skewed ones become
    sign(x) · ln(1 + abs(x)); gaps get the median of the values present. A column "... failed" says
    on which instances a step of the feature computation did not end well. The rewards play no part
    in any of this, but the features of all instances do, those to be tested on included. What
    computing the features costs is kept beside the performance, not added to it.

    Parameters
    ----------
    folder
        Where description.txt, algorithm_runs.arff and feature_values.arff are; and, if there are
        any, feature_runstatus.arff, feature_costs.arff and cv.arff.
    performance
        What a run that failed or exceeded the cutoff counts as: ten times the cutoff ("par10")
        or the cutoff ("raw"). Where performance is the quality of a solution this has no effect,
        and a run without a quality counts as the worst one seen.
    scale
        Whether to give each feature mean 0 and standard deviation 1 over all instances, which
        suits kernels with one bandwidth for all features.
    """

    folder: str | Path
    _: KW_ONLY
    performance: str = "par10"
    scale: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", read_path(self.folder))
        if self.performance not in _PENALTIES:
            raise ValueError(
                f"performance must be one of {sorted(_PENALTIES)}, got {self.performance!r}"
            )

    def load(self) -> Scenario:
        """Return all instances, in the order of the runs."""
        folder = Path(self.folder)
        description = read_description(folder)
        values = read_relation(folder / "feature_values.arff")
        statuses = _read_optional(folder / "feature_runstatus.arff")
        parts = _read_optional(folder / "cv.arff")
        known = {name for table in (values, statuses, parts) if table for name in table.instances}
        runs = read_runs(
            read_relation(folder / "algorithm_runs.arff"),
            description,
            known,
            _PENALTIES[self.performance],
        )
        contexts, preparation = read_features(
            runs.instances, values, statuses, description.steps, self.scale
        )
        return Scenario(
            name=description.name,
            contexts=contexts,
            rewards=_rewards(runs.performance, description.runtime),
            arms=runs.algorithms,
            columns=preparation.columns,
            performance=runs.performance,
            cutoff=description.cutoff,
            folds=_fold_numbers(parts, runs.instances),
            instances=runs.instances,
            feature_cost=_total_costs(folder / "feature_costs.arff", runs.instances),
            runtime=description.runtime,
            preparation=preparation,
        )


def _read_optional(path: Path) -> Relation | None:
    return read_relation(path) if path.exists() else None


def _total_costs(path: Path, instances: Sequence[str]) -> FloatArray:
    """Return the seconds that all steps of the feature computation took for each instance."""
    costs = _read_optional(path)
    if costs is None:
        return np.zeros(len(instances))
    steps = costs.others((INSTANCE, REPETITION))
    return np.asarray(np.nansum(mean_per_instance(costs, steps, instances), axis=1))


def _rewards(performance: FloatArray, runtime: bool) -> FloatArray:
    # Subtracted, not negated, to avoid -0.
    if runtime:
        return np.asarray(0.0 - np.log10(np.maximum(performance, SHORTEST)))
    return np.asarray(0.0 - performance)


def _fold_numbers(parts: Relation | None, instances: Sequence[str]) -> IntArray:
    """Return the fold of each instance, by the first repetition of the cross-validation."""
    numbers = np.zeros(len(instances), dtype=np.intp)
    if parts is None:
        return numbers
    folds = parts.numbers("fold")
    repetitions = np.ones(len(folds))
    if REPETITION in parts.names:
        repetitions = np.nan_to_num(parts.numbers(REPETITION), nan=1.0)
    places = {name: place for place, name in enumerate(instances)}
    for row in np.flatnonzero(repetitions == repetitions.min()):
        fold = folds[row]
        if not (fold >= 1 and fold == int(fold)):
            raise ValueError(
                f"{parts.place(int(row), 'fold')}: a whole number from 1 is needed, got {fold}"
            )
        if parts.instances[row] in places:
            numbers[places[parts.instances[row]]] = int(fold)
    return numbers
