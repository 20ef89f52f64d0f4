"""The tracked model against the exact one."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.models import ExactModel, TrackedModel


@pytest.mark.parametrize("window", [1, 7, 64, 500])
@pytest.mark.parametrize("prior_mean", [0.0, 1.5, "auto"])
@pytest.mark.parametrize("kernel", [cg.Gaussian(0.7), cg.Linear() + cg.Matern(1.0)], ids=str)
def test_follows_the_exact_posterior_at_every_point(kernel, prior_mean, window, rng):
    points = rng.normal(size=(120, 2))
    steps, n_arms = 80, 3
    tracked = TrackedModel(
        kernel(points[:steps], points), kernel.diagonal(points), 0.1, n_arms, prior_mean, window
    )
    exact = ExactModel(kernel, 0.1, n_arms, prior_mean)
    for step in range(steps):
        here = exact.posterior(points[step], range(n_arms))
        now = tracked.posterior_now()
        np.testing.assert_allclose(now.mean, here.mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(now.std, here.std, rtol=1e-8)
        np.testing.assert_allclose(now.information_gain, here.information_gain, rtol=1e-9)
        if step % 13 == 5:
            later = tracked.posterior_from(steps)
            there = exact.posterior(points[steps:], range(n_arms))
            np.testing.assert_allclose(later.mean, there.mean, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(later.std, there.std, rtol=1e-8)
        arm, reward = int(rng.integers(n_arms)), float(rng.normal())
        tracked.observe(arm, reward)
        exact.observe(points[step], arm, reward)
    there = exact.posterior(points[steps:], range(n_arms))
    later = tracked.posterior_from(steps)
    np.testing.assert_allclose(later.mean, there.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(later.std, there.std, rtol=1e-8)


def test_stays_sane_with_duplicates_and_hardly_any_ridge(rng):
    points = np.zeros((250, 1))
    kernel = cg.Gaussian(1.0)
    model = TrackedModel(kernel(points[:200], points), kernel.diagonal(points), 1e-10, 1)
    for reward in rng.normal(size=200):
        model.observe(0, float(reward))
    posterior = model.posterior_from(200)
    assert np.isfinite(posterior.mean).all()
    assert (posterior.std >= 0).all()
    assert posterior.std.max() < 1e-4
