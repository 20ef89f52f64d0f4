"""Rewards of which a few carry most of the variance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.kernels import Constant
from contextgap.models.tuning.criteria import heavy_tails
from contextgap.models.tuning.descent import finished
from contextgap.models.tuning.search import Search, Terms


def payments(seed=0, sizes=(150, 120)):
    """Contexts and rewards by arm: most rewards are zero, a few are large."""
    rng = np.random.default_rng(seed)
    contexts = [rng.normal(size=(n, 2)) for n in sizes]
    chances = [1 / (1 + np.exp(1 - 2 * np.sin(x[:, 0]))) for x in contexts]
    rewards = [
        (rng.uniform(size=len(p)) < p) * np.exp(rng.normal(2.0, 1.2, size=len(p))) for p in chances
    ]
    return contexts, rewards


@pytest.mark.parametrize("kind", ["normal", "uniform", "exponential", "clicks", "constant", "one"])
def test_usual_rewards_need_no_limits(kind):
    rng = np.random.default_rng(1)
    rewards = {
        "normal": rng.normal(size=2000),
        "uniform": rng.uniform(size=2000),
        "exponential": rng.exponential(size=2000),
        "clicks": (rng.uniform(size=2000) < 0.2).astype(float),
        "constant": np.ones(20),
        "one": np.ones(1),
    }[kind]
    assert heavy_tails([rewards[:9], rewards[9:]]) is None


@given(st.integers(0, 50), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_limits_follow_the_unit_of_rewards(seed, unit, zero):
    _, rewards = payments(seed)
    plain = heavy_tails(rewards)
    if plain is None:
        return
    low, high = heavy_tails([unit * y + zero for y in rewards])
    np.testing.assert_allclose([low, high], unit * np.array(plain) + zero, rtol=1e-6, atol=1e-6)
    assert plain[0] < np.median(np.concatenate(rewards)) < plain[1] < max(map(np.max, rewards))


def test_bandwidths_are_those_of_rewards_within_limits_and_noise_that_of_all():
    contexts, rewards = payments()
    limits = heavy_tails(rewards)
    terms = Terms.of(cg.Gaussian((1.0, 1.0)) + Constant())
    search = Search(terms, contexts, rewards, "evidence", None, limits)
    within = Search(terms, contexts, [np.clip(y, *limits) for y in rewards], "evidence")
    within.bandwidth_prior = search.bandwidth_prior  # that of rewards that are far away
    theta = finished(search.descend(search.starts()[0], 40))[1]
    other = finished(within.descend(within.starts()[0], 40))[1]
    np.testing.assert_array_equal(theta, other)
    scales = finished(search.hyperparameters(theta))
    found = Terms.of(scales.kernel)
    np.testing.assert_allclose(found.bandwidths, np.exp(theta[:2]) * search.reference)
    assert scales.loss == pytest.approx(within.loss(theta))

    plain = Search(terms, contexts, rewards, "evidence")
    settled = finished(search.unclipped.settled(theta))
    np.testing.assert_array_equal(settled[:2], theta[:2])
    for place in (2, 3):  # nothing nearby explains the rewards as they are better
        for step in (-0.3, 0.3):
            other = settled.copy()
            other[place] += step
            assert plain.loss(other) > plain.loss(settled) - 0.05
    wanted = finished(plain.hyperparameters(settled))
    assert scales.ridge == pytest.approx(wanted.ridge)
    assert scales.prior_mean == pytest.approx(wanted.prior_mean)


def test_of_two_values_limits_would_only_change_the_unit():
    assert heavy_tails([np.array([0.0] * 99 + [1.0])]) is None


@pytest.mark.parametrize("far", [30.0, 1e3, 1e9])
def test_a_single_reward_far_away_does_not_set_the_limits(far):
    rewards = np.random.default_rng(2).uniform(size=300)
    rewards[7] = far
    low, high = heavy_tails([rewards])
    assert -2 < low < 0
    assert 1 < high < 3


def test_one_reward_beyond_all_others_does_not_make_a_lookup_table():
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, size=(200, 1))
    arms = rng.integers(2, size=200)
    rewards = np.where(arms == 0, 1, -1) * np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=200)
    rewards[7] += 300.0
    learner = cg.Learner(2, seed=0).fit(x, arms, rewards)
    assert "a few far rewards" in learner.tuning.reason
    assert Terms.of(learner.kernel).bandwidths.min() > 0.3
