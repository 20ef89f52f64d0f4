"""Thirty doses of a drug: arms that have a feature, and neighbours that pay nearly the same.

The best dose depends on the patient. Expected rewards are smooth in the patient's three numbers and
in the dose, so that a learner that is told the doses can learn from one dose about its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from noisy_logs import smooth

from contextgap.studies.problems import Problem

DOSES = np.linspace(0, 1, 30)
NOISE = 0.5  # in standard deviations of the rewards


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FeaturedProblem(Problem):
    """A problem whose arms have features, a row of numbers for every arm."""

    arm_features: tuple[tuple[float, ...], ...]


def doses(rows: int, seed: int) -> FeaturedProblem:
    """Return patients, and what every dose does to each of them on average.

    Benefit has its peak at a dose that depends on the patient; harm grows with the square of the
    dose, in some patients faster than in others. Every seed is another drug.
    """
    rng = np.random.default_rng([seed, 3])
    peak, harm = (smooth(rng, 3, 1, relevant=3)[0] for _ in range(2))
    patients = rng.normal(size=(rows, 3))
    away = DOSES - 1 / (1 + np.exp(-2 * peak(patients)))
    benefit = np.exp(-0.5 * (away / 0.2) ** 2)
    rewards = benefit - 0.3 * (1 + np.tanh(harm(patients))) * DOSES**2
    problem = FeaturedProblem(
        name="doses",
        contexts=patients,
        rewards=rewards,
        arms=tuple(DOSES.round(3).tolist()),
        arm_features=tuple((float(dose),) for dose in DOSES),
    )
    return problem.with_noise(NOISE * rewards.std(), rng)
