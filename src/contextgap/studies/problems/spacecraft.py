"""A simulated 3U CubeSat with three magnetometers: which one to trust, given telemetry.

The orbit is SGP4's, the Earth's field IGRF's; attitude, power, temperatures and the interference
that the spacecraft's own currents cause are simulated. Every number comes first, with its unit and
where it comes from. Body axes: z along the long side, x and y across; the origin is the middle of
the 3U frame. Numbers with no other source are assumed: plausible for a 3U CubeSat, and chosen so
that each of the three sensors is at times the best.

No later subsystem affects an earlier one: attitude does not depend on power, nor power on the
sensors. So each subsystem is computed for all time steps at once, or in a loop of its own where its
state feeds back. The rigid body, with a wheel along its y axis, is computed in plain floats and
tuples: at this size they are several times as fast as arrays. The fields of the spacecraft's own
currents are linear in them, so each source is one vector of nT per ampere (or per A m²) and sensor,
computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, frozen
from contextgap.base.components import study_import
from contextgap.studies.problems.problem import Maker, Problem, standardised

Vector: TypeAlias = tuple[float, float, float]

# Orbit and Earth.

# GRIFEX (NORAD 40379), 31 August 2015; NORAD's public catalogue.
TLE = (
    "1 40379U 15003D   15243.42702278  .00003367  00000-0  17130-3 0  9993",
    "2 40379  99.1124 290.6779 0157088   8.9691 351.4280 15.07659299 31889",
)
J2000 = 2451545.0  # Julian date of 2000-01-01 12:00; definition
DAY = 86400.0  # s; definition
EARTH_RADIUS = 6371.0  # km; mean radius (IUGG)
IGRF_RADIUS = 6371.2  # km; reference radius of the IGRF
SUN_ANGULAR_RADIUS = 0.2666  # deg; mean, 959.63 arcsec (IAU)
GROUND_STATION = (42.27, -83.74)  # deg north, deg east; Ann Arbor, where GRIFEX is operated

# Attitude.

INERTIA: Vector = (0.033, 0.033, 0.006)  # kg m², about a box of 3.2 kg
FIRST_RATE: Vector = (0.6, 0.3, 1.2)  # deg/s at the start
RESIDUAL_DIPOLE: Vector = (0.002, -0.001, 0.004)  # A m²
DISTURBANCE = 1e-8  # N m, standard deviation of a 10 s mean (drag at 500 km)
CONTROL_CYCLE = 1.0  # s between torquer and wheel commands, at most
TORQUER_LIMIT = 0.1  # A m² per axis
BDOT_GAIN = 6e4  # A m² s/T
REMANENCE = 0.004  # of the commanded moment, a soft-magnetic core
REMANENCE_LAG = 330.0  # s
LEAKAGE = 0.001  # of the commanded moment, left while the sensors are read
WHEEL_FIRST = 0.5e-3  # N m s at the start. The wheel's axis is y.
WHEEL_FULL = 1.7e-3  # N m s at full speed
WHEEL_FULL_RPM = 8000.0  # rpm
WHEEL_LAG = 120.0  # s to approach a new set-point
WHEEL_TORQUE = 2e-5  # N m, limit
WHEEL_TARGETS = (-1.5e-3, 1.7e-3)  # N m s, range of set-points

# What happens when.

WHEEL_INTERVAL = 1500.0  # s, mean time between new set-points
PAYLOAD_INTERVAL = (1500.0, 5000.0)  # s, mean wait in high and in low latitudes
PAYLOAD_LATITUDE = 50.0  # deg, above which latitudes are high
DETUMBLE_INTERVAL = 3500.0  # s, mean wait between B-dot campaigns
RUN_LENGTH = (300.0, 900.0)  # s, of payload runs and B-dot campaigns
BEACON_SHARE = 0.12  # of telemetry frames that coincide with a beacon
DOWNLINK_ELEVATION = 5.0  # deg above the station's horizon, a usual mask

# Power.

PANEL_CURRENT = 0.92  # A of a body panel facing the Sun, 7 W at 8 V
WING_CURRENT = 0.46  # A of the two-sided wing
ALBEDO = 0.06  # of the Sun's light, on every panel while sunlit
PANEL_REFERENCE = 28.0  # °C at which panel currents are stated; usual for space cells
PANEL_DRIFT = 6e-4  # 1/K, change of panel current, as of triple-junction cells
REGULATOR = 0.9  # of the panels' current reaches the bus
DOWNLINK_CURRENT = 1.05  # A, a 2 W UHF transmitter
BEACON_CURRENT = 0.9  # A
PAYLOAD_CURRENT = 0.65  # A
HEATER_CURRENT = 0.45  # A
TORQUER_CURRENT = 2.5  # A per A m², each axis
WHEEL_CURRENT = (0.02, 0.08, 3e3)  # A at rest, A more at full speed, A per N m
PROCESSOR_CURRENT = (0.18, 0.03)  # A, mean and standard deviation
PROCESSOR_LAG = 495.0  # s, correlation time of the processor's current
BATTERY_CAPACITY = 2.6  # A h, one pair of 18650 cells in series
BATTERY_VOLTAGE = (7.2, 1.15)  # V when empty, V more when full, two Li-ion cells
BATTERY_FIRST = 0.9  # state of charge at the start
CHARGE_CURRENT = 1.2  # A, limit, about half the capacity per hour
CHARGE_TAPER = 0.04  # state of charge below full at which charging tapers

# Temperatures: first-order lags towards what surrounds a node.

PANEL_LAG = 600.0  # s
PANEL_BALANCE = (-35.0, 85.0, 18.0)  # °C dark, K facing the Sun, K while sunlit
BOOM_LAG = 420.0  # s
BOOM_BALANCE = (-45.0, 95.0, 0.7)  # °C dark, K broadside to the Sun, exponent
INTERIOR_LAG = 4500.0  # s
INTERIOR_BALANCE = (-17.5, 25.0, 9.0)  # °C dark, K while sunlit, K per A of load
BATTERY_LAG = 5400.0  # s
BATTERY_BALANCE = (-1.0, 14.0)  # K from the interior, K per A of heater
HEATER_RANGE = (4.0, 6.0)  # °C, on below, off above
AMPLIFIER_LAG = 300.0  # s
AMPLIFIER_BALANCE = 28.0  # K above the interior per A of transmitter
FIRST_TEMPERATURES = {  # °C at the start
    "panel": 10.0,
    "interior": 8.0,
    "battery": 7.0,
    "amplifier": 10.0,
    "boom": 0.0,
}

# Where things are.

SENSORS: dict[str, Vector] = {  # m
    "top deck": (0.020, 0.010, 0.140),
    "bottom deck": (-0.020, -0.010, -0.140),
    "boom": (0.0, 0.220, 0.030),
}
# Net loop of each current, the part that its return path does not cancel: centre and two
# half-edges of a rectangle, m. The moment points along first × second half-edge.
LOOPS: dict[str, tuple[Vector, Vector, Vector]] = {
    "panel +X": ((0.049, 0.0, 0.015), (0.0, 0.0, 0.120), (0.0, 0.0011, 0.0)),
    "panel -X": ((-0.049, 0.0, -0.015), (0.0, 0.0, 0.120), (0.0, -0.0010, 0.0)),
    "panel +Y": ((0.0, 0.049, 0.015), (0.0, 0.0, 0.120), (0.0012, 0.0, 0.0)),
    "panel -Y": ((0.0, -0.049, -0.015), (0.0, 0.0, 0.120), (-0.0010, 0.0, 0.0)),
    "wing": ((0.0, 0.150, 0.0), (0.0, 0.0, 0.090), (0.004, 0.0, 0.0)),
    "battery": ((0.010, -0.015, -0.075), (0.0, 0.012, 0.003), (0.005, 0.0, 0.0)),
    "bus": ((0.0, 0.010, -0.030), (0.0, 0.030, 0.0), (0.0, 0.0, 0.004)),
    "transmitter": ((-0.010, 0.0, 0.085), (0.020, 0.0, 0.0), (0.0, 0.005, 0.001)),
    "payload": ((0.010, 0.020, 0.055), (0.030, 0.0, 0.0), (0.0, 0.001, 0.004)),
    "heater": ((0.020, -0.020, -0.090), (0.015, 0.0, 0.0), (0.0, 0.005, 0.0)),
    "wheel": ((0.0, 0.0, 0.010), (0.014, 0.0, 0.0), (0.0, 0.0, 0.014)),
}
PANELS = tuple(LOOPS)[:4]
TORQUERS: dict[str, Vector] = {  # m
    "X": (0.0, 0.030, -0.060),
    "Y": (0.030, 0.0, -0.060),
    "Z": (0.0, 0.0, -0.050),
}
ROTOR: Vector = (0.0, 0.0, 0.010)  # m
ROTOR_DIPOLE = 1e-3  # A m², across the wheel's axis
ROTOR_BANDWIDTH = 8.0  # Hz, above which a reading averages the rotor away

# Sensors.

# Hard iron: the field of these currents at each sensor is taken off, as a ground calibration
# with the spacecraft in its most usual state would do. A, near a flight's medians.
CALIBRATION_CURRENTS = {
    **dict.fromkeys(LOOPS, 0.0),
    **dict.fromkeys(PANELS, 0.04),
    "wing": 0.07,
    "bus": 0.30,
    "wheel": 0.06,
}
DRIFT = (  # nT/K, offset of each sensor's x, y and z
    (1.5, 0.8, 0.5),
    (0.8, -2.0, 0.8),
    (1.4, -0.7, 0.7),
)
CALIBRATION_TEMPERATURES = (5.0, 5.0, 0.0)  # °C of each sensor, without drift
AMPLIFIER_SHARE = 0.3  # of the amplifier's warmth reaches the top deck's sensor
NOISE = (4.0, 4.0, 6.0)  # nT per axis, white
# What calibration left of scale errors (diagonal) and misalignments (off it, rad), times 1000.
GAIN_ERRORS = (
    ((0.6, -0.4, 0.3), (0.5, -0.5, 0.4), (-0.3, 0.2, 0.7)),
    ((-0.5, 0.3, -0.4), (0.2, 0.6, -0.3), (0.4, -0.5, 0.5)),
    ((0.7, 0.5, -0.6), (-0.4, 0.8, 0.5), (0.5, -0.6, -0.6)),
)
FIELD_NOISE = 60.0  # nT per axis, of the on-board magnetometer in the telemetry
REWARD_UNIT = 100.0  # nT of error that cost a reward of 1; chosen

# The bench: what its script and its instruments add to the above.

BENCH_STEP = 10.0  # s between rows; chosen, as of a flight
BENCH_ORBIT = 5730.0  # s of the script's orbit; GRIFEX's, 15.08 orbits a day
BENCH_ECLIPSE = 0.36  # of an orbit without Sun; usual for low orbits
BENCH_LATITUDE = 81.0  # deg, highest latitude, which paces the payload; GRIFEX's
BENCH_PASSES = 3  # orbits from one downlink to the next
BENCH_PASS = 0.1  # of an orbit, length of a downlink
BENCH_TURNS = (600.0, 7000.0)  # s in which the Sun circles the z axis, and nods
BENCH_NOD = 60.0  # deg, highest elevation of the Sun above the xy plane
BENCH_NOISE = 0.1  # nT per axis of a reading, above a laboratory fluxgate's own
BENCH_RESOLUTION = 1e-3  # A, of the currents in telemetry


def sun_direction(days: FloatArray) -> FloatArray:
    """Return the unit vector to the Sun in the mean equator and equinox of date, shape (n, 3).

    This is the low-precision formula of the Astronomical Almanac, good to 0.01° from 1950 to 2050;
    ``days`` are days since J2000.
    """
    mean_longitude = 280.460 + 0.9856474 * days
    anomaly = np.radians(357.528 + 0.9856003 * days)
    longitude = np.radians(mean_longitude + 1.915 * np.sin(anomaly) + 0.020 * np.sin(2 * anomaly))
    obliquity = np.radians(23.439 - 4e-7 * days)
    x, y = np.cos(longitude), np.sin(longitude)
    return np.column_stack([x, np.cos(obliquity) * y, np.sin(obliquity) * y])


def visible_sun(position: FloatArray, sun: FloatArray) -> FloatArray:
    """Return the fraction of the Sun's disc visible from positions in km, shape (n,)."""
    distance = np.linalg.norm(position, axis=1)
    from_nadir = np.degrees(np.arccos(np.clip(-(position * sun).sum(axis=1) / distance, -1, 1)))
    limb = np.degrees(np.arcsin(EARTH_RADIUS / distance))
    # The Earth looks 250 times as wide as the Sun: its limb is nearly straight, and what it leaves
    # of the disc a circular segment.
    height = np.clip((from_nadir - limb) / SUN_ANGULAR_RADIUS, -1, 1)
    return np.asarray((np.arccos(-height) + height * np.sqrt(1 - height**2)) / np.pi)


