from __future__ import annotations

import numpy as np
import pytest

from contextgap.studies.problems import spacecraft as c
from contextgap.studies.problems.spacecraft import balance


def test_the_battery_stays_between_empty_and_full(flown):
    charge = flown.onboard.supply.charge
    assert charge.min() > 0.2
    assert charge.max() <= 1


def test_charge_is_the_current_summed_up(flown):
    supply = flown.onboard.supply
    gained = np.cumsum(supply.battery[:-1]) * 10 / 3600 / c.BATTERY_CAPACITY
    np.testing.assert_allclose(supply.charge[1:], c.BATTERY_FIRST + gained, atol=1e-12)


def test_currents_balance_at_the_bus(flown):
    onboard = flown.onboard
    given = c.REGULATOR * onboard.supply.panels.sum(axis=1)
    np.testing.assert_allclose(
        given, onboard.currents["bus"] + onboard.currents["battery"], atol=1e-12
    )


def test_in_eclipse_the_battery_carries_the_loads(flown):
    dark = flown.orbit.sunlit == 0
    assert np.all(flown.onboard.supply.panels[dark] == 0)
    np.testing.assert_allclose(
        flown.onboard.currents["battery"][dark], -flown.onboard.currents["bus"][dark]
    )


def test_loads_add_up(flown):
    parts = ("transmitter", "payload", "heater", "wheel")
    rest = flown.onboard.currents["bus"] - sum(flown.onboard.currents[name] for name in parts)
    torquers = c.TORQUER_CURRENT * np.abs(flown.motion.command).sum(axis=1)
    assert np.all(rest - torquers > 0)  # the processor's
    assert (rest - torquers).mean() == pytest.approx(c.PROCESSOR_CURRENT[0], abs=0.03)


@pytest.mark.parametrize("step", [10.0, 600.0])
def test_long_sun_fills_and_long_night_empties(step):
    n = int(40_000 / step)
    full = balance(np.full((n, 5), 0.5), np.full(n, 0.3), step)
    assert 0.99 < full.charge[-1] <= 1
    assert full.battery.max() <= c.CHARGE_CURRENT
    assert full.panels[-1].sum() * c.REGULATOR == pytest.approx(0.3, abs=0.05)  # throttled
    empty = balance(np.zeros((n, 5)), np.full(n, 0.8), step)
    assert empty.charge.min() == pytest.approx(0, abs=1e-12)
    assert empty.charge.min() >= -1e-12
