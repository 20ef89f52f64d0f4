"""Every current and temperature aboard the spacecraft, and what telemetry shows of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.attitude import Motion, Schedule, fading_sum


class Channel(NamedTuple):
    """One number of telemetry, with its smallest step, assumed as of 10- to 12-bit digitisers."""

    name: str
    unit: str
    resolution: float

    @property
    def column(self) -> str:
        """The name with its unit, such as "battery voltage [V]"."""
        return f"{self.name} [{self.unit}]"


PANELS = ("panel +X", "panel -X", "panel +Y", "panel -Y")
_CURRENTS = (*PANELS, "wing", "battery", "bus", "transmitter", "payload", "heater", "wheel")
_TEMPERATURES = (*PANELS, "interior", "battery", "amplifier", "boom")

CHANNELS = (
    *(Channel(f"{name} current", "A", 0.005) for name in _CURRENTS),
    *(Channel(f"torquer {axis} moment", "A m²", 0.001) for axis in "XYZ"),
    Channel("wheel speed", "rpm", 50.0),
    *(Channel(f"{name} temperature", "°C", 0.25) for name in _TEMPERATURES),
    Channel("battery voltage", "V", 0.02),
    *(Channel(f"field {axis}", "nT", 100.0) for axis in "XYZ"),
)


def chosen_channels(asked: str | Sequence[str]) -> list[int]:
    """Return the places in CHANNELS of "all", of "currents", or of channels by their names."""
    names = [channel.name for channel in CHANNELS]
    groups = {"all": names, "currents": [f"{name} current" for name in _CURRENTS]}
    if isinstance(asked, str) and asked not in groups:
        raise ValueError(f'telemetry must be "all", "currents" or a list of names, got {asked!r}')
    wanted = groups[asked] if isinstance(asked, str) else list(asked)
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise ValueError(
            f"telemetry must name channels, got {unknown[0] if unknown else 'none'!r}; "
            f"there are {', '.join(names)}"
        )
    return [names.index(name) for name in wanted]


def digitised(values: Mapping[str, FloatArray]) -> FloatArray:
    """Return the channels as columns, in the order of CHANNELS, rounded to their resolutions."""
    exact = np.column_stack([values[channel.name] for channel in CHANNELS])
    resolution = np.array([channel.resolution for channel in CHANNELS])
    # Adding zero turns -0 into 0.
    rounded: FloatArray = np.round(exact / resolution) * resolution + 0.0
    return rounded


@dataclass(frozen=True, eq=False)
class Interior:
    """The inside, where a thermostat keeps the battery warm; temperatures in °C, heater in A."""

    temperature: FloatArray
    battery: FloatArray
    heater: FloatArray


def lagged(balance: FloatArray, lag: float, step: float, first: float) -> FloatArray:
    """Return what follows ``balance`` from ``first`` on with a first-order lag (s)."""
    kept = math.exp(-step / lag)
    # Row t follows the balance of the rows before it.
    before = np.concatenate([np.full_like(balance[:1], first), (1 - kept) * balance[:-1]])
    return fading_sum(before, kept)


def outer_temperatures(
    facing: FloatArray, sunlit: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Return the temperatures of body panels and of the boom, °C, by their cosines to the Sun."""
    dark, sun, near = c.PANEL_BALANCE
    panels = dark + (sun * facing[:, :4] + near) * sunlit[:, np.newaxis]
    dark, sun, exponent = c.BOOM_BALANCE
    boom = dark + sun * sunlit * facing[:, 4] ** exponent
    return (
        lagged(panels, c.PANEL_LAG, step, c.FIRST_TEMPERATURES["panel"]),
        lagged(boom, c.BOOM_LAG, step, c.FIRST_TEMPERATURES["boom"]),
    )


def keep_warm(load: FloatArray, sunlit: FloatArray, step: float) -> Interior:
    """Return interior, battery and thermostat; ``load`` is all currents but the heater's, A."""
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


@dataclass(frozen=True, eq=False)
class Supply:
    """Panels and battery, one entry per time step."""

    panels: FloatArray  # A after throttling, shape (n, panels)
    battery: FloatArray  # A, negative while it discharges
    charge: FloatArray  # from 0 to 1
    voltage: FloatArray


def loads(schedule: Schedule, motion: Motion) -> dict[str, FloatArray]:
    """Return the currents, A, that schedule and motion ask for: all loads but the heater."""
    at_rest, at_speed, per_torque = c.WHEEL_CURRENT
    speed = np.abs(motion.wheel) / c.WHEEL_FULL
    beacon = c.BEACON_CURRENT * schedule.beacon
    return {
        "transmitter": np.where(schedule.downlink, c.DOWNLINK_CURRENT, beacon),
        "payload": np.where(schedule.payload, c.PAYLOAD_CURRENT, 0.0),
        "wheel": at_rest + at_speed * speed + per_torque * np.abs(motion.wheel_torque),
        "torquers": c.TORQUER_CURRENT * np.abs(motion.command).sum(axis=1),
        "processor": schedule.processor,
    }


def panel_currents(facing: FloatArray, sunlit: FloatArray, temperatures: FloatArray) -> FloatArray:
    """Return what four body panels and the wing can give, A, shape (n, 5), wing last."""
    full = np.array([c.PANEL_CURRENT] * 4 + [c.WING_CURRENT])
    light = (facing + c.ALBEDO) * sunlit[:, np.newaxis]
    currents: FloatArray = full * light * (1 + c.PANEL_DRIFT * (temperatures - c.PANEL_REFERENCE))
    return currents


def balance(available: FloatArray, load: FloatArray, step: float) -> Supply:
    """Return how the battery evens out panels and loads (A); a full one throttles panels."""
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


@dataclass(frozen=True, eq=False)
class Onboard:
    """Currents in A by the names of LOOPS, temperatures in °C by channel, and the power supply."""

    currents: dict[str, FloatArray]
    temperatures: dict[str, FloatArray]
    supply: Supply


def fly_onboard(
    sun: FloatArray, sunlit: FloatArray, schedule: Schedule, motion: Motion, step: float
) -> Onboard:
    """Return currents, temperatures and battery; ``sun`` is its direction in body axes."""
    facing = _facing(sun)
    drawn = loads(schedule, motion)
    load = np.asarray(sum(drawn.values()))
    inside = keep_warm(load, sunlit, step)
    panels, boom = outer_temperatures(facing, sunlit, step)
    amplifier = inside.temperature + c.AMPLIFIER_BALANCE * drawn["transmitter"]
    available = panel_currents(facing, sunlit, np.column_stack([panels, boom]))
    bus = load + inside.heater
    supply = balance(available, bus, step)
    currents = {
        **dict(zip((*PANELS, "wing"), supply.panels.T, strict=True)),
        "battery": supply.battery,
        "bus": bus,
        "heater": inside.heater,
        **{name: drawn[name] for name in ("transmitter", "payload", "wheel")},
    }
    temperatures = {
        **dict(zip(PANELS, panels.T, strict=True)),
        "interior": inside.temperature,
        "battery": inside.battery,
        "amplifier": lagged(amplifier, c.AMPLIFIER_LAG, step, c.FIRST_TEMPERATURES["amplifier"]),
        "boom": boom,
    }
    return Onboard(currents, temperatures, supply)


def _facing(sun: FloatArray) -> FloatArray:
    """Return the cosine to the Sun of +X, -X, +Y, -Y and of the two-sided wing, shape (n, 5)."""
    x, y, _ = sun.T
    return np.column_stack([np.maximum(side, 0) for side in (x, -x, y, -y)] + [np.abs(y)])
