"""The spacecraft as a source of problems."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.problems.maker import Maker, standardised
from contextgap.problems.spacecraft.constants import SENSORS, TLE
from contextgap.problems.spacecraft.flight import Flight
from contextgap.problems.spacecraft.simulate import simulate
from contextgap.problems.spacecraft.telemetry import CHANNELS

_ROWS = 6000  # 10 orbits at 10 s: the paper's 1000 + 1000 held out and 3000 + 950, and some more
_REWARD_UNIT = 100.0  # nT


@dataclass(frozen=True)
class Spacecraft(Maker):
    """A 3U CubeSat with three magnetometers: trusting a sensor pays −|its error| / 100 nT.

    A context is a frame of telemetry: currents, torquer moments, wheel speed, temperatures,
    battery voltage and the Earth's field in body axes as a coarse on-board magnetometer reads it.

    Parameters
    ----------
    known_below
        Degrees of dipole latitude, either side of the geomagnetic equator, below which the
        Earth's field is known; nearer the poles, auroral currents make it uncertain.
    tle
        The orbit as two-line elements; the flight starts at their epoch. GRIFEX's by default.
    scale
        Whether to give each channel mean 0 and standard deviation 1 over the whole flight
        (constant channels become 0), which suits kernels with one bandwidth for all channels.
        The columns then have no units.

    Examples
    --------
    >>> flight = Spacecraft().sample(100, seed=0)
    >>> flight
    Flight('spacecraft': 100 rows, 27 numbers per context, 3 arms (top deck, bottom deck, boom),
    in time order)
    """

    _: KW_ONLY
    known_below: float = 55.0
    tle: tuple[str, str] = TLE
    scale: bool = False

    def __post_init__(self) -> None:
        limit = checks.real("known_below", self.known_below, "degrees of dipole latitude")
        if not 0 < limit <= 90:
            raise ValueError(f"known_below must be degrees above 0, at most 90, got {limit:g}")
        object.__setattr__(self, "known_below", limit)
        object.__setattr__(self, "tle", _read_tle(self.tle))

    def sample(self, n: int | None = None, seed: Any = None, step: float = 10.0) -> Flight:
        """Return ``n`` frames of telemetry, in time order.

        Parameters
        ----------
        n
            Number of frames; None for 6000, which at 10 s are about 10 orbits.
        seed
            Fixes schedule, attitude and noise; the orbit is always the same. A longer flight
            begins with the shorter one from the same seed.
        step
            Seconds between frames.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        step = checks.positive("step", step, "seconds between frames; 1 to 60 are usual")
        flown = simulate(self.tle, size, step, seed)
        channels = flown.telemetry
        return Flight(
            name="spacecraft",
            contexts=standardised(channels) if self.scale else channels,
            rewards=-np.linalg.norm(flown.errors, axis=2) / _REWARD_UNIT,
            arms=tuple(SENSORS),
            ordered=True,
            columns=tuple(each.name if self.scale else each.column for each in CHANNELS),
            time=flown.orbit.time,
            sunlit=flown.orbit.sunlit,
            dipole_latitude=flown.orbit.dipole_latitude,
            known=np.abs(flown.orbit.dipole_latitude) < self.known_below,
            orbit_phase=flown.orbit.phase,
            orbit_number=flown.orbit.number,
        )


def _read_tle(tle: Any) -> tuple[str, str]:
    lines = tle if isinstance(tle, tuple | list) else (tle,)
    if len(lines) != 2 or not all(isinstance(line, str) for line in lines):
        raise TypeError(f"tle must be the two lines of orbital elements, got {tle!r}")
    lines = [line.rstrip() for line in lines]
    for number, line in zip("12", lines, strict=True):
        if len(line) != 69 or not line.startswith(f"{number} "):
            raise ValueError(
                f"line {number} of tle must start with {number!r} and have 69 characters, "
                f"got {line!r}"
            )
    first, second = lines
    return first, second
