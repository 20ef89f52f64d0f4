"""The leaderboard's statistics, against scipy and against numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from leaderboard.ranking import (
    bootstrap_means,
    chance_alarms,
    differences,
    log_ratios,
    means,
    ranks,
    winners,
)


def test_errors_are_those_of_scipy(rng):
    table = rng.normal(size=(10, 4))
    found = means(table)
    np.testing.assert_allclose(found.mean, table.mean(axis=0))
    np.testing.assert_allclose(found.error, stats.sem(table))


def test_differences_are_those_of_a_paired_test(rng):
    hard = rng.normal(5, 3, size=(12, 1))  # what makes a seed hard for all methods
    table = hard + rng.normal([0.0, 0.1, 1.0], 0.2, size=(12, 3))
    found = differences(table, 0)
    for place in (1, 2):
        expected = stats.ttest_rel(table[:, place], table[:, 0])
        assert found.mean[place] / found.error[place] == pytest.approx(expected.statistic)
    assert (found.mean[0], found.error[0]) == (0.0, 0.0)
    assert found.significant.tolist()[::2] == [False, True]
    apart = abs(table[:, 2].mean() - table[:, 0].mean())
    assert apart < 2 * means(table).error.max()  # without pairs, nothing would be told apart


def test_a_difference_by_hand():
    found = differences([[1.0, 2.0], [2.0, 5.0], [6.0, 8.0]], 0)  # 1, 3 and 2
    assert found.mean[1] == 2.0
    assert found.error[1] == pytest.approx(1 / math.sqrt(3))
    assert found.significant.tolist() == [False, True]
    assert not differences([[1.0, 2.0], [2.0, 5.0], [6.0, 3.0]], 0).significant.any()  # 1, 3, -3


def test_equal_differences_have_no_error():
    found = differences([[1.0, 1.5], [2.0, 2.5], [7.0, 7.5]], 0)
    assert found.significant.tolist() == [False, True]
    assert means([[0.1, 0.1]] * 3).error.tolist() == [0.0, 0.0]


def test_winners_are_the_lowest_and_those_not_significant_from_it():
    table = [[1.0, 1.3, 2.0, 0.0], [1.0, 0.8, 2.1, 5.0], [1.0, 1.1, 2.2, 9.0]]
    assert winners(table).tolist() == [True, True, False, True]  # the last is too uncertain


def test_alarms_by_chance_are_as_frequent_as_said(rng):
    draws = rng.normal(size=(10, 20_000))
    assert means(draws).significant.mean() == pytest.approx(chance_alarms(10), abs=0.006)


def test_ranks_of_equals_are_shared():
    found = ranks([[0.5, 0.1, 0.5, 0.9], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(found, [[2.5, 1, 2.5, 4], [2.5] * 4])


def test_zero_regret_has_a_ratio():
    found = np.exp(log_ratios([[0.0, 0.2, 0.4], [0.0, 0.0, 0.0]], 1))
    np.testing.assert_allclose(found, [[0.5, 1, 2], [1, 1, 1]])


def test_bootstrap_of_single_rows_is_drawing_them_again(rng):
    values = rng.normal(3, 2, (40, 2))
    found = bootstrap_means(values, range(40))
    drawn = [values[rng.integers(40, size=40)].mean(axis=0) for _ in range(10_000)]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(found.estimate, values.mean(axis=0))
    np.testing.assert_allclose([found.low, found.high], [low, high], atol=0.04)


def test_rows_of_a_group_count_as_one(rng):
    once = rng.normal(size=(12, 1))
    many = np.repeat(once, 5, axis=0)
    single = bootstrap_means(once, range(12))
    grouped = bootstrap_means(many, np.repeat(np.arange(12), 5).tolist())
    np.testing.assert_allclose([grouped.low, grouped.high], [single.low, single.high])
    naive = bootstrap_means(many, range(60))
    assert (naive.high - naive.low < 0.6 * (grouped.high - grouped.low)).all()


def test_groups_of_unequal_size_weigh_by_their_rows():
    found = bootstrap_means([[0.0], [0.0], [0.0], [8.0]], ["a", "a", "a", "b"])
    assert found.estimate == [2.0]
    assert (found.low[0], found.high[0]) == (0.0, 8.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ranks([1.0, 2.0]), "a table must have the shape"),
        (lambda: means([[1.0, math.nan]]), "a table must be finite, got nan"),
        (lambda: log_ratios([[1.0, -2.0]], 0), "must not be negative, got -2"),
        (lambda: bootstrap_means([[1.0], [2.0]], ["a"]), "groups must name the 2 rows"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
