"""A trial of stopping by certificates: whether it keeps its promise, and what it saves.

``python benchmarks/coverage_trial/stopping.py [runs]`` compares the rule on each context with the
rule on the mean certificate, in 40 runs by default.
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.components import study_import
from contextgap.beliefs import TheoremWidth
from contextgap.kernels import Gaussian
from contextgap.learner import Learner, StoppingRule
from contextgap.studies.experiments.run import Progress, Result, Store, Task, execute

sys.path.insert(0, str(Path(__file__).parents[1]))
from coverage_trial.cells import CoverageCell, draw_functions

if TYPE_CHECKING:
    from pandas import DataFrame


def stopping_trial(
    *,
    tolerance: float = 0.5,
    share: float = 0.95,
    failure_probability: float = 0.1,
    budget: int = 1000,
    runs: int = 100,
    seed: int = 0,
    average: bool = False,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Explore random problems that meet the theorem's assumptions until the rule says stop.

    What was saved is measured against the budget, after which every run ends. The table has one row
    per run: the steps used, whether the rule said stop, whether the true regret was within the
    tolerance at every certified context (which the theorem promises), the share of reference
    contexts where it was, and the highest there. With ``average`` the rule is about the mean
    certificate, and what is promised that the mean regret is within the tolerance if it said stop.
    """
    settings = {
        "tolerance": tolerance,
        "share": share,
        "failure_probability": failure_probability,
        "budget": budget,
        **({"average": True} if average else {}),
    }
    tasks = [Task(stop_once, {**settings, "seed": number}) for number in range(seed, seed + runs)]
    results = execute(tasks, executor=executor, store=store, progress=progress)
    pandas = study_import("pandas")
    table = pandas.DataFrame(results).drop(columns="seconds")
    table.insert(0, "seed", range(seed, seed + runs))
    return table


def stop_once(
    tolerance: float,
    share: float,
    failure_probability: float,
    budget: int,
    seed: int,
    average: bool = False,
) -> Result:
    """Explore one random problem until the rule says stop."""
    rng = np.random.default_rng([seed, 7])
    noise, norm, n_arms, kernel = 0.1, 1.0, 3, Gaussian(0.3)
    width = TheoremWidth(noise, norm, failure_probability, tight=True)
    cell = CoverageCell(kernel=kernel, width=width, noise=noise, norm=norm, n_arms=n_arms)
    points = rng.uniform(size=(budget + 200, 2))
    truth = draw_functions(kernel, points, n_arms, norm, rng)
    reference, values = points[budget:], truth[budget:]
    learner = Learner(n_arms, kernel=kernel, ridge=cell.ridge, width=width, seed=seed)
    rule = StoppingRule(tolerance, share, reference, average=average)
    stopped = False
    used = 0
    while used < budget and not stopped:
        arm = learner.ask(points[used])
        learner.tell(points[used], arm, float(truth[used, arm] + noise * rng.standard_normal()))
        used += 1
        stopped = learner.done(rule)
    policy = learner.freeze()
    chosen = policy.recommend(reference)
    regret = values.max(axis=1) - values[np.arange(len(values)), chosen]
    certified = policy.certificate(reference).bound <= tolerance
    kept = (regret[certified] <= tolerance).all()
    if average:
        kept = not stopped or regret.mean() <= tolerance
    return {
        "steps": used,
        "stopped": bool(stopped),
        "kept": bool(kept),
        "within": float((regret <= tolerance).mean()),
        "worst_regret": float(regret.max()),
    }


def main(runs: int) -> None:
    for average in (False, True):
        found = stopping_trial(runs=runs, average=average)
        print(
            f"{'mean certificate' if average else '95 % of contexts':17} promise kept in "
            f"{found['kept'].mean():.2f} of {runs} runs, stopped before 1000 steps in "
            f"{found['stopped'].mean():.2f}, median {found['steps'].median():.0f} steps, "
            f"saved {1 - found['steps'].mean() / 1000:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
