"""The turning Earth: its angle, its magnetic field, and a station on it."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.names import study_import
from contextgap.studies.problems.spacecraft.constants import EARTH_RADIUS, IGRF_RADIUS

_BLOCK = 4096  # rows per call of IGRF, whose temporaries take some 10 kB per row


def sidereal_angle(days: FloatArray) -> FloatArray:
    """Return Greenwich mean sidereal time in radians (Meeus, Astronomical Algorithms, 12.4).

    ``days`` are days of universal time since J2000.
    """
    angle: FloatArray = np.radians((280.46061837 + 360.98564736629 * days) % 360)
    return angle


def turned(vectors: FloatArray, angle: FloatArray) -> FloatArray:
    """Return vectors of shape (n, 3), each turned about the z axis by its angle in radians."""
    x, y, z = vectors.T
    cos, sin = np.cos(angle), np.sin(angle)
    return np.column_stack([cos * x - sin * y, sin * x + cos * y, z])


def field(position: FloatArray, date: datetime) -> FloatArray:
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
    """Return the angle in degrees of positions above a station's horizon, shape (n,).

    Positions are Earth-fixed, in km; latitude and longitude are in degrees north and east. The
    Earth is taken as a sphere.
    """
    north, east = np.radians(latitude), np.radians(longitude)
    up = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    sight = position - EARTH_RADIUS * up
    angle: FloatArray = np.degrees(np.arcsin(sight @ up / np.linalg.norm(sight, axis=1)))
    return angle
