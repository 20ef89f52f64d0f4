"""Electrical power: solar panels, loads and battery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.attitude import Motion
from contextgap.studies.problems.spacecraft.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Loads:
    """Currents of the loads in A, one entry per time step; the thermostat switches the heater."""

    transmitter: FloatArray
    payload: FloatArray
    wheel: FloatArray
    torquers: FloatArray
    processor: FloatArray

    @property
    def total(self) -> FloatArray:
        """All of them, A."""
        total: FloatArray = (
            self.transmitter + self.payload + self.wheel + self.torquers + self.processor
        )
        return total


@dataclass(frozen=True, eq=False)
class Supply:
    """Panels and battery, one entry per time step.

    Panel currents (A) are after throttling, shape (n, panels); the battery's current (A) is
    negative while it discharges; its charge goes from 0 to 1.
    """

    panels: FloatArray
    battery: FloatArray
    charge: FloatArray
    voltage: FloatArray


def loads(schedule: Schedule, motion: Motion) -> Loads:
    """Return the currents that schedule and motion ask for."""
    at_rest, at_speed, per_torque = c.WHEEL_CURRENT
    speed = np.abs(motion.wheel) / c.WHEEL_FULL
    return Loads(
        transmitter=np.where(
            schedule.downlink, c.DOWNLINK_CURRENT, c.BEACON_CURRENT * schedule.beacon
        ),
        payload=np.where(schedule.payload, c.PAYLOAD_CURRENT, 0.0),
        wheel=at_rest + at_speed * speed + per_torque * np.abs(motion.wheel_torque),
        torquers=c.TORQUER_CURRENT * np.abs(motion.command).sum(axis=1),
        processor=schedule.processor,
    )


def panel_currents(facing: FloatArray, sunlit: FloatArray, temperatures: FloatArray) -> FloatArray:
    """Return what four body panels and the wing can give, A, shape (n, 5).

    ``facing``, shape (n, 5) with the wing last, is the cosine between each panel's normal and the
    Sun, 0 behind it; ``sunlit`` is the visible fraction of the Sun; temperatures are in °C.
    """
    full = np.array([c.PANEL_CURRENT] * 4 + [c.WING_CURRENT])
    light = (facing + c.ALBEDO) * sunlit[:, np.newaxis]
    currents: FloatArray = full * light * (1 + c.PANEL_DRIFT * (temperatures - c.PANEL_REFERENCE))
    return currents


def balance(available: FloatArray, load: FloatArray, step: float) -> Supply:
    """Return how the battery evens out panels and loads, both in A, at rows ``step`` seconds apart.

    ``available`` has a column per panel. Panels are throttled together once the battery takes no
    more.
    """
    capacity = c.BATTERY_CAPACITY * 3600  # A s
    given = c.REGULATOR * available.sum(axis=1)
    charge = c.BATTERY_FIRST
    record = []
    for supply, demand in zip(given.tolist(), load.tolist(), strict=True):
        room = 1 - charge
        # The second bound only matters for steps so long that one could overcharge.
        limit = min(c.CHARGE_CURRENT * min(room / c.CHARGE_TAPER, 1.0), room * capacity / step)
        current = max(min(supply - demand, limit), -charge * capacity / step)
        record.append((current, charge))
        charge += current * step / capacity
    battery, state = np.array(record).T
    # In the dark nothing is given, and nothing needs throttling.
    used = np.minimum((load + battery) / np.where(given > 0, given, 1.0), 1.0)
    empty, more = c.BATTERY_VOLTAGE
    return Supply(
        panels=available * used[:, np.newaxis],
        battery=battery,
        charge=state,
        voltage=empty + more * state,
    )
