"""The whole flight, one subsystem after the other.

No later subsystem affects an earlier one: attitude does not depend on power, nor power on the
sensors. So each subsystem is computed for all time steps at once, or in a loop of its own where its
state feeds back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.attitude import Motion, tumble
from contextgap.studies.problems.spacecraft.onboard import Onboard, fly_onboard
from contextgap.studies.problems.spacecraft.orbit import Orbit, propagate
from contextgap.studies.problems.spacecraft.rigid_body import rows_to_body
from contextgap.studies.problems.spacecraft.schedule import draw_schedule
from contextgap.studies.problems.spacecraft.sensors import Sensors, Sources, interference
from contextgap.studies.problems.spacecraft.telemetry import digitised


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated flight, one entry per time step.

    ``telemetry`` holds the digitised channels in the order of CHANNELS; ``errors`` is each sensor's
    reading minus the Earth's field in body axes, nT, shape (n, sensors, 3), and ``expected`` the
    length of such an error, averaged over white noise and the rotor's phase, shape (n, sensors).
    """

    orbit: Orbit
    motion: Motion
    onboard: Onboard
    telemetry: FloatArray
    errors: FloatArray
    expected: FloatArray


def simulate(
    tle: tuple[str, str],
    n: int,
    step: float,
    seed: Any = None,
    sources: Sources = Sources(),  # noqa: B008  # immutable
) -> Simulation:
    """Return a flight of ``n`` time steps, ``step`` seconds apart.

    ``tle`` is the two lines of orbital elements. A longer flight from the same seed begins with the
    shorter one, and ``sources`` change nothing but the sensors' errors.
    """
    children = np.random.default_rng(seed).spawn(5)
    for_schedule, for_attitude, for_rotor, for_sensors, for_field = children
    orbit = propagate(tle, n, step)
    schedule = draw_schedule(orbit.latitude, orbit.elevation, step, for_schedule)
    motion = tumble(orbit, schedule, step, for_attitude)
    sun = rows_to_body(motion.quaternion, orbit.sun)
    onboard = fly_onboard(sun, orbit.sunlit, schedule, motion, step)
    field = rows_to_body(motion.quaternion, orbit.field)
    measured = field + for_field.normal(0, c.FIELD_NOISE, field.shape)
    phase = for_rotor.uniform(0, 2 * np.pi, n)
    currents = np.column_stack([onboard.currents[name] for name in c.LOOPS])
    sensors = Sensors(
        field,
        interference(currents, motion),
        _sensor_temperatures(onboard.temperatures),
        motion,
        sources,
    )
    return Simulation(
        orbit=orbit,
        motion=motion,
        onboard=onboard,
        telemetry=_telemetry(onboard, motion, measured),
        errors=sensors.readings(phase, for_sensors),
        expected=sensors.expected(),
    )


def _telemetry(onboard: Onboard, motion: Motion, field: FloatArray) -> FloatArray:
    return digitised(
        {
            **{f"{name} current": values for name, values in onboard.currents.items()},
            **{f"{name} temperature": values for name, values in onboard.temperatures.items()},
            **_by_axis("torquer {} moment", motion.command),
            **_by_axis("field {}", field),
            "wheel speed": motion.wheel / c.WHEEL_FULL * c.WHEEL_FULL_RPM,
            "battery voltage": onboard.supply.voltage,
        }
    )


def _by_axis(name: str, vectors: FloatArray) -> dict[str, FloatArray]:
    return {name.format(axis): values for axis, values in zip("XYZ", vectors.T, strict=True)}


def _sensor_temperatures(temperatures: dict[str, FloatArray]) -> FloatArray:
    """Return each sensor's temperature, in the order of SENSORS, shape (n, sensors)."""
    interior, amplifier = temperatures["interior"], temperatures["amplifier"]
    top = interior + c.AMPLIFIER_SHARE * (amplifier - interior)
    return np.column_stack([top, temperatures["battery"], temperatures["boom"]])
