"""A pilot simulation: what to expect of an exploration, from contexts and random functions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.names import study_import
from contextgap.beliefs.widths import PosteriorWidth
from contextgap.kernels import Kernel
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.run import run
from contextgap.studies.experiments.tasks import Progress, Result, Task, execute
from contextgap.studies.problems import Problem
from contextgap.tables.contexts import ContextSchema

if TYPE_CHECKING:
    from pandas import DataFrame


def pilot(
    contexts: Any,
    *,
    n_arms: int,
    kernel: Kernel,
    noise: float,
    budget: int,
    reward_scale: float = 1.0,
    method: str | Method = "contextual-gap",
    repetitions: int = 20,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Simulate explorations of random problems on a sample of contexts.

    Every repetition draws one function per arm from the Gaussian process with the kernel, explores
    ``budget`` contexts drawn from the sample and evaluates on the sample.

    Parameters
    ----------
    contexts
        A sample of the contexts to come, shape (n, d) or a DataFrame.
    n_arms
        Number of arms.
    kernel
        How fast rewards change with the context.
    noise
        Standard deviation of the rewards' noise.
    budget
        The longest exploration to consider.
    reward_scale
        Standard deviation of an arm's expected reward over contexts and functions.
    method
        A name from ``METHODS``, or a ``Method``.
    repetitions
        How many random problems to draw.
    seed
        Seed of the draws.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    progress
        Called with the numbers of finished and of all repetitions, such as
        ``cg.ProgressBar("simulating")``.

    Returns
    -------
    table
        One row per repetition and checkpoint: average and worst simple regret.
    """
    intake = ContextSchema().read(contexts, learning=True)
    if intake.single or len(intake.rows) < 2:
        raise ValueError("contexts must be a sample of at least 2 contexts (2-D)")
    kernel.check_dimension(intake.rows.shape[1])
    common = {
        "rows": intake.rows.tolist(),
        "kernel": kernel,
        "method": read_method(method),
        "n_arms": checks.whole("n_arms", n_arms, least=1),
        "budget": checks.whole("budget", budget, least=1),
        "noise": checks.at_least("noise", noise, 0, "a standard deviation"),
        "reward_scale": checks.positive("reward_scale", reward_scale, "a standard deviation"),
    }
    tasks = [
        Task(explore_once, {**common, "seed": [seed, number]}) for number in range(repetitions)
    ]
    results = execute(tasks, executor=executor, progress=progress)
    pandas = study_import("pandas")
    tables = [
        pandas.DataFrame({"seed": number, **result}).drop(columns="seconds")
        for number, result in enumerate(results)
    ]
    return pandas.concat(tables, ignore_index=True)


def explore_once(
    rows: list[list[float]],
    kernel: Kernel,
    method: Method,
    n_arms: int,
    budget: int,
    noise: float,
    reward_scale: float,
    seed: Sequence[int],
) -> Result:
    """Return the regret curve of one random problem."""
    rng = np.random.default_rng(seed)
    contexts = np.array(rows)
    if len(contexts) > _MOST:
        contexts = contexts[rng.choice(len(contexts), _MOST, replace=False)]
    # Scaled so that an arm's expected reward has the standard deviation asked for.
    prior = float(reward_scale**2 / kernel.diagonal(contexts).mean()) * kernel
    values = _prior_draws(contexts, prior, n_arms, rng)
    tried = rng.integers(len(contexts), size=budget)
    heard = values[tried] + noise * rng.standard_normal((budget, n_arms))
    explore = Problem(
        name="pilot", contexts=contexts[tried], rewards=values[tried], observations=heard
    )
    exploit = Problem(name="pilot", contexts=contexts, rewards=values)
    trace = run(
        explore,
        exploit,
        method=method,
        kernel=prior,
        ridge=max(noise, 1e-3 * reward_scale) ** 2,  # the noise's variance: the Bayesian choice
        width=PosteriorWidth(1.0),
        checkpoints=max(1, budget // 40),
        seed=int(rng.integers(2**31)),
    )
    return {
        "checkpoint": trace.checkpoints.tolist(),
        "average_regret": trace.average_regret.tolist(),
        "worst_regret": trace.worst_regret.tolist(),
    }


_MOST = 1000  # contexts a pilot evaluates on


def _prior_draws(
    contexts: FloatArray, kernel: Kernel, n_arms: int, rng: np.random.Generator
) -> FloatArray:
    """One function per arm from the Gaussian process with the kernel, at the contexts."""
    values, vectors = np.linalg.eigh(kernel(contexts, contexts))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ rng.standard_normal((len(contexts), n_arms)))


def budget_for(table: DataFrame, tolerance: float, probability: float) -> int | None:
    """Return the fewest steps after which average regret is within the tolerance often enough.

    ``table`` comes from ``pilot`` and ``probability`` is a share of its repetitions. None means
    that the pilot's budget does not suffice.
    """
    within = (table["average_regret"] <= tolerance).groupby(table["checkpoint"]).mean()
    # From that checkpoint on: one lucky checkpoint is not enough.
    lasting = within[::-1].cummin()[::-1]
    enough = lasting[lasting >= probability]
    return None if enough.empty else int(enough.index[0])
