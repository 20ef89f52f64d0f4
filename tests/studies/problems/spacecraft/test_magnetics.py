from __future__ import annotations

import magpylib
import numpy as np
import pytest

from contextgap.studies.problems.spacecraft import (
    LOOPS,
    ROTOR,
    SENSORS,
    TORQUERS,
    dipole_field,
    loop_coupling,
    rectangle_field,
    rotor_coupling,
    torquer_coupling,
    wire_field,
)


def polyline(loop, at):
    """The field of one ampere round a rectangle, nT, by magpylib."""
    centre, u, v = map(np.array, loop)
    corners = [centre + u + v, centre - u + v, centre - u - v, centre + u - v, centre + u + v]
    return 1e9 * magpylib.current.Polyline(current=1, vertices=corners).getB(at)


def test_every_loop_agrees_with_magpylib():
    wanted = [[polyline(loop, at) for at in SENSORS.values()] for loop in LOOPS.values()]
    np.testing.assert_allclose(loop_coupling(), wanted, rtol=1e-9, atol=1e-9)


def test_random_rectangles_agree_with_magpylib(rng):
    for _ in range(20):
        u = rng.normal(size=3)
        v = np.cross(u, rng.normal(size=3))
        loop, at = (rng.normal(size=3), u, v), 3 * rng.normal(size=3)
        np.testing.assert_allclose(rectangle_field(*loop, at), polyline(loop, at), rtol=1e-6)


def test_from_afar_a_loop_is_a_dipole():
    u, v = np.array([0.02, 0.0, 0.0]), np.array([0.0, 0.03, 0.0])
    at = np.array([1.0, 2.0, 2.0])
    moment = np.cross(2 * u, 2 * v)
    np.testing.assert_allclose(
        rectangle_field([0, 0, 0], u, v, at), dipole_field(moment, at), rtol=1e-3
    )


def test_a_long_wire_obeys_amperes_law():
    # μ0·I / 2πr: 200 nT at 1 m of 1 A, right-handed about the current.
    field = wire_field([0, 0, -1e4], [0, 0, 1e4], [1, 0, 0])
    assert field == pytest.approx([0, 200, 0], rel=1e-6)


def test_dipoles_agree_with_magpylib():
    for axis, name in zip(range(3), TORQUERS, strict=True):
        dipole = magpylib.misc.Dipole(moment=np.eye(3)[axis], position=TORQUERS[name])
        wanted = 1e9 * dipole.getB(list(SENSORS.values()))
        np.testing.assert_allclose(torquer_coupling()[axis], wanted, rtol=1e-9)
    for place, axis in enumerate((0, 2)):
        dipole = magpylib.misc.Dipole(moment=np.eye(3)[axis], position=ROTOR)
        wanted = 1e9 * dipole.getB(list(SENSORS.values()))
        np.testing.assert_allclose(rotor_coupling()[place], wanted, rtol=1e-9)
