"""The errors of the three magnetometers, as read and as expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.spacecraft import constants as c
from contextgap.studies.problems.spacecraft import magnetics
from contextgap.studies.problems.spacecraft.attitude import Motion

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
    """Return the field of currents and torquers at each sensor, nT, shape (n, sensors, 3).

    ``currents`` (A) has a column per loop of LOOPS.
    """
    moments = motion.remanence + c.LEAKAGE * motion.command
    field: FloatArray = np.tensordot(currents, magnetics.loop_coupling(), axes=1) + np.tensordot(
        moments, magnetics.torquer_coupling(), axes=1
    )
    return field


def rotor_field(motion: Motion, phase: FloatArray | float) -> FloatArray:
    """Return the field of the wheel's rotor at each sensor, nT, shape (n, sensors, 3).

    ``phase`` is its angle, in radians, when the sensors are read.
    """
    # A reading averages over some 20 ms, in which a fast rotor's field cancels.
    frequency = np.abs(motion.wheel) / c.WHEEL_FULL * c.WHEEL_FULL_RPM / 60
    left = c.ROTOR_DIPOLE / np.sqrt(1 + (frequency / c.ROTOR_BANDWIDTH) ** 2)
    moment = np.column_stack([left * np.cos(phase), left * np.sin(phase)])
    field: FloatArray = np.tensordot(moment, magnetics.rotor_coupling(), axes=1)
    return field


def hard_iron() -> FloatArray:
    """Return what ground calibration subtracts from each sensor's reading, nT, (sensors, 3)."""
    usual = [c.CALIBRATION_CURRENTS[name] for name in c.LOOPS]
    offset: FloatArray = np.tensordot(usual, magnetics.loop_coupling(), axes=1)
    return offset


@dataclass(frozen=True, eq=False)
class Sensors:
    """Three magnetometers along a flight.

    ``field`` is the Earth's in body axes, shape (n, 3), and ``own`` that of currents and torquers
    at each sensor, (n, sensors, 3), both in nT; ``temperatures`` are each sensor's, in °C.
    """

    field: FloatArray
    own: FloatArray
    temperatures: FloatArray
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
    """Return the expected length of vectors in space with white noise added to every axis.

    With z standard normal and r = |offset| / noise, E|offset + noise·z| / noise is
    √(2/π)·exp(−r²/2) + (r + 1/r)·erf(r/√2), the mean of a noncentral chi with three degrees of
    freedom.

    Parameters
    ----------
    offset
        Shape (..., sensors, 3).
    noise
        Standard deviation per axis, one per sensor or the same for all; may be 0.
    """
    from scipy.special import erf  # slow to load, and few programs need it

    length = np.linalg.norm(offset, axis=-1)
    deviation = np.broadcast_to(np.asarray(noise, dtype=np.float64), length.shape)
    ratio = np.divide(length, deviation, out=np.ones_like(length), where=deviation > 0)
    ratio = np.maximum(ratio, 1e-8)  # where the second term is 2/√(2π) to the last digit
    chi = np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + (ratio + 1 / ratio) * erf(
        ratio / np.sqrt(2)
    )
    return np.asarray(np.where(deviation > 0, deviation * chi, length))
