"""A simulated 3U CubeSat with three magnetometers: which one to trust, given telemetry.

The orbit is SGP4's, the Earth's field IGRF's; attitude, power, temperatures and the interference
that the spacecraft's own currents cause are simulated. ``simulation`` lists every number.

No later subsystem affects an earlier one: attitude does not depend on power, nor power on the
sensors. So each subsystem is computed for all time steps at once, or in a loop of its own where its
state feeds back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.studies.problems import simulation as sim
from contextgap.studies.problems.problem import Maker, Problem, standardised


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Flight(Problem):
    """A problem along an orbit, in parts of which the field is known and feedback available.

    Parameters
    ----------
    name, contexts, rewards, arms, ordered, columns, observations, schema
        As of ``Problem``.
    time
        s since the start, one entry per row.
    sunlit
        Visible fraction of the Sun's disc: 0 in eclipse, 1 outside, between them in penumbra.
    dipole_latitude
        Degrees from the geomagnetic equator.
    known
        Whether the field is known well enough to say how wrong a sensor is.
    orbit_phase
        Fraction of the orbit since the ascending node, from 0 to below 1.
    orbit_number
        0, 1, ...: how often the ascending node was passed since the start.

    See Also
    --------
    experiments.fly : Flies it.

    Examples
    --------
    >>> flight = cg.problems.Spacecraft().sample(100, seed=0)
    >>> flight.known.shape, flight.time.shape
    ((100,), (100,))
    """

    time: FloatArray
    sunlit: FloatArray
    dipole_latitude: FloatArray
    known: NDArray[np.bool_]
    orbit_phase: FloatArray
    orbit_number: IntArray

    _facts: ClassVar[Mapping[str, Any]] = {
        "time": np.float64,
        "sunlit": np.float64,
        "dipole_latitude": np.float64,
        "known": np.bool_,
        "orbit_phase": np.float64,
        "orbit_number": np.intp,
    }


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated flight, one entry per time step."""

    orbit: sim.Orbit
    motion: sim.Motion
    onboard: sim.Onboard
    telemetry: FloatArray  # digitised channels in the order of CHANNELS
    errors: FloatArray  # readings minus the Earth's field, nT in body axes, (n, sensors, 3)
    expected: FloatArray  # their mean length over noise and rotor phase, (n, sensors)


def simulate(
    tle: tuple[str, str],
    n: int,
    step: float,
    seed: Any = None,
    sources: sim.Sources = sim.Sources(),  # noqa: B008  # immutable
) -> Simulation:
    """Return a flight; ``sources`` change nothing but the sensors' errors."""
    children = np.random.default_rng(seed).spawn(5)
    for_schedule, for_attitude, for_rotor, for_sensors, for_field = children
    orbit = sim.propagate(tle, n, step)
    schedule = sim.draw_schedule(orbit.latitude, orbit.elevation, step, for_schedule)
    motion = sim.tumble(orbit, schedule, step, for_attitude)
    sun, field = (sim.rows_to_body(motion.quaternion, each) for each in (orbit.sun, orbit.field))
    onboard = sim.fly_onboard(sun, orbit.sunlit, schedule, motion, step)
    measured = field + for_field.normal(0, sim.FIELD_NOISE, field.shape)
    phase = for_rotor.uniform(0, 2 * np.pi, n)
    currents = np.column_stack([onboard.currents[name] for name in sim.LOOPS])
    warm = onboard.temperatures
    top = warm["interior"] + sim.AMPLIFIER_SHARE * (warm["amplifier"] - warm["interior"])
    at_sensors = np.column_stack([top, warm["battery"], warm["boom"]])  # in the order of SENSORS
    own = sim.interference(currents, motion)
    sensors = sim.Sensors(field, own, at_sensors, motion, sources)
    return Simulation(
        orbit=orbit,
        motion=motion,
        onboard=onboard,
        telemetry=_telemetry(onboard, motion, measured),
        errors=sensors.readings(phase, for_sensors),
        expected=sensors.expected(),
    )


def _telemetry(onboard: sim.Onboard, motion: sim.Motion, field: FloatArray) -> FloatArray:
    return sim.digitised(
        {
            **{f"{name} current": values for name, values in onboard.currents.items()},
            **{f"{name} temperature": values for name, values in onboard.temperatures.items()},
            **_by_axis("torquer {} moment", motion.command),
            **_by_axis("field {}", field),
            "wheel speed": motion.wheel / sim.WHEEL_FULL * sim.WHEEL_FULL_RPM,
            "battery voltage": onboard.supply.voltage,
        }
    )


def _by_axis(name: str, vectors: FloatArray) -> dict[str, FloatArray]:
    return {name.format(axis): values for axis, values in zip("XYZ", vectors.T, strict=True)}


