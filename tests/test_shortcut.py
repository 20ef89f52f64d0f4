"""Decisions without all of the work are those of the whole work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.kernels import Constant
from contextgap.models.narrowing import NarrowingPosterior
from contextgap.shortcut import decided_arms

RULES = [cg.SmallestGap(), cg.HighestMean(), cg.HighestUpper()]
WIDTHS = [cg.PosteriorWidth(1.0), cg.RidgeWidth(0.1), cg.TheoremWidth(0.1, 1.0, 0.1)]
KERNELS = [
    cg.Gaussian(0.3),
    3.0 * cg.Matern((0.5, 0.8), 1.5) + 2.0 * Constant(),
    cg.Polynomial(2, 1.0),
]


def policy_of(rule, sizes, kernel=KERNELS[0], ridge=0.01, width=WIDTHS[0], seed=0, **more):
    rng = np.random.default_rng(seed)
    learner = cg.Learner(
        len(sizes),
        kernel=kernel,
        ridge=ridge,
        width=width,
        method=cg.Method(explorer=cg.METHODS["uniform"].explorer, recommender=rule),
        **more,
    )
    arms = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    contexts = rng.uniform(-1, 1, (len(arms), 2))
    rewards = np.sin(3 * (arms + 1) * contexts[:, 0]) + 0.1 * rng.normal(size=len(arms))
    return learner.fit(contexts, arms, rewards).freeze()


def check(policy, contexts):
    np.testing.assert_array_equal(policy._pick(contexts), policy._choose(contexts).arm)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("width", WIDTHS, ids=lambda width: type(width).__name__)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_the_same_arms_as_the_rule_itself(rule, width, kernel):
    policy = policy_of(rule, (300, 520, 40, 0), kernel, width=width, prior_mean=0.4)
    check(policy, np.random.default_rng(1).uniform(-1.5, 1.5, (400, 2)))


@settings(max_examples=60, deadline=None)
@given(
    rule=st.sampled_from(RULES),
    sizes=st.lists(st.integers(0, 270), min_size=1, max_size=4).filter(sum),
    ridge=st.sampled_from([1e-10, 1e-4, 0.1, 10.0]),
    seed=st.integers(0, 100),
    prior_mean=st.sampled_from([0.0, -3.0, "auto"]),
)
def test_the_same_arms_for_any_sizes_and_ridges(rule, sizes, ridge, seed, prior_mean):
    policy = policy_of(rule, sizes, ridge=ridge, seed=seed, prior_mean=prior_mean)
    contexts = np.random.default_rng(seed).uniform(-1.2, 1.2, (60, 2))
    check(policy, np.vstack([contexts, policy._model.contexts[:20]]))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_ties_go_to_the_lowest_index_as_ever(rule):
    learner = cg.Learner(
        3,
        kernel=KERNELS[0],
        ridge=0.01,
        method=cg.Method(explorer=cg.METHODS["uniform"].explorer, recommender=rule),
    )
    x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    for arm in range(3):  # three arms that are told the same
        learner.tell(x, [arm] * 30, np.sin(x[:, 0]))
    policy = learner.freeze()
    check(policy, x)
    assert set(policy.recommend(x).tolist()) == {0}


def test_bounds_hold_and_close():
    policy = policy_of(RULES[0], (300, 520, 40, 0))
    contexts = np.random.default_rng(1).uniform(-1.5, 1.5, (50, 2))
    exact = policy._model.posterior(contexts, policy._active)
    narrowing = NarrowingPosterior(policy._model, contexts, policy._active)
    np.testing.assert_allclose(narrowing.mean, exact.mean, atol=narrowing.slack.max())
    widths = []
    while narrowing.panels_left:
        assert (narrowing.least <= exact.std + 1e-12).all()
        assert (narrowing.most >= exact.std - 1e-12).all()
        widths.append((narrowing.most - narrowing.least).sum())
        narrowing.narrow()
    np.testing.assert_allclose(narrowing.most, exact.std, atol=1e-9)
    np.testing.assert_array_equal(narrowing.least, narrowing.most)
    assert len(widths) == 3
    assert widths == sorted(widths, reverse=True)


def test_far_fewer_rows_are_solved_where_arms_are_far_apart(monkeypatch):
    policy = policy_of(RULES[0], (1000, 1000, 1000), cg.Gaussian(0.5))
    solved = []
    narrow = NarrowingPosterior.narrow

    def counted(self):
        solved.append(len(self.mean))
        narrow(self)

    monkeypatch.setattr(NarrowingPosterior, "narrow", counted)
    policy.recommend(np.random.default_rng(1).uniform(-1, 1, (200, 2)))
    assert sum(solved) < 0.5 * 4 * 200


def test_rules_that_cannot_tell_go_the_long_way():
    policy = policy_of(cg.SmallestGapInHistory(), (30, 30))
    contexts = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    rule = policy.method.recommender
    _, left = decided_arms(rule, policy._model, contexts, policy._active, policy.width)
    assert len(left) == 20
    check(policy, contexts)


def test_recommending_while_picks_are_pending():
    learner = cg.Learner(2, kernel=KERNELS[0], ridge=0.01, seed=0)
    x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    learner.fit(x, [0, 1] * 15, np.sin(3 * x[:, 0]))
    before = learner.recommend(x)
    learner.ask(x[:5])
    learner.decide(x[0])  # assumes the pending picks
    assert (learner.recommend(x) == before).all()
