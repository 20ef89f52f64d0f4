"""The estimate of a norm, against functions whose norm is known."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.studies.theory import norm_estimate

KERNEL, NORM = cg.Gaussian(0.4), 1.5


def draw(rng, count):
    centres, weights = rng.uniform(size=(6, 2)), rng.normal(size=6)
    weights *= NORM / np.sqrt(weights @ KERNEL(centres, centres) @ weights)
    contexts = rng.uniform(size=(count, 2))
    return contexts, KERNEL(contexts, centres) @ weights


def estimates(rng, count, ridge, noise, runs=60):
    found = []
    for _ in range(runs):
        contexts, truth = draw(rng, count)
        heard = 0.7 + truth + noise * rng.standard_normal(count)
        found.append(
            norm_estimate(contexts, heard, kernel=KERNEL, ridge=ridge, noise=noise, prior_mean=0.7)
        )
    return np.array(found)


def test_without_noise_it_is_a_lower_bound_that_is_approached(rng):
    few, many = (estimates(rng, count, 1e-6, 0.0) for count in (8, 80))
    assert (few <= NORM + 1e-9).all()
    assert (many <= NORM + 1e-9).all()
    assert np.median(few) < np.median(many)
    assert np.median(many) > 0.95 * NORM


def test_with_noise_it_is_right_on_average_about_what_rewards_show(rng):
    """The mean of the squared estimate is that of the noise-free posterior mean's norm."""
    contexts, truth = draw(rng, 60)
    weights = np.linalg.solve(KERNEL(contexts, contexts) + 0.04 * np.eye(60), truth)
    target = weights @ KERNEL(contexts, contexts) @ weights
    squared = [
        norm_estimate(
            contexts, truth + 0.2 * rng.standard_normal(60), kernel=KERNEL, ridge=0.04, noise=0.2
        )
        ** 2
        for _ in range(300)
    ]
    assert np.mean(squared) == pytest.approx(target, rel=0.1)
    assert 0.5 * NORM**2 < target < NORM**2


def test_noise_alone_has_a_norm_near_nothing(rng):
    contexts = rng.uniform(size=(50, 2))
    found = norm_estimate(contexts, np.zeros(50), kernel=KERNEL, ridge=0.1, noise=0.3)
    assert found == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contexts": [1.0, 2.0]}, "contexts must be a table"),
        ({"rewards": [1.0]}, "one entry per context is needed, got 2 contexts, 1 rewards"),
        ({"ridge": 0.0}, "ridge must be positive"),
        ({"noise": -1.0}, "noise must be"),
    ],
)
def test_bad_arguments(changes, message):
    good = {"contexts": [[0.0], [1.0]], "rewards": [0.0, 1.0], "ridge": 0.1, "noise": 0.1}
    with pytest.raises(ValueError, match=message):
        norm_estimate(**{**good, "kernel": KERNEL, **changes})
