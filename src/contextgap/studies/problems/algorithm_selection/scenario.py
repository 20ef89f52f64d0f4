"""A problem that knows the performance behind its rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.studies.problems.algorithm_selection.preparation import Preparation
from contextgap.studies.problems.problem import Problem


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Scenario(Problem):
    """Algorithms (the arms) on instances (the contexts), with performance in the field's own unit.

    Parameters
    ----------
    name
        What results are labelled with.
    contexts
        One context per row, shape (n, d); a DataFrame's column names are kept.
    rewards
        Expected reward of each arm at each context, shape (n, A); regret is measured against it.
    arms
        A label per column of ``rewards``; 0..A-1 by default.
    ordered
        Whether the rows are in time order and must stay so.
    columns
        Names of a context's numbers.
    observations
        The reward that a learner observes when it tries an arm, shape (n, A); by default the
        expected rewards.
    schema
        How the columns of ``contexts`` became numbers, if they were not.
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
        shapes = {
            "folds": numbers.shape,
            "instances": (len(instances),),
            "feature_cost": costs.shape,
        }
        for name, shape in shapes.items():
            if shape != (len(self),):
                raise ValueError(
                    f"{name} must have an entry for each of {len(self)} rows, got shape {shape}"
                )
        object.__setattr__(self, "performance", frozen(performance))
        object.__setattr__(self, "folds", frozen(numbers))
        object.__setattr__(self, "instances", instances)
        object.__setattr__(self, "feature_cost", frozen(costs))

    def __repr__(self) -> str:
        return f"Scenario{super().__repr__().removeprefix('Problem')}"

    def _facts(self, rows: IntArray) -> dict[str, Any]:
        return {
            "performance": self.performance[rows],
            "folds": self.folds[rows],
            "instances": tuple(self.instances[row] for row in rows),
            "feature_cost": self.feature_cost[rows],
        }
