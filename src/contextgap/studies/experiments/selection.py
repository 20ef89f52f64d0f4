"""Algorithm selection from few runs: explore training instances, deploy on test instances.

A selector is usually trained on the full table, in which every algorithm ran on every training
instance. Here each training instance is visited ``budget`` times, one run per visit, and the
learner says which algorithm runs; if it may choose, also which instance is visited next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.base.names import study_import
from contextgap.learner import Learner
from contextgap.methods.method import RECOMMENDED, Method
from contextgap.policy import Policy
from contextgap.studies.experiments.compare import read_methods
from contextgap.studies.experiments.tasks import Progress, Result, Store, Task, execute
from contextgap.studies.problems import Scenario
from contextgap.studies.problems.algorithm_selection import (
    closed_gap,
    folds,
    selected_performance,
    single_best,
)

if TYPE_CHECKING:
    from pandas import DataFrame

SELECTION_METHODS = (RECOMMENDED, "knowledge-gradient", "elimination", "uniform")
BUDGET_HINT = "1 for one run per training instance, 0.25 for one on every fourth"
CANDIDATES = 100
"""Instances to choose from per step; a knowledge gradient's time grows with their square."""


def select_algorithms(
    scenario: Scenario,
    *,
    methods: Iterable[str] | Mapping[str, Method] = SELECTION_METHODS,
    budget: float | Sequence[float] = 1,
    seeds: Sequence[int] = (0, 1, 2),
    choose: bool = False,
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
        Visits per training instance, one run each; a fraction for a part of the instances.
        Instances are visited pass by pass, all of them once before any of them twice. What is
        visited for a run that was made before costs nothing and teaches nothing. Several numbers
        give the results on the way to the largest.
    seeds
        One repetition each: the order of the instances, and all that is random about a method.
    choose
        Whether the learner chooses which of the instances left in a pass comes next, among 100
        random ones; else they come in random order.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    store
        Where results are kept as they finish.
    progress
        Called with the numbers of finished and of all pieces of work, such as
        ``cg.ProgressBar("selecting")``.

    Returns
    -------
    table
        One row per method, seed, fold and budget: the average simple regret, and that of the single
        best solver (chosen on the training part), in units of reward; the mean performance of the
        selected algorithms, of the single best one and of the virtual best; the closed gap; the
        mean cost of the features, which none of these includes; the regret that the policy
        expected, and on which share of the instances its bound held; how many different runs were
        paid for, and how many the full table of the training part has; the seconds that the whole
        exploration took.
    """
    budgets = _read_budgets(budget)
    chosen = read_methods(methods)
    parts = list(folds(scenario))
    places = [
        ({"method": label, "choose": choose, "seed": seed, "fold": number}, method, part)
        for label, method in chosen.items()
        for seed in seeds
        for number, part in enumerate(parts, 1)
    ]
    tasks = [
        Task(
            select_on_fold,
            {
                "train": train,
                "test": test,
                "method": method,
                "budgets": budgets,
                "seed": labels["seed"],
                "choose": choose,
            },
        )
        for labels, method, (train, test) in places
    ]
    results = execute(tasks, executor=executor, store=store, progress=progress)
    rows = [
        {"scenario": scenario.name, **labels, **reached, "seconds": result["seconds"]}
        for (labels, _, _), result in zip(places, results, strict=True)
        for reached in result["reached"]
    ]
    return study_import("pandas").DataFrame(rows)


def _read_budgets(budget: Any) -> tuple[float, ...]:
    given = budget if isinstance(budget, Sequence | np.ndarray) else [budget]
    read = sorted({checks.positive("budget", value, BUDGET_HINT) for value in given})
    if not read:
        raise ValueError(f"budget must be a number or several, got none; {BUDGET_HINT}")
    return tuple(read)


def select_on_fold(
    train: Scenario,
    test: Scenario,
    method: Method,
    budgets: Sequence[float],
    seed: int,
    choose: bool,
) -> Result:
    """Return what one method selects on one fold after each budget, and how good that is."""
    explored = explore(train, method, budgets, seed, choose)
    return {
        "reached": [
            {"budget": budget, **_evaluated(train, test, policy), "runs_paid": runs}
            for budget, (policy, runs) in zip(budgets, explored, strict=True)
        ]
    }


def _evaluated(train: Scenario, test: Scenario, policy: Policy) -> Result:
    places = {arm: place for place, arm in enumerate(test.arms)}
    picks = np.array([places[arm] for arm in policy.recommend(test.contexts)], dtype=np.intp)
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
    """Yield the policy after each budget, and how many different runs it took.

    ``progress`` is called with the numbers of visits made and to make.
    """
    learner = Learner(train.arms, method=method, seed=seed, columns=train.columns)
    places = {arm: place for place, arm in enumerate(train.arms)}
    rng = np.random.default_rng(seed)
    ran = np.zeros(train.rewards.shape, dtype=np.bool_)
    left = np.empty(0, dtype=np.intp)  # instances still to visit in this pass
    ends = [max(1, round(budget * len(train))) for budget in budgets]
    for start, end in pairwise([0, *ends]):
        for visit in range(start, end):
            left = left if left.size else rng.permutation(len(train))
            place, arm = _visit(learner, train.contexts, left, rng if choose else None)
            row, column = left[place], places[arm]
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


def _visit(
    learner: Learner, contexts: FloatArray, left: IntArray, rng: np.random.Generator | None
) -> tuple[int, Label]:
    """Return which of the rows left comes next, and the arm to try: the first, or a choice."""
    if rng is None:
        return 0, learner.ask(contexts[left[0]])
    places: IntArray = rng.permutation(len(left))[:CANDIDATES]
    row, arm = learner.ask(pool=contexts[left[places]], index=True)
    return int(places[row]), arm
