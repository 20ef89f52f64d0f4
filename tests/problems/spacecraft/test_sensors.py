from __future__ import annotations

import numpy as np

from contextgap.problems.spacecraft import constants as c
from contextgap.problems.spacecraft.attitude import Motion
from contextgap.problems.spacecraft.sensors import hard_iron, interference, sensor_errors

N = 4000


def motion(wheel=0.0, command=(0.0, 0, 0), remanence=(0.0, 0, 0)):
    return Motion(
        quaternion=np.tile([1.0, 0, 0, 0], (N, 1)),
        rate=np.zeros((N, 3)),
        wheel=np.full(N, wheel),
        wheel_torque=np.zeros(N),
        command=np.tile(command, (N, 1)),
        remanence=np.tile(remanence, (N, 1)),
    )


def usual_state():
    field = np.zeros((N, 3))
    own = np.tile(hard_iron(), (N, 1, 1))
    return field, own, np.tile(c.CALIBRATION_TEMPERATURES, (N, 1))


def test_in_the_state_of_calibration_only_noise_is_left(rng):
    errors = sensor_errors(*usual_state(), rng)
    np.testing.assert_allclose(errors.mean(axis=0), 0, atol=0.5)
    np.testing.assert_allclose(
        errors.std(axis=0), np.array(c.NOISE)[:, np.newaxis] * [1, 1, 1], rtol=0.05
    )


def test_scale_and_misalignment_errors_follow_the_field(rng):
    _, own, temperatures = usual_state()
    field = np.tile([40_000.0, -20_000.0, 10_000.0], (N, 1))
    errors = sensor_errors(field, own, temperatures, rng).mean(axis=0)
    for sensor, gain in enumerate(c.GAIN_ERRORS):
        left = errors[sensor] - 1e-3 * np.array(gain) @ field[0]
        assert np.abs(left).max() < 0.5
    assert np.linalg.norm(errors, axis=1).min() > 20
    assert np.linalg.norm(errors, axis=1).max() < 80


def test_temperature_moves_the_offset(rng):
    field, own, temperatures = usual_state()
    errors = sensor_errors(field, own, temperatures + 10, rng).mean(axis=0)
    np.testing.assert_allclose(errors, 10 * np.array(c.DRIFT), atol=0.5)


def test_a_fast_rotor_averages_away(rng):
    none = np.zeros((N, len(c.LOOPS)))
    phase = rng.uniform(0, 2 * np.pi, N)
    still, fast = (
        interference(none, motion(wheel=wheel), phase).std(axis=0) for wheel in (0.0, c.WHEEL_FULL)
    )
    assert np.all(fast < 0.07 * still)


def test_currents_and_torquers_add_up(rng):
    currents = rng.uniform(0, 1, (N, len(c.LOOPS)))
    phase, silent = np.full(N, np.pi / 2), np.zeros_like(currents)
    base = interference(silent, motion(), phase)
    both = interference(currents, motion(command=(0.1, 0, 0)), phase)
    one = interference(currents, motion(), phase)
    other = interference(silent, motion(remanence=(0.1 * c.LEAKAGE, 0, 0)), phase)
    np.testing.assert_allclose(both - base, (one - base) + (other - base), atol=1e-9)
