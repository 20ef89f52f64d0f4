"""What every explorer must do."""

from dataclasses import dataclass

import numpy as np
import pytest

import contextgap as cg
from contextgap.base.components import build
from contextgap.explorers import Elimination, Explorer, KnowledgeGradient, MaxVariance, TopTwoTS

EXPLORERS = [
    *{method.explorer: None for method in cg.METHODS.values()},
    MaxVariance(),
    Elimination(),
    TopTwoTS(),
    KnowledgeGradient(),
    KnowledgeGradient(most=3),
    KnowledgeGradient(local=True),
    KnowledgeGradient(references=((0.0, 0.5), (1.0, -1.0))),
]


def learner_of(explorer, n_arms, **settings):
    method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
    settings = {"kernel": cg.Gaussian(1.0), **settings}
    return cg.Learner(n_arms, method=method, burn_in=0, seed=3, **settings)


@pytest.mark.parametrize("explorer", EXPLORERS, ids=str)
@pytest.mark.parametrize("n_arms", [1, 2, 5])
def test_picks_an_arm_at_any_time(explorer, n_arms, rng):
    learner = learner_of(explorer, n_arms)
    assert learner.ask([0.0, 0.0]) in range(n_arms)  # before any data
    assert set(learner.ask(rng.normal(size=(7, 2)))) <= set(range(n_arms))  # with picks open
    for context in rng.normal(size=(25, 2)):
        learner.tell(context, learner.ask(context), rng.normal())
    assert learner.pending == 8
    assert learner.decide([0.0, 0.0]).arm == learner.ask([0.0, 0.0])
    learner.drop_pending()
    learner.add_arm("new")
    assert set(learner.ask(rng.normal(size=(7, 2)))) <= {*range(n_arms), "new"}


@pytest.mark.parametrize("explorer", EXPLORERS, ids=str)
def test_survives_duplicates_and_hardly_any_ridge(explorer):
    learner = learner_of(explorer, 3, ridge=1e-10)
    for _ in range(60):
        arm = learner.ask([1.0, 2.0])
        learner.tell([1.0, 2.0], arm, float(arm))
    assert learner.ask([1.0, 2.0]) in range(3)


@pytest.mark.parametrize("explorer", EXPLORERS, ids=str)
def test_explains_itself_and_goes_into_files(explorer):
    assert cg.explorers.Explorer.reason != explorer.reason
    assert build(explorer.describe()) == explorer


@pytest.mark.parametrize(
    "explorer", [MaxVariance(), Elimination(), KnowledgeGradient(), KnowledgeGradient(local=True)]
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
