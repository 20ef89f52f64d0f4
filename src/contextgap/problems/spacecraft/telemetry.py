"""What the ground sees: telemetry channels, each on the grid of its digitiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray


class Channel(NamedTuple):
    """One number of telemetry, with its smallest step, assumed as of 10- to 12-bit digitisers."""

    name: str
    unit: str
    resolution: float

    @property
    def column(self) -> str:
        """The name with its unit, such as "battery voltage [V]"."""
        return f"{self.name} [{self.unit}]"


PANELS = ("panel +X", "panel -X", "panel +Y", "panel -Y")
_CURRENTS = (*PANELS, "wing", "battery", "bus", "transmitter", "payload", "heater", "wheel")
_TEMPERATURES = (*PANELS, "interior", "battery", "amplifier", "boom")

CHANNELS = (
    *(Channel(f"{name} current", "A", 0.005) for name in _CURRENTS),
    *(Channel(f"torquer {axis} moment", "A m²", 0.001) for axis in "XYZ"),
    Channel("wheel speed", "rpm", 50.0),
    *(Channel(f"{name} temperature", "°C", 0.25) for name in _TEMPERATURES),
    Channel("battery voltage", "V", 0.02),
    *(Channel(f"field {axis}", "nT", 100.0) for axis in "XYZ"),
)


def digitised(values: Mapping[str, FloatArray]) -> FloatArray:
    """Return the channels as columns, in the order of CHANNELS, rounded to their resolutions."""
    exact = np.column_stack([values[channel.name] for channel in CHANNELS])
    resolution = np.array([channel.resolution for channel in CHANNELS])
    # Adding zero turns -0 into 0.
    rounded: FloatArray = np.round(exact / resolution) * resolution + 0.0
    return rounded
