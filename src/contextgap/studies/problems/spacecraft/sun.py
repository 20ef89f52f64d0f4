"""Where the Sun is, and how much of it the Earth leaves visible."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft.constants import EARTH_RADIUS, SUN_ANGULAR_RADIUS


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
    """Return the fraction of the Sun's disc that the Earth does not cover, shape (n,).

    Positions are in km, shape (n, 3); ``sun`` is the unit vector to the Sun.
    """
    distance = np.linalg.norm(position, axis=1)
    from_nadir = np.degrees(np.arccos(np.clip(-(position * sun).sum(axis=1) / distance, -1, 1)))
    limb = np.degrees(np.arcsin(EARTH_RADIUS / distance))
    # The Earth looks 250 times as wide as the Sun: its limb is nearly straight, and what it leaves
    # of the disc a circular segment.
    height = np.clip((from_nadir - limb) / SUN_ANGULAR_RADIUS, -1, 1)
    fraction: FloatArray = (np.arccos(-height) + height * np.sqrt(1 - height**2)) / np.pi
    return fraction
