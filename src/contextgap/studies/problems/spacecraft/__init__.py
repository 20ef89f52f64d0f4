"""A simulated 3U CubeSat with three magnetometers: which one to trust, given telemetry.

The orbit is SGP4's, the Earth's field IGRF's; attitude, power, temperatures and the interference
that the spacecraft's own currents cause are simulated. ``constants`` lists every number.
"""

from contextgap.studies.problems.spacecraft.flight import Flight, MagnetometerBench, Spacecraft

__all__ = ["Flight", "MagnetometerBench", "Spacecraft"]
