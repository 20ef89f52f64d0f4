from __future__ import annotations

import math

import numpy as np
import pytest

from contextgap.studies.problems import Sinusoids


def test_rewards_are_sines_of_rising_frequency():
    problem = Sinusoids(4).sample(50, seed=0)
    assert problem.arms == (1, 2, 3, 4)
    for (x,), row in zip(problem.contexts, problem.rewards, strict=True):
        assert row == pytest.approx([math.sin(arm * x) for arm in problem.arms])
    assert problem.observations is problem.rewards


def test_arms_may_begin_at_zero():
    problem, usual = (Sinusoids(3, first=first).sample(9, seed=0) for first in (0, 1))
    assert problem.arms == (0, 1, 2)
    assert problem.name == "sinusoids-3-from-0"
    assert not problem.rewards[:, 0].any()
    np.testing.assert_array_equal(problem.rewards[:, 1:], usual.rewards[:, :2])


def test_the_papers_sizes_and_range():
    problem = Sinusoids().sample(seed=0)
    assert problem.rewards.shape == (3000, 20)
    x = problem.contexts
    assert 0 <= x.min() < 0.02
    assert 2 * math.pi - 0.02 < x.max() <= 2 * math.pi
    assert x.mean() == pytest.approx(math.pi, abs=0.1)


def test_noise_is_heard_and_moves_neither_contexts_nor_rewards():
    plain, noisy = (Sinusoids(5, noise=noise).sample(1000, seed=2) for noise in (0, 0.3))
    np.testing.assert_array_equal(plain.contexts, noisy.contexts)
    np.testing.assert_array_equal(plain.rewards, noisy.rewards)
    assert (noisy.observations - noisy.rewards).std() == pytest.approx(0.3, rel=0.05)


def test_the_seed_fixes_the_sample():
    first, again, other = (Sinusoids(noise=1).sample(9, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.observations, again.observations)
    assert not np.array_equal(first.contexts, other.contexts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_arms": 0}, "n_arms must be at least 1, got 0"),
        ({"first": -1}, "first must be at least 0, got -1"),
        ({"noise": -1}, "noise must be a standard deviation of at least 0, got -1"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Sinusoids(**options)


def test_bad_n_is_named():
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        Sinusoids().sample(0)
