"""The expected regret of recommendations, against formulas and draws."""

import numpy as np
import pytest
from scipy.stats import norm

import contextgap as cg
from contextgap.policy.answers import expected_regret


@pytest.mark.parametrize("lead", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("deviations", [(1, 1), (1e-6, 1), (2, 0.05), (0, 1), (1e-9, 1e-9)])
def test_two_arms_by_the_formula(lead, deviations):
    spread = np.hypot(*deviations)
    # E[max(X, Y)] for independent normal X and Y (Clark, 1961), less the mean of X.
    expected = spread * norm.pdf(lead / spread) - lead * norm.cdf(-lead / spread)
    mean, std = np.array([[5 + lead, 5.0]]), np.array([deviations], dtype=float)
    found = [expected_regret(mean, std, np.array([pick]))[0] for pick in (0, 1)]
    np.testing.assert_allclose(found, [expected, expected + lead], rtol=1e-9, atol=1e-13)


def test_many_arms_by_drawing():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(0, 1, (5, 9)), 10 ** rng.uniform(-2, 0.5, (5, 9))
    picks = rng.integers(0, 9, 5)
    draws = mean + std * rng.standard_normal((200_000, 5, 9))
    best = draws.max(axis=2)
    error = best.std(axis=0) / np.sqrt(len(best))
    expected = best.mean(axis=0) - mean[np.arange(5), picks]
    assert (np.abs(expected_regret(mean, std, picks) - expected) < 4 * error).all()


def test_what_is_known_exactly_and_what_is_not_known_at_all():
    mean = np.array([[1.0, 3.0], [1.0, 3.0], [np.nan, 1.0], [1.0, 1.0]])
    std = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, np.inf]])
    found = expected_regret(mean, std, np.array([0, 1, 0, 1]))
    assert found.tolist() == [2.0, 0.0, np.inf, np.inf]


@pytest.mark.parametrize("method", ["contextual-gap", "uniform", "contextual-gap-history"])
def test_a_policy_expects_it_of_its_own_recommendations(method):
    rng = np.random.default_rng(1)
    learner = cg.Learner(["a", "b", "c"], method=method, kernel=cg.Gaussian(0.5), seed=0)
    x = rng.uniform(-1, 1, (60, 1))
    arms = rng.choice(["a", "b", "c"], 60)
    policy = learner.fit(x, arms, np.where(arms == "a", x[:, 0], 0.1)).freeze()
    new = rng.uniform(-2, 2, (20, 1))
    found = policy.expected_regret(new)
    for context, regret in zip(new, found, strict=True):
        seen = policy.decide(context)
        pick = np.array([seen.arms.index(policy.recommend(context))])
        expected = expected_regret(seen.mean[None], seen.std[None], pick)
        np.testing.assert_allclose(regret, expected[0], rtol=1e-9, atol=1e-12)
        assert policy.expected_regret(context) == pytest.approx(regret, abs=1e-12)
    assert not found.flags.writeable
    assert policy.expected_regret(np.empty((0, 1))).shape == (0,)


def test_on_average_it_is_what_recommendations_miss():
    """Where rewards are drawn from the very process that the policy believes in."""
    rng = np.random.default_rng(2)
    grid, kernel, ridge = np.linspace(-3, 3, 60)[:, None], cg.Gaussian(0.7), 0.05
    root = np.linalg.cholesky(kernel(grid, grid) + 1e-9 * np.eye(60))
    missed, expected = [], []
    for seed in range(60):
        truth = root @ rng.standard_normal((60, 4))
        rows, arms = rng.integers(0, 60, 50), rng.integers(0, 4, 50)
        rewards = truth[rows, arms] + np.sqrt(ridge) * rng.standard_normal(50)
        learner = cg.Learner(4, kernel=kernel, ridge=ridge, seed=seed)
        policy = learner.fit(grid[rows], arms, rewards).freeze()
        picks = np.asarray(policy.recommend(grid), dtype=int)
        missed.append((truth.max(axis=1) - truth[np.arange(60), picks]).mean())
        expected.append(policy.expected_regret(grid).mean())
    difference = np.subtract(missed, expected)
    assert abs(difference.mean()) < 3 * difference.std() / np.sqrt(60)
    assert np.mean(expected) == pytest.approx(np.mean(missed), rel=0.1)


def test_what_all_arms_share_does_not_count():
    """Two arms that move together: Clark's formula with the variance of their difference."""
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), ridge=0.1, sharing=0.9)
    policy = learner.fit([[0.0], [0.1], [0.2]], [0, 1, 0], [1.0, 0.9, 1.1]).freeze()
    context = np.array([0.7])
    posterior = policy.state.model.posterior(context, [0, 1])
    spread = np.sqrt(np.array([1, -1]) @ posterior.covariance @ [1, -1])
    lead = abs(posterior.mean[0] - posterior.mean[1])
    expected = spread * norm.pdf(lead / spread) - lead * norm.cdf(-lead / spread)
    assert policy.expected_regret(context) == pytest.approx(expected, rel=1e-6)
