"""What the leaderboard compares, on what: problems at levels of noise, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from contextgap.base import checks
from contextgap.experiments.compare import read_methods
from contextgap.experiments.study import Pair
from contextgap.methods import METHODS
from contextgap.problems import Classification, FixedData, Maker, Problem, Sinusoids, Spacecraft

MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "sinusoids": Sinusoids(),
        "spacecraft": Spacecraft(),
        **{name: Classification(name) for name in ("digits", "wine", "breast_cancer", "iris")},
    }
)
# Seeds of samples, of noise (…, 1) and of visits (…, 2) differ, so that these are independent.
_HELD = 1_000_000  # samples to tune on have seeds from here, samples to compare on from 0


@dataclass(frozen=True)
class Contest:
    """What is compared, on what, and how.

    Parameters
    ----------
    problems
        Names from ``MAKERS``.
    methods
        Names from ``METHODS``.
    budgets
        Exploration steps after which methods are compared; settings are tuned for the largest.
    noise
        Standard deviations of the noise in what is heard, in units of the standard deviation of
        the problem's rewards over arms and rows.
    seeds
        Repetitions: other rows, other noise, other random choices of the methods.
    grid
        Bandwidths and ridges tried when tuning.
    hold_outs
        Repetitions whose mean regret decides when tuning.
    evaluate
        Rows to evaluate on, where a problem has enough.
    """

    problems: tuple[str, ...] = tuple(MAKERS)
    methods: tuple[str, ...] = tuple(METHODS)
    budgets: tuple[int, ...] = (100, 300, 1000)
    noise: tuple[float, ...] = (0.0, 0.1, 0.5)
    seeds: int = 5
    grid: int = 6
    hold_outs: int = 2
    evaluate: int = 500

    def __post_init__(self) -> None:
        unknown = [name for name in self.problems if name not in MAKERS]
        if unknown or not self.problems:
            got = unknown[0] if unknown else "none"
            raise ValueError(f"problems must be among {', '.join(MAKERS)}, got {got!r}")
        read_methods(self.methods)
        if len(set(self.methods)) < 2:
            raise ValueError(f"methods must be at least two, got {list(self.methods)}")
        budgets = sorted({checks.whole("budgets", budget, least=1) for budget in self.budgets})
        levels = sorted({checks.at_least("noise", level, 0, "such as 0.1") for level in self.noise})
        if not budgets or not levels:
            raise ValueError("budgets and noise must each have at least one value, got none")
        for name, value in (("budgets", budgets), ("noise", levels)):
            object.__setattr__(self, name, tuple(value))
        for name in ("problems", "methods"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        for name in ("seeds", "grid", "hold_outs", "evaluate"):
            checks.whole(name, getattr(self, name), least=1)

    @property
    def steps(self) -> int:
        """Exploration steps of every run."""
        return self.budgets[-1]


QUICK = Contest(budgets=(50, 150), noise=(0.0, 0.5), seeds=2, grid=3, hold_outs=1, evaluate=150)


@dataclass(frozen=True, eq=False)
class Cell:
    """One problem at one level of noise: pairs of rows to explore and to evaluate on.

    Noise is in units of the standard deviation of the rewards, ``unit``, over arms and rows of the
    samples to tune on. Those are ``hold_outs``; ``rounds`` are for comparing, one per seed.
    """

    problem: str
    noise: float
    unit: float
    hold_outs: tuple[Pair, ...]
    rounds: tuple[Pair, ...]


def cells_of(name: str, levels: tuple[float, ...], contest: Contest) -> list[Cell]:
    """Return one problem at several levels of noise, on the same rows."""
    maker = MAKERS[name]
    pairs = _drawn_again if isinstance(maker, FixedData) else _sampled
    held, rounds = pairs(maker, contest)
    unit = float(np.concatenate([explore.rewards for explore, _ in held]).std())
    return [
        Cell(
            name,
            level,
            unit,
            tuple(_noisy(pair, level * unit, _HELD + i) for i, pair in enumerate(held)),
            tuple(_noisy(pair, level * unit, i) for i, pair in enumerate(rounds)),
        )
        for level in levels
    ]


def _noisy(pair: Pair, std: float, seed: int) -> Pair:
    return pair[0].with_noise(std, [seed, 1]), pair[1]


def _sampled(maker: Maker, contest: Contest) -> tuple[list[Pair], list[Pair]]:
    """Return fresh samples of a simulation; the rows to evaluate on follow those to explore."""

    def pair(seed: int) -> Pair:
        rows = maker.sample(contest.steps + contest.evaluate, seed=seed)
        explore, exploit = rows.split(contest.steps, contest.evaluate)
        return explore, exploit

    return (
        [pair(_HELD + i) for i in range(contest.hold_outs)],
        [pair(i) for i in range(contest.seeds)],
    )


def _drawn_again(maker: Maker, contest: Contest) -> tuple[list[Pair], list[Pair]]:
    """Return rows of data that exist once and may be fewer than steps.

    One half is held out. In every repetition, half of its half is for exploring, visited in random
    order with replacement, and the rest is evaluated on.
    """
    halves = maker.sample(seed=0).split(0.5, 0.5)

    def pair(rows: Problem, seed: int) -> Pair:
        known, rest = rows.split(0.5, 0.5, seed=seed)
        visits = np.random.default_rng([seed, 2]).integers(0, len(known), contest.steps)
        return known.take(visits), rest.take(slice(contest.evaluate))

    return (
        [pair(halves[0], _HELD + i) for i in range(contest.hold_outs)],
        [pair(halves[1], i) for i in range(contest.seeds)],
    )
