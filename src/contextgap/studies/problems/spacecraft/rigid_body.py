"""A rigid body with a wheel along its y axis: kinematics and Euler's equation.

Plain floats and tuples: at this size they are several times as fast as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.constants import Vector

# Quaternion from body to inertial axes (scalar first), body rates in rad/s, wheel momentum in
# N m s: what one Runge-Kutta step advances together.
State: TypeAlias = tuple[float, float, float, float, float, float, float, float]


def advance(
    state: State, span: float, field: Vector, moment: Vector, torque: float, jolt: Vector
) -> State:
    """Return the state after ``span`` seconds, by one Runge-Kutta step of fourth order.

    The span must be short compared with a turn of the body; see ``derivative`` for the rest.
    """

    def slope(at: State) -> State:
        return derivative(at, field, moment, torque, jolt)

    q0, q1, q2, q3, *rest = _runge_kutta(slope, state, span)
    length = math.sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    rate_x, rate_y, rate_z, wheel = rest
    return (q0 / length, q1 / length, q2 / length, q3 / length, rate_x, rate_y, rate_z, wheel)


def derivative(state: State, field: Vector, moment: Vector, torque: float, jolt: Vector) -> State:
    """Return the state's rate of change: quaternion kinematics and Euler's equation.

    The Earth's field is in inertial axes (T), the magnetic moment in body axes (A m²). ``torque``
    acts on the wheel (N m), so that the body feels its opposite; ``jolt`` is any other torque on
    the body.
    """
    q0, q1, q2, q3, wx, wy, wz, wheel = state
    inertia_x, inertia_y, inertia_z = c.INERTIA
    bx, by, bz = to_body(state, field)
    mx, my, mz = moment
    # J·ω' = m×B + jolt − torque·y − ω×(J·ω + wheel·y)
    along_x, along_y, along_z = inertia_x * wx, inertia_y * wy + wheel, inertia_z * wz
    push_x = my * bz - mz * by + jolt[0] - (wy * along_z - wz * along_y)
    push_y = mz * bx - mx * bz + jolt[1] - (wz * along_x - wx * along_z) - torque
    push_z = mx * by - my * bx + jolt[2] - (wx * along_y - wy * along_x)
    # q' = q⊗(0, ω)/2
    return (
        -0.5 * (q1 * wx + q2 * wy + q3 * wz),
        0.5 * (q0 * wx + q2 * wz - q3 * wy),
        0.5 * (q0 * wy + q3 * wx - q1 * wz),
        0.5 * (q0 * wz + q1 * wy - q2 * wx),
        push_x / inertia_x,
        push_y / inertia_y,
        push_z / inertia_z,
        torque,
    )


def to_body(state: State, vector: Vector) -> Vector:
    """Return an inertial vector in body axes.

    The state's first four numbers are the unit quaternion from body to inertial axes.
    """
    w, x, y, z = state[:4]
    a, b, d = vector
    return (
        (1 - 2 * (y * y + z * z)) * a + 2 * (x * y + w * z) * b + 2 * (x * z - w * y) * d,
        2 * (x * y - w * z) * a + (1 - 2 * (x * x + z * z)) * b + 2 * (y * z + w * x) * d,
        2 * (x * z + w * y) * a + 2 * (y * z - w * x) * b + (1 - 2 * (x * x + y * y)) * d,
    )


def rows_to_body(quaternion: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return inertial vectors in body axes, row by row, shape (n, 3).

    Quaternions turn body axes into inertial axes, scalar first, shape (n, 4).
    """
    # v − 2w(u×v) + 2u×(u×v), the rotation by the conjugate of (w, u)
    scalar, axis = quaternion[:, :1], quaternion[:, 1:]
    across = np.cross(axis, vectors)
    body: FloatArray = vectors + 2 * (np.cross(axis, across) - scalar * across)
    return body


def _runge_kutta(slope: Callable[[State], State], state: State, span: float) -> State:
    first = slope(state)
    second = slope(_moved(state, first, span / 2))
    third = slope(_moved(state, second, span / 2))
    fourth = slope(_moved(state, third, span))
    mean = [
        (a + 2 * (b + d) + e) / 6 for a, b, d, e in zip(first, second, third, fourth, strict=True)
    ]
    return _moved(state, mean, span)


def _moved(state: State, slope: State | list[float], span: float) -> State:
    moved = [value + span * rate for value, rate in zip(state, slope, strict=True)]
    return tuple(moved)  # type: ignore[return-value]  # as long as the state
