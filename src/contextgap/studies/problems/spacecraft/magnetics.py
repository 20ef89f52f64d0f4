"""Fields of the spacecraft's own currents and magnets at its sensors.

Everything is linear in the currents, so each source is one vector of nT per ampere (or per A m²)
and sensor, computed once.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from contextgap.base.arrays import FloatArray, frozen
from contextgap.studies.problems.spacecraft.constants import LOOPS, ROTOR, SENSORS, TORQUERS

_NT = 1e9 * 1e-7  # μ0/4π in nT m/A: 1e-7 T m/A


def wire_field(start: ArrayLike, end: ArrayLike, point: ArrayLike) -> FloatArray:
    """Return the field in nT/A of a straight wire at a point, by Biot and Savart's law, shape (3,).

    With a and b from the wire's ends (in m; current flows from start to end) to the point, B =
    μ0/4π · (|a|+|b|) / (|a||b|(|a||b|+a·b)) · a×b, which has no cancellation beside the wire.
    """
    a, b = np.subtract(point, start), np.subtract(point, end)
    length_a, length_b = np.linalg.norm(a), np.linalg.norm(b)
    both = length_a * length_b
    field: FloatArray = _NT * (length_a + length_b) / (both * (both + a @ b)) * np.cross(a, b)
    return field


def rectangle_field(
    centre: ArrayLike, edge: ArrayLike, other: ArrayLike, point: ArrayLike
) -> FloatArray:
    """Return the field in nT/A at ``point`` of a current round a rectangle, shape (3,).

    All lengths are in m; the half-edges start at the centre, and the loop's moment points along
    edge × other.
    """
    middle, u, v = np.asarray(centre), np.asarray(edge), np.asarray(other)
    corners = [middle + u + v, middle - u + v, middle - u - v, middle + u - v]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    total: FloatArray = np.sum([wire_field(*side, point) for side in sides], axis=0)
    return total


def dipole_field(moment: ArrayLike, offset: ArrayLike) -> FloatArray:
    """Return the field in nT of a dipole in A m², at an offset in m from it, shape (3,)."""
    distance = np.linalg.norm(offset)
    towards = np.asarray(offset) / distance
    field: FloatArray = _NT * (3 * towards * (towards @ moment) - moment) / distance**3
    return field


@cache
def loop_coupling() -> FloatArray:
    """Return nT/A at each sensor of each loop, in the order of LOOPS, shape (loops, sensors, 3)."""
    return frozen(
        np.array(
            [[rectangle_field(*loop, at) for at in SENSORS.values()] for loop in LOOPS.values()]
        )
    )


@cache
def torquer_coupling() -> FloatArray:
    """Return nT per A m² at each sensor of each torquer, shape (3, sensors, 3)."""
    axes = zip(np.eye(3), TORQUERS.values(), strict=True)
    return frozen(
        np.array(
            [[dipole_field(m, np.subtract(at, p)) for at in SENSORS.values()] for m, p in axes]
        )
    )


@cache
def rotor_coupling() -> FloatArray:
    """Return nT per A m² at each sensor of the rotor's moment along x and z, (2, sensors, 3)."""
    offsets = [np.subtract(at, ROTOR) for at in SENSORS.values()]
    return frozen(np.array([[dipole_field(m, o) for o in offsets] for m in np.eye(3)[[0, 2]]]))