_ROWS = 6000  # the paper's 1000 + 1000 held out and 3000 + 950, and more: 10 orbits at 10 s


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
    tle: tuple[str, str] = sim.TLE
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
        checks.settle(self, known_below=limit, tle=_read_tle(self.tle), **vars(self._sources))
        if not isinstance(self.telemetry, str):
            checks.settle(self, telemetry=tuple(self.telemetry))
        self._channels  # noqa: B018  # unknown ones are errors here, not when sampling

    @property
    def _sources(self) -> sim.Sources:
        return sim.Sources(self.noise, self.rotor, self.gain, self.drift)

    @property
    def _channels(self) -> list[int]:
        return sim.chosen_channels(self.telemetry)

    def sample(self, n: int | None = None, seed: Any = None, step: float = 10.0) -> Flight:
        """Return ``n`` frames of telemetry in time order, ``step`` seconds apart.

        By default there are 6000, which at 10 s are about 10 orbits. The seed fixes schedule,
        attitude and noise; the orbit is always the same. A longer flight begins with the shorter
        one from the same seed.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        step = checks.positive("step", step, "seconds between frames; 1 to 60 are usual")
        flown = simulate(self.tle, size, step, seed, self._sources)
        channels = flown.telemetry[:, self._channels]
        chosen = [sim.CHANNELS[place] for place in self._channels]
        rewards = observed = -flown.expected / sim.REWARD_UNIT
        if self.noise > 0 or self.rotor > 0:
            observed = -np.linalg.norm(flown.errors, axis=2) / sim.REWARD_UNIT
        return Flight(
            name="spacecraft",
            contexts=standardised(channels) if self.scale else channels,
            rewards=rewards,
            observations=observed,
            arms=tuple(sim.SENSORS),
            ordered=True,
            columns=tuple(each.name if self.scale else each.column for each in chosen),
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


@dataclass(frozen=True)
class MagnetometerBench(Maker):
    """Three fixed magnetometers among eleven current loops: trusting one pays −|its error| in nT.

    A context is the current through each loop, as telemetry reports it; nothing else makes a
    sensor err but a little noise. Solar panels are driven as by a Sun that moves about a turning
    satellite and sets, loads are switched by a random schedule, and battery, heater and wheel
    follow. The Earth's field is taken off. The paper's laboratory data were never published; this
    is an open stand-in for them, and needs no extra.

    .. versionadded:: 0.3

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
    noise: float = sim.BENCH_NOISE
    sequence: bool = False

    def __post_init__(self) -> None:
        noise = checks.at_least("noise", self.noise, 0, "a standard deviation in nT")
        checks.settle(self, noise=noise)

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` operating states, 6000 by default, in random order or as recorded.

        States in random order are drawn from a run of 6000 rows, or more if more are asked for. A
        longer recorded run begins with the shorter one of the same seed.
        """
        size = _ROWS if n is None else checks.whole("n", n, least=1)
        for_run, for_order, for_noise = np.random.default_rng(seed).spawn(3)
        currents = _recorded(size if self.sequence else max(size, _ROWS), for_run)
        if not self.sequence:
            currents = currents[for_order.permutation(len(currents))[:size]]
        offsets = np.tensordot(currents, sim.loop_coupling(), axes=1) - sim.hard_iron()
        rewards = -sim.expected_length(offsets, self.noise)
        read = offsets + for_noise.normal(0, self.noise, offsets.shape)
        resolution = sim.BENCH_RESOLUTION
        return Problem(
            name="bench",
            contexts=np.round(currents / resolution) * resolution + 0.0,
            rewards=rewards,
            observations=-np.linalg.norm(read, axis=2) if self.noise else rewards,
            arms=tuple(sim.SENSORS),
            ordered=self.sequence,
            columns=tuple(f"{name} current [A]" for name in sim.LOOPS),
        )


def _recorded(n: int, rng: np.random.Generator) -> FloatArray:
    """Return the loops' currents in A along a run, in the order of LOOPS, shape (n, loops)."""
    step = sim.BENCH_STEP
    for_schedule, for_sun = rng.spawn(2)
    time = step * np.arange(n)
    orbit = time / sim.BENCH_ORBIT  # in orbits since the start
    latitude = sim.BENCH_LATITUDE * np.sin(2 * np.pi * orbit)
    passing = (np.floor(orbit) % sim.BENCH_PASSES == 0) & (orbit % 1 < sim.BENCH_PASS)
    schedule = sim.draw_schedule(latitude, np.where(passing, 90.0, -90.0), step, for_schedule)
    turn, nod = 2 * np.pi * (for_sun.random(2) + np.outer(time, [1 / t for t in sim.BENCH_TURNS])).T
    height = np.radians(sim.BENCH_NOD) * np.sin(nod)
    level = np.cos(height)
    sun = np.column_stack([level * np.cos(turn), level * np.sin(turn), np.sin(height)])
    sunlit = (orbit % 1 >= sim.BENCH_ECLIPSE).astype(float)
    motion = _at_rest(schedule.wheel_target, step)
    onboard = sim.fly_onboard(sun, sunlit, schedule, motion, step)
    return np.column_stack([onboard.currents[name] for name in sim.LOOPS])


def _at_rest(target: FloatArray, step: float) -> sim.Motion:
    """Return a satellite that stands still while its wheel follows set-points (N m s)."""
    n = len(target)
    follow = accumulate(
        target[:-1].tolist(),
        lambda wheel, aim: wheel + step * sim.wheel_torque(wheel, aim),
        initial=sim.WHEEL_FIRST,
    )
    wheel = np.array(list(follow))
    torque = np.array([sim.wheel_torque(*pair) for pair in zip(wheel, target, strict=True)])
    nothing = np.zeros((n, 3))
    still = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
    return sim.Motion(still, nothing, wheel, torque, command=nothing, remanence=nothing)
