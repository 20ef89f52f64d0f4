"""Top-two Thompson sampling against the probabilities it stands for."""

import numpy as np
import pytest

from contextgap.methods.explorers import TopTwoTS
from tests.methods.explorers.dense import moment_of

MEAN, HALF = [0.0, 0.3, 0.5, -0.4], [0.5, 0.3, 0.2, 0.9]


def best_probability():
    draws = np.random.default_rng(1).normal(MEAN, HALF, size=(400_000, 4))
    return np.bincount(draws.argmax(axis=1), minlength=4) / len(draws)


def frequencies(explorer, count=20_000):
    moment = moment_of(MEAN, HALF, seed=2)
    return np.bincount([explorer.pick(moment) for _ in range(count)], minlength=4) / count


@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
def test_arms_are_tried_as_often_as_russo_says(keep):
    # p_a·(keep + (1 − keep)·Σ over b ≠ a of p_b / (1 − p_b))
    p = best_probability()
    odds = p / (1 - p)
    expected = p * (keep + (1 - keep) * (odds.sum() - odds))
    np.testing.assert_allclose(frequencies(TopTwoTS(keep)), expected, atol=0.015)


def test_a_hopeless_race_still_has_a_rival():
    # 100 redraws show nobody but arm 1; arm 3 is 20 spreads away, arms 0 and 2 further.
    moment = moment_of([-9.0, 0.0, -4.0, -3.0], [0.1, 0.1, 0.05, 0.1])
    assert {TopTwoTS(0.0).pick(moment) for _ in range(20)} == {3}


def test_where_nothing_is_uncertain_the_means_decide():
    assert TopTwoTS(0.0).pick(moment_of([1.0, 0.2, 0.4], np.zeros(3))) == 2
    assert TopTwoTS(0.0).pick(moment_of([1.0, 1.0, 1.0], np.zeros(3))) == 1
    assert TopTwoTS(1.0).pick(moment_of([1.0, 1.0, 1.0], np.zeros(3))) == 0


def test_one_arm():
    assert TopTwoTS(0.0).pick(moment_of([1.0], [0.5])) == 0


@pytest.mark.parametrize(
    ("keep", "error"), [(1.5, ValueError), (-0.1, ValueError), ("a", TypeError)]
)
def test_bad_settings(keep, error):
    with pytest.raises(error, match="keep must be a number between 0 and 1"):
        TopTwoTS(keep)
