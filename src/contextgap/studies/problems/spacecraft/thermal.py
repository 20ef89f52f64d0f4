"""Temperatures: first-order lags towards a balance set by Sun, loads and neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.recursion import fading_sum


@dataclass(frozen=True, eq=False)
class Interior:
    """The inside, where a thermostat keeps the battery warm; temperatures in °C, heater in A."""

    temperature: FloatArray
    battery: FloatArray
    heater: FloatArray


def lagged(balance: FloatArray, lag: float, step: float, first: float) -> FloatArray:
    """Return what follows ``balance``, held over each step, with a first-order lag.

    Lag and step are in seconds; the result starts at ``first``.
    """
    kept = math.exp(-step / lag)
    # Row t follows the balance of the rows before it.
    before = np.concatenate([np.full_like(balance[:1], first), (1 - kept) * balance[:-1]])
    return fading_sum(before, kept)


def panel_temperatures(facing: FloatArray, sunlit: FloatArray, step: float) -> FloatArray:
    """Return the body panels' temperatures, °C, in the shape of ``facing``.

    ``facing`` is the cosine between each panel's normal and the Sun, 0 behind it.
    """
    dark, sun, near = c.PANEL_BALANCE
    balance = dark + (sun * facing + near) * sunlit[:, np.newaxis]
    return lagged(balance, c.PANEL_LAG, step, c.FIRST_TEMPERATURES["panel"])


def boom_temperature(facing: FloatArray, sunlit: FloatArray, step: float) -> FloatArray:
    """Return the temperature of wing and boom, °C.

    ``facing`` is the cosine between the wing's normal, on either side, and the Sun.
    """
    dark, sun, exponent = c.BOOM_BALANCE
    balance = dark + sun * sunlit * facing**exponent
    return lagged(balance, c.BOOM_LAG, step, c.FIRST_TEMPERATURES["boom"])


def amplifier_temperature(interior: FloatArray, transmitter: FloatArray, step: float) -> FloatArray:
    """Return the temperature in °C of the transmitter's power amplifier, whose current is in A."""
    balance = interior + c.AMPLIFIER_BALANCE * transmitter
    return lagged(balance, c.AMPLIFIER_LAG, step, c.FIRST_TEMPERATURES["amplifier"])


def keep_warm(load: FloatArray, sunlit: FloatArray, step: float) -> Interior:
    """Return the interior's and the battery's temperatures and what the thermostat does.

    ``load`` is the sum of all currents but the heater's, in A.
    """
    dark, sun, per_ampere = c.INTERIOR_BALANCE
    below, heated = c.BATTERY_BALANCE
    on_below, off_above = c.HEATER_RANGE
    interior_share = -math.expm1(-step / c.INTERIOR_LAG)
    battery_share = -math.expm1(-step / c.BATTERY_LAG)
    interior, battery = c.FIRST_TEMPERATURES["interior"], c.FIRST_TEMPERATURES["battery"]
    heating = False
    record = []
    for current, light in zip(load.tolist(), sunlit.tolist(), strict=True):
        heating = battery < on_below or (heating and battery < off_above)
        heater = c.HEATER_CURRENT if heating else 0.0
        record.append((interior, battery, heater))
        around = dark + sun * light + per_ampere * (current + heater)
        beside = interior + below + heated * heater
        interior += interior_share * (around - interior)
        battery += battery_share * (beside - battery)
    return Interior(*np.array(record).T)
