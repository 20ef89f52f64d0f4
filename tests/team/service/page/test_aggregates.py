"""What is counted, beside the same counted one trial at a time."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.base.labels import encode_label
from contextgap.team.campaign.trial import STATES
from contextgap.team.service.page import aggregates, tally
from contextgap.team.service.page.tally import Counted

ARMS = ("hull", 7, ("panel", 1))


def change_at_random(campaign, rng, contexts) -> None:
    """Do one thing to a campaign that a log may have."""
    context = contexts[rng.integers(len(contexts))]
    open_trials, told = campaign.find_trials("open"), campaign.find_trials("told")
    retracted = campaign.find_trials("retracted")
    what = rng.integers(7)
    if what <= 1 or not told:
        campaign.tell(campaign.ask(context), float(rng.normal()))
    elif what == 2:
        campaign.ask(contexts[:3])
    elif what == 3 and open_trials:
        campaign.cancel(open_trials[rng.integers(len(open_trials))])
    elif what == 4:
        arms = [ARMS[place] for place in rng.integers(3, size=2)]
        campaign.tell(contexts=contexts[:2], arms=arms, reward=rng.normal(size=2))
    elif what == 5:
        campaign.retract(told[rng.integers(len(told))], "broken")
    elif retracted:
        campaign.correct(retracted[0], 0.25, "not broken")
    elif open_trials:
        campaign.tell(open_trials[0], 1.0)


def compare(counted: Counted, trials) -> None:
    assert len(counted.arm) == len(trials)
    for place, trial in enumerate(trials):
        assert json.loads(counted.arms[counted.arm[place]]) == encode_label(trial.arm)
        assert STATES[counted.state[place]] == trial.state
        reward = counted.reward[place]
        assert math.isnan(reward) if trial.reward is None else reward == trial.reward


@pytest.mark.parametrize("most", [20_000, 2])
def test_the_tally_follows_the_log(place, standings, rng, contexts, monkeypatch, most):
    monkeypatch.setattr(tally, "_BEHIND", most)
    campaign = place.create(ARMS)
    standing = standings(place.database).of(place.name)
    earlier = standing.trials()
    assert len(earlier.arm) == 0
    for step in range(40):
        change_at_random(campaign, rng, contexts)
        if step % 3 == 0:  # sometimes several events behind
            trials = campaign.find_trials()
            compare(standing.trials(), trials)
    compare(standing.trials(), campaign.find_trials())
    assert len(earlier.arm) == 0  # what was returned is not changed
    campaign.close()


def test_leases_that_run_out_are_followed(local, standings, contexts):
    campaign = local.create(lease=0.01)
    standing = standings(local.database).of(local.name)
    campaign.ask(contexts[:4])
    standing.trials()
    campaign.find_trials()  # which is when leases are looked at
    while campaign.find_trials("open"):
        pass
    assert aggregates.by_state(standing.trials())["expired"] == 4
    campaign.close()


def test_places_among_rewards_lead_to_trials(local, standings, rng, contexts):
    campaign = local.create(ARMS)
    for _ in range(40):
        change_at_random(campaign, rng, contexts)
    log = campaign.learner().freeze()._model.observed
    counted = standings(local.database).of(local.name).trials()
    numbers = aggregates.told_order(counted, range(len(log)))
    assert [campaign.trial(number).reward for number in numbers] == log.rewards.tolist()
    assert aggregates.told_order(counted, [len(log)]) == [None]
    campaign.close()


@st.composite
def trials(draw):
    count, arms = draw(st.integers(0, 400)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    state = rng.integers(len(STATES), size=count).astype(np.int8)
    told = np.isin(state, [STATES.index("told"), STATES.index("retracted")])
    return Counted(
        event=1,
        arms=tuple(json.dumps(f"arm {place}") for place in range(arms)),
        arm=rng.integers(arms, size=count).astype(np.int32),
        state=state,
        reward=np.where(told, rng.normal(size=count), np.nan),
        told_by=np.where(told, np.arange(count) + 1, 0),
    )


def series_of(counted, place, keys):
    own = counted.arms[counted.arm[place]]
    return own if own in keys else None


@settings(max_examples=25)
@given(trials())
def test_bins_hold_what_a_loop_puts_into_them(counted):
    found = aggregates.over_time(counted)
    count = len(counted.arm)
    assert len(found["bins"]) <= aggregates.BINS
    assert len(found["arms"]) <= aggregates.SHOWN
    assert [n for first, last in found["bins"] for n in range(first, last + 1)] == [
        *range(1, count + 1)
    ]
    keys = [arm["key"] for arm in found["arms"]]
    for (first, last), picks, means in zip(
        found["bins"], found["picks"], found["rewards"], strict=True
    ):
        for place, key in enumerate(keys):
            own = [n for n in range(first - 1, last) if series_of(counted, n, keys) == key]
            assert picks[place] == len(own)
            told = [counted.reward[n] for n in own if STATES[counted.state[n]] == "told"]
            assert means[place] == (pytest.approx(np.mean(told)) if told else None)


@settings(max_examples=25)
@given(trials())
def test_points_are_rewards_that_count(counted):
    found = aggregates.over_time(counted)
    told = [n + 1 for n in range(len(counted.arm)) if STATES[counted.state[n]] == "told"]
    assert len(found["points"]) == min(len(told), aggregates.POINTS)
    keys = [arm["key"] for arm in found["arms"]]
    for number, series, reward in found["points"]:
        assert number in told
        assert reward == counted.reward[number - 1]
        assert keys[series] == series_of(counted, number - 1, keys)


@settings(max_examples=25)
@given(trials())
def test_the_least_picked_arms_are_drawn_as_one(counted):
    found = aggregates.over_time(counted)
    if len(counted.arms) <= aggregates.SHOWN:
        assert [arm["key"] for arm in found["arms"]] == list(counted.arms)
        return
    picks = {each["key"]: each["picks"] for each in aggregates.by_arm(counted)}
    shown = [arm["key"] for arm in found["arms"][:-1]]
    hidden = [key for key in counted.arms if key not in shown]
    assert found["arms"][-1]["key"] is None
    assert min(picks[key] for key in shown) >= max(picks[key] for key in hidden)


def test_counts_by_arm_and_state(local, standings, rng, contexts):
    campaign = local.create(ARMS)
    for _ in range(30):
        change_at_random(campaign, rng, contexts)
    counted, all_trials = standings(local.database).of(local.name).trials(), campaign.find_trials()
    for state in STATES:
        expected = sum(trial.state == state for trial in all_trials)
        assert aggregates.by_state(counted)[state] == expected
    by_text = {each["text"]: each for each in aggregates.by_arm(counted)}
    for arm in ARMS:
        own = [trial for trial in all_trials if trial.arm == arm]
        told = [trial.reward for trial in own if trial.state == "told"]
        assert by_text[str(arm)]["picks"] == len(own)
        assert by_text[str(arm)]["rewards"] == len(told)
        assert by_text[str(arm)]["mean"] == pytest.approx(np.mean(told))
    campaign.close()


def test_many_trials_are_read_in_several_queries(local, standings, contexts, monkeypatch):
    monkeypatch.setattr(tally, "_AT_ONCE", 7)
    campaign = local.create(kernel=cg.Gaussian(0.5))
    standing = standings(local.database).of(local.name)
    asked = campaign.ask(contexts[:30])
    standing.trials()
    campaign.tell(asked, np.arange(30.0))
    compare(standing.trials(), campaign.find_trials())
    campaign.close()
