"""Where the spacecraft is, and how it tumbles: Sun, field and station, wheel and magnetic torquers.

The rigid body, with a wheel along its y axis, is computed in plain floats and tuples: at this size
they are several times as fast as arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.names import study_import
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.constants import Vector


def sun_direction(days: FloatArray) -> FloatArray:
    """Return the unit vector to the Sun in the mean equator and equinox of date, shape (n, 3).

    This is the low-precision formula of the Astronomical Almanac, good to 0.01° from 1950 to 2050;
    ``days`` are days since c.J2000.
    """
    mean_longitude = 280.460 + 0.9856474 * days
    anomaly = np.radians(357.528 + 0.9856003 * days)
    longitude = np.radians(mean_longitude + 1.915 * np.sin(anomaly) + 0.020 * np.sin(2 * anomaly))
    obliquity = np.radians(23.439 - 4e-7 * days)
    return np.column_stack(
        [
            np.cos(longitude),
            np.cos(obliquity) * np.sin(longitude),
            np.sin(obliquity) * np.sin(longitude),
        ]
    )


def visible_sun(position: FloatArray, sun: FloatArray) -> FloatArray:
    """Return the fraction of the Sun's disc visible from positions in km, shape (n,)."""
    distance = np.linalg.norm(position, axis=1)
    from_nadir = np.degrees(np.arccos(np.clip(-(position * sun).sum(axis=1) / distance, -1, 1)))
    limb = np.degrees(np.arcsin(c.EARTH_RADIUS / distance))
    # The Earth looks 250 times as wide as the Sun: its limb is nearly straight, and what it leaves
    # of the disc a circular segment.
    height = np.clip((from_nadir - limb) / c.SUN_ANGULAR_RADIUS, -1, 1)
    fraction: FloatArray = (np.arccos(-height) + height * np.sqrt(1 - height**2)) / np.pi
    return fraction


_BLOCK = 4096  # rows per call of IGRF, whose temporaries take some 10 kB per row


def sidereal_angle(days: FloatArray) -> FloatArray:
    """Return Greenwich mean sidereal time in radians (Meeus, Astronomical Algorithms, 12.4)."""
    angle: FloatArray = np.radians((280.46061837 + 360.98564736629 * days) % 360)
    return angle


def turned(vectors: FloatArray, angle: FloatArray) -> FloatArray:
    """Return vectors of shape (n, 3), each turned about the z axis by its angle in radians."""
    x, y, z = vectors.T
    cos, sin = np.cos(angle), np.sin(angle)
    return np.column_stack([cos * x - sin * y, sin * x + cos * y, z])


def earth_field(position: FloatArray, date: datetime) -> FloatArray:
    """Return IGRF's field in nT at Earth-fixed positions in km, in Earth-fixed axes, shape (n, 3).

    One date is enough for a flight: the field changes by less than 1 nT a day.
    """
    ppigrf = study_import("ppigrf", extra="spacecraft")
    distance = np.linalg.norm(position, axis=1)
    colatitude = np.arccos(position[:, 2] / distance)
    longitude = np.arctan2(position[:, 1], position[:, 0])
    spherical = []
    for start in range(0, len(position), _BLOCK):
        rows = slice(start, start + _BLOCK)
        at = distance[rows], np.degrees(colatitude[rows]), np.degrees(longitude[rows])
        spherical.append(np.array(ppigrf.igrf_gc(*at, date)).reshape(3, -1))
    radial, south, east = np.hstack(spherical)
    outward = np.sin(colatitude) * radial + np.cos(colatitude) * south
    upward = np.cos(colatitude) * radial - np.sin(colatitude) * south
    return turned(np.column_stack([outward, east, upward]), longitude)


def dipole_axis(date: datetime) -> FloatArray:
    """Return the Earth-fixed unit vector to the geomagnetic north pole, shape (3,)."""
    # On the equator IGRF's first degree is Br = 2 (g11 cos φ + h11 sin φ) and Bθ = g10.
    radial, south, _ = study_import("ppigrf", extra="spacecraft").igrf_gc(
        c.IGRF_RADIUS, 90.0, np.array([0.0, 90.0]), date, max_degree=1
    )
    (g11, h11), g10 = radial.ravel() / 2, south.ravel()[0]
    moment = -np.array([g11, h11, g10])
    axis: FloatArray = moment / np.linalg.norm(moment)
    return axis


def elevation(position: FloatArray, latitude: float, longitude: float) -> FloatArray:
    """Return the angle in degrees of Earth-fixed positions (km) above a station's horizon."""
    north, east = np.radians(latitude), np.radians(longitude)
    up = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    sight = position - c.EARTH_RADIUS * up
    angle: FloatArray = np.degrees(np.arcsin(sight @ up / np.linalg.norm(sight, axis=1)))
    return angle


