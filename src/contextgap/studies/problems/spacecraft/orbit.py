"""The orbit, and everything that follows from where the spacecraft is: Sun, field, station."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.names import study_import
from contextgap.studies.problems.spacecraft.constants import (
    DAY,
    EARTH_RADIUS,
    GROUND_STATION,
    IGRF_RADIUS,
    J2000,
    SUN_ANGULAR_RADIUS,
)


def sun_direction(days: FloatArray) -> FloatArray:
    """Return the unit vector to the Sun in the mean equator and equinox of date, shape (n, 3).

    This is the low-precision formula of the Astronomical Almanac, good to 0.01° from 1950 to 2050;
    ``days`` are days since J2000.
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
    limb = np.degrees(np.arcsin(EARTH_RADIUS / distance))
    # The Earth looks 250 times as wide as the Sun: its limb is nearly straight, and what it leaves
    # of the disc a circular segment.
    height = np.clip((from_nadir - limb) / SUN_ANGULAR_RADIUS, -1, 1)
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
        IGRF_RADIUS, 90.0, np.array([0.0, 90.0]), date, max_degree=1
    )
    (g11, h11), g10 = radial.ravel() / 2, south.ravel()[0]
    moment = -np.array([g11, h11, g10])
    axis: FloatArray = moment / np.linalg.norm(moment)
    return axis


def elevation(position: FloatArray, latitude: float, longitude: float) -> FloatArray:
    """Return the angle in degrees of Earth-fixed positions (km) above a station's horizon."""
    north, east = np.radians(latitude), np.radians(longitude)
    up = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    sight = position - EARTH_RADIUS * up
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
