"""Every current and temperature aboard the spacecraft."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import power, thermal
from contextgap.studies.problems.spacecraft.attitude import Motion
from contextgap.studies.problems.spacecraft.schedule import Schedule
from contextgap.studies.problems.spacecraft.telemetry import PANELS


@dataclass(frozen=True, eq=False)
class Onboard:
    """Currents in A by the names of LOOPS, temperatures in °C by channel, and the power supply."""

    currents: dict[str, FloatArray]
    temperatures: dict[str, FloatArray]
    supply: power.Supply


def fly_onboard(
    sun: FloatArray, sunlit: FloatArray, schedule: Schedule, motion: Motion, step: float
) -> Onboard:
    """Return the currents, temperatures and battery that follow from Sun, schedule and actuators.

    ``sun`` is the direction to the Sun in body axes, shape (n, 3), and ``sunlit`` the visible
    fraction of it; ``step`` is the seconds between time steps.
    """
    facing = _facing(sun)
    loads = power.loads(schedule, motion)
    inside = thermal.keep_warm(loads.total, sunlit, step)
    panels = thermal.panel_temperatures(facing[:, :4], sunlit, step)
    boom = thermal.boom_temperature(facing[:, 4], sunlit, step)
    available = power.panel_currents(facing, sunlit, np.column_stack([panels, boom]))
    bus = loads.total + inside.heater
    supply = power.balance(available, bus, step)
    currents = {
        **dict(zip((*PANELS, "wing"), supply.panels.T, strict=True)),
        "battery": supply.battery,
        "bus": bus,
        "transmitter": loads.transmitter,
        "payload": loads.payload,
        "heater": inside.heater,
        "wheel": loads.wheel,
    }
    temperatures = {
        **dict(zip(PANELS, panels.T, strict=True)),
        "interior": inside.temperature,
        "battery": inside.battery,
        "amplifier": thermal.amplifier_temperature(inside.temperature, loads.transmitter, step),
        "boom": boom,
    }
    return Onboard(currents, temperatures, supply)


def _facing(sun: FloatArray) -> FloatArray:
    """Return the cosine to the Sun of +X, -X, +Y, -Y and of the two-sided wing, shape (n, 5)."""
    x, y, _ = sun.T
    return np.column_stack([np.maximum(side, 0) for side in (x, -x, y, -y)] + [np.abs(y)])
