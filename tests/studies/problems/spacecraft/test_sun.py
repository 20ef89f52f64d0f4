from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from contextgap.studies.problems.spacecraft import (
    EARTH_RADIUS,
    SUN_ANGULAR_RADIUS,
    sun_direction,
    visible_sun,
)


def days(*date):
    return (datetime(*date) - datetime(2000, 1, 1, 12)).total_seconds() / 86400


def kepler(day):
    """The Sun from an ellipse (elements: Meeus, chapter 25), with Kepler's equation solved."""
    century = day / 36525
    eccentricity = 0.016708634 - 0.000042037 * century
    anomaly = np.radians(357.52911 + 35999.05029 * century)
    perihelion = np.radians(280.46646 + 36000.76983 * century) - anomaly
    eccentric = anomaly
    for _ in range(20):
        eccentric = anomaly + eccentricity * np.sin(eccentric)
    ratio = np.sqrt((1 + eccentricity) / (1 - eccentricity))
    longitude = perihelion + 2 * np.arctan(ratio * np.tan(eccentric / 2))
    tilt = np.radians(23.43929 - 0.0130042 * century)
    return np.array(
        [
            np.cos(longitude),
            np.cos(tilt) * np.sin(longitude),
            np.sin(tilt) * np.sin(longitude),
        ]
    )


@pytest.mark.parametrize("day", np.linspace(-3650, 9500, 25))
def test_direction_agrees_with_an_ellipse(day):
    ours = sun_direction(np.array([day]))[0]
    assert np.linalg.norm(ours) == pytest.approx(1)
    assert np.degrees(np.linalg.norm(ours - kepler(day))) < 0.015


def test_direction_at_equinoxes_and_solstices():
    moments = [(2015, 3, 20, 22, 45), (2015, 6, 21, 16, 38), (2015, 9, 23, 8, 21)]
    spring, summer, autumn = sun_direction(np.array([days(*moment) for moment in moments]))
    assert spring == pytest.approx([1, 0, 0], abs=4e-4)
    assert summer == pytest.approx([0, 0.91748, 0.39778], abs=4e-4)
    assert autumn == pytest.approx([-1, 0, 0], abs=4e-4)


def test_eclipse_of_a_circular_orbit_is_as_long_as_geometry_says():
    radius = 6900.0
    angle = np.linspace(0, 2 * np.pi, 200_001)[:-1]
    position = radius * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    lit = visible_sun(position, np.broadcast_to([1.0, 0, 0], position.shape))
    # Half the Sun's disc vanishes where the limb's angle is asin(R/r): a cylinder's shadow.
    assert 1 - lit.mean() == pytest.approx(np.arcsin(EARTH_RADIUS / radius) / np.pi, abs=1e-4)
    assert lit[0] == 1
    assert lit[100_000] == 0
    penumbra = np.mean((lit > 0) & (lit < 1))
    assert penumbra == pytest.approx(2 * 2 * SUN_ANGULAR_RADIUS / 360, rel=0.01)


def test_half_the_sun_is_visible_when_its_centre_is_on_the_limb():
    distance, limb = 7000.0, np.arcsin(EARTH_RADIUS / 7000.0)
    sun = np.array([[-np.cos(limb), np.sin(limb), 0.0]])
    assert visible_sun(np.array([[distance, 0, 0]]), sun) == pytest.approx([0.5])
