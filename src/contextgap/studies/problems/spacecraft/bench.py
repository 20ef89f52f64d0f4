"""The magnetometers in a laboratory: current loops driven as a satellite's loads drive them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.problem import Maker, Problem
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.attitude import Motion, draw_schedule, wheel_torque
from contextgap.studies.problems.spacecraft.onboard import fly_onboard
from contextgap.studies.problems.spacecraft.sensors import expected_length, hard_iron, loop_coupling

_ROWS = 6000  # of a recorded run: the paper's 1000 + 1000 held out and 3000 + 950, and some more


@dataclass(frozen=True)
class MagnetometerBench(Maker):
    """Three fixed magnetometers among eleven current loops: trusting one pays −|its error| in nT.

    A context is the current through each loop, as telemetry reports it; nothing else makes a
    sensor err but a little noise. Solar panels are driven as by a Sun that moves about a turning
    satellite and sets, loads are switched by a random schedule, and battery, heater and wheel
    follow. The Earth's field is taken off. The paper's laboratory data were never published; this
    is an open stand-in for them, and needs no extra.

    Parameters
    ----------
    noise
        Standard deviation in nT, per axis, of the noise in a reading. Regret is measured against
        expected rewards.
    sequence
        Whether to return rows in time order, as recorded. By default they are operating states in
        random order.

    Examples
    --------
    >>> MagnetometerBench().sample(100, seed=0)
    Problem('bench': 100 rows, 11 numbers per context, 3 arms (top deck, bottom deck, boom),
    observations differ from rewards)
    """

    _: KW_ONLY
    noise: float = c.BENCH_NOISE
    sequence: bool = False

    def __post_init__(self) -> None:
        noise = checks.at_least("noise", self.noise, 0, "a standard deviation in nT")
        object.__setattr__(self, "noise", noise)

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` operating states, in random order or as recorded.

        Parameters
        ----------
        n
            Number of rows; None for 6000. States in random order are drawn from a run of as many
            rows, or more if more are asked for.
        seed
            Fixes schedule, Sun, order and noise. A longer recorded run begins with the shorter one.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        for_run, for_order, for_noise = np.random.default_rng(seed).spawn(3)
        currents = _recorded(size if self.sequence else max(size, _ROWS), for_run)
        if not self.sequence:
            currents = currents[for_order.permutation(len(currents))[:size]]
        offsets = np.tensordot(currents, loop_coupling(), axes=1) - hard_iron()
        rewards = -expected_length(offsets, self.noise)
        read = offsets + for_noise.normal(0, self.noise, offsets.shape)
        resolution = c.BENCH_RESOLUTION
        return Problem(
            name="bench",
            contexts=np.round(currents / resolution) * resolution + 0.0,
            rewards=rewards,
            observations=-np.linalg.norm(read, axis=2) if self.noise else rewards,
            arms=tuple(c.SENSORS),
            ordered=self.sequence,
            columns=tuple(f"{name} current [A]" for name in c.LOOPS),
        )


def _recorded(n: int, rng: np.random.Generator) -> FloatArray:
    """Return the loops' currents in A along a run, in the order of LOOPS, shape (n, loops)."""
    step = c.BENCH_STEP
    for_schedule, for_sun = rng.spawn(2)
    time = step * np.arange(n)
    orbit = time / c.BENCH_ORBIT  # in orbits since the start
    latitude = c.BENCH_LATITUDE * np.sin(2 * np.pi * orbit)
    passing = (np.floor(orbit) % c.BENCH_PASSES == 0) & (orbit % 1 < c.BENCH_PASS)
    schedule = draw_schedule(latitude, np.where(passing, 90.0, -90.0), step, for_schedule)
    turn, nod = 2 * np.pi * (for_sun.random(2) + np.outer(time, [1 / t for t in c.BENCH_TURNS])).T
    height = np.radians(c.BENCH_NOD) * np.sin(nod)
    sun = np.column_stack(
        [np.cos(height) * np.cos(turn), np.cos(height) * np.sin(turn), np.sin(height)]
    )
    sunlit = (orbit % 1 >= c.BENCH_ECLIPSE).astype(float)
    onboard = fly_onboard(sun, sunlit, schedule, _at_rest(schedule.wheel_target, step), step)
    return np.column_stack([onboard.currents[name] for name in c.LOOPS])


def _at_rest(target: FloatArray, step: float) -> Motion:
    """Return a satellite that stands still while its wheel follows set-points (N m s)."""
    n = len(target)
    follow = accumulate(
        target[:-1].tolist(),
        lambda wheel, aim: wheel + step * wheel_torque(wheel, aim),
        initial=c.WHEEL_FIRST,
    )
    wheel = np.array(list(follow))
    torque = np.array([wheel_torque(*pair) for pair in zip(wheel, target, strict=True)])
    nothing = np.zeros((n, 3))
    still = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
    return Motion(still, nothing, wheel, torque, command=nothing, remanence=nothing)
