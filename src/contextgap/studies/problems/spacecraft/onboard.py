"""Currents, temperatures and telemetry aboard, and the errors of magnetometers that they cause.

The fields of the spacecraft's own currents are linear in them, so each source is one vector of nT
per ampere (or per A m²) and sensor, computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, frozen
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.motion import Motion, Schedule, fading_sum


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


_NT = 1e9 * 1e-7  # μ0/4π in nT m/A: 1e-7 T m/A


def wire_field(start: ArrayLike, end: ArrayLike, point: ArrayLike) -> FloatArray:
    """Return the field in nT/A of a straight wire at a point, by Biot and Savart's law, shape (3,).

    With a and b from the wire's ends (in m; current flows from start to end) to the point, B =
    μ0/4π · (|a|+|b|) / (|a||b|(|a||b|+a·b)) · a×b, which has no cancellation beside the wire.
    """
    a, b = np.subtract(point, start), np.subtract(point, end)
    length_a, length_b = np.linalg.norm(a), np.linalg.norm(b)
    both = length_a * length_b
    field: FloatArray = _NT * (length_a + length_b) / (both * (both + a @ b)) * np.cross(a, b)
    return field


def rectangle_field(
    centre: ArrayLike, edge: ArrayLike, other: ArrayLike, point: ArrayLike
) -> FloatArray:
    """Return the field in nT/A at a point (m) of a current round a rectangle."""
    middle, u, v = np.asarray(centre), np.asarray(edge), np.asarray(other)
    corners = [middle + u + v, middle - u + v, middle - u - v, middle + u - v]
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    total: FloatArray = np.sum([wire_field(*side, point) for side in sides], axis=0)
    return total


def dipole_field(moment: ArrayLike, offset: ArrayLike) -> FloatArray:
    """Return the field in nT of a dipole in A m², at an offset in m from it, shape (3,)."""
    distance = np.linalg.norm(offset)
    towards = np.asarray(offset) / distance
    field: FloatArray = _NT * (3 * towards * (towards @ moment) - moment) / distance**3
    return field


@cache
def loop_coupling() -> FloatArray:
    """Return nT/A at each sensor of each loop, in the order of LOOPS, shape (loops, sensors, 3)."""
    return frozen(
        np.array(
            [[rectangle_field(*loop, at) for at in c.SENSORS.values()] for loop in c.LOOPS.values()]
        )
    )


@cache
def torquer_coupling() -> FloatArray:
    """Return nT per A m² at each sensor of each torquer, shape (3, sensors, 3)."""
    axes = zip(np.eye(3), c.TORQUERS.values(), strict=True)
    return frozen(
        np.array(
            [[dipole_field(m, np.subtract(at, p)) for at in c.SENSORS.values()] for m, p in axes]
        )
    )


@cache
def rotor_coupling() -> FloatArray:
    """Return nT per A m² at each sensor of the rotor's moment along x and z, (2, sensors, 3)."""
    offsets = [np.subtract(at, c.ROTOR) for at in c.SENSORS.values()]
    return frozen(np.array([[dipole_field(m, o) for o in offsets] for m in np.eye(3)[[0, 2]]]))


_PHASES = 64  # of the rotor, over which expected errors are averaged


@dataclass(frozen=True)
class Sources:
    """Factors of the four sources of error besides currents and torquers; 0 leaves one out."""

    noise: float = 1.0
    rotor: float = 1.0
    gain: float = 1.0
    drift: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = checks.at_least(name, getattr(self, name), 0, "a factor")
            object.__setattr__(self, name, value)


def interference(currents: FloatArray, motion: Motion) -> FloatArray:
    """Return the field of currents (A) and torquers at each sensor, nT, shape (n, sensors, 3)."""
    moments = motion.remanence + c.LEAKAGE * motion.command
    field: FloatArray = np.tensordot(currents, loop_coupling(), axes=1) + np.tensordot(
        moments, torquer_coupling(), axes=1
    )
    return field


def rotor_field(motion: Motion, phase: FloatArray | float) -> FloatArray:
    """Return the field of the wheel's rotor at a phase (rad), nT, shape (n, sensors, 3)."""
    # A reading averages over some 20 ms, in which a fast rotor's field cancels.
    frequency = np.abs(motion.wheel) / c.WHEEL_FULL * c.WHEEL_FULL_RPM / 60
    left = c.ROTOR_DIPOLE / np.sqrt(1 + (frequency / c.ROTOR_BANDWIDTH) ** 2)
    moment = np.column_stack([left * np.cos(phase), left * np.sin(phase)])
    field: FloatArray = np.tensordot(moment, rotor_coupling(), axes=1)
    return field


def hard_iron() -> FloatArray:
    """Return what ground calibration subtracts from each sensor's reading, nT, (sensors, 3)."""
    usual = [c.CALIBRATION_CURRENTS[name] for name in c.LOOPS]
    offset: FloatArray = np.tensordot(usual, loop_coupling(), axes=1)
    return offset


@dataclass(frozen=True, eq=False)
class Sensors:
    """Three magnetometers along a flight."""

    field: FloatArray  # the Earth's in body axes, nT, shape (n, 3)
    own: FloatArray  # of currents and torquers at each sensor, nT, shape (n, sensors, 3)
    temperatures: FloatArray  # each sensor's, °C
    motion: Motion
    sources: Sources = Sources()

    def errors(self, phase: FloatArray | float) -> FloatArray:
        """Return each reading minus the Earth's field before white noise, nT, (n, sensors, 3)."""
        own = self.own + self.sources.rotor * rotor_field(self.motion, phase)
        gain = self.sources.gain * 1e-3 * np.array(c.GAIN_ERRORS)
        distorted = np.einsum("sij,nsj->nsi", gain, self.field[:, np.newaxis] + own)
        warmth = self.temperatures - np.array(c.CALIBRATION_TEMPERATURES)
        drift = self.sources.drift * warmth[:, :, np.newaxis] * np.array(c.DRIFT)
        errors: FloatArray = own - hard_iron() + distorted + drift
        return errors

    @property
    def _noise(self) -> FloatArray:
        return self.sources.noise * np.array(c.NOISE)

    def readings(self, phase: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the errors of one reading per row, nT, shape (n, sensors, 3)."""
        noise = rng.standard_normal(self.own.shape) * self._noise[:, np.newaxis]
        return self.errors(phase) + noise

    def expected(self) -> FloatArray:
        """Return each error's expected length over noise and rotor phase, nT, (n, sensors)."""
        phases = 2 * np.pi * np.arange(_PHASES if self.sources.rotor else 1) / _PHASES
        lengths = [expected_length(self.errors(phase), self._noise) for phase in phases]
        return np.asarray(np.mean(lengths, axis=0))


def expected_length(offset: FloatArray, noise: ArrayLike) -> FloatArray:
    """Return the expected length of vectors in space with white noise added to every axis."""
    # With z standard normal and r = |offset| / noise, E|offset + noise·z| / noise is
    # √(2/π)·exp(−r²/2) + (r + 1/r)·erf(r/√2), the mean of a noncentral chi.
    from scipy.special import erf  # slow to load, and few programs need it

    length = np.linalg.norm(offset, axis=-1)
    deviation = np.broadcast_to(np.asarray(noise, dtype=np.float64), length.shape)
    ratio = np.divide(length, deviation, out=np.ones_like(length), where=deviation > 0)
    ratio = np.maximum(ratio, 1e-8)  # where the second term is 2/√(2π) to the last digit
    chi = np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + (ratio + 1 / ratio) * erf(
        ratio / np.sqrt(2)
    )
    return np.asarray(np.where(deviation > 0, deviation * chi, length))
