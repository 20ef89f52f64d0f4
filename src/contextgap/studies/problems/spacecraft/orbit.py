"""The orbit, and everything that follows from where the spacecraft is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.names import study_import
from contextgap.studies.problems.spacecraft import earth
from contextgap.studies.problems.spacecraft.constants import DAY, GROUND_STATION, J2000
from contextgap.studies.problems.spacecraft.sun import sun_direction, visible_sun


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
    """Return ``n`` steps, ``step`` seconds apart, of the orbit that starts at the epoch of ``tle``.

    ``tle`` is the two lines of orbital elements.
    """
    time = step * np.arange(n, dtype=np.float64)
    position, velocity, epoch = _sgp4(tle, time)
    days = epoch + time / DAY
    # From days to a date: J2000 is noon of 1 January 2000.
    date = datetime(2000, 1, 1, 12) + timedelta(days=epoch)
    sidereal = earth.sidereal_angle(days)
    fixed = earth.turned(position, -sidereal)
    direction = fixed / np.linalg.norm(fixed, axis=1, keepdims=True)
    sun = sun_direction(days)
    phase, number = _phase(position, velocity)
    return Orbit(
        time=time,
        position=position,
        field=earth.turned(earth.field(fixed, date), sidereal),
        sun=sun,
        sunlit=visible_sun(position, sun),
        latitude=np.degrees(np.arcsin(direction[:, 2])),
        dipole_latitude=np.degrees(np.arcsin(direction @ earth.dipole_axis(date))),
        elevation=earth.elevation(fixed, *GROUND_STATION),
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
