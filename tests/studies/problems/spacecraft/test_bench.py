from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from contextgap.studies.problems import MagnetometerBench
from contextgap.studies.problems import spacecraft as c
from contextgap.studies.problems.spacecraft import rectangle_field


@pytest.fixture(scope="module")
def run():
    return MagnetometerBench(sequence=True).sample(3000, seed=0)


def loop_errors(currents):
    """The error of each sensor by Biot and Savart's law, loop by loop, from the currents told."""
    usual = np.array([c.CALIBRATION_CURRENTS[name] for name in c.LOOPS])
    return np.column_stack(
        [
            np.linalg.norm(
                (currents - usual) @ [rectangle_field(*loop, at) for loop in c.LOOPS.values()],
                axis=1,
            )
            for at in c.SENSORS.values()
        ]
    )


def test_telemetry_determines_the_interference():
    quiet = MagnetometerBench(noise=0, sequence=True).sample(500, seed=1)
    assert quiet.observations is quiet.rewards
    # Half a digit of every current, all fields in line.
    coupling = [
        [rectangle_field(*loop, at) for loop in c.LOOPS.values()] for at in c.SENSORS.values()
    ]
    rounding = c.BENCH_RESOLUTION / 2 * np.linalg.norm(coupling, axis=2).sum(axis=1)
    assert np.all(np.abs(quiet.rewards + loop_errors(quiet.contexts)) <= rounding)
    assert rounding.max() < 0.6  # nT


def test_readings_scatter_about_the_expected_rewards(run):
    quiet = MagnetometerBench(noise=0, sequence=True).sample(3000, seed=0)
    np.testing.assert_array_equal(quiet.contexts, run.contexts)
    left = run.observations - run.rewards
    # |error| is far above the noise almost everywhere, so that its deviation is the noise's.
    np.testing.assert_allclose(left.std(axis=0), c.BENCH_NOISE, rtol=0.1)
    assert np.all(np.abs(left.mean(axis=0)) < 4 * c.BENCH_NOISE / np.sqrt(3000))


def test_rows_are_operating_states_in_random_order_unless_recorded(run):
    states = MagnetometerBench().sample(400, seed=0)
    assert run.ordered
    assert not states.ordered
    whole = MagnetometerBench(sequence=True).sample(seed=0)
    rows = {row.tobytes() for row in whole.contexts}
    assert all(row.tobytes() in rows for row in states.contexts)
    jumps = np.abs(np.diff(states.contexts, axis=0)).mean(), np.abs(np.diff(run.contexts, axis=0))
    assert jumps[0] > 3 * jumps[1].mean()
    assert len(MagnetometerBench().sample(7000, seed=0)) == 7000


def test_a_longer_run_begins_with_the_shorter(run):
    short = MagnetometerBench(sequence=True).sample(200, seed=0)
    np.testing.assert_allclose(short.contexts, run.contexts[:200], atol=1e-12)
    np.testing.assert_allclose(short.rewards, run.rewards[:200], atol=1e-9)


def test_loads_step_and_ramp(run):
    columns = dict(zip(c.LOOPS, run.contexts.T, strict=True))
    assert set(columns["payload"]) == {0.0, c.PAYLOAD_CURRENT}
    assert set(columns["transmitter"]) <= {0.0, c.BEACON_CURRENT, c.DOWNLINK_CURRENT}
    assert {0.0, c.HEATER_CURRENT} == set(columns["heater"])
    for ramped in ("panel +X", "wing", "wheel"):
        assert len(set(columns[ramped])) > 50
    dark = columns["panel +X"] + columns["panel -X"] == 0
    in_shadow = 10.0 * np.arange(len(run)) / c.BENCH_ORBIT % 1 < c.BENCH_ECLIPSE
    np.testing.assert_array_equal(dark, in_shadow)
    np.testing.assert_allclose(columns["battery"][dark], -columns["bus"][dark], atol=1e-3)


def test_every_sensor_is_at_times_the_best(run):
    share = np.bincount(run.rewards.argmax(axis=1), minlength=3) / len(run)
    assert share.min() > 0.05


def test_bad_noise_is_named():
    with pytest.raises(ValueError, match="noise must be a standard deviation in nT of at least 0"):
        MagnetometerBench(noise=-1)


def test_the_bench_needs_no_extra():
    code = (
        "import sys; sys.modules.update(sgp4=None, ppigrf=None, pandas=None, sklearn=None);"
        "import contextgap as cg; print(len(cg.problems.MagnetometerBench().sample(9, seed=0)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "9\n"
