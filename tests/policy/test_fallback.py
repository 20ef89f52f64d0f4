"""A safe arm: answered where the bound is too large and outside what was seen, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.policy.state import Fallback

ARMS = ("hull", "panel", "boom")
INSIDE = np.random.default_rng(3).uniform(-1.15, 1.15, (200, 2))
FAR = np.array([[0.0, 1.3], [-1.3, 0.0], [9.0, -9.0]])
# The rule whose bound is the smallest: that of any fallback is at least as large.
SETTINGS = {"kernel": cg.Gaussian(0.5), "ridge": 0.05, "seed": 0, "method": "contextual-gap"}


def taught(rows=60, **changes):
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-1, 1, (rows, 2))
    contexts[:2] = [[-1.0, -1.0], [1.0, 1.0]]
    picks = rng.integers(3, size=rows)
    rewards = np.sin(3 * contexts[:, 0] + picks) + 0.2 * rng.normal(size=rows)
    learner = cg.Learner(ARMS, **{**SETTINGS, **changes})
    return learner.fit(contexts, [ARMS[i] for i in picks], rewards)


def test_the_fallback_is_answered_where_the_bound_is_too_large():
    plain = taught().freeze()
    policy = taught().freeze(fallback="boom", tolerance=0.4)
    bound, picks = plain.certificate(INSIDE).bound, plain.recommend(INSIDE)
    large = bound > 0.4
    assert 0 < large.sum() < len(INSIDE)
    assert policy.status(INSIDE).tolist() == large.astype(int).tolist()
    assert policy.recommend(INSIDE).tolist() == np.where(large, "boom", picks).tolist()
    gap = np.array([plain.decide(x).gap[2] for x in INSIDE])
    wanted = np.where(large, np.maximum(gap, 0), bound)
    np.testing.assert_allclose(policy.certificate(INSIDE).bound, wanted, atol=1e-12)
    assert (policy.certificate(INSIDE).bound >= bound - 1e-12).all()


def test_the_fallback_is_answered_outside_what_was_seen():
    policy = taught().freeze(fallback="panel")
    assert policy.fallback.low == pytest.approx((-1.2, -1.2))
    assert policy.fallback.high == pytest.approx((1.2, 1.2))
    assert policy.status(FAR).tolist() == [2, 2, 2]
    assert set(policy.recommend(FAR)) == {"panel"}
    assert not policy.status(INSIDE).any()
    np.testing.assert_array_equal(policy.recommend(INSIDE), taught().recommend(INSIDE))
    assert policy.status(FAR[0]) is cg.Status.OUTSIDE
    assert policy.status(INSIDE[0]) is cg.Status.RECOMMENDED


def test_outside_is_said_first():
    policy = taught().freeze(fallback="boom", tolerance=0.0)
    assert policy.status(FAR).tolist() == [2, 2, 2]
    assert (policy.status(INSIDE)[taught().freeze().certificate(INSIDE).bound > 0] == 1).all()


def test_decisions_say_why():
    policy = taught().freeze(fallback="boom", tolerance=0.4)
    status = policy.status(INSIDE)
    large, small = INSIDE[status == 1][0], INSIDE[status == 0][0]
    bound = taught().freeze().certificate(large).bound[0]
    decision = policy.decide(large)
    assert decision.arm == "boom"
    assert decision.reason == f"fallback: the bound {bound:.3g} exceeds the tolerance 0.4"
    assert policy.decide(small).reason == "deployed by SmallestGap"
    reason = policy.decide(FAR[0]).reason
    assert reason == "fallback: outside what was seen: column 1 is 1.3, not -1.2 to 1.2"
    named = cg.Learner(2, kernel=cg.Gaussian(1.0), seed=0)
    named.tell({"heat": 1.0, "load": 2.0}, 0, 1.0)
    reason = named.freeze(fallback=1).decide({"heat": 1.5, "load": 2.0}).reason
    assert reason == "fallback: outside what was seen: 'heat' is 1.5, not 1 to 1"


def test_a_fallback_that_is_not_eligible_cannot_be_answered():
    policy, plain = taught().freeze(fallback="boom", tolerance=0.4), taught().freeze()
    arms = ["hull", "panel"]
    everywhere = np.vstack([INSIDE, FAR])
    status = policy.status(everywhere, arms=arms)
    assert set(status.tolist()) == {0, 3}
    assert (status[-3:] == cg.Status.NO_FALLBACK).all()
    wanted = plain.recommend(everywhere, arms=arms)
    np.testing.assert_array_equal(policy.recommend(everywhere, arms=arms), wanted)
    reason = policy.decide(FAR[0], arms=arms).reason
    assert reason.startswith("deployed by SmallestGap: the fallback is not eligible, but outside")


def test_masks_and_the_fallback_row_by_row():
    policy = taught().freeze(fallback="boom", tolerance=0.4)
    rows = np.vstack([INSIDE[:40], FAR])
    mask = np.random.default_rng(1).random((43, 3)) < 0.6
    mask[~mask.any(axis=1), 0] = True
    together = [
        policy.recommend(rows, arms=mask),
        policy.status(rows, arms=mask),
        policy.certificate(rows, arms=mask).bound,
        policy.expected_regret(rows, arms=mask),
    ]
    for i, x in enumerate(rows):
        arms = [arm for arm, may in zip(ARMS, mask[i], strict=True) if may]
        assert together[0][i] == policy.recommend(x, arms=arms) == policy.decide(x, arms=arms).arm
        assert together[1][i] == policy.status(x, arms=arms)
        assert together[2][i] == pytest.approx(policy.certificate(x, arms=arms).bound[0])
        assert together[3][i] == pytest.approx(policy.expected_regret(x, arms=arms)[0], abs=1e-9)


def test_a_ranking_begins_with_the_fallback_and_goes_on_without_it():
    policy, plain = taught().freeze(fallback="boom", tolerance=0.4), taught().freeze()
    ranking = policy.rank(FAR[0])
    assert [each.arm for each in ranking] == [
        "boom",
        *(each.arm for each in plain.rank(FAR[0], arms=["hull", "panel"])),
    ]
    assert ranking[0].bound == policy.certificate(FAR[0]).bound[0]


@pytest.mark.parametrize("method", list(cg.METHODS))
def test_every_method_may_have_a_fallback(method):
    policy = taught(method=method).freeze(fallback="boom", tolerance=0.4)
    status, picks = policy.status(INSIDE), policy.recommend(INSIDE)
    assert (picks[status == 1] == "boom").all()
    plain = taught(method=method).freeze()
    np.testing.assert_array_equal(status == 1, plain.certificate(INSIDE).bound > 0.4)


def test_a_policy_without_a_fallback_always_recommends():
    policy = taught().freeze()
    assert policy.fallback is None
    assert not policy.status(FAR).any()
    with_one = policy.with_fallback("boom", tolerance=0.4)
    again = taught().freeze(fallback="boom", tolerance=0.4)
    assert with_one.fallback == again.fallback
    assert policy.fallback is None


def test_where_nothing_was_seen_everything_is_outside():
    policy = cg.Learner(ARMS, kernel=cg.Gaussian(1.0)).freeze(fallback="hull")
    assert policy.status([[0.0], [1.0]]).tolist() == [2, 2]
    assert policy.decide([0.0]).reason == "fallback: outside what was seen: there are no rewards"


@pytest.mark.parametrize("tolerance", [None, 0.4])
def test_files_keep_the_fallback(tolerance, tmp_path):
    policy = taught().freeze(fallback="boom", tolerance=tolerance)
    policy.save(tmp_path / "p.cgap")
    again = cg.Policy.load(tmp_path / "p.cgap")
    assert again.fallback == policy.fallback
    rows = np.vstack([INSIDE, FAR])
    np.testing.assert_array_equal(again.status(rows), policy.status(rows))
    np.testing.assert_array_equal(again.recommend(rows), policy.recommend(rows))


@pytest.mark.parametrize(
    "wrong",
    [
        {"arm": "mast"},
        {"tolerance": -1.0},
        {"low": [0.0]},
        {"high": [1.0, float("nan")]},
        {"low": []},
        {"low": ["a", "b"]},
    ],
    ids=str,
)
def test_fallbacks_that_files_cannot_mean(wrong):
    told = taught().freeze(fallback="boom", tolerance=0.1).fallback.describe()
    assert Fallback.restored(told, ARMS, 2).describe() == told
    with pytest.raises((ValueError, TypeError)):
        Fallback.restored({**told, **wrong}, ARMS, 2)


def test_compression_keeps_the_fallback_and_what_was_seen(tmp_path):
    policy = taught(method="uniform").freeze(fallback="boom", tolerance=0.4)
    small = policy.compress(points=8)
    assert small.fallback == policy.fallback
    assert small.card == policy.card
    assert (small.status(FAR) == 2).all()
    assert set(small.recommend(FAR)) == {"boom"}
    bare = taught(method="uniform").freeze().compress(points=8)
    # Wider intervals of fewer points fall back more often, which the report counts.
    assert small.compression.agreement < bare.compression.agreement
    small.save(tmp_path / "p.cgap")
    for late in (small, bare, cg.Policy.load(tmp_path / "p.cgap")):
        with pytest.raises(ValueError, match="before compressing: of 60 contexts seen, this pol"):
            late.with_fallback("hull")


def test_a_card_is_that_of_the_policy_with_its_fallback():
    learner = taught()
    plain, safe = learner.score(), learner.score(fallback="boom", tolerance=0.0)
    assert learner.freeze(fallback="boom").card == plain  # no logged context is outside
    policy = learner.freeze(fallback="boom", tolerance=0.0)
    assert policy.card == safe != plain
    log = learner.state.model.observed
    earned = []
    for i in range(len(log)):
        others = np.delete(np.arange(len(log)), i)
        without = cg.Learner(ARMS, kernel=cg.Gaussian(0.5), ridge=0.05, seed=0)
        labels = [ARMS[arm] for arm in log.arms[others]]
        without.fit(log.contexts[others], labels, log.rewards[others])
        decision = without.freeze().decide(log.contexts[i])
        gap = decision.gap[ARMS.index(decision.arm)]
        earned.append(decision.mean[2 if gap > 0 else ARMS.index(decision.arm)])
    assert safe.value.value == pytest.approx(np.mean(earned))
    given = learner.score(np.full(60, 0.5), fallback="boom", tolerance=0.0)
    assert learner.freeze(given, fallback="boom", tolerance=0.0).card is given


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_a_larger_tolerance_never_falls_back_more(x, y):
    falls = [POLICY.with_fallback("boom", tolerance=t).status([x, y]) > 0 for t in (0.1, 0.5, 2.0)]
    assert falls == sorted(falls, reverse=True)


POLICY = taught().freeze()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"fallback": "mast"}, ValueError, r"fallback must be among \['hull', .*, got 'mast'"),
        ({"fallback": ["boom"]}, ValueError, r"fallback must be among .*, got \['boom'\]"),
        ({"tolerance": 0.1}, TypeError, "tolerance needs a fallback to answer, got tolerance=0.1"),
        ({"fallback": "boom", "tolerance": -1}, ValueError, "tolerance must be .* got -1"),
        ({"fallback": "boom", "tolerance": "0.1"}, TypeError, "tolerance must be .* got '0.1'"),
        ({"fallback": "boom", "tolerance": np.nan}, ValueError, "tolerance must be .* got nan"),
    ],
)
def test_what_is_wrong_is_named(settings, error, message):
    for call in (taught().freeze, taught().score):
        with pytest.raises(error, match=message):
            call(**settings)


def test_a_retired_arm_is_no_fallback():
    learner = taught()
    learner.remove_arm("boom")
    with pytest.raises(ValueError, match=r"fallback must be among \['hull', 'panel'\]"):
        learner.freeze(fallback="boom")
