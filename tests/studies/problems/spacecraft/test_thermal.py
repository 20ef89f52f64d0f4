from __future__ import annotations

import numpy as np
import pytest

from contextgap.studies.problems import spacecraft as c
from contextgap.studies.problems.spacecraft import keep_warm, lagged


def test_a_lag_approaches_its_balance_exponentially():
    time = 10.0 * np.arange(100)
    ours = lagged(np.full(100, 20.0), lag=300.0, step=10.0, first=-10.0)
    np.testing.assert_allclose(ours, 20 - 30 * np.exp(-time / 300))


def test_a_lag_is_the_same_for_any_step():
    fine = lagged(np.full((100, 2), [3.0, 4.0]), lag=50.0, step=1.0, first=0.0)
    coarse = lagged(np.full((10, 2), [3.0, 4.0]), lag=50.0, step=10.0, first=0.0)
    np.testing.assert_allclose(fine[::10], coarse)


def test_the_thermostat_keeps_the_battery_warm_and_has_hysteresis():
    inside = keep_warm(np.full(8000, 0.2), np.full(8000, 0.6), step=10.0)
    on_below, off_above = c.HEATER_RANGE
    assert inside.battery.min() > on_below - 1
    heating = inside.heater > 0
    assert set(inside.heater) == {0.0, c.HEATER_CURRENT}
    assert np.all(heating[inside.battery < on_below])
    assert not np.any(heating[inside.battery > off_above])
    turned_on = np.flatnonzero(np.diff(heating.astype(int)) == 1) + 1
    assert np.all(inside.battery[turned_on] < on_below)


def test_temperatures_are_plausible(flown):
    limits = {"interior": (-5, 20), "battery": (2, 15), "amplifier": (-5, 60), "boom": (-50, 55)}
    for name, values in flown.onboard.temperatures.items():
        lowest, highest = limits.get(name, (-40, 75))
        assert lowest < values.min() < values.max() < highest, name


def test_eclipse_cools_the_panels(flown):
    panel = flown.onboard.temperatures["panel +X"]
    dark = flown.orbit.sunlit == 0
    assert np.all(np.diff(panel)[dark[:-1]] < 0)
    assert panel[dark].mean() == pytest.approx(-25, abs=10)
