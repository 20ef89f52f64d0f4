"""From records to cells, to a summary of all of them, and to situations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.experiments.compare import YARDSTICKS
from leaderboard.ranking import (
    BoolArray,
    Intervals,
    Means,
    bootstrap_means,
    differences,
    log_ratios,
    means,
    ranks,
    winners,
)

if TYPE_CHECKING:
    from pandas import DataFrame

MANY_ARMS = 6
LONG = 1000  # steps
FEWEST = 5  # independent problems that an interval is made of; fewer often agree by chance


@dataclass(frozen=True, eq=False)
class Cell:
    """One problem at one budget, by method: the reference first, the yardsticks last.

    ``behind`` is how much higher regret is than the reference's, seed by seed. ``wins`` are the
    methods with the lowest regret, or without a significant difference from it.
    """

    problem: str
    budget: int
    labels: list[str]
    regrets: Means
    behind: Means
    wins: BoolArray


def cell_of(problem: str, budget: int, regret: DataFrame) -> Cell:
    """Return the cell of a table of regret by seed (rows) and by method (columns)."""
    own = regret.drop(columns=list(YARDSTICKS))
    labels = [str(name) for name in regret.columns]
    return Cell(problem, budget, labels, means(regret), differences(regret, 0), winners(own))


def cells_of(records: DataFrame, reference: str) -> list[Cell]:
    """Return every problem at every budget, in the order of the records."""
    own = [str(name) for name in records["method"].unique() if name not in YARDSTICKS]
    order = [reference, *(name for name in own if name != reference), *YARDSTICKS]
    return [
        cell_of(str(problem), int(budget), part.pivot(**_BY_SEED)[order])
        for (problem, budget), part in records.groupby(["problem", "budget"], sort=False)
    ]


_BY_SEED = {"index": "seed", "columns": "method", "values": "average_regret"}


@dataclass(frozen=True)
class Traits:
    """What situations are made of; problems of one family count as one when drawn again."""

    family: str
    arms: int
    noisy: bool


@dataclass(frozen=True)
class Standing:
    """One method, or yardstick, over some cells, beside the reference.

    ``ratio`` is the geometric mean of its regret over the reference's, all problems counting alike,
    with a 95 % interval over problems, 0 to ∞ where these are too few. ``better`` and ``worse`` are
    numbers of cells with a significant difference from the reference. ``rank`` is its mean rank
    among methods; None for yardsticks.
    """

    method: str
    ratio: float
    low: float
    high: float
    rank: float | None
    better: int
    worse: int

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 1, by more than rounding."""
        return self.high < 1 - 1e-9 or self.low > 1 + 1e-9


def standings(cells: Sequence[Cell], traits: Mapping[str, Traits]) -> list[Standing]:
    """Return every method, lowest ratio first, then the yardsticks."""
    problems = list(dict.fromkeys(cell.problem for cell in cells))
    member = np.array([[cell.problem == name for cell in cells] for name in problems], dtype=float)
    member /= member.sum(axis=1, keepdims=True)  # the mean over a problem's budgets
    regret = np.array([cell.regrets.mean for cell in cells])
    labels = cells[0].labels
    own = len(labels) - len(YARDSTICKS)
    ratios = _intervals(member @ log_ratios(regret, 0), [traits[name].family for name in problems])
    ranked = (member @ ranks(regret[:, :own])).mean(axis=0)
    apart = np.array([cell.behind.significant * np.sign(cell.behind.mean) for cell in cells])
    found = [
        Standing(
            label,
            *(float(np.exp(x[place])) for x in (ratios.estimate, ratios.low, ratios.high)),
            float(ranked[place]) if place < own else None,
            int((apart[:, place] < 0).sum()),
            int((apart[:, place] > 0).sum()),
        )
        for place, label in enumerate(labels)
    ]
    return [*sorted(found[:own], key=lambda one: one.ratio), *found[own:]]


def _intervals(logs: FloatArray, families: Sequence[str]) -> Intervals:
    found = bootstrap_means(logs, families)
    if len(set(families)) >= FEWEST:
        return found
    nothing = np.full(logs.shape[1], np.inf)
    return Intervals(found.estimate, -nothing, nothing)


@dataclass(frozen=True)
class Situation:
    """Some of the cells, and how methods stand there."""

    name: str
    problems: int
    cells: int
    standings: tuple[Standing, ...]


def situations(cells: Sequence[Cell], traits: Mapping[str, Traits]) -> list[Situation]:
    """Return how methods stand by budget, by noise and by number of arms."""
    tests: dict[str, Callable[[Cell], bool]] = {
        f"fewer than {LONG} steps": lambda cell: cell.budget < LONG,
        f"{LONG} steps or more": lambda cell: cell.budget >= LONG,
        "little or no noise": lambda cell: not traits[cell.problem].noisy,
        "much noise": lambda cell: traits[cell.problem].noisy,
        f"fewer than {MANY_ARMS} arms": lambda cell: traits[cell.problem].arms < MANY_ARMS,
        f"{MANY_ARMS} arms or more": lambda cell: traits[cell.problem].arms >= MANY_ARMS,
    }
    parts = {name: [cell for cell in cells if test(cell)] for name, test in tests.items()}
    return [
        Situation(
            name, len({cell.problem for cell in part}), len(part), tuple(standings(part, traits))
        )
        for name, part in parts.items()
        if part
    ]
