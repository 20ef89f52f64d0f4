"""How the spacecraft tumbles, and what its wheel and magnetic torquers do about it.

The rigid body, with a wheel along its y axis, is computed in plain floats and tuples: at this size
they are several times as fast as arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.constants import Vector
from contextgap.studies.problems.spacecraft.orbit import Orbit


def fading_sum(inputs: FloatArray, kept: float) -> FloatArray:
    """Return y with y[t] = kept · y[t−1] + inputs[t], in the shape of ``inputs``."""
    # scipy.signal.lfilter does the same, but takes half a second to import.
    return np.array(list(accumulate(inputs, lambda before, new: kept * before + new)))


@dataclass(frozen=True, eq=False)
class Schedule:
    """What is switched on at each time step."""

    wheel_target: FloatArray  # momentum to aim for, N m s
    payload: NDArray[np.bool_]
    detumble: NDArray[np.bool_]  # by B-dot control
    downlink: NDArray[np.bool_]  # the transmitter talks to the ground station
    beacon: NDArray[np.bool_]
    processor: FloatArray  # its current, A


def draw_schedule(
    latitude: FloatArray, elevation: FloatArray, step: float, rng: np.random.Generator
) -> Schedule:
    """Return a random schedule; a longer one from the same seed begins with the shorter one."""
    n = len(latitude)
    # A row per step, and a generator of its own for each array, so that how long the flight is
    # does not change its beginning.
    for_events, for_processor = rng.spawn(2)
    chance = for_events.random((n, 7))
    high = np.abs(latitude) > c.PAYLOAD_LATITUDE
    payload = _runs(np.where(high, *c.PAYLOAD_INTERVAL), step, chance[:, 0:2])
    downlink = elevation > c.DOWNLINK_ELEVATION
    beacon = (chance[:, 6] < c.BEACON_SHARE) & ~downlink
    return Schedule(
        wheel_target=_set_points(chance[:, 4:6], step),
        payload=payload,
        detumble=_runs(np.full(n, c.DETUMBLE_INTERVAL), step, chance[:, 2:4]),
        downlink=downlink,
        beacon=beacon & ~payload,  # as on GRIFEX, whose payload must not be disturbed
        processor=_processor(for_processor.standard_normal(n), step),
    )


def _runs(interval: FloatArray, step: float, chance: FloatArray) -> NDArray[np.bool_]:
    """Return when something is on that starts at random and lasts for a random time."""
    starts = chance[:, 0] < -np.expm1(-step / interval)
    shortest, longest = c.RUN_LENGTH
    steps = np.ceil((shortest + (longest - shortest) * chance[:, 1]) / step).astype(int)
    on = np.zeros(len(interval), dtype=bool)
    free = 0
    for start in np.flatnonzero(starts):
        if start >= free:
            free = start + steps[start]
            on[start:free] = True
    return on


def _set_points(chance: FloatArray, step: float) -> FloatArray:
    changes = chance[:, 0] < -np.expm1(-step / c.WHEEL_INTERVAL)
    lowest, highest = c.WHEEL_TARGETS
    values = lowest + (highest - lowest) * chance[:, 1]
    latest = np.maximum.accumulate(np.where(changes, np.arange(len(changes)), -1))
    return np.where(latest < 0, c.WHEEL_FIRST, values[latest])


def _processor(shocks: FloatArray, step: float) -> FloatArray:
    """Return a first-order autoregression with the stated mean, deviation and correlation time."""
    mean, deviation = c.PROCESSOR_CURRENT
    memory = math.exp(-step / c.PROCESSOR_LAG)
    wander = fading_sum(np.sqrt(1 - memory**2) * shocks, memory)
    return mean + deviation * wander


# Quaternion from body to inertial axes (scalar first), body rates in rad/s, wheel momentum in
# N m s: what one Runge-Kutta step advances together.
State: TypeAlias = tuple[float, float, float, float, float, float, float, float]


def advance(
    state: State, span: float, field: Vector, moment: Vector, torque: float, jolt: Vector
) -> State:
    """Return the state after a short span (s), by one Runge-Kutta step of fourth order."""

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
    """Return an inertial vector in body axes."""
    w, x, y, z = state[:4]
    a, b, d = vector
    return (
        (1 - 2 * (y * y + z * z)) * a + 2 * (x * y + w * z) * b + 2 * (x * z - w * y) * d,
        2 * (x * y - w * z) * a + (1 - 2 * (x * x + z * z)) * b + 2 * (y * z + w * x) * d,
        2 * (x * z + w * y) * a + 2 * (y * z - w * x) * b + (1 - 2 * (x * x + y * y)) * d,
    )


def rows_to_body(quaternion: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return inertial vectors in body axes, row by row, shape (n, 3)."""
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


