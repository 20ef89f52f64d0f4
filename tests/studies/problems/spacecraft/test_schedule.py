from __future__ import annotations

import numpy as np
import pytest

from contextgap.studies.problems import spacecraft as c
from contextgap.studies.problems.spacecraft import draw_schedule, propagate


@pytest.fixture(scope="module")
def orbit():
    return propagate(c.TLE, 6000, 10.0)


def runs(on):
    """Lengths of the runs that end within the flight, s."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(int)])))
    return 10.0 * np.diff(edges)[::2]


def test_runs_last_as_long_as_stated(orbit):
    for seed in range(5):
        schedule = draw_schedule(orbit.latitude, orbit.elevation, 10.0, np.random.default_rng(seed))
        for on in (schedule.payload, schedule.detumble):
            # Two runs may follow each other without a gap.
            assert runs(on).min() >= c.RUN_LENGTH[0]
            assert np.median(runs(on)) <= c.RUN_LENGTH[1] + 10
            assert 0.05 < on.mean() < 0.5


def test_beacons_keep_silent_during_payload_runs_and_downlinks(orbit):
    schedule = draw_schedule(orbit.latitude, orbit.elevation, 10.0, np.random.default_rng(0))
    assert not np.any(schedule.beacon & (schedule.payload | schedule.downlink))
    free = ~(schedule.payload | schedule.downlink)
    assert schedule.beacon[free].mean() == pytest.approx(c.BEACON_SHARE, abs=0.02)
    assert np.all(orbit.elevation[schedule.downlink] > c.DOWNLINK_ELEVATION)


def test_set_points_and_processor(orbit):
    schedule = draw_schedule(orbit.latitude, orbit.elevation, 10.0, np.random.default_rng(1))
    lowest, highest = c.WHEEL_TARGETS
    assert schedule.wheel_target[0] == c.WHEEL_FIRST
    assert np.all((schedule.wheel_target >= lowest) & (schedule.wheel_target <= highest))
    changes = np.count_nonzero(np.diff(schedule.wheel_target))
    assert changes == pytest.approx(60_000 / c.WHEEL_INTERVAL, abs=20)
    mean, deviation = c.PROCESSOR_CURRENT
    assert schedule.processor.mean() == pytest.approx(mean, abs=0.02)
    assert schedule.processor.std() == pytest.approx(deviation, rel=0.3)
    assert schedule.processor.min() > 0
