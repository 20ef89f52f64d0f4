"""What every explorer must do."""

from dataclasses import dataclass

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.explorers import (
    EBTC,
    Elimination,
    Explorer,
    KnowledgeGradient,
    MaxVariance,
    PlannedSampling,
    ProportionalResponse,
    Uniform,
)
from contextgap.testing import check_explorer

EXPLORERS = [
    *{method.explorer: None for method in cg.METHODS.values()},
    KnowledgeGradient(most=3),
    KnowledgeGradient(local=True),
    KnowledgeGradient(references=((0.0, 0.5), (1.0, -1.0))),
    EBTC(slack=0.1),
    ProportionalResponse(emphasis=1.0),
    PlannedSampling(references=((0.0, 0.5), (1.0, -1.0)), trials=7),
    PlannedSampling(most=3),
    Uniform(random=True),
]


def learner_of(explorer, n_arms, **settings):
    method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
    settings = {"kernel": cg.Gaussian(1.0), **settings}
    return cg.Learner(n_arms, method=method, burn_in=0, seed=3, **settings)


@pytest.mark.parametrize("explorer", EXPLORERS, ids=str)
def test_every_explorer_conforms_and_explains_itself(explorer):
    check_explorer(explorer)
    assert explorer.reason != Explorer.reason


@pytest.mark.parametrize(
    "explorer",
    [MaxVariance(), Elimination(), KnowledgeGradient(), KnowledgeGradient(local=True), EBTC()],
)
def test_ties_go_to_the_lowest_index(explorer):
    learner = learner_of(explorer, 4)
    assert learner.ask([0.0]) == 0
    for arm in range(4):
        learner.tell([1.0], arm, 0.5)
    learner.drop_pending()
    assert learner.ask([0.2]) == 0


@pytest.mark.parametrize("explorer", [MaxVariance(), Elimination(), KnowledgeGradient()])
def test_a_batch_spreads_over_the_arms(explorer):
    picks = learner_of(explorer, 4).ask(np.zeros((4, 1)))
    assert sorted(picks) == [0, 1, 2, 3]


@pytest.mark.parametrize("answer", [-1, 7, 1.5, None, "a"])
def test_an_explorer_that_picks_no_arm_is_named(answer):
    @dataclass(frozen=True)
    class Lost(Explorer):
        def pick(self, moment):
            del moment
            return answer

    method = cg.Method(explorer=Lost(), recommender=cg.HighestMean())
    learner = cg.Learner(3, kernel=cg.Gaussian(1.0), method=method, burn_in=0)
    with pytest.raises(ValueError, match=r"Lost\.pick must return .* 0 to 2, got") as caught:
        learner.ask([0.0])
    assert repr(answer) in str(caught.value)
    assert learner.pending == 0


def test_the_unit_of_rewards_makes_no_difference():
    # Without noise, all gains are soon below the smallest float.
    noise = 0.1 * np.random.default_rng(2).normal(size=60)
    contexts = np.random.default_rng(3).uniform(size=(60, 1))

    def picks(unit):
        learner = cg.Learner(3, seed=1)
        arms = []
        for x, e in zip(contexts, noise, strict=True):
            arms.append(learner.ask(x))
            learner.tell(x, arms[-1], unit * (np.sin(7 * x[0] + 2 * arms[-1]) + e))
        return arms

    assert picks(1.0) == picks(1024.0)


@pytest.mark.slow
def test_on_the_papers_sines_eb_tc_beats_contextual_gap():
    explore, exploit = cg.problems.Sinusoids().sample(2000, seed=1).split(1500, 500)
    regret = [
        cg.experiments.run(
            explore,
            exploit,
            method=each,
            kernel=cg.Gaussian(0.0707),
            ridge=1e-4,
            checkpoints=1500,
        ).average_regret[-1]
        for each in ("eb-tc", "contextual-gap")
    ]
    assert regret[0] < 0.8 * regret[1]