_BLOCK = 4096  # rows per call of IGRF, whose temporaries take some 10 kB per row


def sidereal_angle(days: FloatArray) -> FloatArray:
    """Return Greenwich mean sidereal time in radians (Meeus, Astronomical Algorithms, 12.4)."""
    return np.radians((280.46061837 + 360.98564736629 * days) % 360)


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
        IGRF_RADIUS, 90.0, np.array([0.0, 90.0]), date, max_degree=1
    )
    (g11, h11), g10 = radial.ravel() / 2, south.ravel()[0]
    moment = -np.array([g11, h11, g10])
    return np.asarray(moment / np.linalg.norm(moment))


def elevation(position: FloatArray, latitude: float, longitude: float) -> FloatArray:
    """Return the angle in degrees of Earth-fixed positions (km) above a station's horizon."""
    north, east = np.radians(latitude), np.radians(longitude)
    up = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    sight = position - EARTH_RADIUS * up
    return np.asarray(np.degrees(np.arcsin(sight @ up / np.linalg.norm(sight, axis=1))))


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
    days = epoch + time / DAY
    # From days to a date: J2000 is noon of 1 January 2000.
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
        elevation=elevation(fixed, *GROUND_STATION),
        phase=phase,
        number=number,
    )


def _sgp4(tle: tuple[str, str], time: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return positions in km, velocities in km/s and the epoch in days since J2000."""
    api = study_import("sgp4.api", extra="spacecraft")
    satellite = api.Satrec.twoline2rv(*tle)
    whole = np.full(len(time), satellite.jdsatepoch)
    errors, position, velocity = satellite.sgp4_array(whole, satellite.jdsatepochF + time / DAY)
    failed = np.flatnonzero((errors > 0) | ~np.isfinite(position).all(axis=1))
    if failed.size:
        reason = api.SGP4_ERRORS.get(int(errors[failed[0]]), "its elements are not numbers")
        raise ValueError(
            f"tle must be an orbit that lasts the flight, got {tle!r}, which fails after "
            f"{time[failed[0]]:g} s: {reason}"
        )
    return position, velocity, satellite.jdsatepoch - J2000 + satellite.jdsatepochF


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
    high = np.abs(latitude) > PAYLOAD_LATITUDE
    payload = _runs(np.where(high, *PAYLOAD_INTERVAL), step, chance[:, 0:2])
    downlink = elevation > DOWNLINK_ELEVATION
    beacon = (chance[:, 6] < BEACON_SHARE) & ~downlink
    lowest, highest = WHEEL_TARGETS
    set_points = lowest + (highest - lowest) * chance[:, 5]
    changes = chance[:, 4] < -np.expm1(-step / WHEEL_INTERVAL)
    latest = np.maximum.accumulate(np.where(changes, np.arange(n), -1))
    # A first-order autoregression with the stated mean, deviation and correlation time.
    mean, deviation = PROCESSOR_CURRENT
    memory = math.exp(-step / PROCESSOR_LAG)
    shocks = np.sqrt(1 - memory**2) * for_processor.standard_normal(n)
    return Schedule(
        wheel_target=np.where(latest < 0, WHEEL_FIRST, set_points[latest]),
        payload=payload,
        detumble=_runs(np.full(n, DETUMBLE_INTERVAL), step, chance[:, 2:4]),
        downlink=downlink,
        beacon=beacon & ~payload,  # as on GRIFEX, whose payload must not be disturbed
        processor=mean + deviation * fading_sum(shocks, memory),
    )


def _runs(interval: FloatArray, step: float, chance: FloatArray) -> NDArray[np.bool_]:
    """Return when something is on that starts at random and lasts for a random time."""
    starts = chance[:, 0] < -np.expm1(-step / interval)
    shortest, longest = RUN_LENGTH
    steps = np.ceil((shortest + (longest - shortest) * chance[:, 1]) / step).astype(int)
    on = np.zeros(len(interval), dtype=bool)
    free = 0
    for start in np.flatnonzero(starts):
        if start >= free:
            free = start + steps[start]
            on[start:free] = True
    return on


# Quaternion from body to inertial axes (scalar first), body rates in rad/s, wheel momentum in
# N m s: what one Runge-Kutta step advances together.
State: TypeAlias = tuple[float, float, float, float, float, float, float, float]


def advance(state: State, span: float, *forces: *tuple[Vector, Vector, float, Vector]) -> State:
    """Return the state after a short span (s), by one Runge-Kutta step of fourth order."""
    first = derivative(state, *forces)
    second = derivative(_moved(state, first, span / 2), *forces)
    third = derivative(_moved(state, second, span / 2), *forces)
    fourth = derivative(_moved(state, third, span), *forces)
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
    inertia_x, inertia_y, inertia_z = INERTIA
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
    return np.asarray(vectors + 2 * (np.cross(axis, across) - scalar * across))


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
    wx, wy, wz = np.radians(FIRST_RATE).tolist()
    state: State = q0, q1, q2, q3, wx, wy, wz, WHEEL_FIRST
    cycles = math.ceil(step / CONTROL_CYCLE)
    cycle = step / cycles
    kept = math.exp(-cycle / REMANENCE_LAG)
    gained = (1 - kept) * REMANENCE
    # The stated deviation belongs to 10 s; a mean over a longer time varies less.
    jolts = rng.normal(0, DISTURBANCE * math.sqrt(10 / step), (len(orbit.time), 3)).tolist()
    fields = (orbit.field * 1e-9).tolist()
    rx = ry = rz = 0.0  # remanence, which follows a share of the command with a lag
    record = []
    for field, jolt, target, detumble in zip(
        fields, jolts, schedule.wheel_target.tolist(), schedule.detumble.tolist(), strict=True
    ):
        for number in range(cycles):
            torque = wheel_torque(state[7], target)
            command = bdot(state, field) if detumble else (0.0, 0.0, 0.0)
            if number == 0:
                record.append((*state, torque, *command, rx, ry, rz))
            mx, my, mz = (x + y for x, y in zip(command, RESIDUAL_DIPOLE, strict=True))
            state = advance(state, cycle, field, (mx, my, mz), torque, jolt)
            x, y, z = command
            rx, ry, rz = kept * rx + gained * x, kept * ry + gained * y, kept * rz + gained * z
    table = np.array(record)
    wheel, torques = table[:, 7:9].T
    return Motion(table[:, :4], table[:, 4:7], wheel, torques, table[:, 9:12], table[:, 12:])


def bdot(state: State, field: Vector) -> Vector:
    """Return the torquers' command in A m², which opposes the change of the field (T, inertial)."""
    bx, by, bz = to_body(state, field)
    wx, wy, wz = state[4:7]
    # Seen from the body the field changes by B×ω; what the orbit adds, about a tenth of that at
    # 1 deg/s, is neglected.
    change = (by * wz - bz * wy, bz * wx - bx * wz, bx * wy - by * wx)
    x, y, z = (_limited(-BDOT_GAIN * rate, TORQUER_LIMIT) for rate in change)
    return x, y, z


def wheel_torque(wheel: float, target: float) -> float:
    """Return the torque, N m, that brings the wheel's momentum to its set-point, both in N m s."""
    return _limited((target - wheel) / WHEEL_LAG, WHEEL_TORQUE)


def _limited(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))


