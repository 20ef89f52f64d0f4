"""The constants of Theorem 4.1 and the growth of the information gain."""

import math

import numpy as np
import pytest

import contextgap as cg
from contextgap.models import ExactModel
from contextgap.studies.theory import (
    Spectrum,
    confidence,
    information_gain_bound,
    scale,
    scale_offset,
    scale_slope,
)


def test_scale_is_slope_times_confidence_plus_offset():
    beta = confidence(0.05)
    assert math.exp(-(beta**2)) == pytest.approx(0.05)
    alpha = scale(beta, 0.3, 2.0, 0.1, 4.5)
    assert alpha == pytest.approx(0.3 * math.sqrt(2) * beta + 0.3 * 3 + math.sqrt(0.1) * 2)
    assert alpha == pytest.approx(scale_slope(0.3) * beta + scale_offset(0.3, 2.0, 0.1, 4.5))


def test_the_determinant_is_the_sum_of_squared_deviations_over_all_observations(rng):
    """The sum needs the square that the appendix drops and the first term that the text drops."""
    contexts, ridge = rng.uniform(size=(25, 2)), 0.05
    model = ExactModel(cg.Gaussian(0.4), ridge, 1)
    terms = []
    for context in contexts:
        std = model.posterior(context, [0]).std[0]
        terms.append((math.log1p(std**2 / ridge), math.log1p(std / ridge)))
        model.observe(context, 0, 0.0)
    gram = cg.Gaussian(0.4)(contexts, contexts)
    log_det = np.linalg.slogdet(np.eye(25) + gram / ridge)[1]
    squared, plain = np.array(terms).T
    assert squared.sum() == pytest.approx(log_det)
    assert 2 * model.information_gain([0])[0] == pytest.approx(log_det)
    assert squared[1:].sum() < log_det - 1
    assert abs(plain.sum() - log_det) > 1


def test_information_gain_stays_below_its_bound(rng):
    directions = rng.normal(size=(400, 3))
    contexts = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    assumed = Spectrum(0.3, 3)
    for ridge in (0.01, 0.3, 2.0):
        for pulls in (1, 2, 10, 400):
            gram = contexts[:pulls] @ contexts[:pulls].T
            gain = np.linalg.slogdet(np.eye(pulls) + gram / ridge)[1] / 2
            bound = information_gain_bound(pulls, ridge, assumed)
            assert gain <= bound + 1e-9
    # The appendix has (1 + T/λ)/d* in the logarithm: too small.
    assert 3 / 2 * math.log((1 + 1 / 2.0) / 3) < math.log(1 + 1 / 2.0) / 2


def test_information_gain_bound_scales_with_the_kernel(rng):
    pulls = np.array([1, 10, 100])
    np.testing.assert_allclose(
        information_gain_bound(pulls, 0.4, Spectrum(0.8, 2, kernel_bound=4.0)),
        information_gain_bound(pulls, 0.1, Spectrum(0.2, 2)),
    )


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="failure_probability must be below 1"):
        confidence(1.5)
    with pytest.raises(ValueError, match="noise must be a standard deviation of at least 0"):
        scale_slope(-1)
    with pytest.raises(ValueError, match="information_gain must be finite and not negative"):
        scale_offset(0.1, 1.0, 0.1, [-1.0])
    with pytest.raises(TypeError, match="pulls must be numbers"):
        information_gain_bound("many", 0.1, Spectrum(0.1, 2))
    with pytest.raises(ValueError, match="ridge must be positive"):
        information_gain_bound(10, 0.0, Spectrum(0.1, 2))
