"""The magnetometers' errors, and the fields of the spacecraft's own currents that cause them.

The fields are linear in the currents, so each source is one vector of nT per ampere (or per A m²)
and sensor, computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, frozen
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft.attitude import Motion

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
