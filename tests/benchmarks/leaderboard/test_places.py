"""The leaderboard's problems: what is explored, what is deployed on, and what is heard."""

import numpy as np
import pytest
from dose_arms import DOSES, doses

from contextgap.studies.problems import Sinusoids, Spacecraft
from leaderboard import places as module
from leaderboard.places import DEPLOYED, places, settings_of
from tests.studies.problems.algorithm_selection.writing import ASLIB

PLACES = places()
MADE = [name for name in PLACES if name not in module.SCENARIOS]


def rows_of(problem):
    return {row.tobytes() for row in problem.contexts}


@pytest.mark.parametrize("name", MADE)
def test_seeds_are_repetitions_and_fix_everything(name):
    explore, deploy = PLACES[name].pair(60, 5)
    assert len(explore) == 60
    assert 0 < len(deploy) <= DEPLOYED
    again, other = PLACES[name].pair(60, 5), PLACES[name].pair(60, 6)
    np.testing.assert_array_equal(again[0].observations, explore.observations)
    np.testing.assert_array_equal(again[1].rewards, deploy.rewards)
    assert not np.array_equal(other[0].contexts, explore.contexts)


@pytest.mark.parametrize("name", ["sinusoids-0.5", "spacecraft", "clicks", "doses"])
def test_nothing_that_was_explored_is_deployed_on(name):
    explore, deploy = PLACES[name].pair(60, 5)
    assert not rows_of(explore) & rows_of(deploy)


def test_noise_is_in_units_of_the_rewards_and_heard_only():
    for noise in (0.0, 0.1, 0.5):
        explore, deploy = PLACES[f"sinusoids-{noise:g}"].pair(2000, 5)
        heard = explore.observations - explore.rewards
        assert heard.std() == pytest.approx(noise * explore.rewards.std(), rel=0.02)
        assert deploy.observations is deploy.rewards
        np.testing.assert_array_equal(
            explore.contexts, Sinusoids().sample(3000, seed=5).contexts[:2000]
        )


def test_the_spacecraft_flies_on():
    explore, deploy = PLACES["spacecraft"].pair(60, 5)
    flight = Spacecraft().sample(60 + DEPLOYED, seed=5)
    np.testing.assert_array_equal(
        np.concatenate([explore.contexts, deploy.contexts]), flight.contexts
    )


def test_rows_of_data_sets_are_met_again_but_never_deployed_on():
    explore, deploy = PLACES["iris"].pair(400, 5)
    assert len(explore) == 4 * 75  # more visits would teach little
    assert len(rows_of(explore)) <= 75
    assert len(deploy) == 75
    shared = rows_of(explore) & rows_of(deploy)
    assert len(shared) <= 1  # two flowers of iris are the same


def test_what_is_heard_of_clicks_has_the_expected_mean():
    for name, rewards in (("clicks", {0.0, 1.0}), ("payments", None)):
        explore, _ = PLACES[name].pair(20_000, 5)
        heard = explore.observations
        error = heard.std() / np.sqrt(heard.size)
        assert abs(heard.mean() - explore.rewards.mean()) < 4 * error
        assert rewards is None or set(np.unique(heard)) == rewards
    assert (heard == 0).mean() > 0.5
    assert heard.max() > 10 * heard.mean()


def test_neighbouring_doses_pay_nearly_the_same_and_the_best_depends_on_the_patient():
    problem = doses(500, seed=5)
    assert problem.n_arms == len(DOSES) == len(problem.arm_features) == 30
    spread = problem.rewards.std()
    assert np.abs(np.diff(problem.rewards, axis=1)).max() < 0.5 * spread
    assert len(np.unique(problem.rewards.argmax(axis=1))) > 8
    assert problem.take(slice(3)).arm_features == problem.arm_features


def test_features_are_told_where_arms_have_them():
    explore, _ = PLACES["doses"].pair(20, 5)
    told = settings_of(explore)["features"]
    assert list(told) == list(range(30))
    assert told[29] == (1.0,)
    assert settings_of(PLACES["iris"].pair(20, 5)[0]) == {}


def test_scenarios_that_are_not_there_are_left_out(tmp_path):
    assert set(places(tmp_path)) == set(MADE)


@pytest.mark.skipif(not ASLIB.is_dir(), reason="the shared scenarios are not here")
def test_the_seed_names_the_fold_and_instances_are_met_once():
    pair = PLACES["BNSL-2016"].pair
    explore, deploy = pair(2000, 103)
    whole = module.scenario(module.ASLIB / "BNSL-2016")
    assert set(deploy.folds) == {4}
    assert len(set(explore.instances)) == len(explore) == len(whole) - len(deploy)
    assert not set(explore.instances) & set(deploy.instances)
    assert len(pair(100, 103)[0]) == 100
