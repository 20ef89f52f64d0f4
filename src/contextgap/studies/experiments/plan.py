"""How long to explore: by the paper's theorem, and by a pilot simulation."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base import checks
from contextgap.base.names import study_import
from contextgap.beliefs import PosteriorWidth
from contextgap.kernels import Kernel
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.run import Progress, Result, Task, execute, rows_reached, run
from contextgap.studies.problems import Problem
from contextgap.studies.theory import RegretBound, Spectrum, spectrum
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
    executor, progress
        As of ``compare``.

    Returns
    -------
    table
        One row per repetition and checkpoint: average and worst simple regret.

    See Also
    --------
    experiments.plan : How long to explore.

    Examples
    --------
    >>> table = cg.experiments.pilot(
    ...     contexts, n_arms=2, kernel=cg.Gaussian(0.5), noise=0.1, budget=20, repetitions=2
    ... )
    >>> table.columns.tolist()
    ['seed', 'checkpoint', 'average_regret', 'worst_regret']
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
        Task(explore_once, {**common, "seed": [seed, number]}, {"seed": number})
        for number in range(repetitions)
    ]
    results = execute(tasks, executor=executor, progress=progress)
    return study_import("pandas").DataFrame(rows_reached(tasks, results))


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
    rng = np.random.default_rng(seed)
    contexts = np.array(rows)
    if len(contexts) > 1000:
        contexts = contexts[rng.choice(len(contexts), 1000, replace=False)]
    # Scaled so that an arm's expected reward has the standard deviation asked for.
    prior = float(reward_scale**2 / kernel.diagonal(contexts).mean()) * kernel
    # One function per arm from the Gaussian process with the kernel, at the contexts.
    eigenvalues, vectors = np.linalg.eigh(prior(contexts, contexts))
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    values = root @ rng.standard_normal((len(contexts), n_arms))
    tried = rng.integers(len(contexts), size=budget)
    observed = values[tried] + noise * rng.standard_normal((budget, n_arms))
    explore = Problem(
        name="pilot", contexts=contexts[tried], rewards=values[tried], observations=observed
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
    return {"reached": trace.rows()}


def budget_for(table: DataFrame, tolerance: float, probability: float) -> int | None:
    """Return after how many steps regret stays within the tolerance often enough; None if never."""
    within = (table["average_regret"] <= tolerance).groupby(table["checkpoint"]).mean()
    # From that checkpoint on: one lucky checkpoint is not enough.
    lasting = within[::-1].cummin()[::-1]
    enough = lasting[lasting >= probability]
    return None if enough.empty else int(enough.index[0])


@dataclass(frozen=True, eq=False)
class Plan:
    """How long to explore, by the theorem and by the pilot.

    Parameters
    ----------
    tolerance
        The simple regret that may be left.
    probability
        The probability of staying within the tolerance.
    spectrum
        What was estimated of the contexts.
    theorem
        Theorem 5.3's formula with these numbers, for arms that are all equally good.
    theorem_steps
        Steps after which the formula gives tolerance and probability.
    steps
        The exploration length asked about; by default the longest of the pilot.
    theorem_probability
        The probability it gives after those steps; 0 where it says nothing.
    pilot
        Regret of simulated explorations by steps, as ``experiments.pilot`` returns it.
    pilot_steps
        Steps after which the average regret was within the tolerance in that share of simulated
        explorations; None where the longest was too short.
    pilot_probability
        In which share it was within the tolerance after ``steps``.
    """

    tolerance: float
    probability: float
    spectrum: Spectrum
    theorem: RegretBound
    theorem_steps: int
    steps: int
    theorem_probability: float
    pilot: DataFrame
    pilot_steps: int | None
    pilot_probability: float


def plan(
    contexts: Any,
    *,
    n_arms: int,
    kernel: Kernel,
    noise: float,
    tolerance: float,
    probability: float = 0.9,
    norm: float = 1.0,
    ridge: float | None = None,
    steps: int | None = None,
    budget: int = 500,
    method: str | Method = "contextual-gap",
    repetitions: int = 20,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Return how long to explore, or what to expect of a given number of steps.

    Neither number is a guarantee. The theorem's is what its formula asks for: its proof has a gap
    that is open (docs/theory.md), the kernel's rank is taken to be the dimension estimated from the
    contexts, and its constants are loose. The pilot says what happens for functions drawn from the
    prior.

    Parameters
    ----------
    contexts, n_arms, kernel
        As of ``pilot``.
    noise
        Standard deviation (sub-Gaussian scale) of the rewards' noise, positive.
    tolerance
        The simple regret that may be left.
    probability
        The probability of staying within the tolerance.
    norm
        Bound on every arm's norm in the kernel's space, for the theorem; for the pilot, the
        standard deviation of an arm's expected reward.
    ridge
        Regularisation in the theorem; noise² / norm² by default.
    steps
        Ask about this exploration length.
    budget, method, repetitions, seed, executor, progress
        As of ``pilot``.

    See Also
    --------
    experiments.pilot : The simulation alone.

    Examples
    --------
    >>> kernel, noise = cg.Gaussian(0.5), 0.1
    >>> plan = cg.experiments.plan(
    ...     contexts, n_arms=2, kernel=kernel, noise=noise, tolerance=0.5, budget=20, repetitions=2
    ... )
    >>> plan.pilot_steps
    5
    """
    tolerance = checks.positive("tolerance", tolerance, "a simple regret")
    noise = checks.positive("noise", noise, "a standard deviation")
    norm = checks.positive("norm", norm, "about the size of the rewards")
    if not 0 < checks.real("probability", probability) < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability!r}")
    asked = budget if steps is None else checks.whole("steps", steps, least=1)
    estimated = spectrum(contexts, kernel)
    theorem = RegretBound(
        n_arms=n_arms,
        hardness=n_arms / tolerance**2,  # the worst case: all arms equally good
        noise=noise,
        norm=norm,
        ridge=noise**2 / norm**2 if ridge is None else ridge,
        spectrum=estimated,
        failure_probability=min(1 / 8, (1 - probability) / (2 * n_arms)),
    )
    table = pilot(
        contexts,
        n_arms=n_arms,
        kernel=kernel,
        noise=noise,
        budget=max(budget, asked),
        reward_scale=norm,
        method=method,
        repetitions=repetitions,
        seed=seed,
        executor=executor,
        progress=progress,
    )
    at = table["checkpoint"][table["checkpoint"] <= asked].max()
    within = table[table["checkpoint"] == at]["average_regret"] <= tolerance
    return Plan(
        tolerance=tolerance,
        probability=probability,
        spectrum=estimated,
        theorem=theorem,
        theorem_steps=theorem.steps_for(probability),
        steps=asked,
        theorem_probability=theorem.probability(asked),
        pilot=table,
        pilot_steps=budget_for(table, tolerance, probability),
        pilot_probability=float(within.mean()),
    )
