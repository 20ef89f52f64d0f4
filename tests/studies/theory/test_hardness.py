"""Reward gaps and hardness against their definitions."""

import numpy as np
import pytest

from contextgap.studies.theory import arm_hardness, hardness, reward_gap


def test_are_their_definitions(rng):
    rewards = rng.normal(size=(30, 4))
    rewards[0, :2] = 3.0  # two best arms at once
    gaps = np.empty_like(rewards)
    for row in range(30):
        for arm in range(4):
            gaps[row, arm] = abs(np.delete(rewards[row], arm).max() - rewards[row, arm])
    np.testing.assert_allclose(reward_gap(rewards), gaps)
    expected = np.maximum((gaps + 0.1) / 2, 0.1).min(axis=0)
    np.testing.assert_allclose(arm_hardness(rewards, 0.1), expected)
    assert hardness(rewards, 0.1) == pytest.approx((expected**-2).sum())
    assert hardness(rewards, 0.1) <= 4 / 0.1**2


def test_a_larger_tolerance_and_larger_gaps_are_easier(rng):
    rewards = rng.normal(size=(30, 4))
    assert hardness(rewards, 0.2) < hardness(rewards, 0.1)
    apart = np.array([[0.0, 1.0, 3.0]])
    assert hardness(3 * apart, 0.1) < hardness(apart, 0.1)


@pytest.mark.parametrize("rewards", [[[1.0]], [1.0, 2.0], np.empty((0, 3)), [[1.0, np.nan]]])
def test_rewards_must_be_a_table_of_two_arms_or_more(rewards):
    with pytest.raises(ValueError, match="rewards must be finite numbers of shape"):
        reward_gap(rewards)


def test_tolerance_must_be_positive():
    with pytest.raises(ValueError, match="tolerance must be positive, got 0"):
        hardness([[0.0, 1.0]], 0)
