"""Algorithm selection from few runs: explore training instances, deploy on test instances.

A selector is usually trained on the full table, in which every algorithm ran on every training
instance. Here each training instance is visited ``budget`` times, one run per visit, and the
learner says which algorithm runs; if it may choose, also which instance is visited next.

Within a budget of CPU time the question is which solvers to run, and for how long. A run that is
made to the end tells how long a solver takes; most of the time goes into runs that need not have
been made so long. In a race all solvers start on an instance together, and all are
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

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks, files
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import study_import
from contextgap.base.files import whole_file
from contextgap.learner import Learner
from contextgap.methods.explorers import Explorer
from contextgap.methods.method import RECOMMENDED, Method, read_method
from contextgap.policy import Policy
from contextgap.studies.experiments.compare import read_methods
from contextgap.studies.experiments.run import (
    Progress,
    Result,
    Store,
    Task,
    execute,
    rows_reached,
)
from contextgap.studies.problems import Scenario
from contextgap.studies.problems.algorithm_selection import (
    PENALTY,
    SHORTEST,
    Instances,
    Preparation,
    closed_gap,
    folds,
    read_instances,
    selected_performance,
    single_best,
)
from contextgap.studies.problems.problem import indices

if TYPE_CHECKING:
    from pandas import DataFrame


SELECTION_METHODS = (RECOMMENDED, "knowledge-gradient", "elimination", "uniform")
BUDGET_HINT = "1 for one run per training instance, 0.25 for one on every fourth"
CANDIDATES = 100
"""Instances to choose from per step; a knowledge gradient's time grows with their square."""
MARGIN = 3.0
"""How many times as long as the first solver to be done the others may run, at first."""
PAR10_MARGIN = 1.5
"""The same, where the aim is PAR10."""
PAR10_POWER = 0.25
"""Of PAR10, in what is learnt where that is the aim: near 0 as logarithms, 1 for PAR10 itself."""
AIMS = REGRET, PAR10 = "regret", "par10"
RACE, TREES, UNIFORM, FULL = "race", "extra-trees", "uniform", "full table"
YARDSTICK = UNIFORM
CPU_METHODS = (RACE, TREES, UNIFORM, FULL)
RACE_PAR10 = "race for PAR10"  # how its rows are labelled
_WIDEST = 1e9  # margin: nothing is left to be run
_FIRST = 1e-5  # the first limit of a race, in units of the scenario's own


