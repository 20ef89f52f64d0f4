"""From records to standings, on records whose answer is known."""

import math

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.experiments.compare import FULL, SINGLE
from leaderboard.standings import Traits, cells_of, situations, standings

PROBLEMS = ("a", "b", "c", "d", "e", "f")
TRAITS = {name: Traits(name, 3 + 5 * (name in "ef"), name in "abc") for name in PROBLEMS}
LABELS = ("other", "ours", FULL, SINGLE)


def make_records(regret, problems=PROBLEMS, budgets=(100, 1000), seeds=4):
    rows = [
        (problem, budget, method, seed, regret(method, problem, budget, seed))
        for problem in problems
        for method in LABELS
        for seed in range(seeds)
        for budget in budgets
    ]
    return pd.DataFrame(rows, columns=["problem", "budget", "method", "seed", "average_regret"])


def steady(method, problem, budget, seed):
    """``other`` misses twice as much after 100 steps, half as much after 1000, on all seeds."""
    if method == "other":
        return (2.0 if budget == 100 else 0.5) * (1 + seed)
    return {"ours": 1.0, FULL: 0.25, SINGLE: 8.0}[method] * (1 + seed)


def by_name(found):
    return {one.method: one for one in found}


def test_cells_have_seeds_by_methods_with_the_reference_first():
    cells = cells_of(make_records(steady), "ours")
    assert [(cell.problem, cell.budget) for cell in cells][:3] == [
        ("a", 100),
        ("a", 1000),
        ("b", 100),
    ]
    assert cells[0].labels == ["ours", "other", FULL, SINGLE]
    np.testing.assert_allclose(cells[0].regrets.mean, [2.5, 5, 0.25 * 2.5, 8 * 2.5])
    np.testing.assert_allclose(cells[0].behind.mean, [0, 2.5, -0.75 * 2.5, 7 * 2.5])
    assert cells[0].wins.tolist() == [True, False]
    assert cells[1].wins.tolist() == [False, True]


def test_ratios_ranks_and_counts():
    found = by_name(standings(cells_of(make_records(steady), "ours"), TRAITS))
    other = found["other"]
    assert other.ratio == pytest.approx(1)  # twice, and half
    assert (other.low, other.high) == pytest.approx((1, 1))  # the same on all problems
    assert (other.rank, other.better, other.worse) == (1.5, 6, 6)
    assert not other.significant
    assert found[FULL].ratio == pytest.approx(0.25)
    assert found[FULL].significant
    assert (found[FULL].rank, found[FULL].better, found[FULL].worse) == (None, 12, 0)
    assert (found[SINGLE].better, found[SINGLE].worse) == (0, 12)
    assert (found["ours"].ratio, found["ours"].better, found["ours"].worse) == (1.0, 0, 0)


def test_problems_count_alike_whatever_budgets_they_have():
    records = make_records(
        lambda method, problem, *_: 4.0 if (method, problem) == ("other", "a") else 1.0
    )
    some = records[(records["problem"] != "a") | (records["budget"] == 100)]
    for each in (records, some):
        found = by_name(standings(cells_of(each, "ours"), TRAITS))
        assert found["other"].ratio == pytest.approx(4 ** (1 / 6))
        assert found["other"].rank == pytest.approx((2 + 5 * 1.5) / 6)


def test_methods_are_ordered_and_yardsticks_come_last():
    records = make_records(
        lambda method, *_: {"other": 1.0, "ours": 2.0, FULL: 3.0, SINGLE: 0.5}[method]
    )
    found = standings(cells_of(records, "ours"), TRAITS)
    assert [one.method for one in found] == ["other", "ours", FULL, SINGLE]


def test_few_independent_problems_have_no_interval():
    related = {name: Traits("same" if name in "abc" else name, 3, False) for name in PROBLEMS}
    cells = cells_of(make_records(steady), "ours")
    full = by_name(standings(cells, related))[FULL]
    assert (full.ratio, full.low, full.high) == (pytest.approx(0.25), 0, math.inf)
    assert not full.significant


def test_situations_are_parts_of_the_cells():
    cells = cells_of(make_records(steady), "ours")
    found = {one.name: one for one in situations(cells, TRAITS)}
    sizes = {name: (one.problems, one.cells) for name, one in found.items()}
    assert sizes == {
        "fewer than 1000 steps": (6, 6),
        "1000 steps or more": (6, 6),
        "little or no noise": (3, 6),
        "much noise": (3, 6),
        "fewer than 6 arms": (4, 8),
        "6 arms or more": (2, 4),
    }
    short = by_name(found["fewer than 1000 steps"].standings)["other"]
    assert (short.ratio, short.better, short.worse) == (pytest.approx(2), 0, 6)
    assert short.significant
    assert found["much noise"].standings == tuple(
        standings([cell for cell in cells if cell.problem in "abc"], TRAITS)
    )
