"""Algorithm selection from few runs: explore the training instances, decide on the test ones.

A selector is usually trained on the full table, in which every algorithm ran on every training
instance. Here each training instance is visited ``budget`` times, one run per visit, and the
learner says which algorithm runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap import checks
from contextgap.arrays import IntArray
from contextgap.experiments.compare import read_methods
from contextgap.experiments.tasks import Progress, Result, Store, Task, execute
from contextgap.learner import Learner
from contextgap.methods import Method
from contextgap.problems import Scenario
from contextgap.problems.algorithm_selection import (
    closed_gap,
    folds,
    selected_performance,
    single_best,
)
from contextgap.problems.extras import study_import

if TYPE_CHECKING:
    from pandas import DataFrame


def select(
    scenario: Scenario,
    *,
    methods: Iterable[str] | Mapping[str, Method] = ("contextual-gap", "epsilon-greedy", "uniform"),
    budget: int = 1,
    seeds: Sequence[int] = (0, 1, 2),
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Select algorithms over a scenario's cross-validation folds.

    Nothing is tuned by hand and nothing is known of the rewards beforehand: every method is a
    ``Learner`` without settings, which learns its scales from the runs it has paid for.

    Parameters
    ----------
    scenario
        Instances, algorithms and all their runs.
    methods
        Names from ``METHODS``, or methods by label.
    budget
        Runs per training instance.
    seeds
        One repetition each: the order of the instances, and all that is random about a method.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    store
        Where results are kept as they finish.
    progress
        Called with the numbers of finished and of all pieces of work.

    Returns
    -------
    table
        One row per method, seed and fold: the average simple regret in units of reward; the mean
        performance of the selected algorithms, of the single best one (chosen on the training
        part) and of the virtual best; the closed gap; the mean cost of the features, which none of
        these includes; how many different runs were paid for, and how many the full table of the
        training part has.
    """
    budget = checks.whole("budget", budget, least=1)
    chosen = read_methods(methods)
    parts = list(folds(scenario))
    places = [
        ({"method": label, "seed": seed, "fold": number}, method, part)
        for label, method in chosen.items()
        for seed in seeds
        for number, part in enumerate(parts, 1)
    ]
    tasks = [
        Task(
            select_once,
            {
                "train": train,
                "test": test,
                "method": method,
                "budget": budget,
                "seed": labels["seed"],
            },
        )
        for labels, method, (train, test) in places
    ]
    results = execute(tasks, executor=executor, store=store, progress=progress)
    label = {"scenario": scenario.name, "budget": budget}
    rows = [
        {**label, **labels, **result}
        for (labels, _, _), result in zip(places, results, strict=True)
    ]
    return study_import("pandas").DataFrame(rows)


def select_once(train: Scenario, test: Scenario, method: Method, budget: int, seed: int) -> Result:
    """Return what one method selects on one fold, and how good that is."""
    learner, tried = _explored(train, method, budget, seed)
    picks = np.asarray(learner.freeze().recommend(test.contexts), dtype=np.intp)
    single = selected_performance(test, single_best(train))
    return {
        "instances": len(test),
        "average_regret": float(test.regret(picks).mean()),
        "selected": float(selected_performance(test, picks).mean()),
        "single_best": float(single.mean()),
        "virtual_best": float(test.performance.min(axis=1).mean()),
        "closed_gap": closed_gap(test, picks, train=train),
        "feature_cost": float(test.feature_cost.mean()),
        "runs_paid": len(tried),
        "runs_in_table": train.rewards.size,
    }


def _explored(
    train: Scenario, method: Method, budget: int, seed: int
) -> tuple[Learner, set[tuple[int, int]]]:
    """Return a learner that has explored, and which algorithm it saw on which instances."""
    learner = Learner(train.n_arms, method=method, seed=seed)
    tried = set()
    for row in _visits(len(train), budget, seed).tolist():
        arm = learner.ask(train.contexts[row])
        learner.tell(train.contexts[row], arm, train.observations[row, arm])
        tried.add((row, arm))
    return learner, tried


def _visits(rows: int, budget: int, seed: int) -> IntArray:
    """Return the rows in random order, ``budget`` times, each time in another order."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(rows) for _ in range(budget)])


def summarise(table: DataFrame) -> DataFrame:
    """Return a row per scenario, budget and method: means over all tested instances and seeds.

    The closed gap is that of the mean performances. Averaging it over folds instead would let a
    fold in which single and virtual best solver are nearly equal decide.

    Parameters
    ----------
    table
        What ``select`` returned.
    """
    by = ["scenario", "budget", "method"]
    means = ["average_regret", "selected", "single_best", "virtual_best"]
    weights = table["instances"]
    totals: Any = table[by].assign(
        instances=weights, **{name: table[name] * weights for name in means}
    )
    sums = totals.groupby(by, sort=False).sum()
    summary = sums[means].div(sums["instances"], axis=0)
    gap = summary["single_best"] - summary["virtual_best"]
    summary["closed_gap"] = (summary["single_best"] - summary["selected"]) / gap
    paid = table.groupby(by, sort=False)[["runs_paid", "runs_in_table"]].sum()
    summary["share_of_runs"] = paid["runs_paid"] / paid["runs_in_table"]
    return summary.reset_index()
