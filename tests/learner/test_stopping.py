"""When exploring may stop: against certificates computed afresh."""

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.methods.explorers import ContextualGap

RNG = np.random.default_rng(0)
REFERENCE = RNG.uniform(-2, 2, (40, 2))
CONTEXTS = RNG.uniform(-2, 2, (80, 2))
LOOK_BACKS = [cg.SmallestGapInHistory(last) for last in (None, 1, 5)]
RECOMMENDERS = [cg.SmallestGap(), cg.HighestMean(), cg.PosteriorSample(), *LOOK_BACKS]


def rewards(context):
    return np.array([np.sin(context[0]), np.cos(context[1]), -0.3])


def learner(recommender=None, **settings):
    method = cg.Method(explorer=ContextualGap(), recommender=recommender or cg.SmallestGap())
    return cg.Learner(3, kernel=cg.Gaussian(1.0), ridge=0.01, method=method, seed=0, **settings)


def teach(found, context):
    arm = found.ask(context)
    found.tell(context, arm, rewards(context)[arm] if arm < 3 else 0.0)


@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
@pytest.mark.parametrize("prior_mean", [0.0, 0.7])
def test_follows_the_certificates_of_the_policy(recommender, prior_mean):
    found = learner(recommender, prior_mean=prior_mean, burn_in=2)
    rules = [cg.StoppingRule(tolerance, 0.9, REFERENCE) for tolerance in (0.05, 0.3, 1.0)]
    for step, context in enumerate(CONTEXTS):
        teach(found, context)
        if step % 7 == 3:  # not after every reward: it catches up
            bound = found.freeze().certificate(REFERENCE).bound
            for rule in rules:
                expected = (bound <= rule.tolerance).mean()
                assert found.settled(rule) == pytest.approx(expected, abs=1e-9)
                fresh = min(found.counts.values()) < 2
                assert found.done(rule) == (not fresh and expected >= 0.9)


@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
def test_an_average_rule_stops_by_the_mean_certificate(recommender):
    found, stops = learner(recommender), []
    rule = cg.StoppingRule(0.5, reference=REFERENCE, average=True)
    for context in CONTEXTS:
        teach(found, context)
        bound = found.freeze().certificate(REFERENCE).bound
        stops.append(found.done(rule))
        assert stops[-1] == (min(found.counts.values()) >= 1 and bound.mean() <= 0.5)
        assert found.settled(rule) == pytest.approx((bound <= 0.5).mean(), abs=1e-9)
    assert set(stops) == {False, True}
    assert stops.index(True) < len(stops)


def test_says_stop_in_the_end_and_not_before():
    found = learner()
    rule = cg.StoppingRule(0.8, share=0.8, reference=REFERENCE)
    stops = []
    for context in CONTEXTS:
        teach(found, context)
        stops.append(found.done(rule))
    assert not stops[5]
    assert stops[-1]


def test_bulk_loading_is_caught_up_with():
    first, second = learner(), learner()
    arms = np.arange(80) % 3
    heard = [rewards(x)[a] for x, a in zip(CONTEXTS, arms, strict=True)]
    rule, other = (cg.StoppingRule(0.3, reference=REFERENCE) for _ in range(2))
    first.fit(CONTEXTS, arms.tolist(), heard)
    for row in zip(CONTEXTS, arms.tolist(), heard, strict=True):
        second.tell(*row)
        second.settled(other)
    assert first.settled(rule) == pytest.approx(second.settled(other))


def test_arms_may_come_and_go():
    found = learner()
    rule = cg.StoppingRule(0.3, reference=REFERENCE)
    for step, context in enumerate(CONTEXTS):
        if step == 30:
            found.add_arm(3)
        if step == 50:
            found.remove_arm(2)
        teach(found, context)
        bound = found.freeze().certificate(REFERENCE).bound
        assert found.settled(rule) == pytest.approx((bound <= 0.3).mean(), abs=1e-9)


def test_asking_changes_nothing():
    watched, plain = learner(), learner()
    rule = cg.StoppingRule(0.3, reference=REFERENCE)
    for context in CONTEXTS[:40]:
        teach(watched, context)
        watched.done(rule)
        teach(plain, context)
    assert watched.counts == plain.counts


