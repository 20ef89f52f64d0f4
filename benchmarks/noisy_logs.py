"""Logs with noisy rewards, of several kinds, whose expected rewards are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

NEW = 2000  # contexts to be judged on
COUNTRIES = np.array([30, 20, 15, 10, 10, 7, 5, 3]) / 100
DEVICES = np.array([50, 30, 15, 5]) / 100
Function = Callable[[np.ndarray], np.ndarray]
Covariance = Callable[[np.ndarray, np.ndarray], np.ndarray]
SLOWEST, FASTEST, LEVEL = 0.5, 1.8, 0.3  # of the smooth functions' waves; spread of their levels


@dataclass(frozen=True)
class Drawn:
    """How rewards were drawn: the covariance of one arm's expected rewards, and their noise."""

    covariance: Covariance
    noise_variance: float


@dataclass(frozen=True)
class Log:
    """Trials with arms drawn at random, and new contexts with every arm's expected reward."""

    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    new: np.ndarray
    expected: np.ndarray
    expected_logged: np.ndarray
    drawn: Drawn | None = None

    @property
    def n_arms(self) -> int:
        return self.expected.shape[1]

    def regret(self, picks: np.ndarray) -> float:
        """What picks at the new contexts miss on average."""
        earned = self.expected[np.arange(len(picks)), picks]
        return float((self.expected.max(axis=1) - earned).mean())

    @property
    def regret_of_best_single_arm(self) -> float:
        return float((self.expected.max(axis=1)[:, None] - self.expected).mean(axis=0).min())


@dataclass(frozen=True)
class Cell:
    """A kind of log, its noise in units of the signal, its dimension and its length."""

    kind: str
    noise: float
    dimension: int
    rows: int

    def log(self, seed: int) -> Log:
        rng = np.random.default_rng([seed, self.rows, self.dimension, int(10 * self.noise)])
        return MAKERS[self.kind](rng, self)


def smooth(
    rng: np.random.Generator, dimension: int, n_arms: int, relevant: int
) -> tuple[Function, Covariance]:
    """A sum of four sines of projections per arm, and a level; and the covariance over draws."""
    used = rng.permutation(dimension)[:relevant]
    directions = np.zeros((4 * n_arms, dimension))
    directions[:, used] = rng.normal(size=(4 * n_arms, relevant)) / np.sqrt(relevant)
    directions *= rng.uniform(SLOWEST, FASTEST, size=(4 * n_arms, 1))
    phases, weights = rng.uniform(0, 2 * np.pi, 4 * n_arms), rng.normal(size=4 * n_arms)
    levels = LEVEL * rng.normal(size=n_arms)

    def value(x: np.ndarray) -> np.ndarray:
        waves = weights * np.sin(x @ directions.T + phases) / np.sqrt(2)
        return waves.reshape(len(x), n_arms, 4).sum(axis=2) + levels

    return value, smooth_covariance(used)


def smooth_covariance(used: np.ndarray) -> Covariance:
    """An average of Gaussian kernels over the waves' paces, and the level."""
    paces = np.linspace(SLOWEST, FASTEST, 41)

    def covariance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = x[:, used], y[:, used]
        distances = cdist(x, y, "sqeuclidean") / x.shape[1]
        waves = sum(np.exp(-(pace**2) / 2 * distances) for pace in paces) / len(paces)
        return waves + LEVEL**2

    return covariance


def group_covariance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    country, device = x[:, :8] @ y[:, :8].T, x[:, 8:12] @ y[:, 8:12].T
    return country + 0.7**2 * device + 0.5**2 * country * device


def with_gaussian_noise(
    rng: np.random.Generator,
    x: np.ndarray,
    new: np.ndarray,
    value: Function,
    noise: float,
    covariance: Covariance,
) -> Log:
    at_logged, at_new = value(x), value(new)
    arms = rng.integers(at_new.shape[1], size=len(x))
    deviation = noise * at_new.std(axis=0).mean()
    rewards = at_logged[np.arange(len(x)), arms] + deviation * rng.normal(size=len(x))
    return Log(x, arms, rewards, new, at_new, at_logged, Drawn(covariance, deviation**2))


def dense(rng: np.random.Generator, cell: Cell) -> Log:
    return smooth_log(rng, cell, relevant=cell.dimension)


