"""Lemma 5.2 by simulation, and its inverse."""

import math

import numpy as np
import pytest

from contextgap.studies.theory import (
    Spectrum,
    burn_in,
    confidence,
    information_gain_bound,
    pulls_for_width,
    scale,
    width_envelope,
)
from tests.studies.theory.simulation import CIRCLE, circle

NOISE, NORM, RIDGE, FAILURE = 0.2, 1.0, 0.1, 0.1


def widths(contexts, alpha, asked):
    """Full widths 2·α·std/√ridge, from S rather than K: std² = ridge · xᵀ(S + ridge·I)⁻¹x."""
    inverse = np.linalg.inv(contexts.T @ contexts + RIDGE * np.eye(2))
    return 2 * alpha * np.sqrt(np.einsum("ij,jk,ik->i", asked, inverse, asked))


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_widths_stay_within_the_envelope_past_the_burn_in(drift, rng):
    first = burn_in(CIRCLE, RIDGE, FAILURE)
    pulls = [first, first + 1, 2 * first]
    gain = information_gain_bound(pulls[-1], RIDGE, CIRCLE)
    alpha = float(scale(confidence(0.05), NOISE, NORM, RIDGE, gain))
    envelope = width_envelope(pulls, alpha, RIDGE, CIRCLE)
    asked = circle(50, rng)
    for _ in range(10):
        contexts = circle(pulls[-1], rng, drift)
        for bound, count in zip(envelope, pulls, strict=True):
            found = widths(contexts[:count], alpha, asked)
            assert (found <= bound).all()
            # σ̂²/λ ≤ 1/(λ + λ_d(S)) needs no factor 2: the lemma gives away a factor √2 of width.
            assert (found <= bound / math.sqrt(2)).all()
            assert (found > bound / 4).all()  # nor is the envelope empty talk


def test_before_the_burn_in_the_envelope_may_fail(rng):
    alpha = 1.0
    same = np.tile([1.0, 0.0], (50, 1))
    assert widths(same, alpha, np.array([[0.0, 1.0]])) > width_envelope(50, alpha, RIDGE, CIRCLE)


def test_burn_in_is_just_above_the_largest_of_three():
    floor_rules = burn_in(CIRCLE, RIDGE, FAILURE)
    assert floor_rules == math.floor(256 / 0.25 * math.log(128 * 100 / (0.25 * FAILURE))) + 1
    assert burn_in(Spectrum(0.01, 2), RIDGE, FAILURE) > 2500 * floor_rules
    assert burn_in(CIRCLE, RIDGE, 0.01) > floor_rules


def test_pulls_for_width_inverts_the_envelope():
    pulls = np.array([100.0, 5000.0, 1e6])
    for assumed in (CIRCLE, Spectrum(0.3, 4, kernel_bound=2.0)):
        width = width_envelope(pulls, 1.7, RIDGE, assumed)
        np.testing.assert_allclose(pulls_for_width(width, 1.7, RIDGE, assumed), pulls)
        assert (np.diff(width) < 0).all()


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="width must be positive"):
        pulls_for_width(0.0, 1.0, RIDGE, CIRCLE)
    with pytest.raises(ValueError, match="scale must be positive"):
        width_envelope(10, 0.0, RIDGE, CIRCLE)
    with pytest.raises(ValueError, match="ridge must be positive"):
        burn_in(CIRCLE, -1.0, FAILURE)
