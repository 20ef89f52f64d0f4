"""Why one arm is better than another: parts that sum up, weights by finite differences."""

import json

import numpy as np
import pandas
import pytest

import contextgap as cg
from contextgap.policy.answers import differing, in_words

ARMS = ["hull", "panel", "boom"]


def told(n=60, seed=0, **settings):
    """Which arm pays is decided by the first of two numbers; the second says nothing."""
    rng = np.random.default_rng(seed)
    contexts, arms = rng.uniform(-1, 1, (n, 2)), rng.choice(ARMS, n)
    sides = {"hull": 1.0, "panel": -1.0, "boom": 0.0}
    rewards = np.array([sides[a] * x for a, x in zip(arms, contexts[:, 0], strict=True)])
    settings = {"kernel": cg.Gaussian(0.7), "ridge": 0.1, "seed": 0, **settings}
    return cg.Learner(ARMS, **settings).fit(contexts, arms, rewards), contexts, arms, rewards


def difference(policy, context, arm, against):
    decision = policy.decide(context)
    means = dict(zip(decision.arms, decision.mean, strict=True))
    return means[arm] - means[against]


MODELS = {
    "exact": {},
    "prior mean": {"prior_mean": 3.0},
    "average": {"prior_mean": "auto"},
    "joint": {"sharing": 0.4},
    "costs": {"reward": "minimize"},
}


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_parts_sum_up_to_the_difference(settings):
    learner, *_ = told(**settings)
    policy = learner.freeze()
    for context in ([0.8, 0.1], [-0.8, 0.1], [5.0, 5.0]):
        found = policy.explain(context, most=1000)
        assert found.arm == policy.recommend(context)
        assert found.against == policy.rank(context)[1].arm
        expected = difference(policy, context, found.arm, found.against)
        np.testing.assert_allclose(found.difference, expected, rtol=1e-9, atol=1e-12)
        total = sum(each.part for each in found.trials)
        np.testing.assert_allclose(total, found.difference, rtol=1e-9, atol=1e-12)
        assert abs(found.rest) < 1e-12
        few = policy.explain(context, most=4)
        assert few.trials == found.trials[:4]
        assert few.others == 60 - 4
        total = few.rest + sum(each.part for each in few.trials)
        np.testing.assert_allclose(total, found.difference, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"sharing": 0.4}, {"reward": "minimize"}])
def test_a_weight_is_the_change_per_reward(settings):
    learner, contexts, arms, rewards = told(**settings)
    context, pair = [0.6, 0.2], ("hull", "boom")
    before = learner.freeze().explain(context, pair[1], arm=pair[0], most=3)
    for each in before.trials:
        assert each.arm == arms[each.place]
        np.testing.assert_allclose(each.context, contexts[each.place])
        assert each.reward == rewards[each.place]
        changed = rewards.copy()
        changed[each.place] += 0.5
        again = cg.Learner(ARMS, kernel=cg.Gaussian(0.7), ridge=0.1, seed=0, **settings)
        after = again.fit(contexts, arms, changed).freeze()
        moved = difference(after, context, *pair) - before.difference
        np.testing.assert_allclose(moved, 0.5 * each.weight, rtol=1e-7, atol=1e-12)


def test_the_column_that_decides_is_the_one_named_first():
    learner, *_ = told(n=200)
    found = learner.freeze().explain([0.8, 0.1])
    assert found.columns["column 0"] > 10 * abs(found.columns["column 1"])
    assert str(found).splitlines()[-2].endswith("column 0")


def test_with_support_points_and_in_files(tmp_path):
    learner, contexts, *_ = told(n=400, points=32)
    policy = learner.freeze()
    found = policy.explain(contexts[0], most=400)
    assert len(found.trials) > 100
    total = sum(each.part for each in found.trials)
    np.testing.assert_allclose(total, found.difference, rtol=1e-6, atol=1e-9)
    policy.save(tmp_path / "p.cgap")
    again = cg.Policy.load(tmp_path / "p.cgap").explain(contexts[0])
    assert again.difference == pytest.approx(found.difference)


def test_tables_are_explained_in_their_own_words():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "mode": rng.choice(["eco", "full"], 80),
            "hour": rng.integers(0, 24, 80),
            "load": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)),
        }
    )
    arms = rng.choice(["a", "b"], 80)
    rewards = np.where((arms == "a") == (frame["mode"] == "eco"), 1.0, 0.0)
    policy = cg.Learner(["a", "b"], columns=cg.Columns.from_table(frame, hour=cg.Cyclic(24)))
    policy = policy.fit(frame, arms, rewards).freeze()
    found = policy.explain({"mode": "eco", "hour": 12, "load": None})
    assert found.arm == "a"
    assert found.context == {"mode": "eco", "hour": 12.0, "load": None}
    assert max(found.columns, key=lambda name: abs(found.columns[name])) == "mode"
    assert all(each.context["mode"] in ("eco", "full") for each in found.trials)
    said = str(found)
    assert said.startswith("a over b at mode=eco hour=12 load=missing: +")
    assert all(len(line) <= 100 for line in said.splitlines())
    assert json.loads(json.dumps(found.describe()))["against"] == "b"


def test_words_say_what_differs_and_dates_without_midnight():
    here = {"mode": "eco", "when": "2026-01-02T00:00:00", "load": None}
    there = {**here, "load": 1.5}
    assert in_words(here) == "mode=eco when=2026-01-02 load=missing"
    assert in_words(differing(there, here)) == "load=1.5"
    assert in_words(differing(here, here)) == "the same"
    assert differing([1.0, 2.0], [1.0, 3.0]) == [1.0, 2.0]


def test_a_rule_for_costs_says_so():
    costs, *_ = told(reward="minimize", method="uniform")
    assert costs.freeze().decide([0.0, 0.0]).reason == "deployed by HighestMean of minus the cost"


def test_what_cannot_be_explained():
    learner, *_ = told()
    policy = learner.freeze()
    with pytest.raises(ValueError, match="'hull' twice"):
        policy.explain([0.0, 0.0], "hull", arm="hull")
    with pytest.raises(ValueError, match="there is no arm 'nobody'"):
        policy.explain([0.0, 0.0], "nobody")
    with pytest.raises(ValueError, match="one context"):
        policy.explain([[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="only 'alone'"):
        cg.Learner(["alone"]).freeze(fallback="alone").explain([0.0])
    with pytest.raises(ValueError, match="most"):
        policy.explain([0.0, 0.0], most=-1)


def test_before_any_reward_there_is_nothing_to_say():
    learner = cg.Learner(ARMS, kernel=cg.Gaussian(1.0))
    found = learner.freeze(fallback=ARMS[0]).explain([0.0])
    assert found.difference == found.rest == 0
    assert found.trials == ()
    assert found.others == 0
