"""Pictures of flights."""

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.experiments import fly
from contextgap.studies.report.studies import flight_curves, mission_timeline
from tests.studies.experiments.test_fly import phased


@pytest.fixture(scope="module")
def mission():
    found = phased()
    found.time = 10.0 * np.arange(240)
    found.sunlit = (np.arange(240) % 60 < 40).astype(float)
    found.dipole_latitude = 80 * np.sin(np.arange(240) / 10)
    found.rewards = found.rewards - 1.5
    return found


def test_the_timeline_shows_every_sensor_and_what_was_used(mission):
    trace = fly(mission)
    figure = mission_timeline(mission, trace, orbits=2)
    latitude, noise, used = figure.axes
    shown = latitude.get_lines()[0].get_xdata()
    assert len(shown) == 120
    assert [line.get_label() for line in noise.get_lines()] == ["up", "down", "flat"]
    rows = slice(120, 240)
    np.testing.assert_allclose(noise.get_lines()[0].get_ydata(), -100 * mission.rewards[rows, 0])
    bars = sum(len(each.get_paths()) for each in used.collections)
    key = trace.arms[rows] * 2 + trace.deployed[rows]
    assert bars == 1 + np.count_nonzero(np.diff(key))


def test_flight_curves_are_means_over_seeds(mission):
    table = pd.DataFrame(
        {
            "method": ["uniform"] * 4,
            "seed": [0, 0, 1, 1],
            "orbit": [0, 1, 0, 1],
            "steps": 10,
            "average_regret": [0.4, 0.2, 0.2, 0.0],
            "best_single": 0.3,
            "random": 0.5,
        }
    )
    ax = flight_curves(table).axes[0]
    ours, single, chance = ax.get_lines()[:3]
    np.testing.assert_allclose(ours.get_ydata(), [0.3, 0.1])
    np.testing.assert_allclose(ours.get_xdata(), [1, 2])
    np.testing.assert_allclose(single.get_ydata(), 0.3)
    np.testing.assert_allclose(chance.get_ydata(), 0.5)
