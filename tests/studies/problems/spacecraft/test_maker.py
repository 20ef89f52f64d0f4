from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from contextgap.studies.problems.problem import standardised
from contextgap.studies.problems.spacecraft import TLE, Sources, Spacecraft, simulate


def test_readings_are_observed_and_expected_errors_are_the_rewards(flight):
    flown = simulate(TLE, 1200, 10.0, seed=0)
    np.testing.assert_allclose(flight.observations, -np.sqrt((flown.errors**2).sum(axis=2)) / 100)
    np.testing.assert_allclose(flight.rewards, -flown.expected / 100)
    # An oracle of the expected rewards has no regret, though a reading may favour another sensor.
    assert not flight.regret(flight.rewards.argmax(axis=1)).any()
    assert (flight.rewards.argmax(axis=1) != flight.observations.argmax(axis=1)).any()
    assert flight.arms == ("top deck", "bottom deck", "boom")
    assert flight.ordered
    assert flight.frame().columns[0] == "panel +X current [A]"


def test_the_seed_fixes_the_flight_and_seeds_differ(flight):
    again, other = (Spacecraft().sample(1200, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.contexts, flight.contexts)
    np.testing.assert_array_equal(again.rewards, flight.rewards)
    np.testing.assert_array_equal(other.dipole_latitude, flight.dipole_latitude)
    frames = flight.frame(), other.frame()
    for column in ("payload current [A]", "wheel speed [rpm]", "field X [nT]"):
        assert not np.array_equal(frames[0][column], frames[1][column])


def test_a_longer_flight_begins_with_the_shorter(flight):
    short = Spacecraft().sample(n=300, step=10.0, seed=0)
    np.testing.assert_allclose(short.contexts, flight.contexts[:300], atol=1e-9)
    np.testing.assert_allclose(short.rewards, flight.rewards[:300], atol=1e-9)


def test_the_field_is_known_at_low_dipole_latitudes(flight):
    np.testing.assert_array_equal(flight.known, np.abs(flight.dipole_latitude) < 55)
    assert 0.5 < flight.known.mean() < 0.75
    narrow = Spacecraft(known_below=20).sample(1200, seed=0)
    np.testing.assert_array_equal(narrow.known, np.abs(flight.dipole_latitude) < 20)


@pytest.mark.parametrize("step", [1.0, 7.5, 60.0])
def test_any_step_flies(step):
    flight = Spacecraft().sample(200, seed=0, step=step)
    assert flight.time[-1] == pytest.approx(199 * step)
    assert -20 < flight.rewards.min() < flight.rewards.max() < 0


def test_scaled_channels_have_no_units():
    scaled = Spacecraft(scale=True).sample(300, seed=0)
    assert scaled.columns[:2] == ("panel +X current", "panel -X current")
    assert np.all(np.abs(scaled.contexts.mean(axis=0)) < 1e-9)


def test_sources_change_the_errors_only(flight):
    quiet = Spacecraft(noise=0, rotor=0).sample(1200, seed=0)
    assert quiet.observations is quiet.rewards
    np.testing.assert_array_equal(quiet.contexts, flight.contexts)
    flown = simulate(TLE, 1200, 10.0, seed=0, sources=Sources(noise=0, rotor=0))
    np.testing.assert_allclose(quiet.rewards, -np.linalg.norm(flown.errors, axis=2) / 100)
    steady = Spacecraft(noise=0, rotor=0, gain=0, drift=0).sample(1200, seed=0)
    assert not np.allclose(steady.rewards, quiet.rewards)


def test_telemetry_may_be_some_channels(flight):
    currents = Spacecraft(telemetry="currents").sample(1200, seed=0)
    assert currents.columns == flight.columns[:11]
    np.testing.assert_array_equal(currents.contexts, flight.contexts[:, :11])
    np.testing.assert_array_equal(currents.observations, flight.observations)
    two = Spacecraft(telemetry=["wheel speed", "field X"], scale=True).sample(20, seed=0)
    assert two.columns == ("wheel speed", "field X")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"known_below": 0}, ValueError, "known_below must be degrees above 0, at most 90, got 0"),
        ({"known_below": "55"}, TypeError, "known_below must be degrees of dipole latitude"),
        ({"tle": "1 40379U"}, TypeError, "tle must be the two lines"),
        ({"tle": (TLE[1], TLE[0])}, ValueError, "line 1 of tle must start with '1'"),
        ({"tle": (TLE[0], TLE[1][:60])}, ValueError, "line 2 of tle.*69 characters"),
        ({"noise": -1}, ValueError, "noise must be a factor of at least 0, got -1"),
        ({"rotor": "off"}, TypeError, "rotor must be"),
        ({"telemetry": "volts"}, ValueError, "telemetry must be .*got 'volts'"),
        ({"telemetry": ["volts"]}, ValueError, "must name channels, got 'volts'; there are panel"),
        ({"telemetry": []}, ValueError, "must name channels, got 'none'"),
    ],
)
def test_bad_settings_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        Spacecraft(**options)


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        Spacecraft().sample(0)
    with pytest.raises(ValueError, match="step must be positive, got -1"):
        Spacecraft().sample(5, step=-1)


def test_elements_may_end_in_blanks():
    assert Spacecraft(tle=[f"{line} \n" for line in TLE]) == Spacecraft()


def test_every_sensor_has_its_hour_and_telemetry_says_which():
    """benchmarks/spacecraft.py does the same at full size for ten seeds."""
    flight = Spacecraft().sample(4000, seed=3)
    share = np.bincount(flight.rewards.argmax(axis=1), minlength=3) / len(flight)
    assert share.min() >= 0.15
    contexts, rewards = standardised(flight.contexts), standardised(flight.rewards)
    order = np.random.default_rng(0).permutation(len(flight))
    train, test = order[:2500], order[2500:]
    kernel, linear = (
        r2_score(
            rewards[test],
            model.fit(contexts[train], rewards[train]).predict(contexts[test]),
            multioutput="raw_values",
        )
        for model in (KernelRidge(kernel="rbf", gamma=1 / 72, alpha=0.01), LinearRegression())
    )
    assert kernel.min() >= 0.85
    assert np.sum(kernel - linear > 0.1) >= 2
