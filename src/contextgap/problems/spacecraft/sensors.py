"""The errors of the three magnetometers."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.problems.spacecraft import constants as c
from contextgap.problems.spacecraft import magnetics
from contextgap.problems.spacecraft.attitude import Motion


def interference(currents: FloatArray, motion: Motion, phase: FloatArray) -> FloatArray:
    """Return the spacecraft's own field at each sensor, nT, shape (n, sensors, 3).

    ``currents`` (A) has a column per loop of LOOPS; ``phase`` is the wheel rotor's angle, in
    radians, when the sensors are read.
    """
    moments = motion.remanence + c.LEAKAGE * motion.command
    # A reading averages over some 20 ms, in which a fast rotor's field cancels.
    frequency = np.abs(motion.wheel) / c.WHEEL_FULL * c.WHEEL_FULL_RPM / 60
    left = c.ROTOR_DIPOLE / np.sqrt(1 + (frequency / c.ROTOR_BANDWIDTH) ** 2)
    rotor = np.column_stack([left * np.cos(phase), left * np.sin(phase)])
    field: FloatArray = (
        np.tensordot(currents, magnetics.loop_coupling(), axes=1)
        + np.tensordot(moments, magnetics.torquer_coupling(), axes=1)
        + np.tensordot(rotor, magnetics.rotor_coupling(), axes=1)
    )
    return field


def hard_iron() -> FloatArray:
    """Return what ground calibration subtracts from each sensor's reading, nT, (sensors, 3)."""
    usual = [c.CALIBRATION_CURRENTS[name] for name in c.LOOPS]
    offset: FloatArray = np.tensordot(usual, magnetics.loop_coupling(), axes=1)
    return offset


def sensor_errors(
    field: FloatArray, own: FloatArray, temperatures: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return each sensor's reading minus the Earth's field, nT, shape (n, sensors, 3).

    ``field`` is the Earth's in body axes, shape (n, 3), and ``own`` the spacecraft's at each
    sensor, both in nT; temperatures are each sensor's, in °C.
    """
    gain = 1e-3 * np.array(c.GAIN_ERRORS)
    at_sensor = field[:, np.newaxis] + own
    distorted = np.einsum("sij,nsj->nsi", gain, at_sensor)
    warmth = temperatures - np.array(c.CALIBRATION_TEMPERATURES)
    drift = warmth[:, :, np.newaxis] * np.array(c.DRIFT)
    noise = rng.standard_normal(own.shape) * np.array(c.NOISE)[:, np.newaxis]
    errors: FloatArray = own - hard_iron() + distorted + drift + noise
    return errors
