"""Ranks and their tests, against the worked example and tables of Demšar (2006)."""

import math

import numpy as np
import pytest
from scipy.stats import wilcoxon

from leaderboard.ranking import (
    bootstrap_means,
    cliques,
    critical_difference,
    friedman,
    log_ratios,
    pairwise_ratios,
    ranks,
)

# Table 6 of the paper: area under the curve of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 data sets.
AREAS = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9754, 0.9750],  # printed alike, ranked 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_average_ranks_are_the_published_ones():
    found = ranks(-AREAS)
    np.testing.assert_allclose(found.mean(axis=0), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    np.testing.assert_allclose(found.sum(axis=1), 10)


def test_friedmans_statistic_is_the_published_one_but_for_the_correction_for_ties():
    found = friedman(-AREAS)
    n, k = AREAS.shape
    ties = sum(
        size**3 - size for row in AREAS for size in np.unique(row, return_counts=True)[1].tolist()
    )
    uncorrected = found.statistic * (1 - ties / (n * k * (k * k - 1)))
    assert uncorrected == pytest.approx(9.28, abs=0.01)
    # Iman and Davenport's form, which the paper prints: 3.69 with 3 and 39 degrees of freedom.
    assert (n - 1) * uncorrected / (n * (k - 1) - uncorrected) == pytest.approx(3.69, abs=0.01)
    assert found.blocks == 14
    assert 0.01 < found.p_value < 0.05


def test_friedmans_test_of_ranks_is_that_of_scores():
    assert friedman(AREAS) == friedman(ranks(AREAS))


def test_friedmans_test_where_it_cannot_tell():
    assert friedman(np.ones((5, 3))).p_value == 1
    assert math.isnan(friedman(AREAS[:, :2]).p_value)


def test_p_values_are_uniform_where_methods_are_equal(rng):
    values = [friedman(rng.normal(size=(20, 5))).p_value for _ in range(400)]
    assert np.mean(np.array(values) < 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(values) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("methods", "q05", "q10"),
    [(2, 1.960, 1.645), (3, 2.343, 2.052), (5, 2.728, 2.459), (10, 3.164, 2.920)],
)
def test_critical_values_are_the_published_ones(methods, q05, q10):
    unit = math.sqrt(methods * (methods + 1) / 6)
    assert critical_difference(methods, 1) / unit == pytest.approx(q05, abs=1e-3)
    assert critical_difference(methods, 1, level=0.1) / unit == pytest.approx(q10, abs=1e-3)


def test_the_worked_examples_critical_differences():
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, level=0.1) == pytest.approx(1.12, abs=0.005)


def test_cliques_are_the_largest_sets_within_the_difference(rng):
    for _ in range(50):
        values, difference = rng.uniform(1, 8, 8), rng.uniform(0.2, 4)
        within = {
            frozenset(np.flatnonzero((values >= low) & (values <= low + difference)).tolist())
            for low in values
        }
        largest = {s for s in within if len(s) > 1 and not any(s < other for other in within)}
        found = cliques(values, difference)
        assert {frozenset(clique) for clique in found} == largest
        assert all((np.diff(values[list(clique)]) >= 0).all() for clique in found)


def test_bootstrap_of_single_rows_has_the_standard_errors_width(rng):
    values = rng.normal(3, 2, (200, 2))
    found = bootstrap_means(values, range(200))
    np.testing.assert_allclose(found.estimate, values.mean(axis=0))
    error = values.std(axis=0) / math.sqrt(200)
    np.testing.assert_allclose(found.high - found.estimate, 1.96 * error, rtol=0.06)
    np.testing.assert_allclose(found.estimate - found.low, 1.96 * error, rtol=0.06)


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


def test_ratios_of_pairs(rng):
    scores = rng.lognormal(size=(40, 3))
    scores[:, 2] = 2 * scores[:, 0]
    found = pairwise_ratios(scores, range(40))
    np.testing.assert_allclose(found.estimate * found.estimate.T, 1)
    np.testing.assert_allclose(
        [found.low[2, 0], found.estimate[2, 0], found.high[2, 0]], 2, rtol=1e-12
    )
    expected = math.exp(np.log(scores[:, 1] / scores[:, 0]).mean())
    assert found.estimate[1, 0] == pytest.approx(expected)
    assert found.low[1, 0] < found.estimate[1, 0] < found.high[1, 0]


def test_an_interval_without_one_agrees_with_wilcoxons_test(rng):
    scores = rng.lognormal(sigma=0.5, size=(40, 2)) * [1.0, 2.0]
    found = pairwise_ratios(scores, range(40))
    assert found.low[1, 0] > 1
    assert wilcoxon(np.log(scores[:, 1] / scores[:, 0])).pvalue < 0.05


def test_zero_regret_has_a_ratio():
    found = np.exp(log_ratios([[0.0, 0.2, 0.4], [0.0, 0.0, 0.0]], 1))
    np.testing.assert_allclose(found, [[0.5, 1, 2], [1, 1, 1]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ranks([1.0, 2.0]), "scores must have the shape"),
        (lambda: ranks([[1.0, math.nan]]), "scores must be finite, got nan"),
        (lambda: log_ratios([[1.0, -2.0]], 0), "must not be negative, got -2"),
        (lambda: bootstrap_means([[1.0], [2.0]], ["a"]), "groups must name the 2 rows"),
        (lambda: critical_difference(1, 5), "methods must be"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
