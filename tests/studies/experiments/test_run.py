"""Runs against a learner fed the same contexts, and what they report."""

import warnings

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.explorers import ContextualGap
from contextgap.studies.experiments import run
from contextgap.studies.problems import Problem, Sinusoids

EXPLORE, EXPLOIT = Sinusoids(n_arms=6, noise=0.1).sample(260, seed=3).split(200, 60)
METHODS = {
    **cg.METHODS,
    "last 7": cg.Method(explorer=ContextualGap(), recommender=cg.SmallestGapInHistory(7)),
}


def learner_curve(method, checkpoints, **settings):
    """The arms a learner picks and the regret of what it would deploy."""
    learner = cg.Learner(6, method=method, **settings)
    arms, regrets = [], []
    for step in range(201):
        if step in checkpoints:
            with warnings.catch_warnings():  # at step 0
                warnings.filterwarnings("ignore", "there is no reward yet")
                regrets.append(EXPLOIT.regret(learner.recommend(EXPLOIT.contexts)))
        if step < 200:
            arms.append(learner.ask(EXPLORE.contexts[step]))
            learner.tell(EXPLORE.contexts[step], arms[-1], EXPLORE.observations[step, arms[-1]])
    return arms, regrets


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("prior_mean", [0.0, 0.3])
def test_picks_and_deploys_exactly_as_a_learner(name, prior_mean):
    settings = {
        "kernel": cg.Gaussian(0.4),
        "ridge": 0.02,
        "width": cg.PosteriorWidth(1.5),
        "prior_mean": prior_mean,
        "burn_in": 2,
        "seed": 11,
    }
    checkpoints = [0, 5, 12, 50, 111, 200]
    arms, regrets = learner_curve(METHODS[name], checkpoints, **settings)
    trace = run(EXPLORE, EXPLOIT, method=METHODS[name], checkpoints=checkpoints, **settings)
    assert trace.arms.tolist() == arms
    assert trace.checkpoints.tolist() == checkpoints
    np.testing.assert_allclose(trace.average_regret, [regret.mean() for regret in regrets])
    np.testing.assert_allclose(trace.worst_regret, [regret.max() for regret in regrets])


def test_picks_as_a_learner_whose_prior_mean_is_the_average_reward():
    settings = {"kernel": cg.Gaussian(0.4), "ridge": 0.02, "prior_mean": "auto", "seed": 1}
    arms, _ = learner_curve("contextual-gap", [], **settings)
    assert run(EXPLORE, EXPLOIT, **settings).arms.tolist() == arms


def test_ranks_of_picks_by_brute_force():
    trace = run(EXPLORE, EXPLOIT, method="uniform")
    for step, arm in enumerate(trace.arms):
        rewards = EXPLORE.rewards[step]
        assert trace.ranks[step] == 1 + (rewards > rewards[arm]).sum()


def test_regret_is_measured_without_noise():
    flat = Problem(name="flat", contexts=np.zeros((50, 1)), rewards=np.zeros((50, 2))).with_noise(
        5.0, seed=0
    )
    trace = run(flat, flat, kernel=cg.Gaussian(1.0))
    assert trace.average_regret[-1] == 0


def test_checkpoints_every_so_many_steps_and_after_the_last():
    assert run(EXPLORE, EXPLOIT, checkpoints=75).checkpoints.tolist() == [75, 150, 200]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"checkpoints": 0}, ValueError, "checkpoints must be at least 1, got 0"),
        ({"checkpoints": [500]}, ValueError, "checkpoints must be step numbers up to 200"),
        ({"ridge": -1.0}, ValueError, "ridge must be positive, got -1"),
        ({"method": "magic"}, ValueError, "method must be one of"),
        ({"burn_in": -1}, ValueError, "burn_in must be at least 0"),
        ({"kernel": cg.Gaussian((1.0, 1.0))}, ValueError, "bandwidth has 2 entries"),
    ],
)
def test_bad_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        run(EXPLORE, EXPLOIT, **arguments)


def test_problems_must_match():
    other = Sinusoids(n_arms=3).sample(10, seed=0)
    with pytest.raises(ValueError, match="same arms"):
        run(EXPLORE, other)
