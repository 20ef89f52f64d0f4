"""Policies among some arms: by row, by hand from the posterior, in rankings and on score cards."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.methods.recommenders.rules import context_normals
from contextgap.models import exact

KERNEL = cg.Gaussian(0.7)
ARMS = ("a", "b", "c", "d", "e")
NEW = np.random.default_rng(9).uniform(-1.5, 1.5, (60, 2))
RECOMMENDERS = [
    cg.HighestMean(),
    cg.HighestUpper(),
    cg.SmallestGap(),
    cg.SmallestGapInHistory(),
    cg.SmallestGapInHistory(7),
    cg.PosteriorSample(),
]


def logged(recommender=None, rows=70, seed=0, **changes):
    rng = np.random.default_rng(seed)
    contexts, picks = rng.uniform(-1, 1, (rows, 2)), rng.integers(5, size=rows)
    rewards = np.sin(contexts[:, 0] * (picks + 1)) + 0.3 * rng.normal(size=rows)
    method = cg.Method(explorer=cg.explorers.Uniform(), recommender=recommender or cg.SmallestGap())
    how = {"kernel": KERNEL, "ridge": 0.1, "seed": 0, **changes}
    learner = cg.Learner(ARMS, method=method, **how)
    return learner, contexts, [ARMS[i] for i in picks], rewards


def policy_of(recommender=None, **changes):
    learner, *data = logged(recommender, **changes)
    return learner.fit(*data).freeze()


def some(rows, seed=0, share=0.5):
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, len(ARMS))) < share
    mask[~mask.any(axis=1), 2] = True
    return mask


def named(row):
    return [arm for arm, may in zip(ARMS, row, strict=True) if may]


@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
@pytest.mark.parametrize(("sharing", "few"), [(0, 0), (0, 256), (0.5, 256)])
def test_rows_grouped_by_mask_are_rows_one_by_one(recommender, sharing, few, monkeypatch):
    monkeypatch.setattr(exact, "_FEW", few)  # with 0, bounds are used wherever they can be
    policy, mask = policy_of(recommender, sharing=sharing), some(len(NEW))
    picks, bound = policy.recommend(NEW, arms=mask), policy.certificate(NEW, arms=mask).bound
    regret = policy.expected_regret(NEW, arms=mask)
    for i, (x, row) in enumerate(zip(NEW, mask, strict=True)):
        eligible = named(row)
        decision = policy.decide(x, arms=eligible[::-1])
        assert decision.arms == tuple(eligible)
        assert picks[i] == decision.arm == policy.recommend(x, arms=eligible)
        assert bound[i] == pytest.approx(policy.certificate(x, arms=eligible).bound[0], abs=1e-12)
        assert regret[i] == pytest.approx(policy.expected_regret(x, arms=eligible)[0], abs=1e-9)
    lists = [named(row) for row in mask]
    assert policy.recommend(NEW, arms=lists).tolist() == picks.tolist()


@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
def test_everything_eligible_is_nothing_said(recommender):
    policy = policy_of(recommender)
    for arms in (ARMS, np.ones((len(NEW), 5), dtype=bool), set(ARMS)):
        np.testing.assert_array_equal(policy.recommend(NEW, arms=arms), policy.recommend(NEW))
        bound = policy.certificate(NEW, arms=arms).bound
        np.testing.assert_allclose(bound, policy.certificate(NEW).bound, atol=1e-12)


def test_choices_by_hand_from_the_posterior():
    mask = some(len(NEW), seed=4)
    believed = [policy_of(cg.SmallestGap()).decide(x) for x in NEW]
    mean, lower, upper = (
        np.array([getattr(each, name) for each in believed]) for name in ("mean", "lower", "upper")
    )
    gap = np.full(mean.shape, np.inf)
    for row, arm in zip(*np.nonzero(mask), strict=True):
        others = [upper[row, b] for b in np.flatnonzero(mask[row]) if b != arm]
        gap[row, arm] = max(others) - lower[row, arm] if others else 0.0
    picks = {
        cg.HighestMean(): np.where(mask, mean, -np.inf).argmax(axis=1),
        cg.HighestUpper(): np.where(mask, upper, -np.inf).argmax(axis=1),
        cg.SmallestGap(): gap.argmin(axis=1),
    }
    for rule, arm in picks.items():
        policy = policy_of(rule)
        assert policy.recommend(NEW, arms=mask).tolist() == [ARMS[i] for i in arm]
        wanted = np.maximum(gap[np.arange(len(NEW)), arm], 0)
        np.testing.assert_allclose(policy.certificate(NEW, arms=mask).bound, wanted, atol=1e-12)


def test_a_draw_belongs_to_its_arm_whatever_else_is_eligible():
    policy, mask = policy_of(cg.PosteriorSample()), some(len(NEW), seed=5)
    belief = policy.chooser.evidence(NEW).belief
    draws = belief.mean + belief.half_width * context_normals(NEW, range(5), policy.state.seed)
    arm = np.where(mask, draws, -np.inf).argmax(axis=1)
    assert policy.recommend(NEW, arms=mask).tolist() == [ARMS[i] for i in arm]


@pytest.mark.parametrize("sharing", [0, 0.5])
@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
def test_a_ranking_is_what_recommend_answers_when_better_arms_are_gone(recommender, sharing):
    policy = policy_of(recommender, sharing=sharing)
    for x in NEW[:5]:
        ranking, left = policy.rank(x), list(ARMS)
        assert ranking[0].bound == policy.certificate(x).bound[0]
        decision = policy.decide(x)
        for each in ranking:
            assert each.arm == policy.recommend(x, arms=left)
            left.remove(each.arm)
            i = ARMS.index(each.arm)
            believed = [getattr(decision, name)[i] for name in ("mean", "std", "lower", "upper")]
            assert [each.mean, each.std, each.lower, each.upper] == believed
            if each is not ranking[0]:
                assert each.bound == max(decision.gap[i], 0)
        assert not left


@settings(max_examples=30, deadline=None)
@given(st.sets(st.sampled_from(ARMS), min_size=1), st.integers(0, 59))
def test_the_highest_means_are_ranked_by_mean(eligible, row):
    means = [each.mean for each in BY_MEAN.rank(NEW[row], arms=eligible)]
    assert means == sorted(means, reverse=True)
    assert len(means) == len(eligible)


BY_MEAN = policy_of(cg.HighestMean())


def test_retired_arms_are_not_eligible():
    learner, *data = logged()
    learner.fit(*data).remove_arm("b")
    policy = learner.freeze()
    with pytest.raises(ValueError, match=r"arms must be among \['a', 'c', 'd', 'e'\], got 'b'"):
        policy.recommend(NEW, arms=["a", "b"])
    mask = some(len(NEW))[:, 1:]
    mask[~mask.any(axis=1), 0] = True
    picks = policy.recommend(NEW, arms=mask)
    for row, pick in zip(mask, picks, strict=True):
        assert row[policy.arms.index(pick)]


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("sharing", [0, 0.5])
def test_a_card_lets_the_policy_choose_among_what_was_eligible(robust, sharing):
    learner, contexts, arms, rewards = logged(rows=30, sharing=sharing)
    mask = some(30, seed=2)
    mask[np.arange(30), [ARMS.index(arm) for arm in arms]] = True
    chances = np.random.default_rng(1).uniform(0.2, 0.9, 30) if robust else None
    earned, chosen, gaps = np.empty((30, 5)), [], []
    for i in range(30):
        others = np.delete(np.arange(30), i)
        without = logged(sharing=sharing)[0]
        without.fit(contexts[others], [arms[k] for k in others], rewards[others])
        policy, eligible = without.freeze(), named(mask[i])
        earned[i] = policy.decide(contexts[i]).mean
        own = ARMS.index(arms[i])
        if robust:
            earned[i, own] += (rewards[i] - earned[i, own]) / chances[i]
        chosen.append(ARMS.index(policy.recommend(contexts[i], arms=eligible)))
        gaps.append(policy.certificate(contexts[i], arms=eligible).bound[0])
    learner.fit(contexts, arms, rewards, eligible=mask)
    card = learner.score(chances)
    assert card.value.value == pytest.approx(earned[np.arange(30), chosen].mean())
    assert card.certificate == pytest.approx(np.median(gaps))
    average = [earned[mask[:, arm], arm].mean() for arm in range(5)]
    order = np.argsort(average)[::-1]
    single = [next(arm for arm in order if row[arm]) for row in mask]
    assert card.best_single_arm == ARMS[order[0]]
    assert card.best_single.value == pytest.approx(earned[np.arange(30), single].mean())
    assert learner.freeze().card == learner.score()


def test_a_card_is_the_same_if_every_arm_was_always_eligible():
    plain, *data = logged()
    masked = copy.deepcopy(plain)
    assert masked.fit(*data, eligible=ARMS).score() == plain.fit(*data).score()


def test_rows_whose_eligible_arms_are_all_gone_do_not_count():
    learner, contexts, arms, rewards = logged(rows=40)
    eligible = [[arm] if arm == "a" else ARMS for arm in arms]
    learner.fit(contexts, arms, rewards, eligible=eligible)
    learner.remove_arm("a")
    assert learner.score().looked_at == 40 - arms.count("a")
    gone = logged()[0]
    gone.fit(contexts[:5], ["a"] * 5, rewards[:5], eligible=["a"]).remove_arm("a")
    with pytest.raises(ValueError, match="at least 2 rewards where an arm in use was elig"):
        gone.score()


def test_files_keep_what_was_eligible(tmp_path):
    learner, *data = logged()
    mask = some(70, seed=2)
    mask[np.arange(70), [ARMS.index(arm) for arm in data[1]]] = True
    policy = learner.fit(*data, eligible=mask).freeze()
    policy.save(tmp_path / "p.cgap")
    assert cg.Policy.load(tmp_path / "p.cgap").card == policy.card
    assert policy.card != logged()[0].fit(*data).score()


@pytest.mark.parametrize("call", ["decide", "rank"])
def test_one_context_only(call):
    with pytest.raises(ValueError, match="one context: a 1-D array, a dictionary or table"):
        getattr(BY_MEAN, call)(NEW)