def test_one_update_per_reward_not_a_new_solve(monkeypatch):
    found = learner()
    rule = cg.StoppingRule(0.3, reference=REFERENCE)
    for context in CONTEXTS[:40]:
        teach(found, context)
    found.done(rule)
    teach(found, CONTEXTS[40])
    calls = []
    original = cg.Gaussian.__call__
    monkeypatch.setattr(
        cg.Gaussian, "__call__", lambda self, a, b: calls.append(len(a)) or original(self, a, b)
    )
    found.done(rule)
    assert calls == [1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tolerance": -1, "reference": REFERENCE}, ValueError, "tolerance must be .* got -1"),
        ({"tolerance": 0.1, "share": 2, "reference": REFERENCE}, ValueError, "share must be"),
        ({"tolerance": 0.1, "share": 0, "reference": REFERENCE}, ValueError, "share must be"),
        ({"tolerance": 0.1}, TypeError, "reference must be contexts"),
        ({"tolerance": 1, "reference": REFERENCE, "average": 1}, TypeError, "average must be True"),
        ({"tolerance": 0.1, "reference": [1.0, 2.0]}, ValueError, "reference must be a table"),
        ({"tolerance": 0.1, "reference": [[np.nan]]}, ValueError, "reference must be finite"),
        ({"tolerance": 0.1, "reference": ["DE"]}, ValueError, "reference must be a table"),
        ({"tolerance": 0.1, "reference": {"x": 1}}, ValueError, "reference must be a table"),
        ({"tolerance": 0.1, "reference": 3}, ValueError, "reference must be a table"),
    ],
)
def test_bad_rules(arguments, error, message):
    with pytest.raises(error, match=message):
        cg.StoppingRule(**arguments)


def test_the_reference_must_fit_the_learner():
    found = learner()
    teach(found, CONTEXTS[0])
    with pytest.raises(ValueError, match="2 numbers each"):
        found.done(cg.StoppingRule(0.1, reference=np.zeros((3, 5))))
    with pytest.raises(TypeError, match="rule must be a StoppingRule"):
        found.done(0.1)


def named_learner():
    found = cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0), ridge=0.01, seed=0)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"p": rng.uniform(0, 1, 60), "q": rng.uniform(10, 11, 60)})
    for row in range(60):
        arm = found.ask(frame.iloc[row])
        found.tell(frame.iloc[row], arm, float(frame.p[row]) if arm == "a" else 0.5)
    return found, frame


def test_reference_columns_are_matched_by_name():
    found, frame = named_learner()
    rule = cg.StoppingRule(0.5, reference=frame)
    turned = cg.StoppingRule(0.5, reference=frame.assign(extra=1.0)[["extra", "q", "p"]])
    assert found.settled(turned) == found.settled(rule) > 0
    swapped = frame.rename(columns={"p": "q", "q": "p"})
    expected = (found.freeze().certificate(swapped).bound <= 0.5).mean()
    assert found.settled(cg.StoppingRule(0.5, reference=swapped)) == expected
    with pytest.raises(ValueError, match="reference contexts lack the column 'q'"):
        found.done(cg.StoppingRule(0.5, reference=frame[["p"]]))


MASK = np.random.default_rng(5).random((40, 3)) < 0.6
MASK[~MASK.any(axis=1), 1] = True
ELIGIBLE = {"labels": [0, 2], "mask": MASK, "rows": [np.flatnonzero(row).tolist() for row in MASK]}


@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
@pytest.mark.parametrize("arms", ELIGIBLE)
def test_only_eligible_arms_are_certified(recommender, arms):
    found = learner(recommender, burn_in=2)
    rule = cg.StoppingRule(0.3, 0.9, REFERENCE, ELIGIBLE[arms])
    for step, context in enumerate(CONTEXTS[:50]):
        teach(found, context)
        if step % 9 == 4:
            bound = found.freeze().certificate(REFERENCE, arms=ELIGIBLE[arms]).bound
            assert found.settled(rule) == pytest.approx((bound <= 0.3).mean(), abs=1e-9)


def test_an_arm_that_is_never_eligible_does_not_keep_the_rule_from_stopping():
    found = learner()
    for context in CONTEXTS:
        found.tell(context, arm := found.ask(context, arms=[0, 1]), rewards(context)[arm])
    rules = [cg.StoppingRule(0.8, 0.5, REFERENCE, arms) for arms in ([0, 1], None)]
    assert [found.done(rule) for rule in rules] == [True, False]
    found.remove_arm(1)
    with pytest.raises(ValueError, match=r"arms must be among \[0, 2\], got 1"):
        found.done(rules[0])


def test_a_look_back_does_not_depend_on_how_often_it_was_asked():
    width = cg.TheoremWidth(0.1, 1.0, 0.1)
    often, once = (learner(cg.SmallestGapInHistory(), width=width) for _ in range(2))
    rules = [cg.StoppingRule(1.5, reference=REFERENCE) for _ in range(2)]
    for context in CONTEXTS:
        teach(often, context)
        teach(once, context)
        last = often.settled(rules[0])
    bound = once.freeze().certificate(REFERENCE).bound
    assert 0 < last < 1
    assert once.settled(rules[1]) == last == pytest.approx((bound <= 1.5).mean(), abs=1e-9)


def test_few_rewards_that_happen_to_be_alike_are_not_enough(rng):
    found, rule = cg.Learner(["a", "b", "c"], seed=0), cg.StoppingRule(0.1, reference=REFERENCE)
    for step in range(40):
        assert not found.done(rule)
        if step == 30:
            assert found.settled(rule) == 1.0  # beliefs alone would stop
        context = rng.uniform(-2, 2, 2)
        arm = found.ask(context)
        found.tell(context, arm, {"a": 0.0, "b": 0.5, "c": 1.0}[arm])
    assert found.done(rule)
