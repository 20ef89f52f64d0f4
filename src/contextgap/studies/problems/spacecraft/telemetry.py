"""What the ground sees: telemetry channels, each on the grid of its digitiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def chosen_channels(asked: str | Sequence[str]) -> list[int]:
    """Return the places in CHANNELS of "all", of "currents", or of channels by their names."""
    names = [channel.name for channel in CHANNELS]
    groups = {"all": names, "currents": [f"{name} current" for name in _CURRENTS]}
    if isinstance(asked, str) and asked not in groups:
        raise ValueError(f'telemetry must be "all", "currents" or a list of names, got {asked!r}')
    wanted = groups[asked] if isinstance(asked, str) else list(asked)
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise ValueError(
            f"telemetry must name channels, got {unknown[0] if unknown else 'none'!r}; "
            f"there are {', '.join(names)}"
        )
    return [names.index(name) for name in wanted]


def digitised(values: Mapping[str, FloatArray]) -> FloatArray:
    """Return the channels as columns, in the order of CHANNELS, rounded to their resolutions."""
    exact = np.column_stack([values[channel.name] for channel in CHANNELS])
    resolution = np.array([channel.resolution for channel in CHANNELS])
    # Adding zero turns -0 into 0.
    rounded: FloatArray = np.round(exact / resolution) * resolution + 0.0
    return rounded