@dataclass(frozen=True, eq=False)
class Orbit:
    """What the orbit alone decides, one entry per time step.

    Vectors have shape (n, 3), in SGP4's inertial frame (TEME), whose difference from the Sun's
    frame, below 0.01°, is neglected.
    """

    time: FloatArray  # s since the start
    position: FloatArray  # km
    field: FloatArray  # the Earth's magnetic field, nT
    sun: FloatArray  # unit vector to the Sun
    sunlit: FloatArray  # visible fraction of the Sun's disc
    latitude: FloatArray  # geocentric, degrees
    dipole_latitude: FloatArray  # angle from the geomagnetic equator, degrees
    elevation: FloatArray  # above the ground station's horizon, degrees
    phase: FloatArray  # fraction of the orbit since the ascending node, in angle
    number: IntArray  # how often the ascending node was passed since the start


def propagate(tle: tuple[str, str], n: int, step: float) -> Orbit:
    """Return ``n`` steps (s) of the orbit that starts at the epoch of two-line elements."""
    time = step * np.arange(n, dtype=np.float64)
    position, velocity, epoch = _sgp4(tle, time)
    days = epoch + time / c.DAY
    # From days to a date: c.J2000 is noon of 1 January 2000.
    date = datetime(2000, 1, 1, 12) + timedelta(days=epoch)
    sidereal = sidereal_angle(days)
    fixed = turned(position, -sidereal)
    direction = fixed / np.linalg.norm(fixed, axis=1, keepdims=True)
    sun = sun_direction(days)
    phase, number = _phase(position, velocity)
    return Orbit(
        time=time,
        position=position,
        field=turned(earth_field(fixed, date), sidereal),
        sun=sun,
        sunlit=visible_sun(position, sun),
        latitude=np.degrees(np.arcsin(direction[:, 2])),
        dipole_latitude=np.degrees(np.arcsin(direction @ dipole_axis(date))),
        elevation=elevation(fixed, *c.GROUND_STATION),
        phase=phase,
        number=number,
    )


def _sgp4(tle: tuple[str, str], time: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return positions in km, velocities in km/s and the epoch in days since c.J2000."""
    api = study_import("sgp4.api", extra="spacecraft")
    satellite = api.Satrec.twoline2rv(*tle)
    whole = np.full(len(time), satellite.jdsatepoch)
    errors, position, velocity = satellite.sgp4_array(whole, satellite.jdsatepochF + time / c.DAY)
    failed = np.flatnonzero((errors > 0) | ~np.isfinite(position).all(axis=1))
    if failed.size:
        reason = api.SGP4_ERRORS.get(int(errors[failed[0]]), "its elements are not numbers")
        raise ValueError(
            f"tle must be an orbit that lasts the flight, got {tle!r}, which fails after "
            f"{time[failed[0]]:g} s: {reason}"
        )
    return position, velocity, satellite.jdsatepoch - c.J2000 + satellite.jdsatepochF


def _phase(position: FloatArray, velocity: FloatArray) -> tuple[FloatArray, IntArray]:
    momentum = np.cross(position, velocity)
    node = np.cross([0.0, 0.0, 1.0], momentum)
    ahead = np.cross(momentum, node)
    length = np.linalg.norm(momentum, axis=1)
    angle = np.arctan2((position * ahead).sum(axis=1), length * (position * node).sum(axis=1))
    # Steps of half an orbit or more would be counted wrongly; unwrap cannot know.
    turns = np.unwrap(angle % (2 * np.pi)) / (2 * np.pi)
    number = np.floor(turns)
    return turns - number, (number - number[0]).astype(np.intp)


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
    first = derivative(state, field, moment, torque, jolt)
    second = derivative(_moved(state, first, span / 2), field, moment, torque, jolt)
    third = derivative(_moved(state, second, span / 2), field, moment, torque, jolt)
    fourth = derivative(_moved(state, third, span), field, moment, torque, jolt)
    mean = [
        (a + 2 * (b + d) + e) / 6 for a, b, d, e in zip(first, second, third, fourth, strict=True)
    ]
    q0, q1, q2, q3, rate_x, rate_y, rate_z, wheel = _moved(state, mean, span)
    length = math.sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
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
    # A normal vector in four dimensions points anywhere with equal chance, as attitudes should.
    direction = rng.standard_normal(4)
    q0, q1, q2, q3 = (direction / np.linalg.norm(direction)).tolist()
    wx, wy, wz = np.radians(c.FIRST_RATE).tolist()
    state: State = q0, q1, q2, q3, wx, wy, wz, c.WHEEL_FIRST
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
            mx, my, mz = (x + y for x, y in zip(command, c.RESIDUAL_DIPOLE, strict=True))
            state = advance(state, cycle, field, (mx, my, mz), torque, jolt)
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