@dataclass(frozen=True, eq=False)
class Motion:
    """The spacecraft's motion and what its actuators did, one entry per time step."""

    quaternion: FloatArray  # from body to inertial axes, scalar first, shape (n, 4)
    rate: FloatArray  # rad/s in body axes
    wheel: FloatArray  # momentum along y, N m s
    wheel_torque: FloatArray  # N m, which changes it
    command: FloatArray  # of the torquers, A m², shape (n, 3)
    remanence: FloatArray  # what earlier commands left in their cores, A m², shape (n, 3)


def tumble(orbit: Orbit, schedule: Schedule, step: float, rng: np.random.Generator) -> Motion:
    """Return the motion from a random attitude, with the field held constant over each step (s)."""
    state = _first_state(rng)
    cycles = math.ceil(step / c.CONTROL_CYCLE)
    cycle = step / cycles
    kept = math.exp(-cycle / c.REMANENCE_LAG)
    # The stated deviation belongs to 10 s; a mean over a longer time varies less.
    jolts = rng.normal(0, c.DISTURBANCE * math.sqrt(10 / step), (len(orbit.time), 3)).tolist()
    fields = (orbit.field * 1e-9).tolist()
    remanence = (0.0, 0.0, 0.0)
    record = []
    for field, jolt, target, detumble in zip(
        fields, jolts, schedule.wheel_target.tolist(), schedule.detumble.tolist(), strict=True
    ):
        for number in range(cycles):
            torque = wheel_torque(state[7], target)
            command = bdot(state, field) if detumble else (0.0, 0.0, 0.0)
            if number == 0:
                record.append((*state, torque, *command, *remanence))
            state = advance(state, cycle, field, _plus(command, c.RESIDUAL_DIPOLE), torque, jolt)
            remanence = _faded(remanence, command, kept)
    table = np.array(record)
    return Motion(
        quaternion=table[:, :4],
        rate=table[:, 4:7],
        wheel=table[:, 7],
        wheel_torque=table[:, 8],
        command=table[:, 9:12],
        remanence=table[:, 12:],
    )


def bdot(state: State, field: Vector) -> Vector:
    """Return the torquers' command in A m², which opposes the change of the field (T, inertial)."""
    bx, by, bz = to_body(state, field)
    wx, wy, wz = state[4:7]
    # Seen from the body the field changes by B×ω; what the orbit adds, about a tenth of that at
    # 1 deg/s, is neglected.
    change = (by * wz - bz * wy, bz * wx - bx * wz, bx * wy - by * wx)
    x, y, z = (_limited(-c.BDOT_GAIN * rate, c.TORQUER_LIMIT) for rate in change)
    return x, y, z


def wheel_torque(wheel: float, target: float) -> float:
    """Return the torque, N m, that brings the wheel's momentum to its set-point, both in N m s."""
    return _limited((target - wheel) / c.WHEEL_LAG, c.WHEEL_TORQUE)


def _first_state(rng: np.random.Generator) -> State:
    # A normal vector in four dimensions points anywhere with equal chance, as attitudes should.
    direction = rng.standard_normal(4)
    q0, q1, q2, q3 = (direction / np.linalg.norm(direction)).tolist()
    wx, wy, wz = np.radians(c.FIRST_RATE).tolist()
    return q0, q1, q2, q3, wx, wy, wz, c.WHEEL_FIRST


def _plus(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _faded(remanence: Vector, command: Vector, kept: float) -> Vector:
    """Return the cores' remanence, which follows a share of the command with a lag."""
    gained = (1 - kept) * c.REMANENCE
    return (
        kept * remanence[0] + gained * command[0],
        kept * remanence[1] + gained * command[1],
        kept * remanence[2] + gained * command[2],
    )


def _limited(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))
