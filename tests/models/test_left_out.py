"""Leaving rewards out, against models that never heard them."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.models import ExactModel

KERNEL = 2.0 * cg.Gaussian((0.8, 1.2)) + 0.3 * cg.Linear(2.0, 0.5)


def model(contexts, arms, rewards, ridge=0.2, kernel=KERNEL):
    fitted = ExactModel(kernel, ridge, 3, 0.4)
    fitted.observe_many(contexts, np.asarray(arms), np.asarray(rewards))
    return fitted


def data(count=40, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(count, 2))
    arms = rng.integers(3, size=count)
    return contexts, arms, np.sin(contexts[:, 0] + arms) + 0.3 * rng.normal(size=count)


@pytest.mark.parametrize("ridge", [1e-6, 0.2, 50.0])
def test_one_left_out_is_never_heard(ridge):
    contexts, arms, rewards = data()
    whole = model(contexts, arms, rewards, ridge)
    places = np.flatnonzero(arms == 1)
    found, errors = whole.left_out(places, np.ones(len(places), dtype=int), [0, 1])
    unchanged = whole.posterior(contexts[places], [0])
    np.testing.assert_array_equal(found.mean[:, 0], unchanged.mean[:, 0])
    for place, error, variance in zip(places, errors, found.std[:, 1] ** 2, strict=True):
        others = np.delete(np.arange(len(arms)), place)
        without = model(contexts[others], arms[others], rewards[others], ridge)
        posterior = without.posterior(contexts[[place]], [1])
        assert rewards[place] - posterior.mean[0, 0] == pytest.approx(error, rel=1e-5)
        assert posterior.std[0, 0] ** 2 == pytest.approx(variance, rel=1e-5, abs=1e-9)


def test_all_visits_of_a_context_are_left_out_together():
    contexts, arms, rewards = data()
    again = np.array([0, 0, 3, 7, 7, 7])
    contexts, arms = np.vstack([contexts, contexts[again]]), np.append(arms, arms[again])
    rewards = np.append(rewards, rewards[again])
    whole = model(contexts, arms, rewards)
    for place in (0, 3, 7):
        same = (contexts == contexts[place]).all(axis=1) & (arms == arms[place])
        visits, arm = np.array([same.sum()]), int(arms[place])
        found = whole.left_out(np.array([place]), visits, [arm])
        without = model(contexts[~same], arms[~same], rewards[~same])
        posterior = without.posterior(contexts[[place]], [arm])
        assert rewards[place] - posterior.mean[0, 0] == pytest.approx(found.error[0])
        assert posterior.std[0, 0] ** 2 == pytest.approx(found.posterior.std[0, 0] ** 2)


def test_the_variance_of_a_sum_is_that_of_the_dense_posterior():
    contexts, arms, rewards = data()
    whole = model(contexts, arms, rewards)
    points = np.random.default_rng(1).normal(size=(15, 2))
    weights = np.random.default_rng(2).normal(size=(4, 15, 1))
    own = contexts[arms == 2]
    inverse = np.linalg.inv(KERNEL(own, own) + 0.2 * np.eye(len(own)))
    cross = KERNEL(own, points)
    covariance = KERNEL(points, points) - cross.T @ inverse @ cross
    variance, moves = whole.sums(points, [2], weights)
    flat = weights[..., 0]
    np.testing.assert_allclose(variance, np.diagonal(flat @ covariance @ flat.T))
    np.testing.assert_allclose(moves[:, arms == 2], flat @ (inverse @ cross).T)
    assert not moves[:, arms != 2].any()


def test_an_arm_without_rewards_has_its_prior_variance():
    contexts, arms, rewards = data()
    whole = model(contexts[arms != 2], arms[arms != 2], rewards[arms != 2])
    points = np.zeros((1, 2))
    variance, moves = whole.sums(points, [2], np.ones((1, 1, 1)))
    np.testing.assert_allclose(variance, KERNEL.diagonal(points))
    assert not moves.any()