class Channel(NamedTuple):
    """One number of telemetry, with its smallest step, assumed as of 10- to 12-bit digitisers."""

    name: str
    unit: str
    resolution: float

    @property
    def column(self) -> str:
        """The name with its unit, such as "battery voltage [V]"."""
        return f"{self.name} [{self.unit}]"


CHANNELS = (
    *(Channel(f"{name} current", "A", 0.005) for name in LOOPS),
    *(Channel(f"torquer {axis} moment", "A m²", 0.001) for axis in "XYZ"),
    Channel("wheel speed", "rpm", 50.0),
    *(
        Channel(f"{name} temperature", "°C", 0.25)
        for name in (*PANELS, "interior", "battery", "amplifier", "boom")
    ),
    Channel("battery voltage", "V", 0.02),
    *(Channel(f"field {axis}", "nT", 100.0) for axis in "XYZ"),
)


def chosen_channels(asked: str | Sequence[str]) -> list[int]:
    """Return the places in CHANNELS of "all", of "currents", or of channels by their names."""
    names = [channel.name for channel in CHANNELS]
    groups = {"all": names, "currents": names[: len(LOOPS)]}
    if isinstance(asked, str) and asked not in groups:
        raise ValueError(f'telemetry must be "all", "currents" or a list of names, got {asked!r}')
    wanted = groups[asked] if isinstance(asked, str) else list(asked)
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise ValueError(
            f"telemetry must name channels, got {unknown[0] if unknown else 'none'!r}; "
            f"there are {', '.join(names)}"
        )
    return [names.index(name) for name in wanted]


