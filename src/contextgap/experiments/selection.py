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
from contextgap.arrays import FloatArray, IntArray
from contextgap.experiments.compare import read_methods
from contextgap.experiments.tasks import Progress, Result, Store, Task, execute
from contextgap.kernels import Gaussian
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

_PILOT = 20  # runs whose rewards tell in which unit rewards come


def select(
    scenario: Scenario,
    *,
    methods: Iterable[str] | Mapping[str, Method] = ("contextual-gap", "epsilon-greedy", "uniform"),
    budget: int = 1,
    ridge: float = 0.05,
    spread: float = 1.0,
    seeds: Sequence[int] = (0, 1, 2),
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Select algorithms over a scenario's cross-validation folds.

    Nothing is tuned and nothing is known of the rewards beforehand. The first runs, twice each
    algorithm in turn and at least 20, are the same for all methods; the variance of their rewards
    becomes the variance of the kernel, whose bandwidths are ``Gaussian.from_contexts``'s. The
    prior mean is "auto".

    Parameters
    ----------
    scenario
        Instances, algorithms and all their runs.
    methods
        Names from ``METHODS``, or methods by label.
    budget
        Runs per training instance.
    ridge
        Regularisation in units of the variance of the rewards.
    spread
        Of ``Gaussian.from_contexts``.
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
    settings = {
        "budget": checks.whole("budget", budget, least=1),
        "ridge": checks.positive("ridge", ridge, "in units of the variance of the rewards"),
        "spread": checks.positive("spread", spread, "1 suits most problems"),
    }
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
            {"train": train, "test": test, "method": method, "seed": labels["seed"], **settings},
        )
        for labels, method, (train, test) in places
    ]
    results = execute(tasks, executor=executor, store=store, progress=progress)
    label = {"scenario": scenario.name, "budget": settings["budget"]}
    rows = [
        {**label, **labels, **result}
        for (labels, _, _), result in zip(places, results, strict=True)
    ]
    return study_import("pandas").DataFrame(rows)


def select_once(
    train: Scenario,
    test: Scenario,
    method: Method,
    budget: int,
    ridge: float,
    spread: float,
    seed: int,
) -> Result:
    """Return what one method selects on one fold, and how good that is."""
    learner, tried = _explored(train, method, budget, ridge, spread, seed)
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
    train: Scenario, method: Method, budget: int, ridge: float, spread: float, seed: int
) -> tuple[Learner, set[tuple[int, int]]]:
    """Return a learner that has explored, and which algorithm it saw on which instances."""
    visits = _visits(len(train), budget, seed)
    first = visits[: max(_PILOT, 2 * train.n_arms)]
    arms = np.arange(len(first)) % train.n_arms
    heard = train.observations[first, arms]
    variance = _variance(heard)
    learner = Learner(
        train.n_arms,
        kernel=variance * Gaussian.from_contexts(train.contexts, spread),
        ridge=ridge * variance,
        method=method,
        prior_mean="auto",
        seed=seed,
    )
    learner.fit(train.contexts[first], arms.tolist(), heard)
    tried = set(zip(first.tolist(), arms.tolist(), strict=True))
    for row in visits[len(first) :].tolist():
        arm = learner.ask(train.contexts[row])
        learner.tell(train.contexts[row], arm, train.observations[row, arm])
        tried.add((row, arm))
    return learner, tried


def _visits(rows: int, budget: int, seed: int) -> IntArray:
    """Return the rows in random order, ``budget`` times, each time in another order."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(rows) for _ in range(budget)])


def _variance(rewards: FloatArray) -> float:
    """Return the variance of rewards; 1 where they are all the same, and any unit will do."""
    variance = float(rewards.var())
    return variance if variance > 0 else 1.0


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
