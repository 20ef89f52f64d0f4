"""How the spacecraft tumbles, and what its wheel and magnetic torquers do about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.constants import Vector
from contextgap.studies.problems.spacecraft.orbit import Orbit
from contextgap.studies.problems.spacecraft.rigid_body import State, advance, to_body
from contextgap.studies.problems.spacecraft.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Motion:
    """The spacecraft's motion and what its actuators did, one entry per time step.

    The quaternion turns body axes into inertial axes, scalar first, shape (n, 4); rates are in
    rad/s and body axes. The wheel has momentum (N m s) along y and a torque (N m) that changes it.
    The torquers' command and the remanence that earlier commands left in their cores are in A m²,
    shape (n, 3).
    """

    quaternion: FloatArray
    rate: FloatArray
    wheel: FloatArray
    wheel_torque: FloatArray
    command: FloatArray
    remanence: FloatArray


def tumble(orbit: Orbit, schedule: Schedule, step: float, rng: np.random.Generator) -> Motion:
    """Return the motion through an orbit from a random attitude; ``step`` is in seconds.

    The Earth's field is held constant over each time step; ``rng`` draws the first attitude and the
    disturbance torque.
    """
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
    """Return the torquers' B-dot command in A m²; the field is in inertial axes, T.

    The command opposes the change of the field that the body sees.
    """
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
