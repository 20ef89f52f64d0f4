"""Where methods are compared: problems, as pairs of rows to explore and rows to deploy on.

Every seed is another repetition: a new sample of a simulation, another split of a data set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from dose_arms import doses
from noisy_logs import MEAN_PAYMENT, click_chance, one_hot, payments

from contextgap.studies.experiments.compare import Pair
from contextgap.studies.problems import (
    AlgorithmSelection,
    Classification,
    Problem,
    Scenario,
    Sinusoids,
    Spacecraft,
)
from contextgap.studies.problems.algorithm_selection import folds

SCENARIOS = ("BNSL-2016", "ASP-POTASSCO", "CSP-2010")
VISITS = 4  # of a row of a data set, on average and at most
DEPLOYED = 1000  # rows to deploy on, where there are so many
ASLIB = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "aslib"


@dataclass(frozen=True)
class Place:
    """A problem to compare on.

    ``pair`` takes the number of steps and a seed. It may return fewer rows to explore than steps;
    then there is nothing more to explore. ``family`` is shared by problems that are variants of
    each other, which count as one when problems are drawn again. ``rows`` says for readers what is
    explored and what is deployed on.
    """

    name: str
    pair: Callable[[int, int], Pair]
    rows: str
    noisy: bool = False
    family: str = ""

    @property
    def group(self) -> str:
        """What is drawn again together: the family, or the problem alone."""
        return self.family or self.name


def settings_of(problem: Problem) -> dict[str, Any]:
    """Return what the learner is told about a problem: nothing, or the features of its arms."""
    features = getattr(problem, "arm_features", None)
    if features is None:
        return {}
    return {"features": dict(enumerate(features))}


def sinusoids(noise: float, steps: int, seed: int) -> Pair:
    rows = Sinusoids().sample(steps + DEPLOYED, seed=seed)
    explore, deploy = rows.split(steps, DEPLOYED)
    return explore.with_noise(noise * rows.rewards.std(), [seed, 1]), deploy


def spacecraft(steps: int, seed: int) -> Pair:
    explore, deploy = Spacecraft().sample(steps + DEPLOYED, seed=seed).split(steps, DEPLOYED)
    return explore, deploy


def classification(name: str, steps: int, seed: int) -> Pair:
    """Halves of a data set in its own units; the rows to explore are visited with replacement.

    When every row was visited some four times, there is little left to learn.
    """
    known, rest = Classification(name, scale=False).sample(seed=0).split(0.5, 0.5, seed=seed)
    steps = min(steps, VISITS * len(known))
    visits = np.random.default_rng([seed, 2]).integers(len(known), size=steps)
    return known.take(visits), rest.take(slice(DEPLOYED))


def clicks(paid: bool, steps: int, seed: int) -> Pair:
    """Clicks of ``noisy_logs``, with the reward of every arm; or what clicks pay."""
    rng = np.random.default_rng([seed, 4 + paid])
    chance = click_chance(rng)
    contexts = one_hot(rng, steps + DEPLOYED, 3)
    expected = chance(contexts)
    heard = (rng.uniform(size=expected.shape) < expected).astype(float)
    if paid:
        expected, heard = MEAN_PAYMENT * expected, heard * payments(rng, heard.shape)
    name = "payments" if paid else "clicks"
    rows = Problem(name=name, contexts=contexts, rewards=expected, observations=heard)
    explore, deploy = rows.split(steps, DEPLOYED)
    return explore, deploy


def dosage(steps: int, seed: int) -> Pair:
    explore, deploy = doses(steps + DEPLOYED, seed).split(steps, DEPLOYED)
    return explore, deploy


@cache
def scenario(folder: Path) -> Scenario:
    return AlgorithmSelection(folder).load()


def instances(folder: Path, steps: int, seed: int) -> Pair:
    """The fold that the seed names is deployed on; of the others, every instance is run once."""
    parts = list(folds(scenario(folder)))
    train, test = parts[seed % len(parts)]
    order = np.random.default_rng([seed, 2]).permutation(len(train))
    return train.take(order[:steps]), test


def places(aslib: Path = ASLIB) -> Mapping[str, Place]:
    """Return all problems by name, those of the Algorithm Selection Library as far as present."""
    halves = "half of the rows, drawn with replacement; the other half"
    fresh = f"a new sample; the {DEPLOYED} rows after it"
    later = f"the first rows of a new flight; {DEPLOYED} later ones"
    once = "nine folds, each instance once; one fold"
    sines, noisy = {"family": "sines"}, {"noisy": True}
    paid = {"family": "clicks", **noisy}
    sets = ("digits", "wine", "breast_cancer", "iris")
    present = [name for name in SCENARIOS if (aslib / name).is_dir()]
    all_of_them = [
        Place("sinusoids-0", partial(sinusoids, 0.0), fresh, **sines),
        Place("sinusoids-0.1", partial(sinusoids, 0.1), fresh, **sines),
        Place("sinusoids-0.5", partial(sinusoids, 0.5), fresh, **sines, **noisy),
        Place("spacecraft", spacecraft, later),
        *(Place(name, partial(classification, name), halves) for name in sets),
        Place("clicks", partial(clicks, False), fresh, **paid),
        Place("payments", partial(clicks, True), fresh, **paid),
        Place("doses", dosage, fresh, **noisy),
        *(Place(name, partial(instances, aslib / name), once) for name in present),
    ]
    return {place.name: place for place in all_of_them}
