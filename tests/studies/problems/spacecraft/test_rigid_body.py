from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from contextgap.studies.problems.spacecraft import INERTIA, advance, rows_to_body, to_body

NOTHING = (0.0, 0.0, 0.0)
TUMBLING = (0.5, 0.5, -0.5, 0.5, 0.03, -0.05, 0.07, 0.8e-3)  # 5 deg/s, as fast as flights get


def fly(state, seconds, span=1.0, moment=NOTHING, torque=0.0, field=NOTHING):
    states = [state]
    for _ in range(round(seconds / span)):
        states.append(advance(states[-1], span, field, moment, torque, NOTHING))
    return np.array(states)


def rotation(quaternions):
    """Scipy's rotation; it has the scalar last."""
    return Rotation.from_quat(np.roll(quaternions, -1, axis=-1))


def momentum(states):
    """Total angular momentum in inertial axes, N m s."""
    body = np.array(INERTIA) * states[:, 4:7]
    body[:, 1] += states[:, 7]
    return rotation(states[:, :4]).apply(body)


def energy(states):
    return (np.array(INERTIA) * states[:, 4:7] ** 2).sum(axis=1) / 2


def test_without_torque_energy_and_momentum_stay():
    states = fly(TUMBLING, 6000)
    np.testing.assert_allclose(energy(states), energy(states)[0], rtol=1e-4)
    np.testing.assert_allclose(
        momentum(states), np.tile(momentum(states)[0], (len(states), 1)), atol=2e-4 * 3e-3
    )
    assert np.ptp(states[:, 4:7], axis=0).min() > 0.01  # it did tumble


def test_the_error_falls_with_the_fourth_power_of_the_span():
    coarse, fine = (
        np.abs(energy(states) / energy(states)[0] - 1).max()
        for states in (fly(TUMBLING, 400, span) for span in (2.0, 1.0))
    )
    assert 10 < coarse / fine < 60


def test_wheel_and_body_exchange_momentum():
    torque = 1e-5
    states = fly((1.0, 0, 0, 0, 0, 0, 0, 0), 100, torque=torque)
    assert states[-1, 7] == pytest.approx(100 * torque)
    assert states[-1, 5] == pytest.approx(-100 * torque / INERTIA[1])
    np.testing.assert_allclose(momentum(states), 0, atol=1e-15)
    tumbling = fly(TUMBLING, 100, torque=torque)
    np.testing.assert_allclose(
        momentum(tumbling), np.tile(momentum(tumbling)[0], (101, 1)), atol=2e-8
    )


def test_a_spin_about_a_principal_axis_is_a_plain_rotation():
    states = fly((1.0, 0, 0, 0, 0, 0, 0.05, 0), 60)
    wanted = np.roll(Rotation.from_rotvec([0, 0, 3.0]).as_quat(), 1)
    assert states[-1, :4] == pytest.approx(wanted, abs=1e-6)


def test_a_magnet_in_a_field_turns_towards_it():
    # m×B = 0.1 A m² × 4e-5 T along z
    states = fly((1.0, 0, 0, 0, 0, 0, 0, 0), 2, moment=(0.1, 0, 0), field=(0, 4e-5, 0))
    assert states[-1, 4:7] == pytest.approx([0, 0, 2 * 4e-6 / INERTIA[2]], rel=1e-3, abs=1e-9)


def test_body_axes_agree_with_scipy(rng):
    quaternions = rng.normal(size=(20, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    vectors = rng.normal(size=(20, 3))
    wanted = rotation(quaternions).inv().apply(vectors)
    np.testing.assert_allclose(rows_to_body(quaternions, vectors), wanted, atol=1e-12)
    for quaternion, vector, row in zip(quaternions, vectors, wanted, strict=True):
        assert to_body((*quaternion, 0, 0, 0, 0), tuple(vector)) == pytest.approx(row)
