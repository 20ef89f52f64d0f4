"""From the leaderboard's records to ranks, tests, and which method suits which situation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.problems.extras import study_import
from leaderboard.ranking import (
    Friedman,
    Intervals,
    bootstrap_means,
    critical_difference,
    friedman,
    pairwise_ratios,
    ranks,
)

if TYPE_CHECKING:
    from pandas import DataFrame

OVERALL = "all budgets"
HIGH_NOISE = 0.25  # in units of the standard deviation of the rewards


@dataclass(frozen=True, eq=False)
class RankTest:
    """Friedman's test and Nemenyi's critical difference (5 % level) for one set of blocks.

    Ranks are at one budget or over all; a block is a "cell" (problem and noise) or a "problem".
    """

    ranked_at: str
    block: str
    friedman: Friedman
    difference: float


@dataclass(frozen=True, eq=False)
class Situation:
    """The method with the lowest average rank at some noise levels and budgets.

    ``rivals`` are the methods not told apart from it, best first.
    """

    name: str
    noise: tuple[float, ...]
    budgets: tuple[int, ...]
    best: str
    rank: float
    rivals: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Standings:
    """What follows from the records.

    ``means`` are regrets over seeds: a row per problem, noise and budget, a column per method, best
    overall first. ``ranks`` are the methods' in each of these rows; ``table`` has their averages,
    overall with an interval, and at each budget. Entry (i, j) of ``ratios`` is method i's regret
    over method j's, in the order of ``table``: geometric mean over all rows, with intervals.
    """

    means: DataFrame
    ranks: DataFrame
    table: DataFrame
    tests: tuple[RankTest, ...]
    ratios: Intervals
    situations: tuple[Situation, ...]


def standings(records: DataFrame) -> Standings:
    """Rank methods by their mean regret over seeds in every cell."""
    pandas = study_import("pandas")
    keys = ["problem", "noise", "budget"]
    rows = records.drop_duplicates(keys)[keys]
    means = records.pivot_table("average_regret", keys, "method", "mean")
    means = means.loc[pandas.MultiIndex.from_frame(rows)]
    table = _ranked(means)
    order = table.mean().sort_values(kind="stable").index
    means, table = means[order], table[order]
    return Standings(
        means,
        table,
        _table(table),
        tuple(_tests(table)),
        pairwise_ratios(means.to_numpy(), means.index.get_level_values("problem")),
        tuple(_situations(table)),
    )


def _ranked(means: DataFrame) -> DataFrame:
    frame = study_import("pandas").DataFrame
    return frame(ranks(means.to_numpy()), index=means.index, columns=means.columns)


def over_budgets(table: DataFrame) -> DataFrame:
    """Return the mean over budgets in every cell (problem and noise)."""
    return table.groupby(level=["problem", "noise"], sort=False).mean()


def _table(table: DataFrame) -> DataFrame:
    overall = _interval(over_budgets(table))
    columns = {"method": table.columns, "rank": overall.estimate, "low": overall.low}
    by_budget = table.groupby(level="budget").mean()
    return study_import("pandas").DataFrame(
        {
            **columns,
            "high": overall.high,
            **{f"at {budget}": by_budget.loc[budget].to_numpy() for budget in by_budget.index},
        }
    )


def _interval(table: DataFrame) -> Intervals:
    return bootstrap_means(table.to_numpy(), table.index.get_level_values("problem"))


def _tests(table: DataFrame) -> list[RankTest]:
    """Test at each budget and over all, with cells and, more cautiously, problems as blocks."""
    parts: dict[str, DataFrame] = {
        f"{budget} steps": rows for budget, rows in table.groupby(level="budget")
    }
    parts[OVERALL] = over_budgets(table)
    found = []
    for name, rows in parts.items():
        problems = rows.groupby(level="problem").mean()
        for block, blocks in (("cell", rows), ("problem", problems)):
            difference = critical_difference(blocks.shape[1], len(blocks))
            found.append(RankTest(name, block, friedman(blocks.to_numpy()), difference))
    return found


def _situations(table: DataFrame) -> list[Situation]:
    levels = sorted(table.index.unique("noise"))
    budgets = sorted(table.index.unique("budget"))
    middle = math.sqrt(budgets[0] * budgets[-1])
    noises = {
        f"noise below {HIGH_NOISE:g}": [level for level in levels if level < HIGH_NOISE],
        f"noise from {HIGH_NOISE:g}": [level for level in levels if level >= HIGH_NOISE],
    }
    lengths = {
        f"up to {middle:.0f} steps": [budget for budget in budgets if budget < middle],
        f"more than {middle:.0f} steps": [budget for budget in budgets if budget >= middle],
    }
    everywhere = _situation("everywhere", table, levels, budgets)
    return [everywhere] + [
        _situation(f"{noise}, {length}", table, some_levels, some_budgets)
        for noise, some_levels in noises.items()
        for length, some_budgets in lengths.items()
        if some_levels and some_budgets
    ]


def _situation(name: str, table: DataFrame, levels: list[Any], budgets: list[Any]) -> Situation:
    index = table.index
    inside = index.get_level_values("noise").isin(levels)
    rows = table[inside & index.get_level_values("budget").isin(budgets)]
    average = rows.mean().sort_values(kind="stable")
    ordered = rows[average.index]
    behind = ordered.sub(ordered.iloc[:, 0], axis=0)
    # Ranks behind the best, problems being drawn again: not told apart where that may be nothing.
    low = _interval(behind).low
    rivals = [str(name) for name, bound in zip(average.index, low, strict=True) if bound <= 0]
    return Situation(
        name,
        tuple(float(level) for level in levels),
        tuple(int(budget) for budget in budgets),
        str(average.index[0]),
        float(np.asarray(average)[0]),
        tuple(rivals[1:]),
    )
