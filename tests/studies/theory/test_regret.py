"""Theorem 5.3: its β, its probability, its rates."""

from dataclasses import replace

import numpy as np
import pytest

from contextgap.studies.theory import (
    RegretBound,
    Spectrum,
    arm_hardness,
    contextual_gap_rate,
    hardness,
    pulls_for_width,
    scale_slope,
    uniform_rate,
)

REWARDS = np.array([[0.0, 0.4, 1.0], [0.2, 0.3, -0.4]])
BOUND = RegretBound(
    n_arms=3,
    hardness=hardness(REWARDS, 0.1),
    noise=0.2,
    norm=1.0,
    ridge=0.1,
    spectrum=Spectrum(0.5, 2),
    failure_probability=0.01,
)


@pytest.mark.parametrize("spectrum", [Spectrum(0.5, 2), Spectrum(0.4, 2, kernel_bound=2.5)])
def test_beta_solves_its_defining_equation(spectrum):
    bound = replace(BOUND, spectrum=spectrum)
    steps = 4 * bound.n_arms * bound.burn_in
    alpha = scale_slope(bound.noise) * bound.confidence(steps) + bound.scale_offset(steps)
    pulls = pulls_for_width(arm_hardness(REWARDS, 0.1), alpha, bound.ridge, spectrum)
    assert pulls.sum() == pytest.approx(steps - bound.burn_in * (bound.n_arms - 1))


def test_probability_grows_with_steps_to_its_limit():
    steps = np.geomspace(1, 1e7, 200).astype(int)
    once = replace(BOUND, each_step_fails=False)
    found = np.array([once.probability(int(t)) for t in steps])
    assert (np.diff(found) >= 0).all()
    assert found[0] == 0
    assert found[-1] == pytest.approx(1 - 3 * 0.01)
    per_step = np.array([BOUND.probability(int(t)) for t in steps])
    assert (per_step <= found).all()
    assert per_step[-1] == pytest.approx(1 - 3 * 0.01)


def test_nothing_is_promised_within_the_burn_in_or_for_a_negative_beta():
    assert BOUND.probability(BOUND.n_arms * BOUND.burn_in) == 0
    hard = replace(BOUND, hardness=1e9)
    steps = hard.n_arms * hard.burn_in + 1
    assert hard.confidence(steps) < -2  # where e^(−β²) alone would look like a promise
    assert hard.probability(steps) == 0
    assert hard.confidence(0) < 0


def test_harder_problems_need_more_steps():
    steps = [replace(BOUND, hardness=h).steps_for(0.9) for h in (10.0, 3e4, 3e6)]
    assert steps == sorted(steps)
    assert steps[0] == BOUND.n_arms * BOUND.burn_in + 1
    for h, t in zip((3e4, 3e6), steps[1:], strict=True):
        bound = replace(BOUND, hardness=h)
        assert bound.probability(t) >= 0.9
        assert bound.probability(t - 1) < 0.9


def test_a_probability_out_of_reach_is_an_error():
    with pytest.raises(ValueError, match=r"below 1 − n_arms · failure_probability = 0\.97"):
        BOUND.steps_for(0.98)
    with pytest.raises(ValueError, match=r"failure_probability must be at most 0\.125"):
        replace(BOUND, failure_probability=0.3)
    with pytest.raises(ValueError, match="noise must be positive"):
        replace(BOUND, noise=0.0)
    with pytest.raises(TypeError, match="spectrum must be a Spectrum"):
        replace(BOUND, spectrum=0.5)


def test_adaptive_picks_beat_equal_shares_in_every_dimension():
    steps = np.array([50.0, 100.0, 700.0])
    for dimension in (1, 2, 10):
        assert (contextual_gap_rate(steps) < uniform_rate(steps, dimension)).all()
    np.testing.assert_allclose(uniform_rate(32, 3, constant=2.0, decay=0.5), 2 * np.exp(-2.0))
