"""What was learnt as plain numbers, against what the policy says when asked directly."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pandas
import pytest

import contextgap as cg
from contextgap.insight.learnt import trials

ARMS = ["hull", "panel", "boom"]


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    start = datetime(2026, 1, 1)
    return pandas.DataFrame(
        {
            "mode": rng.choice(["eco", "full", None], n, p=[0.5, 0.4, 0.1]),
            "hour": rng.integers(0, 24, n),
            "load": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "when": [start + timedelta(days=int(day)) for day in rng.integers(0, 300, n)],
            "empty": rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def typed():
    frame, rng = table(), np.random.default_rng(1)
    arms = rng.choice(ARMS, len(frame))
    better = np.where(frame["mode"] == "eco", "hull", "panel")
    rewards = (arms == better) + 0.3 * rng.normal(size=len(frame))
    columns = cg.Columns.from_table(frame, hour=cg.Cyclic(24))
    return cg.Learner(ARMS, columns=columns, seed=0).fit(frame, arms, rewards)


@pytest.fixture(scope="module", params=["maximize", "minimize"])
def plain(request):
    rng = np.random.default_rng(0)
    contexts, arms = rng.uniform(-1, 1, (90, 3)), rng.choice(ARMS, 90)
    rewards = np.where(arms == "hull", contexts[:, 0], 0.1) + 0.1 * rng.normal(size=90)
    kernel = cg.Gaussian((0.5, 0.5, 50.0))
    learner = cg.Learner(ARMS, kernel=kernel, ridge=0.05, reward=request.param)
    return learner.fit(contexts, arms, rewards)


@pytest.mark.parametrize("column", ["mode", "hour", "load", "when", "empty"])
def test_a_course_is_what_the_policy_says_at_its_contexts(typed, column):
    policy = typed.freeze()
    at = {"mode": "full", "hour": 3, "load": None, "when": "2026-02-01", "empty": 0.0}
    found = cg.insight.along(typed, column, at, points=7)
    assert found.context["mode"] == "full"
    assert found.ordered == (column != "mode")
    assert found.mean.shape == (len(found.values), 3)
    for place, value in enumerate(found.values):
        context = {**at, column: value}
        decision = policy.decide(context)
        np.testing.assert_allclose(found.mean[place], decision.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.lower[place], decision.lower, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.upper[place], decision.upper, rtol=1e-9, atol=1e-12)
        assert found.best[place] == decision.arm
        bound = policy.certificate(context).bound[0]
        np.testing.assert_allclose(found.bound[place], bound, rtol=1e-9, atol=1e-12)
    assert json.loads(json.dumps(found.describe()))["column"] == column


def test_values_go_from_the_lowest_to_the_highest(typed):
    frame = table()
    load = cg.insight.along(typed, "load").values
    assert (load[0], load[-1]) == (frame["load"].min(), frame["load"].max())
    when = cg.insight.along(typed, "when").values
    assert (when[0], when[-1]) == (
        str(frame["when"].min().isoformat()),
        frame["when"].max().isoformat(),
    )
    assert cg.insight.along(typed, "hour").values[-1] == 24
    assert set(cg.insight.along(typed, "mode").values) == {"eco", "full", None}


def test_columns_by_number_and_costs(plain):
    policy = plain.freeze()
    found = cg.insight.along(policy, 0, [0.0, 0.0, 0.0], points=5)
    assert found.column == "column 0"
    decision = policy.decide([found.values[1], 0.0, 0.0])
    np.testing.assert_allclose(found.mean[1], decision.mean)
    np.testing.assert_allclose(found.upper[1], decision.upper)


def test_the_typical_context_is_one_that_was_seen(plain):
    seen = {tuple(each.values()) for each, _ in trials(plain, 1000)}
    assert len(seen) == 90
    assert tuple(cg.insight.along(plain, 0).context) in seen


@pytest.mark.parametrize("kernel", [cg.Gaussian(0.5), cg.Linear()])
def test_the_typical_context_is_in_the_middle(kernel):
    contexts = np.linspace(-3, 5, 41)[:, None]
    learner = cg.Learner(["a"], kernel=kernel).fit(contexts, ["a"] * 41, contexts[:, 0])
    assert cg.insight.along(learner, 0).context == pytest.approx([1.0], abs=1.0)


def test_an_area_is_what_the_policy_answers(typed, plain):
    found = cg.insight.area(plain, 0, 1, [0.0, 0.0, 0.3], points=9)
    policy = plain.freeze()
    for y, up in enumerate(found.ys):
        for x, across in enumerate(found.xs):
            context = [across, up, 0.3]
            assert found.arms[found.best[y, x]] == policy.recommend(context)
            np.testing.assert_allclose(found.bound[y, x], policy.certificate(context).bound[0])
    mixed = cg.insight.area(typed, "mode", "load", points=4)
    assert mixed.best.shape == (4, 3)
    assert mixed.ordered == (False, True)
    where = {**mixed.context, "mode": mixed.xs[1], "load": mixed.ys[2]}
    assert mixed.arms[mixed.best[2, 1]] == typed.freeze().recommend(where)


def test_importance_is_of_the_columns_that_matter(typed, plain):
    found = cg.insight.importance(typed)
    assert max(found.changed, key=found.changed.get) == "mode"
    assert found.changed["mode"] > 3 * found.changed["empty"]
    again = cg.insight.importance(plain)
    assert again.changed["column 2"] < 0.02 < again.changed["column 0"]
    # Uniform on (−1, 1) has a standard deviation of 0.58.
    assert again.spread["column 0"] == pytest.approx(0.58 / 0.5, rel=0.15)
    assert again.spread["column 2"] == pytest.approx(0.58 / 50, rel=0.15)
    assert "column 2" in str(again)
    assert cg.insight.importance(plain, seed=0) == again


def test_progress_is_that_of_learners_told_less(plain):
    found = cg.insight.progress(plain, tolerance=0.2, points=5)
    assert found.rewards.tolist() == [19, 37, 54, 72, 90]
    assert found.picks[-1].tolist() == list(plain.counts.values())
    assert (found.picks.sum(axis=1) == found.rewards).all()
    assert found.value[-1] == pytest.approx(plain.score().value.value)
    log = plain.state.model.observed
    short = cg.Policy(plain.state.policy())
    model = type(plain.state.model)(short.kernel, short.ridge, 3, 0.0)
    model.observe_many(log.contexts[:37], log.arms[:37], log.rewards[:37])
    bounds = cg.Policy(replace(short.state, model=model)).certificate(log.contexts).bound
    assert found.settled[1] == pytest.approx((bounds <= 0.2).mean())
    some = cg.insight.progress(plain, tolerance=0.2, points=5, contexts=log.contexts[:7])
    assert some.settled[1] == pytest.approx((bounds[:7] <= 0.2).mean())


@pytest.mark.parametrize("settings", [{"sharing": 0.3}, {"points": 16}])
def test_progress_with_other_models(settings):
    rng = np.random.default_rng(0)
    contexts, arms = rng.uniform(-1, 1, (150, 1)), rng.choice(ARMS, 150)
    learner = cg.Learner(ARMS, kernel=cg.Gaussian(0.5), ridge=0.1, **settings)
    learner.fit(contexts, arms, np.where(arms == "hull", contexts[:, 0], 0.0))
    found = cg.insight.progress(learner, points=4)
    assert found.settled[-1] >= found.settled[0]
    policy = learner.freeze()
    expected = (policy.certificate(contexts).bound <= 0).mean()
    assert found.settled[-1] == pytest.approx(expected, abs=0.02)


def test_what_there_is_nothing_to_say_about(typed, tmp_path):
    with pytest.raises(ValueError, match="there is no reward yet"):
        cg.insight.along(cg.Learner(ARMS), 0)
    with pytest.raises(TypeError, match="a learner or a policy"):
        cg.insight.importance("policy.cgap")
    with pytest.raises(ValueError, match="there is no column 'nobody'; there are"):
        cg.insight.along(typed, "nobody")
    with pytest.raises(ValueError, match="there is no column 17"):
        cg.insight.along(typed, 17)
    with pytest.raises(ValueError, match="'mode' twice"):
        cg.insight.area(typed, "mode", "mode")
    with pytest.raises(ValueError, match="at must be one context"):
        cg.insight.along(typed, "load", table())
    with pytest.raises(ValueError, match="points"):
        cg.insight.along(typed, "load", points=1)
