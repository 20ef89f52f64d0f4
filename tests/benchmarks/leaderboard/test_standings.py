"""From records to ranks and situations, on records whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare

from leaderboard.standings import standings

PROBLEMS = ("a", "b", "c", "d", "e", "f")


def make_records(score, problems=PROBLEMS, noise=(0.0, 0.5), budgets=(100, 1000), seeds=2):
    methods = ("late", "early", "poor")
    rows = [
        (problem, level, budget, method, seed, score(method, problem, level, budget, seed))
        for problem in problems
        for level in noise
        for budget in budgets
        for method in methods
        for seed in range(seeds)
    ]
    columns = ["problem", "noise", "budget", "method", "seed", "average_regret"]
    return pd.DataFrame(rows, columns=columns)


def by_budget(method, problem, level, budget, seed):
    """``early`` is best after 100 steps, ``late`` after 1000; seeds differ, their mean does not."""
    order = (
        {"late": 2, "early": 1, "poor": 3} if budget == 100 else {"late": 1, "early": 2, "poor": 4}
    )
    return order[method] + (0.9 if seed else -0.9)


def test_ranks_are_of_means_over_seeds():
    found = standings(make_records(by_budget))
    table = found.table.set_index("method")
    assert table["at 100"].to_dict() == {"late": 2, "early": 1, "poor": 3}
    assert table["at 1000"].to_dict() == {"late": 1, "early": 2, "poor": 3}
    assert table["rank"].to_dict() == {"late": 1.5, "early": 1.5, "poor": 3}
    assert (table["low"] == table["rank"]).all()  # the same on all problems
    assert len(found.means) == len(found.ranks) == 6 * 2 * 2


def test_situations_follow_the_rule():
    found = {s.name: s for s in standings(make_records(by_budget)).situations}
    assert set(found) == {
        "everywhere",
        "noise below 0.25, up to 316 steps",
        "noise below 0.25, more than 316 steps",
        "noise from 0.25, up to 316 steps",
        "noise from 0.25, more than 316 steps",
    }
    for name, situation in found.items():
        if name == "everywhere":
            assert {situation.best, *situation.rivals} == {"early", "late"}
        else:
            assert situation.best == ("early" if "up to" in name else "late")
            assert situation.rivals == ()
    assert found["noise from 0.25, up to 316 steps"].noise == (0.5,)
    assert found["noise from 0.25, up to 316 steps"].budgets == (100,)


def test_a_method_better_on_half_of_the_problems_is_not_told_apart():
    def score(method, problem, level, budget, seed):
        if method == "poor":
            return 9.0
        first = "late" if problem in "abcd" else "early"
        return 1.0 if method == first else 2.0

    everywhere = standings(make_records(score)).situations[0]
    assert (everywhere.best, everywhere.rivals) == ("late", ("early",))


def test_tests_are_scipys_over_cells_and_over_problems(rng):
    records = make_records(lambda *_: rng.uniform())
    found = standings(records)
    tests = {(test.ranked_at, test.block): test for test in found.tests}
    at_100 = found.means.xs(100, level="budget")
    expected = friedmanchisquare(*at_100.to_numpy().T)
    assert tests["100 steps", "cell"].friedman.p_value == pytest.approx(expected.pvalue)
    assert tests["100 steps", "cell"].friedman.blocks == 12
    assert tests["all budgets", "problem"].friedman.blocks == 6
    ratio = tests["100 steps", "problem"].difference / tests["100 steps", "cell"].difference
    assert ratio == pytest.approx(np.sqrt(2))


def test_ratios_are_in_the_order_of_the_table():
    records = make_records(lambda method, *_: {"late": 0.1, "early": 0.2, "poor": 0.8}[method])
    found = standings(records)
    assert found.table["method"].tolist() == ["late", "early", "poor"]
    np.testing.assert_allclose(found.ratios.estimate[:, 0], [1, 2, 8])
    np.testing.assert_allclose(found.ratios.high[2], [8, 4, 1])
