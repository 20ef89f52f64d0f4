"""Decisions without all of the work are those of the whole work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.beliefs import Belief
from contextgap.kernels import Constant
from contextgap.models import Posterior, exact
from tests.oracle import choice_of

# Sizes drawn at random may leave all rows to one arm.
pytestmark = pytest.mark.filterwarnings("ignore:all .* rows tried the arm")

RULES = [cg.SmallestGap(), cg.HighestMean()]
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
    """Compare with the rule, bounds used however few the points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_FEW", 0)
        np.testing.assert_array_equal(
            policy.chooser.pick(contexts), choice_of(policy, contexts).arm
        )


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
    check(policy, np.vstack([contexts, policy.state.model.observed.contexts[:20]]))


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


@settings(max_examples=60, deadline=None)
@given(
    kernel=st.sampled_from([*KERNELS, cg.Matern(0.4, 0.5), cg.Linear()]),
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=3).filter(sum),
    ridge=st.sampled_from([1e-8, 1e-4, 0.1, 10.0]),
    repeats=st.integers(1, 40),
    seed=st.integers(0, 100),
)
def test_bounds_hold(kernel, sizes, ridge, repeats, seed):
    rng = np.random.default_rng(seed)
    learner = cg.Learner(len(sizes), kernel=kernel, ridge=ridge, method="uniform", points=None)
    arms = np.repeat(np.arange(len(sizes)), sizes)
    distinct = rng.uniform(-1, 1, (-(-len(arms) // repeats), 2))
    contexts = distinct[rng.integers(len(distinct), size=len(arms))]
    policy = learner.fit(contexts, arms, rng.normal(size=len(arms))).freeze()
    contexts = np.vstack([rng.uniform(-1.5, 1.5, (30, 2)), contexts[:20], np.zeros((1, 2))])
    posterior = policy.state.model.posterior(contexts, policy.state.active)
    predictor = policy.state.model.predictor(policy.state.active)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_FEW", 0)
        bounds = predictor.bounds(contexts)
    for mean, slack in (predictor.means(contexts), (bounds.mean, bounds.slack)):
        assert (np.abs(mean - posterior.mean).max(axis=1) <= slack).all()
    assert (bounds.least <= posterior.std).all()
    assert (bounds.most >= posterior.std).all()


@settings(max_examples=200, deadline=None)
@given(n_arms=st.integers(1, 5), seed=st.integers(0, 10**6), slack=st.sampled_from([0.0, 0.01]))
def test_what_smallest_gap_calls_certain_holds_for_all_widths(n_arms, seed, slack):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(40, n_arms))
    low = rng.exponential(0.5, (40, n_arms))
    high = low + rng.exponential(0.3, (40, n_arms))

    def belief(mean, std):
        return Belief(Posterior(mean, std, np.zeros(n_arms), 1.0, n_arms), cg.PosteriorWidth(1.0))

    slacks = np.full(40, slack)
    arm, certain = cg.SmallestGap().decided(belief(mean, low), belief(mean, high), slacks)
    for trial in range(60):
        # Corners are where it is hardest to be right.
        share = rng.integers(0, 2, low.shape) if trial % 2 else rng.uniform(size=low.shape)
        wrong = slack * rng.integers(-1, 2, low.shape)
        leader = belief(mean + wrong, low + share * (high - low)).leader
        assert (leader == arm)[certain].all()
    if n_arms == 2 and not slack:
        assert certain.all()  # widths cancel out


def test_bounds_decide_most_contexts():
    policy = policy_of(RULES[0], (700, 700, 700), cg.Gaussian(0.5), points=None)
    contexts = np.random.default_rng(1).uniform(-1, 1, (500, 2))
    _, certain = RULES[0].decided(*policy.chooser.evidence(contexts).bounds)
    assert certain.mean() > 0.5


def test_many_contexts_that_are_the_same():
    """One-hot rows make kernel matrices with many equal eigenvalues."""
    rng = np.random.default_rng(0)
    contexts = np.eye(6)[rng.integers(6, size=1200)]
    learner = cg.Learner(3, kernel=cg.Gaussian(0.7), ridge=0.1, width=cg.PosteriorWidth(2.0))
    learner.fit(contexts, rng.integers(3, size=1200), rng.normal(size=1200))
    policy, query = learner.freeze(), contexts[rng.integers(1200, size=5000)]
    np.testing.assert_array_equal(policy.recommend(query), choice_of(policy, query).arm)


def test_small_arms_and_rules_without_shortcuts_go_the_long_way(monkeypatch):
    monkeypatch.setattr(cg.SmallestGap, "decided", None)
    contexts = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    rules = (cg.SmallestGapInHistory(), cg.PosteriorSample(), cg.HighestUpper(), cg.SmallestGap())
    for rule in rules:
        policy = policy_of(rule, (30, 30))
        np.testing.assert_array_equal(
            policy.chooser.pick(contexts), choice_of(policy, contexts).arm
        )


def test_contexts_where_squares_would_overflow():
    policy = policy_of(RULES[0], (300, 280, 270), cg.Polynomial(3, 1.0))
    check(policy, np.array([[1e50, 1e50], [-1e50, 0.0], [0.0, 0.0]]))


def test_no_contexts_no_arms():
    for rule in RULES:
        assert len(policy_of(rule, (300, 300)).recommend(np.empty((0, 2)))) == 0


def test_recommending_while_picks_are_pending():
    learner = cg.Learner(2, kernel=KERNELS[0], ridge=0.01, seed=0)
    x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    learner.fit(x, [0, 1] * 15, np.sin(3 * x[:, 0]))
    before = learner.recommend(x)
    learner.ask(x[:5])
    learner.decide(x[0])  # assumes the pending picks
    assert (learner.recommend(x) == before).all()
