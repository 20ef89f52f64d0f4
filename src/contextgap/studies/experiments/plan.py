"""How long to explore: by the paper's theorem, and by a pilot simulation."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contextgap.base import checks
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.studies.experiments.pilot import budget_for, pilot
from contextgap.studies.experiments.tasks import Progress
from contextgap.studies.theory import RegretBound, Spectrum, spectrum

if TYPE_CHECKING:
    from pandas import DataFrame


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
    contexts
        A sample of the contexts to come, shape (n, d) or a DataFrame.
    n_arms
        Number of arms.
    kernel
        How fast rewards change with the context.
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
    budget
        The longest exploration the pilot simulates.
    method
        The method that the pilot uses.
    repetitions
        How many explorations the pilot simulates.
    seed
        Seed of the pilot.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    progress
        Called with the numbers of finished and of all repetitions, such as
        ``cg.ProgressBar("planning")``.
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
