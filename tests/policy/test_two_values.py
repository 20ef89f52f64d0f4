"""Rewards of two values: what is reported lies within the range that they allow."""

import json
from dataclasses import replace

import numpy as np
import pytest

import contextgap as cg
from contextgap.insight import learnt
from contextgap.policy import Card, Estimate, Policy
from contextgap.policy.state import two_values

CASES = [
    pytest.param(values, reward, id=f"{values[0]}/{values[1]}-{reward}")
    for values in ((0, 1), (-1, 1), (0, 5), (2.5, 3.0))
    for reward in ("maximize", "minimize")
]
FAR = np.linspace(-4, 4, 41)[:, None]  # on both sides of what was seen


def chances(contexts):
    """Return the probability of the higher value for every arm."""
    x = contexts[:, 0]
    return np.column_stack(
        [1 / (1 + np.exp(-3 * x)), 1 / (1 + np.exp(3 * x)), np.full(len(x), 0.4)]
    )


def explored(values=(0, 1), reward="maximize", rows=80, seed=0, **settings):
    rng = np.random.default_rng(seed)
    contexts, picks = rng.uniform(-2, 2, (rows, 1)), rng.integers(3, size=rows)
    high = rng.random(rows) < chances(contexts)[np.arange(rows), picks]
    settings = {"kernel": cg.Gaussian(0.8), "ridge": 0.05} | settings
    learner = cg.Learner(list("abc"), seed=0, reward=reward, **settings)
    return learner.fit(contexts, ["abc"[k] for k in picks], np.where(high, values[1], values[0]))


def unclipped(policy):
    return Policy(replace(policy.state, reward_range=None, card=None))


@pytest.mark.parametrize(("values", "reward"), CASES)
def test_reports_are_clipped_to_the_range(values, reward):
    learner = explored(values, reward, width=cg.PosteriorWidth(3.0))
    policy, (low, high) = learner.freeze(), values
    raw = unclipped(policy)
    assert policy.state.reward_range == values
    bound, free = policy.certificate(FAR).bound, raw.certificate(FAR).bound
    assert (free > high - low).any()
    np.testing.assert_array_equal(bound, np.minimum(free, high - low))
    np.testing.assert_array_equal(policy.answered(FAR, None, True).certificate.bound, bound)
    regret = policy.expected_regret(FAR)
    np.testing.assert_array_equal(regret, np.minimum(raw.expected_regret(FAR), high - low))
    told, believed = policy.beliefs(FAR), raw.beliefs(FAR)
    for name in ("mean", "lower", "upper"):
        expected = np.clip(getattr(believed, name), low, high)
        np.testing.assert_array_equal(getattr(told, name), expected)
        np.testing.assert_array_equal(getattr(learner.beliefs(FAR), name), expected)
        np.testing.assert_allclose(  # what decide says, within the range
            expected, [np.clip(getattr(policy.decide(x), name), low, high) for x in FAR], 1e-9, 1e-9
        )
    assert (believed.lower < low).any()
    assert (believed.upper > high).any()
    np.testing.assert_array_equal(told.std, believed.std)
    for answers in (policy, learner):
        np.testing.assert_array_equal(answers.means(FAR), np.clip(raw.means(FAR), low, high))
    for context in FAR[::5]:
        for own, other in zip(policy.rank(context), raw.rank(context), strict=True):
            assert own.arm == other.arm
            assert own.bound == min(other.bound, high - low)
            for name in ("mean", "lower", "upper"):
                assert getattr(own, name) == np.clip(getattr(other, name), low, high)
        assert policy.rank(context) == learner.rank(context)


@pytest.mark.parametrize(("values", "reward"), CASES[:4])
def test_decisions_do_not_change(values, reward, tmp_path):
    policy = explored(values, reward).freeze(fallback="c", tolerance=values[1] - values[0])
    raw = unclipped(policy)
    np.testing.assert_array_equal(policy.recommend(FAR), raw.recommend(FAR))
    np.testing.assert_array_equal(policy.status(FAR), raw.status(FAR))
    assert (policy.status(FAR) > 0).any()
    here = FAR[20]
    assert repr(policy.decide(here)) == repr(raw.decide(here))
    sign, decision = (-1 if reward == "minimize" else 1), policy.decide(here)
    ends = sorted((sign * decision.lower[0], sign * decision.upper[0]))
    others = np.maximum(sign * decision.lower, sign * decision.upper)[1:]
    assert decision.gap[0] == pytest.approx(others.max() - ends[0])
    assert str(policy.rules()) == str(raw.rules())
    for name, each in (("own", policy), ("raw", raw)):
        each.to_c(tmp_path / name, certificates=True, contexts=FAR)
    for file in sorted((tmp_path / "own").iterdir()):
        assert file.read_bytes() == (tmp_path / "raw" / file.name).read_bytes()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("reward", ["maximize", "minimize"])
def test_certificates_still_hold(seed, reward):
    seen = FAR[np.abs(FAR[:, 0]) <= 2]
    theorem = cg.TheoremWidth(
        noise=2.5, norm=20.0, failure_probability=0.05
    )  # half the range bounds the noise
    for width in (cg.PosteriorWidth(0.5), theorem):
        learner = explored((0, 5), reward, seed=seed, width=width, prior_mean=0.0, rows=200)
        policy = learner.freeze()
        expected = 5 * chances(seen) * (-1 if reward == "minimize" else 1)
        picks = ["abc".index(arm) for arm in policy.recommend(seen)]
        regret = expected.max(axis=1) - expected[np.arange(len(seen)), picks]
        bound, free = policy.certificate(seen).bound, unclipped(policy).certificate(seen).bound
        np.testing.assert_array_equal(regret <= bound, regret <= free)
    assert policy.probability == 0.95
    assert (regret <= bound).all()
    assert (bound < free).any()


