"""Censored rewards against numerical integration, and by how often intervals hold."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import contextgap as cg
from contextgap.models import Alike, expected_rewards, settled_model, stand_in
from contextgap.models.observations import Observations

KERNEL, RIDGE = cg.Gaussian(0.6), 0.1


def log_of(contexts, arms, rewards, censored, n_arms=1):
    log = Observations(n_arms)
    noise = np.where(censored, 1.0, 0.0)
    log.extend(np.asarray(contexts)[:, None], np.asarray(arms), np.asarray(rewards), noise)
    log.note_limits(0, np.where(censored, rewards, np.nan))
    return log


@pytest.mark.parametrize("limit", [-30.0, -3.0, 0.0, 2.0, 6.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 25.0])
def test_a_stand_in_leaves_the_moments_of_the_integral(limit, variance):
    mean, deviation = 0.4, np.sqrt(variance)
    value, noise = (
        float(each[0])
        for each in stand_in(np.array([limit]), np.array([mean]), np.array([variance]), RIDGE)
    )
    assert noise >= 0
    peak = 1 / (1 / variance + 1 / (RIDGE + noise)) * (mean / variance + value / (RIDGE + noise))

    def density(f):
        return np.exp(
            norm.logcdf(limit, f, np.sqrt(RIDGE))
            + norm.logpdf(f, mean, deviation)
            - norm.logcdf(limit, peak, np.sqrt(RIDGE))
            - norm.logpdf(peak, mean, deviation)
        )

    reach = peak - 12 * deviation, peak + 12 * deviation
    moments = [quad(lambda f, p=p: f**p * density(f), *reach, points=[peak])[0] for p in range(3)]
    average = moments[1] / moments[0]
    spread = moments[2] / moments[0] - average**2
    posterior = 1 / (1 / variance + 1 / (RIDGE + noise))
    np.testing.assert_allclose(peak, average, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(posterior, spread, rtol=1e-3)


def test_the_expected_reward_is_that_of_a_truncated_normal():
    limits, mean = np.array([-1.0, 0.3, 5.0]), np.array([0.2, 0.2, 0.2])
    found = expected_rewards(limits, mean, np.full(3, 0.5), RIDGE)
    for limit, value in zip(limits, found, strict=True):
        scale = np.sqrt(0.5 + RIDGE)
        total = quad(lambda y, s=scale: norm.pdf(y, 0.2, s), -np.inf, limit)[0]
        wanted = quad(lambda y, s=scale: y * norm.pdf(y, 0.2, s), -np.inf, limit)[0] / total
        assert value == pytest.approx(wanted, rel=1e-6)


def exact_moments(log, at):
    """Posterior mean and variance of one arm at a point, by importance sampling of the limits."""
    x = np.vstack([log.contexts, [[at]]])
    known = np.flatnonzero(np.isnan(log.limits))
    cut, n = log.censored, len(log)
    noisy = KERNEL(x, x)[np.ix_(known, known)] + RIDGE * np.eye(len(known))
    rest = np.append(cut, n)
    cross, own = KERNEL(x[rest], x[known]), KERNEL(x[rest], x[rest])
    solved = np.linalg.solve(noisy, cross.T).T
    mean, cov = solved @ log.rewards[known], own - solved @ cross.T
    draws = np.random.default_rng(0).multivariate_normal(mean, cov, 400_000, method="cholesky")
    weights = norm.cdf(log.limits[cut], draws[:, :-1], np.sqrt(RIDGE)).prod(axis=1)
    average = np.average(draws[:, -1], weights=weights)
    return average, np.average((draws[:, -1] - average) ** 2, weights=weights)


def test_several_censored_rewards_come_close_to_the_exact_posterior():
    x = np.array([-0.9, -0.5, -0.2, 0.1, 0.4, 0.6, 0.9])
    y = np.array([0.5, -0.2, -0.4, 0.1, 0.0, 0.8, 0.9])
    censored = np.array([0, 1, 1, 0, 1, 1, 0], dtype=bool)
    log = log_of(x, np.zeros(7, dtype=np.intp), y, censored)
    model = settled_model(log, KERNEL, RIDGE, 0.0)
    for at in (-0.5, 0.0, 0.5, 1.2):
        mean, variance = exact_moments(log, at)
        found = model.posterior(np.array([[at]]), [0])
        assert found.mean[0, 0] == pytest.approx(mean, abs=0.02)
        assert found.std[0, 0] ** 2 == pytest.approx(variance, rel=0.05, abs=0.002)


def drawn(rng, n, n_arms=2):
    x = rng.uniform(-1, 1, n)
    arms = rng.integers(n_arms, size=n)
    grid = np.linspace(-1, 1, 9)
    points = np.concatenate([x, grid])[:, None]
    lower = np.linalg.cholesky(KERNEL(points, points) + 1e-9 * np.eye(len(points)))
    functions = lower @ rng.normal(size=(len(points), n_arms))
    rewards = functions[np.arange(n), arms] + np.sqrt(RIDGE) * rng.normal(size=n)
    return x, arms, rewards, grid[:, None], functions[n:]


@pytest.mark.parametrize("how", ["alone", "shared", "points"])
def test_intervals_hold_as_often_as_they_should(how):
    """Rewards are drawn from the prior, so that 90 % intervals hold in 90 % of all cases."""
    rng, held, closer = np.random.default_rng(2), [], []
    alike = Alike(1e-6) if how == "shared" else None
    points = 20 if how == "points" else None
    for _ in range(60):
        x, arms, rewards, grid, truth = drawn(rng, 80)
        limit = np.median(rewards)
        censored = rewards < limit
        log = log_of(x, arms, np.maximum(rewards, limit), censored, 2)
        found = settled_model(log, KERNEL, RIDGE, 0.0, alike, points).posterior(grid, [0, 1])
        held.append(np.abs(found.mean - truth) <= 1.645 * found.std)
        taken = log_of(x, arms, np.maximum(rewards, limit), np.zeros(80, dtype=bool), 2)
        imputed = settled_model(taken, KERNEL, RIDGE, 0.0, alike, points).posterior(grid, [0, 1])
        errors = [np.abs(each.mean - truth).mean() for each in (found, imputed)]
        closer.append(errors[0] / errors[1])
    assert 0.87 <= np.mean(held) <= 0.93
    assert np.mean(closer) < 0.8
