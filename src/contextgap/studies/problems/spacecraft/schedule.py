"""What the spacecraft does when: set-points, payload runs, B-dot campaigns, transmissions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.recursion import fading_sum


@dataclass(frozen=True, eq=False)
class Schedule:
    """What is switched on at each time step, and the wheel's momentum to aim for (N m s).

    ``detumble`` is B-dot control, ``downlink`` means that the transmitter talks to the ground
    station, and ``processor`` is the processor's current in A.
    """

    wheel_target: FloatArray
    payload: NDArray[np.bool_]
    detumble: NDArray[np.bool_]
    downlink: NDArray[np.bool_]
    beacon: NDArray[np.bool_]
    processor: FloatArray


def draw_schedule(
    latitude: FloatArray, elevation: FloatArray, step: float, rng: np.random.Generator
) -> Schedule:
    """Return a random schedule; a longer one from the same seed begins with the shorter one.

    The latitude decides how often the payload runs, and the elevation above the ground station's
    horizon about downlinks; both in degrees.
    """
    n = len(latitude)
    # A row per step, and a generator of its own for each array, so that how long the flight is
    # does not change its beginning.
    for_events, for_processor = rng.spawn(2)
    chance = for_events.random((n, 7))
    high = np.abs(latitude) > c.PAYLOAD_LATITUDE
    payload = _runs(np.where(high, *c.PAYLOAD_INTERVAL), step, chance[:, 0:2])
    downlink = elevation > c.DOWNLINK_ELEVATION
    beacon = (chance[:, 6] < c.BEACON_SHARE) & ~downlink
    return Schedule(
        wheel_target=_set_points(chance[:, 4:6], step),
        payload=payload,
        detumble=_runs(np.full(n, c.DETUMBLE_INTERVAL), step, chance[:, 2:4]),
        downlink=downlink,
        beacon=beacon & ~payload,  # as on GRIFEX, whose payload must not be disturbed
        processor=_processor(for_processor.standard_normal(n), step),
    )


def _runs(interval: FloatArray, step: float, chance: FloatArray) -> NDArray[np.bool_]:
    """Return when something is on that starts at random and lasts for a random time."""
    starts = chance[:, 0] < -np.expm1(-step / interval)
    shortest, longest = c.RUN_LENGTH
    steps = np.ceil((shortest + (longest - shortest) * chance[:, 1]) / step).astype(int)
    on = np.zeros(len(interval), dtype=bool)
    free = 0
    for start in np.flatnonzero(starts):
        if start >= free:
            free = start + steps[start]
            on[start:free] = True
    return on


def _set_points(chance: FloatArray, step: float) -> FloatArray:
    changes = chance[:, 0] < -np.expm1(-step / c.WHEEL_INTERVAL)
    lowest, highest = c.WHEEL_TARGETS
    values = lowest + (highest - lowest) * chance[:, 1]
    latest = np.maximum.accumulate(np.where(changes, np.arange(len(changes)), -1))
    return np.where(latest < 0, c.WHEEL_FIRST, values[latest])


def _processor(shocks: FloatArray, step: float) -> FloatArray:
    """Return a first-order autoregression with the stated mean, deviation and correlation time."""
    mean, deviation = c.PROCESSOR_CURRENT
    memory = math.exp(-step / c.PROCESSOR_LAG)
    wander = fading_sum(np.sqrt(1 - memory**2) * shocks, memory)
    return mean + deviation * wander
