"""Lemma 5.1 by simulation and by its own algebra."""

import numpy as np
import pytest

from contextgap.studies.theory import Spectrum, eigenvalue_bound, eigenvalue_threshold
from tests.studies.theory.simulation import CIRCLE, circle, smallest_eigenvalues


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_the_smallest_eigenvalue_stays_above_its_bound_at_every_step(drift, rng):
    steps = np.arange(1, 20001)
    bound = eigenvalue_bound(steps, CIRCLE, 0.1)
    threshold = eigenvalue_threshold(CIRCLE, 0.1)
    assert bound[-1] > 0.4 * steps[-1]  # the bound says something
    assert steps[0] < threshold < steps[-1]
    for _ in range(20):
        found = smallest_eigenvalues(circle(20000, rng, drift))
        assert (found >= bound - 1e-9).all()
        late = steps >= threshold
        assert (found[late] >= steps[late] * CIRCLE.eigenvalue_floor / 2).all()


def test_the_bound_fails_for_a_floor_that_is_too_high(rng):
    """What the simulation would say if the lemma were false."""
    steps = np.arange(1, 20001)
    too_high = Spectrum(0.6, 1)
    assert (smallest_eigenvalues(circle(20000, rng)) < eigenvalue_bound(steps, too_high, 0.1)).any()


@pytest.mark.parametrize("floor", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("failure", [0.125, 1e-3])
def test_from_the_threshold_on_the_bound_is_half_the_expected_growth(floor, failure):
    assumed = Spectrum(floor, 2)
    threshold = np.ceil(eigenvalue_threshold(assumed, failure))
    steps = threshold * np.array([1.0, 1.1, 2.0, 10.0, 1000.0])
    assert (eigenvalue_bound(steps, assumed, failure) >= steps * floor / 2).all()


def test_scaling_the_kernel_scales_the_bound():
    unit, scaled = Spectrum(0.2, 3), Spectrum(0.8, 3, kernel_bound=4.0)
    steps = np.array([10, 1000, 100000])
    np.testing.assert_allclose(
        eigenvalue_bound(steps, scaled, 0.1), 4 * eigenvalue_bound(steps, unit, 0.1)
    )
    assert eigenvalue_threshold(scaled, 0.1) == pytest.approx(eigenvalue_threshold(unit, 0.1))


def test_says_nothing_before_there_are_contexts_and_needs_a_small_failure_probability():
    assert eigenvalue_bound(0, CIRCLE, 0.1) == 0
    with pytest.raises(ValueError, match=r"failure_probability must be at most 0\.125, got 0\.2"):
        eigenvalue_threshold(CIRCLE, 0.2)
    with pytest.raises(ValueError, match="steps must be finite and not negative"):
        eigenvalue_bound(-1, CIRCLE, 0.1)
