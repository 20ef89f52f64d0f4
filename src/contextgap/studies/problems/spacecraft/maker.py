"""The spacecraft as a source of problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.studies.problems.maker import Maker, standardised
from contextgap.studies.problems.spacecraft.constants import REWARD_UNIT, SENSORS, TLE
from contextgap.studies.problems.spacecraft.flight import Flight
from contextgap.studies.problems.spacecraft.sensors import Sources
from contextgap.studies.problems.spacecraft.simulate import simulate
from contextgap.studies.problems.spacecraft.telemetry import CHANNELS, chosen_channels

_ROWS = 6000  # 10 orbits at 10 s: the paper's 1000 + 1000 held out and 3000 + 950, and some more


@dataclass(frozen=True)
class Spacecraft(Maker):
    """A 3U CubeSat with three magnetometers: trusting a sensor pays −|its error| / 100 nT.

    A context is a frame of telemetry: currents, torquer moments, wheel speed, temperatures,
    battery voltage and the Earth's field in body axes as a coarse on-board magnetometer reads it.
    A learner observes the reward of one reading; regret is measured against the reward that is
    expected over the sensors' white noise and the phase of the wheel's rotor.

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
    noise, rotor, gain, drift
        Factors of the sensors' white noise, of the rotor's dipole (whose phase no channel shows),
        of scale and misalignment errors and of temperature drift; 0 leaves a source out.
    telemetry
        The channels of a context: ``"all"``, ``"currents"``, or a list of their names without
        units, such as ``["bus current", "wheel speed"]``.

    Examples
    --------
    >>> flight = Spacecraft().sample(100, seed=0)
    >>> flight
    Flight('spacecraft': 100 rows, 27 numbers per context, 3 arms (top deck, bottom deck, boom),
    in time order, observations differ from rewards)
    >>> Spacecraft(noise=0, rotor=0, telemetry="currents").sample(100, seed=0).dimension
    11
    """

    _: KW_ONLY
    known_below: float = 55.0
    tle: tuple[str, str] = TLE
    scale: bool = False
    noise: float = 1.0
    rotor: float = 1.0
    gain: float = 1.0
    drift: float = 1.0
    telemetry: str | Sequence[str] = "all"

    def __post_init__(self) -> None:
        limit = checks.real("known_below", self.known_below, "degrees of dipole latitude")
        if not 0 < limit <= 90:
            raise ValueError(f"known_below must be degrees above 0, at most 90, got {limit:g}")
        object.__setattr__(self, "known_below", limit)
        object.__setattr__(self, "tle", _read_tle(self.tle))
        for name, value in vars(self._sources).items():
            object.__setattr__(self, name, value)
        if not isinstance(self.telemetry, str):
            object.__setattr__(self, "telemetry", tuple(self.telemetry))
        self._channels  # noqa: B018  # unknown ones are errors here, not when sampling

    @property
    def _sources(self) -> Sources:
        return Sources(self.noise, self.rotor, self.gain, self.drift)

    @property
    def _channels(self) -> list[int]:
        return chosen_channels(self.telemetry)

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
        flown = simulate(self.tle, size, step, seed, self._sources)
        places = self._channels
        channels = flown.telemetry[:, places]
        rewards = -flown.expected / REWARD_UNIT
        noisy = self.noise > 0 or self.rotor > 0
        return Flight(
            name="spacecraft",
            contexts=standardised(channels) if self.scale else channels,
            rewards=rewards,
            observations=-np.linalg.norm(flown.errors, axis=2) / REWARD_UNIT if noisy else rewards,
            arms=tuple(SENSORS),
            ordered=True,
            columns=tuple(
                CHANNELS[place].name if self.scale else CHANNELS[place].column for place in places
            ),
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
