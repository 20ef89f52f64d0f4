"""Algorithm selection: which solver to run on which instance, and the usual summaries of that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.studies.problems.algorithm_selection.features import (
    Preparation,
    mean_per_instance,
    read_features,
    table_relation,
)
from contextgap.studies.problems.algorithm_selection.files import (
    INSTANCE,
    PENALTY,
    REPETITION,
    Relation,
    read_description,
    read_relation,
    read_runs,
)
from contextgap.studies.problems.problem import FixedData, Problem
from contextgap.tables.cells import to_number
from contextgap.tables.files import read_names, read_path


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Scenario(Problem):
    """Algorithms (the arms) on instances (the contexts), with performance in the field's own unit.

    Parameters
    ----------
    name, contexts, rewards, arms, ordered, columns, observations, schema
        As of ``Problem``.
    performance
        Of each algorithm on each instance, shape (n, A), lower is better: PAR10 or seconds, or
        the quality of solutions, negated where higher is better.
    cutoff
        Seconds after which runs were stopped; infinite where none is known.
    folds
        The number of each row's cross-validation fold, from 1; 0 where it has none.
    instances
        Names of the rows.
    feature_cost
        Seconds that computing each row's features took, 0 where it is not known; no part of
        ``performance``.
    runtime
        Whether performance is a time, so that a reward is −log10 of it.
    preparation
        How raw features become contexts, for instances to come; None where that is not known.

    Examples
    --------
    >>> scenario.arms, scenario.cutoff
    (('fast', 'sure'), 100.0)
    """

    performance: FloatArray
    cutoff: float
    folds: IntArray
    instances: tuple[str, ...]
    feature_cost: FloatArray = None  # type: ignore[assignment]  # as with a problem's arms
    runtime: bool = True
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        performance = np.array(self.performance, dtype=np.float64)
        if performance.shape != self.rewards.shape:
            raise ValueError(
                f"performance must have the shape of rewards, {self.rewards.shape}, "
                f"got {performance.shape}"
            )
        numbers = np.array(self.folds, dtype=np.intp)
        instances = tuple(self.instances)
        given: Any = self.feature_cost
        costs = np.array(np.zeros(len(self)) if given is None else given, dtype=np.float64)
        shapes = {"folds": numbers.shape, "instances": (len(instances),)}
        for name, shape in {**shapes, "feature_cost": costs.shape}.items():
            if shape != (len(self),):
                raise ValueError(
                    f"{name} must have an entry for each of {len(self)} rows, got shape {shape}"
                )
        object.__setattr__(self, "performance", frozen(performance))
        object.__setattr__(self, "folds", frozen(numbers))
        object.__setattr__(self, "instances", instances)
        object.__setattr__(self, "feature_cost", frozen(costs))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        solvers: Sequence[str],
        *,
        cutoff: float | None = None,
        name: str = "table",
        folds: Any = None,
    ) -> Scenario:
        """Return the scenario of a table: a row per instance, its features and solvers' results.

        .. versionadded:: 0.3

        Parameters
        ----------
        frame
            A DataFrame, columns by name, or a .csv or .parquet file. All columns but those of
            solvers are features, text being categories; ``instance_id``, if it is there, has names.
        solvers
            The columns with what each solver reached. A cell that is missing was not run, and
            counts as a run that failed.
        cutoff
            Seconds after which runs were stopped: results are times then, lower is better, and one
            above the cutoff is a run that failed. None for scores, of which higher is better.
        name
            What to call it.
        folds
            The number of each row's cross-validation fold, from 1; dealt at random by default.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 2.0], "fast": [3, 80], "sure": [5, 6]})
        >>> len(cg.problems.Scenario.from_frame(frame, ["fast", "sure"], cutoff=100))
        2
        """
        relation = table_relation(frame, name)
        arms = tuple(read_names("solvers", solvers))
        if len(arms) < 2:
            raise ValueError(f"solvers must be at least two columns, got {list(arms)}")
        instances = relation.instances
        if len(set(instances)) < len(instances):
            raise ValueError(f"{relation.path}: {INSTANCE} must name every row differently")
        for arm in arms:
            for row, cell in enumerate(relation.column(arm)):
                if cell is not None and to_number(cell) is None:
                    place = relation.place(row, arm)
                    raise ValueError(f"{place}: a number is needed, got {cell!r}")
        results = np.column_stack([relation.numbers(arm) for arm in arms])
        if cutoff is None:
            performance = 0.0 - results  # subtracted, not negated, to avoid -0
            worst = float(np.nanmax(performance)) if not np.isnan(results).all() else 0.0
            performance = np.where(np.isnan(results), worst, performance)
        else:
            limit = checks.positive("cutoff", cutoff, "seconds after which runs were stopped")
            if (results < 0).any():
                row, column = np.argwhere(results < 0)[0].tolist()
                raise ValueError(f"{relation.place(row, arms[column])}: the time is negative")
            performance = np.where(results <= limit, results, PENALTY * limit)
        left = relation.without(arms)
        contexts, preparation = read_features(instances, left, None, {}, True)
        return cls(
            name=name,
            contexts=contexts,
            rewards=_rewards(performance, cutoff is not None),
            arms=arms,
            columns=preparation.columns,
            performance=performance,
            cutoff=math.inf if cutoff is None else float(cutoff),
            folds=np.zeros(len(instances), dtype=np.intp) if folds is None else folds,
            instances=instances,
            runtime=cutoff is not None,
            preparation=preparation,
        )

    def __repr__(self) -> str:
        return f"Scenario{super().__repr__().removeprefix('Problem')}"

    def _facts(self, rows: IntArray) -> dict[str, Any]:
        return {
            "performance": self.performance[rows],
            "folds": self.folds[rows],
            "instances": tuple(self.instances[row] for row in rows),
            "feature_cost": self.feature_cost[rows],
        }


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
    numbers = scenario.folds
    if not numbers.any():
        numbers = np.random.default_rng(0).permutation(len(scenario)) % _DEALT_FOLDS + 1
    present = np.unique(numbers[numbers > 0])
    if len(scenario) < 2 or (len(present) == 1 and (numbers > 0).all()):
        raise ValueError(f"{scenario.name!r} has one fold only, which leaves nothing to train on")
    for number in present:
        test = numbers == number
        yield scenario.take(~test), scenario.take(test)


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
    sign(x) · ln(1 + abs(x)); missing values get the median of those present. A column "... failed"
    says on which instances a step of the feature computation did not end well. The rewards play no
    part in any of this, but the features of all instances do, those to be tested on included. What
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

    See Also
    --------
    problems.Scenario.from_frame : Reads a table of your own.

    Examples
    --------
    >>> scenarios = cg.problems.AlgorithmSelection("SAT11-RAND", performance="raw")
    >>> scenarios.performance
    'raw'
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