def sparse(rng: np.random.Generator, cell: Cell) -> Log:
    """Only three of the numbers matter."""
    return smooth_log(rng, cell, relevant=3)


def smooth_log(rng: np.random.Generator, cell: Cell, relevant: int) -> Log:
    value, covariance = smooth(rng, cell.dimension, 3, relevant)
    x, new = (rng.normal(size=(n, cell.dimension)) for n in (cell.rows, NEW))
    return with_gaussian_noise(rng, x, new, value, cell.noise, covariance)


def one_hot(rng: np.random.Generator, rows: int, numbers: int) -> np.ndarray:
    """Country and device as 8 and 4 columns of 0 and 1, then numbers, the second one skewed."""
    country = rng.choice(8, size=rows, p=COUNTRIES)
    device = rng.choice(4, size=rows, p=DEVICES)
    others = rng.normal(size=(rows, numbers))
    others[:, 1] = np.exp(0.5 * others[:, 1])
    return np.column_stack([np.eye(8)[country], np.eye(4)[device], others])


def groups(rng: np.random.Generator, cell: Cell) -> Log:
    """Rewards of country and device and their interaction; two numbers that do not matter."""
    country = rng.normal(size=(8, 4))
    device = 0.7 * rng.normal(size=(4, 4))
    both = 0.5 * rng.normal(size=(8, 4, 4))

    def value(x: np.ndarray) -> np.ndarray:
        c, d = x[:, :8].argmax(axis=1), x[:, 8:12].argmax(axis=1)
        return country[c] + device[d] + both[c, d]

    x, new = (one_hot(rng, n, cell.dimension - 12) for n in (cell.rows, NEW))
    return with_gaussian_noise(rng, x, new, value, cell.noise, group_covariance)


def click_chance(rng: np.random.Generator) -> Function:
    country, device = 0.8 * rng.normal(size=(8, 6)), 0.5 * rng.normal(size=(4, 6))
    wave, _ = smooth(rng, 3, 6, relevant=3)

    def chance(x: np.ndarray) -> np.ndarray:
        c, d = x[:, :8].argmax(axis=1), x[:, 8:12].argmax(axis=1)
        numbers = np.column_stack([x[:, 12], 2 * np.log(x[:, 13]), x[:, 14]])
        return 1 / (1 + np.exp(2.0 - country[c] - device[d] - 0.8 * wave(numbers)))

    return chance


def clicks(rng: np.random.Generator, cell: Cell) -> Log:
    """Six arms; a reward is 1 with a chance of about 0.2, else 0."""
    chance = click_chance(rng)
    x, new = (one_hot(rng, n, 3) for n in (cell.rows, NEW))
    arms = rng.integers(6, size=cell.rows)
    at_logged = chance(x)
    clicked = rng.uniform(size=cell.rows) < at_logged[np.arange(cell.rows), arms]
    return Log(x, arms, clicked.astype(float), new, chance(new), at_logged)


def money(rng: np.random.Generator, cell: Cell) -> Log:
    """Clicks that pay a log-normal amount: many zeros, few large rewards."""
    log = clicks(rng, cell)
    return Log(
        log.contexts,
        log.arms,
        log.rewards * payments(rng, cell.rows),
        log.new,
        MEAN_PAYMENT * log.expected,
        MEAN_PAYMENT * log.expected_logged,
    )


MEAN_PAYMENT = float(np.exp(2.0 + 0.9**2 / 2))


def payments(rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
    return np.exp(rng.normal(2.0, 0.9, size=size))


MAKERS = {"dense": dense, "sparse": sparse, "groups": groups, "clicks": clicks, "money": money}
LENGTHS = (200, 1000, 4000)
CELLS = [
    *[
        Cell("dense", noise, dimension, rows)
        for dimension in (2, 8, 30)
        for noise in (0.1, 0.5, 1.0, 2.0, 4.0)
        for rows in LENGTHS
    ],
    *[
        Cell("sparse", noise, dimension, rows)
        for dimension in (8, 30)
        for noise in (0.5, 2.0)
        for rows in LENGTHS
    ],
    *[Cell("groups", noise, 14, rows) for noise in (0.5, 1.0, 2.0) for rows in LENGTHS],
    # Noise of rewards that are 0 or 1, about three times the spread of their chances.
    *[Cell(kind, 3.0, 15, rows) for kind in ("clicks", "money") for rows in (500, 1000, 4000)],
]
