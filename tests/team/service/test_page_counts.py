"""What the page counts and finds, beside loops over all trials and campaigns' own status."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.base.checks import encode_label
from contextgap.team.campaign import NotFoundError
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.values import STATES, trial_json
from contextgap.team.service import page
from contextgap.team.service.page import Counted, Standings
from tests.team.campaign.conftest import tell_some

from .conftest import COLUMNS, draw

NAMES = ("hüll", "100 %", 'quo"te\\', "a_b")
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


def test_the_counts_follow_the_log(place, standings, rng, contexts, monkeypatch):
    if place.database.startswith("sqlite"):  # where all is read again after two changes
        monkeypatch.setattr(page, "_BEHIND", 2)
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
    assert standing.trials().by_state()["expired"] == 4
    campaign.close()


def test_places_among_rewards_lead_to_trials(local, standings, rng, contexts):
    campaign = local.create(ARMS)
    for _ in range(40):
        change_at_random(campaign, rng, contexts)
    log = campaign.learner().freeze().state.model.observed
    counted = standings(local.database).of(local.name).trials()
    numbers = counted.told_order(range(len(log)))
    assert [campaign.trial(number).reward for number in numbers] == log.rewards.tolist()
    assert counted.told_order([len(log)]) == [None]
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
    found = counted.over_time()
    count = len(counted.arm)
    assert len(found["bins"]) <= page.BINS
    assert len(found["arms"]) <= page.SHOWN
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
    found = counted.over_time()
    told = [n + 1 for n in range(len(counted.arm)) if STATES[counted.state[n]] == "told"]
    assert len(found["points"]) == min(len(told), page.POINTS)
    keys = [arm["key"] for arm in found["arms"]]
    for number, series, reward in found["points"]:
        assert number in told
        assert reward == counted.reward[number - 1]
        assert keys[series] == series_of(counted, number - 1, keys)


@settings(max_examples=25)
@given(trials())
def test_the_least_picked_arms_are_drawn_as_one(counted):
    found = counted.over_time()
    if len(counted.arms) <= page.SHOWN:
        assert [arm["key"] for arm in found["arms"]] == list(counted.arms)
        return
    picks = {each["key"]: each["picks"] for each in counted.by_arm()}
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
        assert counted.by_state()[state] == expected
    by_text = {each["text"]: each for each in counted.by_arm()}
    for arm in ARMS:
        own = [trial for trial in all_trials if trial.arm == arm]
        told = [trial.reward for trial in own if trial.state == "told"]
        assert by_text[str(arm)]["picks"] == len(own)
        assert by_text[str(arm)]["rewards"] == len(told)
        assert by_text[str(arm)]["mean"] == pytest.approx(np.mean(told))
    campaign.close()


def test_many_trials_are_read_in_several_queries(local, standings, contexts, monkeypatch):
    monkeypatch.setattr(page, "_AT_ONCE", 7)
    campaign = local.create(kernel=cg.Gaussian(0.5))
    standing = standings(local.database).of(local.name)
    asked = campaign.ask(contexts[:30])
    standing.trials()
    campaign.tell(asked, np.arange(30.0))
    compare(standing.trials(), campaign.find_trials())
    campaign.close()


def found(standing, **wanted) -> list[int]:
    """The numbers of all pages, one after another."""
    numbers, before = [], None
    while True:
        page = standing.find_trials(before=before, **wanted)
        numbers += [trial["id"] for trial in page["trials"]]
        before = page["next"]
        if before is None:
            return numbers


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def explored(request, tmp_path_factory):
    """A campaign with trials in several states, in either kind of database."""
    url = tmp_path_factory.mktemp("explored") / "bench.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("server")
    campaign = cg.Campaign.create(url, "explored", NAMES, columns=COLUMNS, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(24):
        context = draw(rng)
        campaign.tell(contexts=context, arms=str(rng.choice(NAMES)), reward=0.5)
    campaign.ask(draw(rng))
    campaign.retract(3, "the Sensor fell off; 50 %")
    campaign.correct(5, 1.0, "größer")
    database = Database(url)
    yield campaign, Standings(database).of("explored")
    database.close()
    campaign.close()


TEXTS = ["hüll", "ECO", "%", "_", '"', "\\", "sensor", "größer", "no such text", "50 %"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_found_in_arms_contexts_and_reasons(explored, text):
    campaign, standing = explored
    expected = []
    for trial in reversed(campaign.find_trials()):
        said = trial_json(trial)
        parts = (json.dumps(said["context"]), json.dumps(trial.arm)[1:-1])
        written = json.dumps(text)[1:-1].lower()
        inside = any(written in part.lower() for part in parts)
        if inside or text.lower() in (trial.why or "").lower():
            expected.append(trial.id)
    # Braces and quotes around cells are found too, which does no harm.
    assert set(expected) <= set(found(standing, text=text))
    if text not in ('"',):
        assert found(standing, text=text) == expected


def test_states_and_arms_are_filtered_by_the_server(explored):
    campaign, standing = explored
    for states in (["open"], ["told", "retracted"], []):
        expected = [t.id for t in campaign.find_trials(states or None)]
        assert found(standing, states=states) == expected[::-1]
    for arm in NAMES:
        expected = [t.id for t in campaign.find_trials() if t.arm == arm]
        assert found(standing, arm=json.dumps(arm)) == expected[::-1]


def test_pages_hold_every_trial_once(explored, monkeypatch):
    campaign, standing = explored
    monkeypatch.setattr(page, "PAGE", 6)
    assert found(standing) == [t.id for t in campaign.find_trials()][::-1]


def test_unknown_states_are_refused(explored):
    _, standing = explored
    with pytest.raises(ValueError, match="state must be one of"):
        found(standing, states=["gone"])


@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_the_status_is_the_campaigns_own(local, standings, contexts, tolerance):
    goal = None if tolerance is None else cg.StoppingRule(tolerance, reference=contexts)
    campaign = local.create(goal=goal)
    standing = standings(local.database).of(local.name)
    assert standing.status()["settled"] is None
    for first in range(0, 18, 6):  # so few that progress is recorded after every reward
        tell_some(campaign, contexts[first : first + 6], keep_open=[5])
        own, found = campaign.status(), standing.status()
        assert found["event"] == own.events
        assert found["log"] == own.log
        assert found["trials"] == own.trials
        assert found["settled"] == own.settled
        assert found["wanted"] == own.wanted
        assert found["asks_left"] == own.asks_left
        assert found["tolerance"] == tolerance
        assert {each["text"]: each["rewards"] for each in found["arms"]} == own.rewards
    campaign.close()


def test_nothing_is_worked_out_twice_for_one_event(local, standings, contexts, monkeypatch):
    campaign = local.create()
    tell_some(campaign, contexts[:5])
    standing = standings(local.database).of(local.name)
    first = standing.series()
    monkeypatch.setattr(page.Counted, "over_time", None)
    assert standing.series() == first
    campaign.ask(contexts[5])
    with pytest.raises(TypeError):
        standing.series()
    campaign.close()


def test_progress_is_thinned_and_keeps_the_newest(local, standings, contexts, monkeypatch):
    monkeypatch.setattr(page, "_STEPS", 4)
    campaign = local.create()
    tell_some(campaign, contexts[:18])
    steps = standings(local.database).of(local.name).series()["progress"]
    assert len(steps) <= 4
    assert steps[-1]["rewards"] == 18
    assert np.all(np.diff([each["rewards"] for each in steps]) > 0)
    campaign.close()


def test_all_campaigns_are_listed_as_far_as_they_may_be_seen(local, standings, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:3], keep_open=[2])
    cg.Campaign.create(local.database, "other", 2).close()
    found = standings(local.database)
    assert [each["name"] for each in found.all(lambda _: True)] == ["other", local.name]
    (mine,) = found.all(lambda name: name == local.name)
    assert (mine["trials"], mine["open"]) == (3, 1)
    whole = found.of(local.name).status()
    assert all(mine[each] == whole[each] for each in ("event", "at", "settled", "asks_left"))
    campaign.close()


def test_unknown_campaigns_and_databases_without_any(local, standings):
    found = standings(local.database)
    assert found.all(lambda _: True) == []
    with pytest.raises(NotFoundError, match="no campaign 'sensors'"):
        found.of(local.name)


def test_progress_is_recorded_for_many_rewards_at_once(local, standings, contexts):
    campaign = local.create()
    campaign.tell(contexts=contexts, arms=["hull", "panel"] * 100, reward=contexts[:, 0])
    found = standings(local.database).of(local.name).status()
    assert (found["settled_at"], found["settled"]) == (200, campaign.status().settled)
    campaign.tell(contexts=contexts[0], arms="hull", reward=0.0)  # 5 % more are wanted
    assert standings(local.database).of(local.name).status()["settled_at"] == 200
    campaign.close()