def test_a_bound_that_cannot_be_computed_is_the_range():
    policy = explored((0, 5)).freeze(fallback="c")
    state = replace(policy.state, rules=replace(policy.state.rules, width=cg.PosteriorWidth(1e308)))
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isinf(unclipped(Policy(state)).certificate(FAR).bound).any()
        bound = Policy(state).certificate(FAR).bound
    np.testing.assert_array_equal(bound, 5.0)


@pytest.mark.parametrize(
    ("rewards", "found"),
    [
        ([0, 1] * 10, (0, 1)),
        ([0, 1] * 9, None),  # too few
        ([0.0] * 30, None),
        ([0] * 29 + [7.3], None),  # seen once, as a continuous reward is
        ([0] * 28 + [7.3] * 2, (0, 7.3)),
        ([0, 1] * 20 + [0.5], None),
        ([-1, -3] * 10, (-3, -1)),
        ([True, False] * 10, (0, 1)),
    ],
)
@pytest.mark.parametrize("reward", ["maximize", "minimize"])
def test_the_range_of_a_log(rewards, found, reward):
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), reward=reward)
    learner.fit(
        np.arange(len(rewards))[:, None] / 9,
        [0, 1] * (len(rewards) // 2) + [0] * (len(rewards) % 2),
        rewards,
    )
    assert learner.freeze().state.reward_range == found
    sign = learner.state.rules.sign
    assert two_values(learner.state.model.observed, sign) == found


def test_rewards_with_noise_of_their_own_have_no_range():
    learner = explored()
    learner.tell([0.1], "a", 1, noise=0.3)
    assert learner.freeze().state.reward_range is None


def test_three_values_change_nothing():
    learner = explored((0, 1))
    learner.tell([0.1], "a", 0.5)
    policy = learner.freeze()
    assert policy.state.reward_range is None
    assert policy.card.reward_range is None
    assert (policy.beliefs(FAR).upper > 1).any()
    assert (policy.certificate(FAR).bound > 1).any()
    for estimate in (policy.card.value, policy.card.gain):
        ends = estimate.value - 1.96 * estimate.error, estimate.value + 1.96 * estimate.error
        assert estimate.interval == ends


def test_learnt_hyperparameters_and_compression_keep_the_range():
    policy = explored((0, 5), rows=120, kernel=None, ridge=None).freeze()
    smaller = policy.compress(points=4)  # of which all might have one value
    for each in (policy, smaller):
        assert each.state.reward_range == each.card.reward_range == (0, 5)
        assert (each.certificate(FAR).bound <= 5).all()


@pytest.mark.parametrize(("values", "reward"), CASES[:6])
def test_files_keep_the_range(values, reward, tmp_path):
    policy = explored(values, reward).freeze()
    card = policy.card
    policy.save(tmp_path / "policy.cgap")
    loaded = cg.Policy.load(tmp_path / "policy.cgap")
    assert loaded.state.reward_range == values
    assert loaded.card == card
    assert str(loaded.card) == str(card)
    np.testing.assert_array_equal(loaded.certificate(FAR).bound, policy.certificate(FAR).bound)
    np.testing.assert_array_equal(loaded.beliefs(FAR).upper, policy.beliefs(FAR).upper)
    raw = unclipped(policy)  # as earlier releases wrote it
    raw.save(tmp_path / "earlier.cgap")
    earlier = cg.Policy.load(tmp_path / "earlier.cgap")
    assert earlier.state.reward_range is None
    np.testing.assert_array_equal(earlier.certificate(FAR).bound, raw.certificate(FAR).bound)


@pytest.mark.parametrize(("values", "reward"), CASES)
def test_cards_stay_within_the_range(values, reward):
    learner, (low, high) = explored(values, reward, rows=24, ridge=0.01), values
    card = learner.score(np.full(24, 1 / 3))
    free = replace(card, reward_range=None)
    assert card.reward_range == values
    for name in ("value", "best_single", "logged", "direct", "weighted", "gain"):
        own, other = getattr(card, name), getattr(free, name)
        assert (own.value, own.error) == (other.value, other.error)
        limits = (low - high, high - low) if name == "gain" else values
        assert other.interval == (own.value - 1.96 * own.error, own.value + 1.96 * own.error)
        assert own.interval == tuple(np.clip(other.interval, *limits))
        assert own.in_words in str(card)
        assert own.in_words in card._repr_html_()
    assert card.certificate <= high - low
    assert Card.restored(json.loads(json.dumps(card.describe()))) == card
    assert "reward_range" not in free.describe()
    assert Card.restored(free.describe()) == free


def test_intervals_beyond_the_limits():
    assert Estimate(0.95, 0.1, (0, 1)).interval == (0.95 - 1.96 * 0.1, 1)
    assert Estimate(1.5, 0.1, (0, 1)).interval == (1, 1)
    assert Estimate(0.5, np.inf, (0, 1)).interval == (0, 1)


@pytest.mark.parametrize("wrong", [[1, 0], [0, 0], [0], [0, "1"], 5, [0, float("inf")]])
def test_a_wrong_range_is_refused(wrong):
    values = explored().score().describe() | {"reward_range": wrong}
    with pytest.raises((TypeError, ValueError)):
        Card.restored(values)


def test_courses_are_clipped_alike():
    policy = explored((0, 5), "minimize", width=cg.PosteriorWidth(3.0)).freeze()
    course = learnt.along(policy, 0, points=7)
    contexts = np.array(course.values, dtype=float)[:, None]
    np.testing.assert_allclose(course.lower, policy.beliefs(contexts).lower, 1e-9, 1e-9)
    np.testing.assert_allclose(course.bound, policy.certificate(contexts).bound, 1e-9, 1e-9)
