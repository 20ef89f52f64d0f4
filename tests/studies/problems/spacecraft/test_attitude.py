from __future__ import annotations

import numpy as np
import pytest

from contextgap.studies.problems import spacecraft as c
from contextgap.studies.problems.spacecraft import advance, bdot, wheel_torque


def test_quaternions_stay_unit(flown):
    np.testing.assert_allclose(np.linalg.norm(flown.motion.quaternion, axis=1), 1, atol=1e-12)


def test_rates_are_a_tumble_not_a_runaway(flown):
    rate = np.degrees(np.linalg.norm(flown.motion.rate, axis=1))
    assert 0.1 < np.median(rate) < 5
    assert rate.max() < 12


def test_bdot_takes_energy_out():
    state, field = (1.0, 0, 0, 0, 0.02, -0.03, 0.04, 0), (1e-5, 3e-5, -2e-5)
    energies = []
    for _ in range(600):
        energies.append(sum(j * w * w for j, w in zip(c.INERTIA, state[4:7], strict=True)) / 2)
        state = advance(state, 2.0, field, bdot(state, field), 0.0, (0.0, 0.0, 0.0))
    assert np.all(np.diff(energies) < 1e-9 * energies[0])
    assert energies[-1] < 0.5 * energies[0]


def test_commands_stay_within_limits_and_campaigns(flown):
    command, wheel = flown.motion.command, flown.motion.wheel
    assert 0.01 < np.abs(command).max() <= c.TORQUER_LIMIT
    assert 0.05 < np.mean(np.any(command != 0, axis=1)) < 0.4
    assert np.abs(wheel).max() <= c.WHEEL_FULL
    assert np.abs(flown.motion.wheel_torque).max() <= c.WHEEL_TORQUE
    np.testing.assert_array_less(np.abs(np.diff(wheel)), 10 * c.WHEEL_TORQUE * 1.0001)


def test_remanence_is_a_small_share_of_the_command(flown):
    left = np.abs(flown.motion.remanence)
    assert 0 < left.max() <= c.REMANENCE * c.TORQUER_LIMIT


def test_the_wheel_approaches_its_set_point():
    wheel = 0.0
    for _ in range(600):
        wheel += 2.0 * wheel_torque(wheel, 1e-3)
    assert wheel == pytest.approx(1e-3, rel=1e-3)
