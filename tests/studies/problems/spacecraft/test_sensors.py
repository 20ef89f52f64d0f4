from __future__ import annotations

import numpy as np
import pytest
from scipy.special import eval_genlaguerre

from contextgap.studies.problems import spacecraft as c
from contextgap.studies.problems.spacecraft import (
    Motion,
    Sensors,
    Sources,
    expected_length,
    hard_iron,
    interference,
    rotor_field,
)

N = 4000


def motion(wheel=0.0, command=(0.0, 0, 0), remanence=(0.0, 0, 0), n=N):
    return Motion(
        quaternion=np.tile([1.0, 0, 0, 0], (n, 1)),
        rate=np.zeros((n, 3)),
        wheel=np.full(n, wheel),
        wheel_torque=np.zeros(n),
        command=np.tile(command, (n, 1)),
        remanence=np.tile(remanence, (n, 1)),
    )


def sensors(field=(0.0, 0, 0), warmer=0.0, n=N, **sources):
    """Three sensors in the state of calibration, but for a field and a warmth."""
    return Sensors(
        field=np.tile(field, (n, 1)),
        own=np.tile(hard_iron(), (n, 1, 1)),
        temperatures=np.tile(c.CALIBRATION_TEMPERATURES, (n, 1)) + warmer,
        motion=motion(n=n),
        sources=Sources(**sources),
    )


def test_in_the_state_of_calibration_only_noise_is_left(rng):
    errors = sensors(rotor=0, gain=0).readings(np.zeros(N), rng)
    np.testing.assert_allclose(errors.mean(axis=0), 0, atol=0.5)
    np.testing.assert_allclose(
        errors.std(axis=0), np.array(c.NOISE)[:, np.newaxis] * [1, 1, 1], rtol=0.05
    )


def test_scale_and_misalignment_errors_follow_the_field():
    field = np.array([40_000.0, -20_000.0, 10_000.0])
    errors = sensors(field, rotor=0, n=1).errors(0.0)[0] - sensors(rotor=0, n=1).errors(0.0)[0]
    for sensor, gain in enumerate(c.GAIN_ERRORS):
        np.testing.assert_allclose(errors[sensor], 1e-3 * np.array(gain) @ field, atol=1e-9)
    assert np.linalg.norm(errors, axis=1).min() > 20
    assert np.linalg.norm(errors, axis=1).max() < 80
    assert not sensors(field, rotor=0, gain=0, n=1).errors(0.0).any()


def test_temperature_moves_the_offset():
    errors = sensors(warmer=10, rotor=0, gain=0, n=1).errors(0.0)[0]
    np.testing.assert_allclose(errors, 10 * np.array(c.DRIFT))
    assert not sensors(warmer=10, rotor=0, gain=0, drift=0, n=1).errors(0.0).any()


def test_a_fast_rotor_averages_away(rng):
    phase = rng.uniform(0, 2 * np.pi, N)
    still, fast = (
        rotor_field(motion(wheel=wheel), phase).std(axis=0) for wheel in (0.0, c.WHEEL_FULL)
    )
    assert np.all(fast < 0.07 * still)


def test_currents_and_torquers_add_up(rng):
    currents = rng.uniform(0, 1, (N, len(c.LOOPS)))
    both = interference(currents, motion(command=(0.1, 0, 0)))
    one = interference(currents, motion())
    silent = np.zeros_like(currents)
    other = interference(silent, motion(remanence=(0.1 * c.LEAKAGE, 0, 0)))
    np.testing.assert_allclose(both, one + other, atol=1e-9)


@pytest.mark.parametrize("length", [0.0, 1e-9, 0.3, 2.0, 40.0])
def test_the_expected_length_is_the_mean_of_a_noncentral_chi(length):
    ratio = length / 5
    oracle = 5 * np.sqrt(np.pi / 2) * eval_genlaguerre(0.5, 0.5, -(ratio**2) / 2)
    offset = length * np.array([[2.0, -1, 2]]) / 3
    np.testing.assert_allclose(expected_length(offset, 5.0), oracle, rtol=1e-9)
    np.testing.assert_allclose(expected_length(offset, 0.0), length, atol=1e-12)


@pytest.mark.parametrize("rotor", [0.0, 1.0])
def test_expected_errors_are_the_mean_of_readings(rng, rotor):
    aboard = sensors((300.0, -200.0, 100.0), warmer=4.0, n=40_000, noise=2.0, rotor=rotor)
    readings = aboard.readings(rng.uniform(0, 2 * np.pi, 40_000), rng)
    drawn = np.linalg.norm(readings, axis=2)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    expected = sensors((300.0, -200.0, 100.0), warmer=4.0, n=1, noise=2.0, rotor=rotor).expected()
    assert np.all(np.abs(drawn.mean(axis=0) - expected[0]) < 4 * error)


def test_without_noise_and_rotor_a_reading_is_what_is_expected(rng):
    aboard = sensors((300.0, -200.0, 100.0), n=5, noise=0, rotor=0)
    read = np.linalg.norm(aboard.readings(rng.uniform(0, 6, 5), rng), axis=2)
    np.testing.assert_allclose(aboard.expected(), read)
