from __future__ import annotations

from datetime import datetime

import numpy as np
import ppigrf
import pytest
from sgp4.propagation import gstime

from contextgap.studies.problems import spacecraft as earth
from contextgap.studies.problems.spacecraft import EARTH_RADIUS, J2000

DATE = datetime(2015, 8, 31, 10)


def from_geodetic(latitude, longitude, height):
    """WGS84 position in km and the local east, north and up."""
    north, east = np.radians(latitude), np.radians(longitude)
    up = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    squash = 0.00669437999014
    normal = 6378.137 / np.sqrt(1 - squash * np.sin(north) ** 2)
    position = (normal + height) * up - [0, 0, squash * normal * np.sin(north)]
    to_east = np.array([-np.sin(east), np.cos(east), 0])
    return position, to_east, np.cross(up, to_east), up


def test_sidereal_time_of_meeus_example_12a():
    # 10 April 1987, 0 h UT: 13 h 10 m 46.3668 s
    angle = earth.sidereal_angle(np.array([2446895.5 - J2000]))
    seconds = 13 * 3600 + 10 * 60 + 46.3668
    assert np.degrees(angle) == pytest.approx([seconds / 240], abs=1e-4)


def test_sidereal_time_agrees_with_sgp4():
    for date in (2451545.0, 2457265.92702278, 2460000.25):
        assert earth.sidereal_angle(np.array([date - J2000])) == pytest.approx(
            [gstime(date)], abs=1e-5
        )


@pytest.mark.parametrize(
    ("latitude", "longitude", "height"),
    [(42.3, -83.7, 500), (-33, 151, 400), (75, 20, 650), (0.5, 179.9, 600), (-80, -60, 450)],
)
def test_field_agrees_with_the_geodetic_interface(latitude, longitude, height):
    position, east, north, up = from_geodetic(latitude, longitude, height)
    ours = earth.earth_field(position[np.newaxis], DATE)[0]
    wanted = np.array(ppigrf.igrf(longitude, latitude, height, DATE)).ravel()
    assert [ours @ east, ours @ north, ours @ up] == pytest.approx(wanted, abs=0.5)


def test_field_is_roughly_a_dipoles(flown):
    height = (6371.2 / np.linalg.norm(flown.orbit.position, axis=1)) ** 3
    dipole = 29_900 * height * np.sqrt(1 + 3 * np.sin(np.radians(flown.orbit.dipole_latitude)) ** 2)
    ratio = np.linalg.norm(flown.orbit.field, axis=1) / dipole
    assert ratio.min() > 0.6
    assert ratio.max() < 1.45
    assert np.median(ratio) == pytest.approx(1, abs=0.1)


def test_field_is_the_same_in_one_call_as_in_many():
    points = 6900 * np.array([[1, 0, 0.1], [0, 1, 0.5], [0.3, -0.5, -0.8]])
    many = earth.earth_field(np.tile(points, (1500, 1)), DATE)
    np.testing.assert_allclose(many[-3:], earth.earth_field(points, DATE), rtol=1e-12)


def test_the_geomagnetic_pole_of_2015():
    # WDC Kyoto: 80.3° N, 72.6° W; from the definitive g10, g11, h11 of 2015.0 to two digits
    x, y, z = earth.dipole_axis(datetime(2015, 1, 1))
    assert np.degrees(np.arcsin(z)) == pytest.approx(80.31, abs=0.01)
    assert np.degrees(np.arctan2(y, x)) == pytest.approx(-72.61, abs=0.02)


def test_elevation_overhead_and_on_the_horizon():
    up = np.array([0.0, 1.0, 0.0])
    overhead, level = 7000 * up, EARTH_RADIUS * up + [300.0, 0, 400.0]
    angles = earth.elevation(np.array([overhead, level, -overhead]), latitude=0, longitude=90)
    assert angles == pytest.approx([90, 0, -90], abs=1e-5)


def test_turning_there_and_back(rng):
    vectors, angle = rng.normal(size=(9, 3)), rng.normal(size=9)
    back = earth.turned(earth.turned(vectors, angle), -angle)
    np.testing.assert_allclose(back, vectors, atol=1e-12)
    assert earth.turned(np.array([[1.0, 0, 0]]), np.array([np.pi / 2])) == pytest.approx(
        np.array([[0.0, 1, 0]])
    )