def select_algorithms(
    scenario: Scenario,
    *,
    methods: Iterable[str] | Mapping[str, Method] | None = None,
    budget: float | Sequence[float] = 1,
    seeds: Sequence[int] = (0, 1, 2),
    choose: bool = False,
    cpu: float | Sequence[float] | None = None,
    seconds: float | Sequence[float] | None = None,
    aim: str = REGRET,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Select algorithms over a scenario's cross-validation folds.

    Nothing is tuned by hand and nothing is known of the rewards beforehand: every method is a
    ``Learner`` without settings, which learns its hyperparameters from the runs it has paid for.

    Parameters
    ----------
    scenario
        Instances, algorithms and all their runs.
    methods
        Names from ``METHODS``, or methods by label; with ``cpu`` or ``seconds`` those of
        ``selection.CPU_METHODS``.
    budget
        Visits per training instance, one run each; a fraction for a part of the instances.
        Instances are visited pass by pass, all of them once before any of them twice. What is
        visited for a run that was made before costs nothing and teaches nothing. Several numbers
        give the results on the way to the largest.
    seeds
        One repetition each: the order of the instances, and all that is random about a method.
    choose
        Whether the learner chooses which of the instances left in a pass comes next, among 100
        random ones; else they come in random order.
    cpu
        Budgets of CPU time in place of runs, as shares of what the full table of the training part
        takes; computing features counts. Solvers then race each other on training instances, and
        are compared with ExtraTrees that saw all solvers up to the longest limit that the budget
        allows, with solvers at random, and with the full table.
    seconds
        The same in seconds, for each fold.
    aim
        What races are for, with ``cpu`` or ``seconds``: ``"regret"``, the ratio of the time to that
        of the best solver, or ``"par10"``. Other methods do not depend on it.
    executor
        As of ``compare``.
    store
        Where results are kept as they finish.
    progress
        As of ``compare``.

    Returns
    -------
    table
        One row per method, seed, fold and budget: the average simple regret, and that of the single
        best solver (chosen on the training part), in units of reward; the mean performance of the
        selected algorithms, of the single best one and of the virtual best; the closed gap; the
        mean cost of the features, which none of these includes; the regret that the policy
        expected, and on which share of the instances its bound held; how many different runs were
        paid for, and how many the full table of the training part has; the seconds that the whole
        exploration took. With ``cpu`` or ``seconds`` the columns are ``method``, ``fold``,
        ``seed``, the budget ``cpu`` and the share ``spent``, ``regret`` and ``par10`` of what is
        selected, ``closed_gap``, ``instances`` and the seconds that the exploration took.

    See Also
    --------
    experiments.summarise_selection : Averages of the table.

    Examples
    --------
    >>> table = cg.experiments.select_algorithms(scenario, methods=["uniform"], seeds=[0])
    >>> table.shape[0]
    2
    """
    if aim not in AIMS:
        raise ValueError(f"aim must be one of {AIMS}, got {aim!r}")
    within = cpu is not None or seconds is not None
    if within and (choose or budget != 1 or (cpu is not None and seconds is not None)):
        raise TypeError("cpu and seconds take the place of budget and choose, and of each other")
    if aim != REGRET and not within:
        raise TypeError("aim is about races; give cpu or seconds too")
    if seconds is not None:
        budgets = _read_budgets(seconds, "seconds")
    elif cpu is not None:
        budgets = _read_budgets(cpu, "cpu", "0.05 for a twentieth of what the full table takes")
        if budgets[-1] > 1:
            raise ValueError(
                f"cpu must be shares of the full table, at most 1, got {budgets[-1]:g}"
            )
    else:
        budgets = _read_budgets(budget)
    parts = list(folds(scenario))
    if within:
        Runs(scenario)  # raises if there are no times
        tasks = _tasks_within(
            scenario.name, parts, methods, budgets, seeds, seconds is not None, aim
        )
    else:
        chosen = read_methods(SELECTION_METHODS if methods is None else methods)
        common = {"budgets": budgets, "choose": choose}
        tasks = [
            Task(
                select_on_fold,
                {"train": train, "test": test, "method": method, "seed": seed, **common},
                {
                    "scenario": scenario.name,
                    "method": label,
                    "choose": choose,
                    "seed": seed,
                    "fold": number,
                },
            )
            for label, method in chosen.items()
            for seed in seeds
            for number, (train, test) in enumerate(parts, 1)
        ]
    results = execute(tasks, executor=executor, store=store, progress=progress)
    table = study_import("pandas").DataFrame(rows_reached(tasks, results, "seconds"))
    if seconds is not None:
        table["cpu"] = [given for _ in tasks for given in budgets]
    return table


def summarise_cpu(table: DataFrame) -> DataFrame:
    """Return a row per scenario, budget of CPU time and method: means over all tested instances.

    ``ratio`` is the regret over that of ExtraTrees with the same budget, on the same folds with the
    same seeds. Standard errors, ``..._error``, are over folds; they share training instances, so
    these are too small rather than too large.

    .. versionadded:: 0.3

    Parameters
    ----------
    table
        What ``select_algorithms`` returned with ``cpu`` or ``seconds``, or several such tables
        joined by ``pandas.concat``.

    Examples
    --------
    >>> table = cg.experiments.select_algorithms(scenario, cpu=0.5, seeds=[0])
    >>> sorted(cg.experiments.summarise_cpu(table)["method"])
    ['extra-trees', 'full table', 'race', 'uniform']
    """
    by, rows = ["scenario", "cpu", "method"], []
    means = table.groupby([*by, "fold"], sort=False)[[*_MEANS, "instances"]].mean().reset_index()
    for keys, part in means.groupby(by, sort=False):
        weights, row = part["instances"].to_numpy(dtype=float), dict(zip(by, keys, strict=True))
        for name in _MEANS:
            values = part[name].to_numpy(dtype=float)
            row[name], row[f"{name}_error"] = ratio(values, np.ones(len(part)), weights)
        same = (means["scenario"] == keys[0]) & (means["cpu"] == keys[1])
        trees = means[same & (means["method"] == TREES)].set_index("fold")["regret"]
        if len(trees):
            both = part["regret"].to_numpy(dtype=float), trees.reindex(part["fold"]).to_numpy()
            row["ratio"], row["ratio_error"] = ratio(*both, weights)
        seen = table[(table["scenario"] == keys[0]) & (table["method"] == keys[2])]
        row["folds"], row["seeds"] = int(seen["fold"].nunique()), int(seen["seed"].nunique())
        row["seconds"] = float(seen["seconds"].mean())
        rows.append(row)
    return study_import("pandas").DataFrame(rows)


_MEANS = ("regret", "par10", "closed_gap", "spent")


def _read_budgets(
    budget: Any, called: str = "budget", hint: str = BUDGET_HINT
) -> tuple[float, ...]:
    given = budget if isinstance(budget, Sequence | np.ndarray) else [budget]
    read = sorted({checks.positive(called, value, hint) for value in given})
    if not read:
        raise ValueError(f"{called} must be a number or several, got none; {hint}")
    return tuple(read)


def select_on_fold(
    train: Scenario, test: Scenario, *, budgets: Sequence[float], **how: Any
) -> Result:
    explored = explore(train, budgets=budgets, **how)
    return {
        "reached": [
            {"budget": budget, **_evaluated(train, test, policy), "runs_paid": runs}
            for budget, (policy, runs) in zip(budgets, explored, strict=True)
        ]
    }


def _evaluated(train: Scenario, test: Scenario, policy: Policy) -> Result:
    picks = indices(policy.recommend(test.contexts), test.arms)
    regret, single = test.regret(picks), single_best(train)
    return {
        "instances": len(test),
        "average_regret": float(regret.mean()),
        "single_best_regret": float(test.regret(np.full(len(test), single)).mean()),
        "selected": float(selected_performance(test, picks).mean()),
        "single_best": float(selected_performance(test, single).mean()),
        "virtual_best": float(test.performance.min(axis=1).mean()),
        "closed_gap": closed_gap(test, picks, train=train),
        "feature_cost": float(test.feature_cost.mean()),
        "expected_regret": float(policy.expected_regret(test.contexts).mean()),
        "bound_held": float((regret <= policy.certificate(test.contexts).bound).mean()),
        "runs_in_table": train.rewards.size,
    }


def explore(
    train: Scenario,
    method: Method,
    budgets: Sequence[float],
    seed: int,
    choose: bool,
    progress: Progress | None = None,
) -> Iterator[tuple[Policy, int]]:
    """Yield the policy after each budget, and how many different runs it took."""
    learner = Learner(train.arms, method=method, seed=seed, columns=train.columns)
    rng = np.random.default_rng(seed)
    ran = np.zeros(train.rewards.shape, dtype=np.bool_)
    left = np.empty(0, dtype=np.intp)  # instances still to visit in this pass
    ends = [max(1, round(budget * len(train))) for budget in budgets]
    for start, end in pairwise([0, *ends]):
        for visit in range(start, end):
            left = left if left.size else rng.permutation(len(train))
            place = 0
            if choose:
                some = rng.permutation(len(left))[:CANDIDATES]
                best, arm = learner.ask(pool=train.contexts[left[some]], index=True)
                place = int(some[best])
            else:
                arm = learner.ask(train.contexts[left[0]])
            row, column = left[place], train.arms.index(arm)
            if ran[row, column]:
                # Told again, a stored result would count as a second, independent measurement.
                learner.drop_pending()
            else:
                learner.tell(train.contexts[row], arm, train.observations[row, column])
                ran[row, column] = True
            left = np.delete(left, place)
            if progress is not None:
                progress(visit + 1, ends[-1])
        yield learner.freeze(), int(ran.sum())


_BY = ["scenario", "budget", "method", "choose"]


def summarise_selection(table: DataFrame) -> DataFrame:
    """Return a row per scenario, budget and method: means over all tested instances and seeds.

    The closed gap is that of the mean performances. Averaging it over folds instead would let a
    fold in which single and virtual best solver are nearly equal decide. ``regret_change`` is the
    regret over that of uniform exploration, on the same folds with the same seeds, less one; not a
    number where uniform exploration was not among the methods or had no regret.

    Both are ratios of means; their standard errors, ``..._error``, are those of a ratio of paired
    values, over folds and seeds. Folds share training instances and seeds share folds, so these
    are too small rather than too large.

    Parameters
    ----------
    table
        What ``select_algorithms`` returned, or several such tables joined by ``pandas.concat``.

    Examples
    --------
    >>> table = cg.experiments.select_algorithms(scenario, methods=["uniform"], seeds=[0])
    >>> cg.experiments.summarise_selection(table)["method"].tolist()
    ['uniform']
    """
    # Beside each row, the regret of uniform exploration where and when it was measured.
    uniform, where = table["method"] == YARDSTICK, ["scenario", "budget", "fold", "seed"]
    known = table[uniform & ~table["choose"].astype(bool)].set_index(where)["average_regret"]
    paired = table.join(known.rename(YARDSTICK), on=where)
    rows = [
        {**dict(zip(_BY, keys, strict=True)), **_summary(part)}
        for keys, part in paired.groupby(_BY, sort=False)
    ]
    return study_import("pandas").DataFrame(rows)


def _summary(part: DataFrame) -> dict[str, float]:
    means = ["average_regret", "single_best_regret", "selected", "single_best", "virtual_best"]
    means += ["expected_regret", "bound_held"]
    weights = part["instances"].to_numpy(dtype=float)
    values = {name: part[name].to_numpy(dtype=float) for name in means}
    row = {name: float(np.average(column, weights=weights)) for name, column in values.items()}
    regret = values["average_regret"]
    yardstick = part[YARDSTICK].to_numpy(dtype=float)
    change = ratio(regret - yardstick, yardstick, weights)
    gap = values["single_best"] - values["virtual_best"]
    closed = ratio(values["single_best"] - values["selected"], gap, weights)
    paid, whole = part["runs_paid"], part["runs_in_table"]
    return {
        **row,
        "regret_change": change[0],
        "regret_change_error": change[1],
        "closed_gap": closed[0],
        "closed_gap_error": closed[1],
        "runs_paid": float(paid.mean()),
        "runs_in_table": float(whole.mean()),
        "share_of_runs": float(paid.sum() / whole.sum()),
        "folds": int(part["fold"].nunique()),
        "seeds": int(part["seed"].nunique()),
        "seconds": float(part["seconds"].mean()),
    }


def ratio(above: FloatArray, below: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the ratio of the weighted means of paired values, and its standard error.

    The error is the ratio estimator's: that of the mean of ``above − ratio · below``, over the mean
    of ``below``.

    Examples
    --------
    >>> ones = np.ones(2)
    >>> ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]), ones)  # always half
    (0.5, 0.0)
    """
    total = float((weights * below).sum())
    if not total or not np.isfinite(total):
        return float("nan"), float("nan")
    quotient = float((weights * above).sum()) / total
    count = len(above)
    if count < 2:
        return quotient, float("nan")
    spread = ((weights * (above - quotient * below)) ** 2).sum() * count / (count - 1)
    return quotient, float(np.sqrt(spread) / abs(total))


class Runs:
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
        return np.log10(np.where(done, shown, PENALTY * shown)), done


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


@dataclass(frozen=True, eq=False)
class _Fold:
    train: Scenario
    test: Scenario
    runs: Runs
    budgets: Sequence[float]  # shares of all runs
    seed: int
    aim: str

    def learnt(self, logs: FloatArray, rows: IntArray, arms: IntArray) -> IntArray:
        train, test = self.train, self.test
        learner = Learner(train.arms, seed=self.seed, columns=train.columns)
        told = [train.arms[arm] for arm in arms]
        learner.fit(train.contexts[rows], told, -logs[rows, arms])
        return indices(learner.recommend(test.contexts), test.arms)

    def learnt_of_all(self, logs: FloatArray, rows: IntArray) -> IntArray:
        arms = np.arange(len(self.train.arms))
        return self.learnt(logs, np.repeat(rows, len(arms)), np.tile(arms, len(rows)))


def _tasks_within(
    name: str,
    parts: Sequence[tuple[Scenario, Scenario]],
    methods: Any,
    budgets: Sequence[float],
    seeds: Sequence[int],
    in_seconds: bool,
    aim: str,
) -> list[Task]:
    methods = list(CPU_METHODS if methods is None else methods)
    if unknown := [method for method in methods if method not in CPU_METHODS]:
        raise ValueError(f"methods must be among {CPU_METHODS} with cpu, got {unknown[0]!r}")
    tasks = []
    for number, (train, test) in enumerate(parts, 1):
        whole = Runs(train).whole if in_seconds else 1.0
        shares = tuple(budget / whole for budget in budgets)
        for method in methods:
            label = RACE_PAR10 if (method, aim) == (RACE, PAR10) else method
            given = {"train": train, "test": test, "budgets": shares, "method": method, "aim": aim}
            # Nothing is random about the full table but a learner's own ties.
            for seed in list(seeds)[: 1 if method == FULL else None]:
                called = {"scenario": name, "method": label, "seed": seed, "fold": number}
                tasks.append(Task(select_within, {**given, "seed": seed}, called))
    return tasks


def select_within(
    train: Scenario, test: Scenario, *, method: str, budgets: Sequence[float], seed: int, aim: str
) -> Result:
    fold = _Fold(train, test, Runs(train), budgets, seed, aim)
    reached = [
        {
            "cpu": budget,
            "spent": spent / fold.runs.whole,
            "instances": len(test),
            "regret": float(test.regret(picks).mean()),
            "par10": float(selected_performance(test, picks).mean()),
            "closed_gap": closed_gap(test, picks, train=train),
        }
        for budget, (picks, spent) in zip(budgets, _PICKS[method](fold), strict=True)
    ]
    return {"reached": reached}


_Picks = Iterator[tuple[IntArray, float]]


def _race(fold: _Fold) -> _Picks:
    runs, for_par10 = fold.runs, fold.aim == PAR10
    seconds = [budget * runs.whole for budget in fold.budgets]
    margin, rng = PAR10_MARGIN if for_par10 else MARGIN, np.random.default_rng(fold.seed)
    for limits, spent in races(runs, seconds, rng, margin):
        logs, done = runs.logs(limits)
        if for_par10:
            logs = 10 ** (PAR10_POWER * logs)
        rows = np.flatnonzero(done.any(axis=1))
        if not rows.size:
            raise ValueError(
                f"cpu must be more: no solver was done on any instance in {spent:.3g} seconds"
            )
        yield fold.learnt_of_all(logs - logs.mean(axis=1, keepdims=True), rows), spent


def _full(fold: _Fold) -> _Picks:
    runs, everything = fold.runs, np.arange(len(fold.train))
    logs, _ = runs.logs(np.full(len(fold.train), runs.cutoff))
    picks = fold.learnt_of_all(logs, everything)
    for _ in fold.budgets:
        yield picks, runs.whole + runs.features


def _uniform(fold: _Fold) -> _Picks:
    """Run solvers at random on instances at random, each to the end."""
    train, runs = fold.train, fold.runs
    order = np.random.default_rng(fold.seed).permutation(runs.seconds.size)
    rows, arms = np.divmod(order, len(train.arms))
    logs, _ = runs.logs(np.full(len(train), runs.cutoff))
    # The features of an instance are computed when its first solver runs.
    first = np.zeros(len(order))
    first[np.unique(rows, return_index=True)[1]] = 1.0
    costs = np.cumsum(runs.seconds[rows, arms] + first * train.feature_cost[rows])
    for budget in fold.budgets:
        made = max(2, int(np.searchsorted(costs, budget * runs.whole, side="right")))
        yield fold.learnt(logs, rows[:made], arms[:made]), float(costs[made - 1])


def _trees(fold: _Fold) -> _Picks:
    """Run all solvers on all instances to the longest limit that the budget allows."""
    ensemble = study_import("sklearn.ensemble")
    train, runs = fold.train, fold.runs
    for budget in fold.budgets:
        low, high = math.log(SHORTEST), math.log(runs.cutoff)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            took = runs.cost(np.full(len(train), math.exp(middle))).sum() + runs.features
            low, high = (low, middle) if took > budget * runs.whole else (middle, high)
        limits = np.full(len(train), runs.cutoff if budget >= 1 else math.exp(low))
        trees = ensemble.ExtraTreesRegressor(100, min_samples_leaf=2, random_state=fold.seed)
        trees.fit(train.contexts, runs.logs(limits)[0])
        picks = np.asarray(trees.predict(fold.test.contexts).argmin(axis=1), dtype=np.intp)
        yield picks, float(runs.cost(limits).sum()) + runs.features


_PICKS = dict(zip(CPU_METHODS, (_race, _trees, _uniform, _full), strict=True))
_BISECTIONS = 40


POLICY, DESCRIPTION = "selector.cgap", "selector.json"

_VERSION = 1  # of the description


@dataclass(frozen=True)
class Selection:
    """The solver for one instance.

    Losses are differences of reward: where performance is a time, log10 of how many times longer
    the selected solver takes than the best one.

    .. versionadded:: 0.2

    Parameters
    ----------
    instance
        The instance.
    solver
        The algorithm to run on it.
    expected_loss
        How much better the best solver is, in expectation: ``Policy.expected_regret``.
    bound
        How much better it may be: ``Policy.certificate``.

    See Also
    --------
    experiments.Selector.select : Returns them.

    Examples
    --------
    >>> selection = cg.experiments.Selection("queens", "fast", expected_loss=0.1, bound=0.4)
    >>> selection.solver
    'fast'
    """

    instance: str
    solver: str
    expected_loss: float
    bound: float


@dataclass(frozen=True, eq=False)
class Selector:
    """Picks a solver for instances by their raw features.

    The policy's own columns are prepared features, and called so, for raw ones not to be taken for
    them.

    .. versionadded:: 0.2

    Parameters
    ----------
    scenario
        The name of the scenario that it was learnt on.
    runtime
        Whether performance is a time, so that losses are log10 of a ratio of times.
    policy
        Which algorithm to run, given prepared features.
    preparation
        How raw features are prepared.

    Examples
    --------
    >>> selector = cg.experiments.learn_selector(scenario)
    >>> selector.runtime
    True
    """

    scenario: str
    runtime: bool
    policy: Policy
    preparation: Preparation

    def read(self, path: str | os.PathLike[str]) -> Instances:
        r"""Return the instances in a file, their features prepared.

        Parameters
        ----------
        path
            A .csv or .parquet file with a column for each feature, named as in the scenario. A cell
            that is empty or "?" is missing. Where the scenario says how the steps of the feature
            computation ended, columns such as "probe failed" say it here, by 0 or 1. A column
            ``instance_id`` gives names; rows with the same name are repetitions, and averaged.

        Examples
        --------
        >>> selector = cg.experiments.learn_selector(scenario)
        >>> with open("new.csv", "w") as file:
        ...     _ = file.write("size\n2\n18\n")
        >>> selector.read("new.csv").names
        ('1', '2')
        """
        return read_instances(Path(path), self.preparation)

    def select(self, instances: Instances) -> list[Selection]:
        r"""Return the solver for each instance.

        Parameters
        ----------
        instances
            What ``read`` returned.

        Examples
        --------
        >>> selector = cg.experiments.learn_selector(scenario)
        >>> with open("new.csv", "w") as file:
        ...     _ = file.write("size\n2\n18\n")
        >>> [each.solver for each in selector.select(selector.read("new.csv"))]
        ['fast', 'sure']
        """
        contexts, policy = instances.contexts, self.policy
        solvers, losses = map(str, policy.recommend(contexts)), policy.expected_regret(contexts)
        bounds = policy.certificate(contexts).bound.tolist()
        rows = zip(instances.names, solvers, losses.tolist(), bounds, strict=True)
        return [Selection(*row) for row in rows]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write selector.cgap, the policy, and selector.json, all else.

        Parameters
        ----------
        folder
            Where to write; made if missing.

        Examples
        --------
        >>> selector = cg.experiments.learn_selector(scenario)
        >>> selector.save("selector")
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        described = {
            "format": "contextgap selector",
            "version": _VERSION,
            "scenario": self.scenario,
            "runtime": self.runtime,
            "preparation": asdict(self.preparation),
        }
        self.policy.save(Path(folder) / POLICY)
        with whole_file(Path(folder) / DESCRIPTION, text=True) as file:
            file.write(json.dumps(described, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Selector:
        """Read a selector.

        Parameters
        ----------
        folder
            Where ``save`` wrote it.

        Examples
        --------
        >>> selector = cg.experiments.learn_selector(scenario)
        >>> selector.save("selector")
        >>> cg.experiments.Selector.load("selector").policy.arms
        ('fast', 'sure')
        """
        path, policy = Path(folder) / DESCRIPTION, Policy.load(Path(folder) / POLICY)
        text = path.read_bytes()
        with files.making_sense_of(path):
            described = json.loads(text)
            if described["version"] != _VERSION:
                raise ValueError(f"version {described['version']!r} is unknown to this release")
            preparation = Preparation.restored(described["preparation"])
            if policy.columns != prepared_columns(preparation):
                raise ValueError(f"it does not describe the columns of {POLICY} beside it")
            return cls(str(described["scenario"]), bool(described["runtime"]), policy, preparation)


def prepared_columns(preparation: Preparation) -> tuple[str, ...]:
    return tuple(f"prepared {name}" for name in preparation.columns)


def learn_selector(
    scenario: Scenario,
    *,
    method: str | Method | Explorer = "auto",
    budget: float = 1,
    seed: int = 0,
    choose: bool = False,
    progress: Progress | None = None,
) -> Selector:
    """Learn one selector from runs on all instances of a scenario, by a learner without settings.

    .. versionadded:: 0.2

    Parameters
    ----------
    scenario
        Instances, algorithms and all their runs, as ``AlgorithmSelection(folder).load()`` gives it.
    method
        A name from ``METHODS``, or a method.
    budget, seed, choose, progress
        As of ``select_algorithms``.

    See Also
    --------
    experiments.Selector : What it returns.

    Examples
    --------
    >>> selector = cg.experiments.learn_selector(scenario)
    >>> selector.policy.arms
    ('fast', 'sure')
    """
    preparation = known_preparation(scenario)
    visits = checks.positive("budget", budget, BUDGET_HINT)
    named = replace(scenario, columns=prepared_columns(preparation))
    ((policy, _),) = explore(named, read_method(method), [visits], seed, choose, progress)
    return Selector(scenario.name, scenario.runtime, policy, preparation)


def known_preparation(scenario: Scenario) -> Preparation:
    if scenario.preparation is None:
        raise ValueError(
            "scenario must know how its raw features were prepared, as what "
            "AlgorithmSelection(folder).load() returns does"
        )
    return scenario.preparation
