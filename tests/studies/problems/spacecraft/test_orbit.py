from __future__ import annotations

import sys

import numpy as np
import pytest

from contextgap.studies.problems.spacecraft import TLE, propagate


def test_period_and_heights_are_those_of_the_elements(flown):
    orbit = flown.orbit
    turns = orbit.number + orbit.phase
    period = np.ptp(orbit.time) / np.ptp(turns)
    assert period == pytest.approx(86400 / 15.07659299, abs=10)
    semi_major = (398600.4418 * (86400 / 15.07659299 / (2 * np.pi)) ** 2) ** (1 / 3)
    distance = np.linalg.norm(orbit.position, axis=1)
    # The Earth's oblateness moves both by some 10 km.
    assert distance.min() == pytest.approx(semi_major * (1 - 0.0157088), abs=15)
    assert distance.max() == pytest.approx(semi_major * (1 + 0.0157088), abs=15)
    assert np.abs(orbit.latitude).max() == pytest.approx(180 - 99.1124, abs=0.2)


def test_phase_counts_from_the_ascending_node(flown):
    orbit = flown.orbit
    turns = orbit.number + orbit.phase
    assert np.all(np.diff(turns) > 0)
    assert orbit.phase.min() >= 0
    assert orbit.phase.max() < 1
    assert orbit.number[0] == 0
    north = orbit.position[:, 2] > 0
    np.testing.assert_array_equal(north[1:], orbit.phase[1:] < 0.5)


def test_eclipses_take_about_a_third(flown):
    assert 0.55 < flown.orbit.sunlit.mean() < 0.8
    assert flown.orbit.sunlit.min() == 0
    assert flown.orbit.sunlit.max() == 1


def test_the_ground_station_sees_few_minutes_at_a_time():
    orbit = propagate(TLE, 8640, 10.0)
    seen = orbit.elevation > 0
    passes = np.flatnonzero(np.diff(seen.astype(int)) == 1)
    assert 3 <= len(passes) <= 8
    assert seen.sum() * 10 / len(passes) < 15 * 60


def test_an_orbit_that_fails_is_named():
    low = TLE[1].replace("15.0765", "19.0765")
    with pytest.raises(
        ValueError, match=r"tle must be an orbit that lasts.*fails after 0 s.*decay"
    ):
        propagate((TLE[0], low), 3, 10.0)
    with pytest.raises(ValueError, match="its elements are not numbers"):
        propagate((TLE[0].replace("15243", "15xyz"), TLE[1]), 3, 10.0)


@pytest.mark.parametrize("package", ["sgp4", "ppigrf"])
def test_a_missing_package_names_the_extra(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "sgp4.api", raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}.*contextgap\[spacecraft\]"):
        propagate(TLE, 3, 10.0)
