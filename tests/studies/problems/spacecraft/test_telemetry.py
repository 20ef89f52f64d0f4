from __future__ import annotations

import numpy as np

from contextgap.studies.problems.spacecraft import CHANNELS


def test_channels_are_on_their_grids(flown):
    for channel, values in zip(CHANNELS, flown.telemetry.T, strict=True):
        counts = values / channel.resolution
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-6, err_msg=channel.name)
        assert len(np.unique(values)) > 1, channel.name


def test_channels_say_what_they_measure_in_which_unit():
    names = [channel.name for channel in CHANNELS]
    assert len(set(names)) == len(names) == 27
    units = {"current": "A", "temperature": "°C", "moment": "A m²", "speed": "rpm", "voltage": "V"}
    for channel in CHANNELS:
        wanted = "nT" if channel.name.startswith("field") else units[channel.name.split()[-1]]
        assert channel.unit == wanted
        assert channel.column == f"{channel.name} [{wanted}]"


def test_telemetry_is_close_to_what_it_measures(flown):
    columns = {channel.name: flown.telemetry[:, i] for i, channel in enumerate(CHANNELS)}
    for name, current in flown.onboard.currents.items():
        np.testing.assert_allclose(columns[f"{name} current"], current, atol=0.00251)
    measured = np.column_stack([columns[f"field {axis}"] for axis in "XYZ"])
    true = np.linalg.norm(flown.orbit.field, axis=1)
    # 60 nT of noise and a grid of 100 nT
    assert np.std(np.linalg.norm(measured, axis=1) - true) < 80
