"""Algorithm selection within a budget of CPU time: which solvers to run, and for how long.

A run that is made to the end tells how long a solver takes; most of the time goes into runs that
need not have been made so long. In a race all solvers start on an instance together, and all are
stopped soon after the first one is done, at ``MARGIN`` times its time: which of them is the best is
known then, and by how much it is better than those close behind. All training instances are raced
to a short limit first. Where no solver is done by then, the race goes on to twice that limit, and
so on until the budget is spent. If all races are decided before, they go on with twice the margin.

What is learnt are ratios of times to their geometric mean over all solvers, from instances where
one was done: how hard an instance is plays no part. A run that was stopped counts as ten times as
long as it took, as in PAR10.

Mean PAR10 is about hard instances, on which a pick may fail. With PAR10 as the aim, the margin is
``PAR10_MARGIN``: less goes into measuring by how much slow solvers are slower, and races on hard
instances go on for longer. What is learnt are differences of PAR10 to the power ``PAR10_POWER``, so
that a factor of two matters the more the longer solvers take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.names import study_import
from contextgap.learner import Learner
from contextgap.studies.experiments.tasks import Result
from contextgap.studies.problems import Scenario
from contextgap.studies.problems.algorithm_selection import (
    SHORTEST,
    closed_gap,
    selected_performance,
)
from contextgap.studies.problems.problem import indices

MARGIN = 3.0
"""How many times as long as the first solver to be done the others may run, at first."""
PAR10_MARGIN = 1.5
"""The same, where the aim is PAR10."""
PAR10_POWER = 0.25
"""Of PAR10, in what is learnt where that is the aim: near 0 as logarithms, 1 for PAR10 itself."""
AIMS = REGRET, PAR10 = "regret", "par10"
RACE, TREES, UNIFORM, FULL = "race", "extra-trees", "uniform", "full table"
CPU_METHODS = (RACE, TREES, UNIFORM, FULL)
RACE_PAR10 = "race for PAR10"  # how its rows are labelled
_PENALTY = 10.0  # times as long as it took counts a run that was stopped
_WIDEST = 1e9  # margin: nothing is left to be run
_FIRST = 1e-5  # the first limit of a race, in units of the scenario's own


class Runs:
    """How long solvers run on instances."""

    def __init__(self, scenario: Scenario) -> None:
        if not (scenario.runtime and math.isfinite(scenario.cutoff)):
            raise ValueError(
                f"cpu needs times and a cutoff, which {scenario.name!r} does not have: its "
                "performance is the quality of solutions, or its cutoff is not known"
            )
        self.cutoff = scenario.cutoff
        self.solved = np.asarray(scenario.performance <= scenario.cutoff)
        seconds = np.minimum(scenario.performance, scenario.cutoff)
        self.seconds = np.maximum(seconds, SHORTEST)
        self.features = float(scenario.feature_cost.sum())
        self.whole = float(self.seconds.sum())  # of the full table, without features

    def cost(self, limits: FloatArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return the seconds that all solvers take on each instance if stopped at its limit."""
        return np.asarray(np.minimum(self.seconds[rows], limits[:, None]).sum(axis=1))

    def raced(self, rows: IntArray, limit: float, margin: float) -> FloatArray:
        """Return when the races on instances are stopped, at a limit at the latest."""
        first = np.where(self.solved[rows], self.seconds[rows], np.inf).min(axis=1)
        return np.asarray(np.minimum(np.minimum(margin * first, limit), self.cutoff))

    def logs(self, limits: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return log10 of all times, runs that were stopped counting more, and which were not."""
        done = self.solved & (self.seconds <= limits[:, None])
        shown = np.minimum(self.seconds, np.maximum(limits, SHORTEST)[:, None])
        return np.log10(np.where(done, shown, _PENALTY * shown)), done


def races(
    runs: Runs, budgets: Sequence[float], rng: np.random.Generator, margin: float = MARGIN
) -> Iterator[tuple[FloatArray, float]]:
    """Yield, for each budget in seconds, when races were stopped, and the seconds they took."""
    limits, spent = np.zeros(len(runs.seconds)), runs.features
    limit, everything = _FIRST * runs.cutoff, np.arange(len(runs.seconds))
    left = rng.permutation(everything)  # instances still to be raced to the present limit
    for budget in budgets:
        while True:
            longer = runs.raced(left, limit, margin)
            costs = np.cumsum(runs.cost(longer, left) - runs.cost(limits[left], left))
            made = int(np.searchsorted(spent + costs, budget, side="right"))
            limits[left[:made]] = longer[:made]
            spent += float(costs[made - 1]) if made else 0.0
            left = left[made:]
            if left.size or (limits >= runs.cutoff).all() or margin > _WIDEST:
                break
            if limit >= runs.cutoff:
                margin *= 2
            limit = min(2 * limit, runs.cutoff)
            longer = runs.raced(everything, limit, margin)
            left = rng.permutation(np.flatnonzero(longer > limits))
        yield limits.copy(), spent


def select_within(
    train: Scenario, test: Scenario, *, method: str, budgets: Sequence[float], seed: int, aim: str
) -> Result:
    """Return what one method selects on one fold after each budget, a share of all CPU time."""
    runs, reached = Runs(train), []
    how = {"aim": aim} if method == RACE else {}
    for budget, (picks, spent) in zip(
        budgets, _PICKS[method](train, test, runs, budgets, seed, **how), strict=True
    ):
        reached.append(
            {
                "cpu": budget,
                "spent": spent / runs.whole,
                "instances": len(test),
                "regret": float(test.regret(picks).mean()),
                "par10": float(selected_performance(test, picks).mean()),
                "closed_gap": closed_gap(test, picks, train=train),
            }
        )
    return {"reached": reached}


_Picks = Iterator[tuple[IntArray, float]]


def _race(
    train: Scenario,
    test: Scenario,
    runs: Runs,
    budgets: Sequence[float],
    seed: int,
    aim: str = REGRET,
) -> _Picks:
    seconds, margin = [budget * runs.whole for budget in budgets], MARGIN
    if aim == PAR10:
        margin = PAR10_MARGIN
    for limits, spent in races(runs, seconds, np.random.default_rng(seed), margin):
        logs, done = runs.logs(limits)
        if aim == PAR10:
            logs = 10 ** (PAR10_POWER * logs)
        rows = done.any(axis=1)
        if not rows.any():
            raise ValueError(
                f"cpu must be more: no solver was done on any instance in {spent:.3g} seconds"
            )
        logs = logs[rows] - logs[rows].mean(axis=1, keepdims=True)
        yield _picked(train.take(rows), test, logs, seed), spent


def _full(
    train: Scenario, test: Scenario, runs: Runs, budgets: Sequence[float], seed: int
) -> _Picks:
    logs, _ = runs.logs(np.full(len(train), runs.cutoff))
    picks = _picked(train, test, logs, seed)
    for _ in budgets:
        yield picks, runs.whole + runs.features


def _uniform(
    train: Scenario, test: Scenario, runs: Runs, budgets: Sequence[float], seed: int
) -> _Picks:
    """Run solvers at random on instances at random, each to the end."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(runs.seconds.size)
    rows, arms = np.divmod(order, len(train.arms))
    logs, _ = runs.logs(np.full(len(train), runs.cutoff))
    # The features of an instance are computed when its first solver runs.
    first = np.zeros(len(order))
    first[np.unique(rows, return_index=True)[1]] = 1.0
    costs = np.cumsum(runs.seconds[rows, arms] + first * train.feature_cost[rows])
    for budget in budgets:
        made = max(2, int(np.searchsorted(costs, budget * runs.whole, side="right")))
        learner = Learner(train.arms, seed=seed, columns=train.columns)
        told = [train.arms[arm] for arm in arms[:made]]
        learner.fit(train.contexts[rows[:made]], told, -logs[rows[:made], arms[:made]])
        yield indices(learner.recommend(test.contexts), test.arms), float(costs[made - 1])


def _trees(
    train: Scenario, test: Scenario, runs: Runs, budgets: Sequence[float], seed: int
) -> _Picks:
    """Run all solvers on all instances to the longest limit that the budget allows."""
    ensemble = study_import("sklearn.ensemble")
    for budget in budgets:
        low, high = math.log(SHORTEST), math.log(runs.cutoff)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            took = runs.cost(np.full(len(train), math.exp(middle))).sum() + runs.features
            low, high = (low, middle) if took > budget * runs.whole else (middle, high)
        limits = np.full(len(train), runs.cutoff if budget >= 1 else math.exp(low))
        trees = ensemble.ExtraTreesRegressor(100, min_samples_leaf=2, random_state=seed)
        trees.fit(train.contexts, runs.logs(limits)[0])
        picks = np.asarray(trees.predict(test.contexts).argmin(axis=1), dtype=np.intp)
        yield picks, float(runs.cost(limits).sum()) + runs.features


_PICKS: dict[str, Callable[..., _Picks]] = {
    RACE: _race,
    TREES: _trees,
    UNIFORM: _uniform,
    FULL: _full,
}
_BISECTIONS = 40


def _picked(train: Scenario, test: Scenario, logs: FloatArray, seed: int) -> IntArray:
    """Return what a learner picks that is given all logarithms of times."""
    count = len(train.arms)
    learner = Learner(train.arms, seed=seed, columns=train.columns)
    contexts, arms = np.repeat(train.contexts, count, axis=0), list(train.arms) * len(train)
    learner.fit(contexts, arms, -logs.ravel())
    return indices(learner.recommend(test.contexts), test.arms)