@dataclass(frozen=True, eq=False)
class Interior:
    """The inside, where a thermostat keeps the battery warm; temperatures in °C, heater in A."""

    temperature: FloatArray
    battery: FloatArray
    heater: FloatArray


def lagged(balance: FloatArray, lag: float, step: float, first: float) -> FloatArray:
    """Return what follows ``balance`` from ``first`` on with a first-order lag (s)."""
    kept = math.exp(-step / lag)
    # Row t follows the balance of the rows before it.
    before = np.concatenate([np.full_like(balance[:1], first), (1 - kept) * balance[:-1]])
    return fading_sum(before, kept)


def outer_temperatures(
    facing: FloatArray, sunlit: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Return the temperatures of body panels and of the boom, °C, by their cosines to the Sun."""
    dark, sun, near = PANEL_BALANCE
    panels = dark + (sun * facing[:, :4] + near) * sunlit[:, np.newaxis]
    dark, sun, exponent = BOOM_BALANCE
    boom = dark + sun * sunlit * facing[:, 4] ** exponent
    return (
        lagged(panels, PANEL_LAG, step, FIRST_TEMPERATURES["panel"]),
        lagged(boom, BOOM_LAG, step, FIRST_TEMPERATURES["boom"]),
    )


def keep_warm(load: FloatArray, sunlit: FloatArray, step: float) -> Interior:
    """Return interior, battery and thermostat; ``load`` is all currents but the heater's, A."""
    dark, sun, per_ampere = INTERIOR_BALANCE
    below, heated = BATTERY_BALANCE
    on_below, off_above = HEATER_RANGE
    interior_share = -math.expm1(-step / INTERIOR_LAG)
    battery_share = -math.expm1(-step / BATTERY_LAG)
    interior, battery = FIRST_TEMPERATURES["interior"], FIRST_TEMPERATURES["battery"]
    heating = False
    record = []
    for current, light in zip(load.tolist(), sunlit.tolist(), strict=True):
        heating = battery < on_below or (heating and battery < off_above)
        heater = HEATER_CURRENT if heating else 0.0
        record.append((interior, battery, heater))
        around = dark + sun * light + per_ampere * (current + heater)
        beside = interior + below + heated * heater
        interior += interior_share * (around - interior)
        battery += battery_share * (beside - battery)
    return Interior(*np.array(record).T)


@dataclass(frozen=True, eq=False)
class Supply:
    """Panels and battery, one entry per time step."""

    panels: FloatArray  # A after throttling, shape (n, panels)
    battery: FloatArray  # A, negative while it discharges
    charge: FloatArray  # from 0 to 1
    voltage: FloatArray


def loads(schedule: Schedule, motion: Motion) -> dict[str, FloatArray]:
    """Return the currents, A, that schedule and motion ask for: all loads but the heater."""
    at_rest, at_speed, per_torque = WHEEL_CURRENT
    speed = np.abs(motion.wheel) / WHEEL_FULL
    beacon = BEACON_CURRENT * schedule.beacon
    return {
        "transmitter": np.where(schedule.downlink, DOWNLINK_CURRENT, beacon),
        "payload": np.where(schedule.payload, PAYLOAD_CURRENT, 0.0),
        "wheel": at_rest + at_speed * speed + per_torque * np.abs(motion.wheel_torque),
        "torquers": TORQUER_CURRENT * np.abs(motion.command).sum(axis=1),
        "processor": schedule.processor,
    }


def balance(available: FloatArray, load: FloatArray, step: float) -> Supply:
    """Return how the battery evens out panels and loads (A); a full one throttles panels."""
    capacity = BATTERY_CAPACITY * 3600  # A s
    given = REGULATOR * available.sum(axis=1)
    charge = BATTERY_FIRST
    record = []
    for supply, demand in zip(given.tolist(), load.tolist(), strict=True):
        room = 1 - charge
        # The second bound only matters for steps so long that one could overcharge.
        limit = min(CHARGE_CURRENT * min(room / CHARGE_TAPER, 1.0), room * capacity / step)
        current = max(min(supply - demand, limit), -charge * capacity / step)
        record.append((current, charge))
        charge += current * step / capacity
    battery, state = np.array(record).T
    # In the dark nothing is given, and nothing needs throttling.
    used = np.minimum((load + battery) / np.where(given > 0, given, 1.0), 1.0)
    empty, more = BATTERY_VOLTAGE
    return Supply(
        panels=available * used[:, np.newaxis],
        battery=battery,
        charge=state,
        voltage=empty + more * state,
    )


@dataclass(frozen=True, eq=False)
class Onboard:
    """Currents in A by the names of LOOPS, temperatures in °C by channel, and the power supply."""

    currents: dict[str, FloatArray]
    temperatures: dict[str, FloatArray]
    supply: Supply


def fly_onboard(
    sun: FloatArray, sunlit: FloatArray, schedule: Schedule, motion: Motion, step: float
) -> Onboard:
    """Return currents, temperatures and battery; ``sun`` is its direction in body axes."""
    # Cosines to the Sun of +X, -X, +Y, -Y and of the two-sided wing; the boom is turned as that is.
    x, y, _ = sun.T
    facing = np.column_stack([np.maximum(side, 0) for side in (x, -x, y, -y)] + [np.abs(y)])
    drawn = loads(schedule, motion)
    load = np.asarray(sum(drawn.values()))
    inside = keep_warm(load, sunlit, step)
    panels, boom = outer_temperatures(facing, sunlit, step)
    amplifier = inside.temperature + AMPLIFIER_BALANCE * drawn["transmitter"]
    full = np.array([PANEL_CURRENT] * 4 + [WING_CURRENT])
    warmth = np.column_stack([panels, boom]) - PANEL_REFERENCE
    available = full * ((facing + ALBEDO) * sunlit[:, np.newaxis]) * (1 + PANEL_DRIFT * warmth)
    bus = load + inside.heater
    supply = balance(available, bus, step)
    currents = {
        **dict(zip((*PANELS, "wing"), supply.panels.T, strict=True)),
        "battery": supply.battery,
        "bus": bus,
        "heater": inside.heater,
        **{name: drawn[name] for name in ("transmitter", "payload", "wheel")},
    }
    temperatures = {
        **dict(zip(PANELS, panels.T, strict=True)),
        "interior": inside.temperature,
        "battery": inside.battery,
        "amplifier": lagged(amplifier, AMPLIFIER_LAG, step, FIRST_TEMPERATURES["amplifier"]),
        "boom": boom,
    }
    return Onboard(currents, temperatures, supply)


_NT = 1e9 * 1e-7  # μ0/4π in nT m/A: 1e-7 T m/A


def wire_field(start: ArrayLike, end: ArrayLike, point: ArrayLike) -> FloatArray:
    """Return the field in nT/A of a straight wire at a point, by Biot and Savart's law, shape (3,).

    With a and b from the wire's ends (in m; current flows from start to end) to the point, B =
    μ0/4π · (|a|+|b|) / (|a||b|(|a||b|+a·b)) · a×b, which has no cancellation beside the wire.
    """
    a, b = np.subtract(point, start), np.subtract(point, end)
    length_a, length_b = np.linalg.norm(a), np.linalg.norm(b)
    both = length_a * length_b
    return np.asarray(_NT * (length_a + length_b) / (both * (both + a @ b)) * np.cross(a, b))


def rectangle_field(
    centre: ArrayLike, edge: ArrayLike, other: ArrayLike, point: ArrayLike
) -> FloatArray:
    """Return the field in nT/A at a point (m) of a current round a rectangle."""
    middle, u, v = np.asarray(centre), np.asarray(edge), np.asarray(other)
    corners = [middle + u + v, middle - u + v, middle - u - v, middle + u - v]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return np.asarray(np.sum([wire_field(*side, point) for side in sides], axis=0))


def dipole_field(moment: ArrayLike, offset: ArrayLike) -> FloatArray:
    """Return the field in nT of a dipole in A m², at an offset in m from it, shape (3,)."""
    distance = np.linalg.norm(offset)
    towards = np.asarray(offset) / distance
    return np.asarray(_NT * (3 * towards * (towards @ moment) - moment) / distance**3)


@cache
def loop_coupling() -> FloatArray:
    """Return nT/A at each sensor of each loop, in the order of LOOPS, shape (loops, sensors, 3)."""
    sensors, loops = SENSORS.values(), LOOPS.values()
    return frozen(np.array([[rectangle_field(*loop, at) for at in sensors] for loop in loops]))


@cache
def torquer_coupling() -> FloatArray:
    """Return nT per A m² at each sensor of each torquer, shape (3, sensors, 3)."""
    sensors, axes = SENSORS.values(), zip(np.eye(3), TORQUERS.values(), strict=True)
    return frozen(
        np.array([[dipole_field(m, np.subtract(s, p)) for s in sensors] for m, p in axes])
    )


@cache
def rotor_coupling() -> FloatArray:
    """Return nT per A m² at each sensor of the rotor's moment along x and z, (2, sensors, 3)."""
    offsets = [np.subtract(at, ROTOR) for at in SENSORS.values()]
    return frozen(np.array([[dipole_field(m, o) for o in offsets] for m in np.eye(3)[[0, 2]]]))


_PHASES = 64  # of the rotor, over which expected errors are averaged


@dataclass(frozen=True)
class Sources:
    """Factors of the four sources of error besides currents and torquers; 0 leaves one out."""

    noise: float = 1.0
    rotor: float = 1.0
    gain: float = 1.0
    drift: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = checks.at_least(name, getattr(self, name), 0, "a factor")
            checks.settle(self, **{name: value})


def interference(currents: FloatArray, motion: Motion) -> FloatArray:
    """Return the field of currents (A) and torquers at each sensor, nT, shape (n, sensors, 3)."""
    moments = motion.remanence + LEAKAGE * motion.command
    own = np.tensordot(currents, loop_coupling(), axes=1)
    return np.asarray(own + np.tensordot(moments, torquer_coupling(), axes=1))


def rotor_field(motion: Motion, phase: FloatArray | float) -> FloatArray:
    """Return the field of the wheel's rotor at a phase (rad), nT, shape (n, sensors, 3)."""
    # A reading averages over some 20 ms, in which a fast rotor's field cancels.
    frequency = np.abs(motion.wheel) / WHEEL_FULL * WHEEL_FULL_RPM / 60
    left = ROTOR_DIPOLE / np.sqrt(1 + (frequency / ROTOR_BANDWIDTH) ** 2)
    moment = np.column_stack([left * np.cos(phase), left * np.sin(phase)])
    return np.asarray(np.tensordot(moment, rotor_coupling(), axes=1))


def hard_iron() -> FloatArray:
    """Return what ground calibration subtracts from each sensor's reading, nT, (sensors, 3)."""
    usual = [CALIBRATION_CURRENTS[name] for name in LOOPS]
    return np.asarray(np.tensordot(usual, loop_coupling(), axes=1))


@dataclass(frozen=True, eq=False)
class Sensors:
    field: FloatArray  # the Earth's in body axes, nT, shape (n, 3)
    own: FloatArray  # of currents and torquers at each sensor, nT, shape (n, sensors, 3)
    temperatures: FloatArray  # each sensor's, °C
    motion: Motion
    sources: Sources = Sources()

    def errors(self, phase: FloatArray | float) -> FloatArray:
        """Return each reading minus the Earth's field before white noise, nT, (n, sensors, 3)."""
        own = self.own + self.sources.rotor * rotor_field(self.motion, phase)
        gain = self.sources.gain * 1e-3 * np.array(GAIN_ERRORS)
        distorted = np.einsum("sij,nsj->nsi", gain, self.field[:, np.newaxis] + own)
        warmth = self.temperatures - np.array(CALIBRATION_TEMPERATURES)
        drift = self.sources.drift * warmth[:, :, np.newaxis] * np.array(DRIFT)
        return np.asarray(own - hard_iron() + distorted + drift)

    @property
    def _noise(self) -> FloatArray:
        return self.sources.noise * np.array(NOISE)

    def readings(self, phase: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the errors of one reading per row, nT, shape (n, sensors, 3)."""
        noise = rng.standard_normal(self.own.shape) * self._noise[:, np.newaxis]
        return self.errors(phase) + noise

    def expected(self) -> FloatArray:
        """Return each error's expected length over noise and rotor phase, nT, (n, sensors)."""
        phases = 2 * np.pi * np.arange(_PHASES if self.sources.rotor else 1) / _PHASES
        lengths = [expected_length(self.errors(phase), self._noise) for phase in phases]
        return np.asarray(np.mean(lengths, axis=0))


def expected_length(offset: FloatArray, noise: ArrayLike) -> FloatArray:
    """Return the expected length of vectors in space with white noise added to every axis."""
    # With z standard normal and r = |offset| / noise, E|offset + noise·z| / noise is
    # √(2/π)·exp(−r²/2) + (r + 1/r)·erf(r/√2), the mean of a noncentral chi.
    from scipy.special import erf  # slow to load, and few programs need it

    length = np.linalg.norm(offset, axis=-1)
    deviation = np.broadcast_to(np.asarray(noise, dtype=np.float64), length.shape)
    ratio = np.divide(length, deviation, out=np.ones_like(length), where=deviation > 0)
    ratio = np.maximum(ratio, 1e-8)  # where the second term is 2/√(2π) to the last digit
    chi = np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    chi += (ratio + 1 / ratio) * erf(ratio / np.sqrt(2))
    return np.asarray(np.where(deviation > 0, deviation * chi, length))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Flight(Problem):
    """A problem along an orbit, in parts of which the field is known and feedback available.

    Parameters
    ----------
    name, contexts, rewards, arms, ordered, columns, observations, schema
        As of ``Problem``.
    time
        s since the start, one entry per row.
    sunlit
        Visible fraction of the Sun's disc: 0 in eclipse, 1 outside, between them in penumbra.
    dipole_latitude
        Degrees from the geomagnetic equator.
    known
        Whether the field is known well enough to say how wrong a sensor is.
    orbit_phase
        Fraction of the orbit since the ascending node, from 0 to below 1.
    orbit_number
        0, 1, ...: how often the ascending node was passed since the start.

    See Also
    --------
    experiments.fly : Flies it.

    Examples
    --------
    >>> flight = cg.problems.Spacecraft().sample(100, seed=0)
    >>> flight.known.shape, flight.time.shape
    ((100,), (100,))
    """

    time: FloatArray
    sunlit: FloatArray
    dipole_latitude: FloatArray
    known: NDArray[np.bool_]
    orbit_phase: FloatArray
    orbit_number: IntArray

    _facts: ClassVar[Mapping[str, Any]] = {
        "time": np.float64,
        "sunlit": np.float64,
        "dipole_latitude": np.float64,
        "known": np.bool_,
        "orbit_phase": np.float64,
        "orbit_number": np.intp,
    }


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated flight, one entry per time step."""

    orbit: Orbit
    motion: Motion
    onboard: Onboard
    telemetry: FloatArray  # digitised channels in the order of CHANNELS
    errors: FloatArray  # readings minus the Earth's field, nT in body axes, (n, sensors, 3)
    expected: FloatArray  # their mean length over noise and rotor phase, (n, sensors)


def simulate(
    tle: tuple[str, str],
    n: int,
    step: float,
    seed: Any = None,
    sources: Sources = Sources(),  # immutable
) -> Simulation:
    """Return a flight; ``sources`` change nothing but the sensors' errors."""
    children = np.random.default_rng(seed).spawn(5)
    for_schedule, for_attitude, for_rotor, for_sensors, for_field = children
    orbit = propagate(tle, n, step)
    schedule = draw_schedule(orbit.latitude, orbit.elevation, step, for_schedule)
    motion = tumble(orbit, schedule, step, for_attitude)
    sun, field = (rows_to_body(motion.quaternion, each) for each in (orbit.sun, orbit.field))
    onboard = fly_onboard(sun, orbit.sunlit, schedule, motion, step)
    measured = field + for_field.normal(0, FIELD_NOISE, field.shape)
    phase = for_rotor.uniform(0, 2 * np.pi, n)
    currents = np.column_stack([onboard.currents[name] for name in LOOPS])
    warm = onboard.temperatures
    top = warm["interior"] + AMPLIFIER_SHARE * (warm["amplifier"] - warm["interior"])
    at_sensors = np.column_stack([top, warm["battery"], warm["boom"]])  # in the order of SENSORS
    own = interference(currents, motion)
    sensors = Sensors(field, own, at_sensors, motion, sources)
    return Simulation(
        orbit=orbit,
        motion=motion,
        onboard=onboard,
        telemetry=_telemetry(onboard, motion, measured),
        errors=sensors.readings(phase, for_sensors),
        expected=sensors.expected(),
    )


def _telemetry(onboard: Onboard, motion: Motion, field: FloatArray) -> FloatArray:
    """Return the channels as columns, in the order of CHANNELS, rounded to their resolutions."""
    values = {
        **{f"{name} current": values for name, values in onboard.currents.items()},
        **{f"{name} temperature": values for name, values in onboard.temperatures.items()},
        "wheel speed": motion.wheel / WHEEL_FULL * WHEEL_FULL_RPM,
        "battery voltage": onboard.supply.voltage,
    }
    for axis, moment, along in zip("XYZ", motion.command.T, field.T, strict=True):
        values |= {f"torquer {axis} moment": moment, f"field {axis}": along}
    exact = np.column_stack([values[channel.name] for channel in CHANNELS])
    resolution = np.array([channel.resolution for channel in CHANNELS])
    # Adding zero turns -0 into 0.
    return np.asarray(np.round(exact / resolution) * resolution + 0.0)


_ROWS = 6000  # the paper's 1000 + 1000 held out and 3000 + 950, and more: 10 orbits at 10 s


@dataclass(frozen=True)
class Spacecraft(Maker):
    """A 3U CubeSat with three magnetometers: trusting a sensor pays −|its error| / 100 nT.

    A context is a frame of telemetry: currents, torquer moments, wheel speed, temperatures,
    battery voltage and the Earth's field in body axes as a coarse on-board magnetometer reads it.
    A learner observes the reward of one reading; regret is measured against the reward that is
    expected over the sensors' white noise and the phase of the wheel's rotor.

    Parameters
    ----------
    known_below
        Degrees of dipole latitude, either side of the geomagnetic equator, below which the
        Earth's field is known; nearer the poles, auroral currents make it uncertain.
    tle
        The orbit as two-line elements; the flight starts at their epoch. GRIFEX's by default.
    scale
        Whether to give each channel mean 0 and standard deviation 1 over the whole flight
        (constant channels become 0), which suits kernels with one bandwidth for all channels.
        The columns then have no units.
    noise, rotor, gain, drift
        Factors of the sensors' white noise, of the rotor's dipole (whose phase no channel shows),
        of scale and misalignment errors and of temperature drift; 0 leaves a source out.
    telemetry
        The channels of a context: ``"all"``, ``"currents"``, or a list of their names without
        units, such as ``["bus current", "wheel speed"]``.

    Examples
    --------
    >>> flight = Spacecraft().sample(100, seed=0)
    >>> flight
    Flight('spacecraft': 100 rows, 27 numbers per context, 3 arms (top deck, bottom deck, boom),
    in time order, observations differ from rewards)
    >>> Spacecraft(noise=0, rotor=0, telemetry="currents").sample(100, seed=0).dimension
    11
    """

    _: KW_ONLY
    known_below: float = 55.0
    tle: tuple[str, str] = TLE
    scale: bool = False
    noise: float = 1.0
    rotor: float = 1.0
    gain: float = 1.0
    drift: float = 1.0
    telemetry: str | Sequence[str] = "all"

    def __post_init__(self) -> None:
        limit = checks.real("known_below", self.known_below, "degrees of dipole latitude")
        if not 0 < limit <= 90:
            raise ValueError(f"known_below must be degrees above 0, at most 90, got {limit:g}")
        checks.settle(self, known_below=limit, tle=_read_tle(self.tle), **vars(self._sources))
        if not isinstance(self.telemetry, str):
            checks.settle(self, telemetry=tuple(self.telemetry))
        self._channels  # noqa: B018  # unknown ones are errors here, not when sampling

    @property
    def _sources(self) -> Sources:
        return Sources(self.noise, self.rotor, self.gain, self.drift)

    @property
    def _channels(self) -> list[int]:
        return chosen_channels(self.telemetry)

    def sample(self, n: int | None = None, seed: Any = None, step: float = 10.0) -> Flight:
        """Return ``n`` frames of telemetry in time order, ``step`` seconds apart.

        By default there are 6000, which at 10 s are about 10 orbits. The seed fixes schedule,
        attitude and noise; the orbit is always the same. A longer flight begins with the shorter
        one from the same seed.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        step = checks.positive("step", step, "seconds between frames; 1 to 60 are usual")
        flown = simulate(self.tle, size, step, seed, self._sources)
        channels = flown.telemetry[:, self._channels]
        chosen = [CHANNELS[place] for place in self._channels]
        rewards = observed = -flown.expected / REWARD_UNIT
        if self.noise > 0 or self.rotor > 0:
            observed = -np.linalg.norm(flown.errors, axis=2) / REWARD_UNIT
        return Flight(
            name="spacecraft",
            contexts=standardised(channels) if self.scale else channels,
            rewards=rewards,
            observations=observed,
            arms=tuple(SENSORS),
            ordered=True,
            columns=tuple(each.name if self.scale else each.column for each in chosen),
            time=flown.orbit.time,
            sunlit=flown.orbit.sunlit,
            dipole_latitude=flown.orbit.dipole_latitude,
            known=np.abs(flown.orbit.dipole_latitude) < self.known_below,
            orbit_phase=flown.orbit.phase,
            orbit_number=flown.orbit.number,
        )


def _read_tle(tle: Any) -> tuple[str, str]:
    lines = tle if isinstance(tle, tuple | list) else (tle,)
    if len(lines) != 2 or not all(isinstance(line, str) for line in lines):
        raise TypeError(f"tle must be the two lines of orbital elements, got {tle!r}")
    lines = [line.rstrip() for line in lines]
    for number, line in zip("12", lines, strict=True):
        if len(line) != 69 or not line.startswith(f"{number} "):
            raise ValueError(
                f"line {number} of tle must start with {number!r} and have 69 characters, "
                f"got {line!r}"
            )
    first, second = lines
    return first, second


@dataclass(frozen=True)
class MagnetometerBench(Maker):
    """Three fixed magnetometers among eleven current loops: trusting one pays −|its error| in nT.

    A context is the current through each loop, as telemetry reports it; nothing else makes a
    sensor err but a little noise. Solar panels are driven as by a Sun that moves about a turning
    satellite and sets, loads are switched by a random schedule, and battery, heater and wheel
    follow. The Earth's field is taken off. The paper's laboratory data were never published; this
    is an open stand-in for them, and needs no extra.

    .. versionadded:: 0.3

    Parameters
    ----------
    noise
        Standard deviation in nT, per axis, of the noise in a reading. Regret is measured against
        expected rewards.
    sequence
        Whether to return rows in time order, as recorded. By default they are operating states in
        random order.

    Examples
    --------
    >>> MagnetometerBench().sample(100, seed=0)
    Problem('bench': 100 rows, 11 numbers per context, 3 arms (top deck, bottom deck, boom),
    observations differ from rewards)
    """

    _: KW_ONLY
    noise: float = BENCH_NOISE
    sequence: bool = False

    def __post_init__(self) -> None:
        noise = checks.at_least("noise", self.noise, 0, "a standard deviation in nT")
        checks.settle(self, noise=noise)

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` operating states, 6000 by default, in random order or as recorded.

        States in random order are drawn from a run of 6000 rows, or more if more are asked for. A
        longer recorded run begins with the shorter one of the same seed.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        for_run, for_order, for_noise = np.random.default_rng(seed).spawn(3)
        currents = _recorded(size if self.sequence else max(size, _ROWS), for_run)
        if not self.sequence:
            currents = currents[for_order.permutation(len(currents))[:size]]
        offsets = np.tensordot(currents, loop_coupling(), axes=1) - hard_iron()
        rewards = -expected_length(offsets, self.noise)
        read = offsets + for_noise.normal(0, self.noise, offsets.shape)
        resolution = BENCH_RESOLUTION
        return Problem(
            name="bench",
            contexts=np.round(currents / resolution) * resolution + 0.0,
            rewards=rewards,
            observations=-np.linalg.norm(read, axis=2) if self.noise else rewards,
            arms=tuple(SENSORS),
            ordered=self.sequence,
            columns=tuple(f"{name} current [A]" for name in LOOPS),
        )


def _recorded(n: int, rng: np.random.Generator) -> FloatArray:
    """Return the loops' currents in A along a run, in the order of LOOPS, shape (n, loops)."""
    step = BENCH_STEP
    for_schedule, for_sun = rng.spawn(2)
    time = step * np.arange(n)
    orbit = time / BENCH_ORBIT  # in orbits since the start
    latitude = BENCH_LATITUDE * np.sin(2 * np.pi * orbit)
    passing = (np.floor(orbit) % BENCH_PASSES == 0) & (orbit % 1 < BENCH_PASS)
    schedule = draw_schedule(latitude, np.where(passing, 90.0, -90.0), step, for_schedule)
    turn, nod = 2 * np.pi * (for_sun.random(2) + np.outer(time, [1 / t for t in BENCH_TURNS])).T
    height = np.radians(BENCH_NOD) * np.sin(nod)
    level = np.cos(height)
    sun = np.column_stack([level * np.cos(turn), level * np.sin(turn), np.sin(height)])
    sunlit = (orbit % 1 >= BENCH_ECLIPSE).astype(float)
    motion = _at_rest(schedule.wheel_target, step)
    onboard = fly_onboard(sun, sunlit, schedule, motion, step)
    return np.column_stack([onboard.currents[name] for name in LOOPS])


def _at_rest(target: FloatArray, step: float) -> Motion:
    """Return a satellite that stands still while its wheel follows set-points (N m s)."""
    n = len(target)
    follow = accumulate(
        target[:-1].tolist(),
        lambda wheel, aim: wheel + step * wheel_torque(wheel, aim),
        initial=WHEEL_FIRST,
    )
    wheel = np.array(list(follow))
    torque = np.array([wheel_torque(*pair) for pair in zip(wheel, target, strict=True)])
    nothing = np.zeros((n, 3))
    still = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
    return Motion(still, nothing, wheel, torque, command=nothing, remanence=nothing)
