"""What happens to trials, on both kinds of database."""

import math
from datetime import timedelta

import numpy as np
import pytest

import contextgap as cg
from contextgap.team.campaign import ConflictError, NotFoundError, values
from contextgap.team.campaign.values import Event

from .conftest import ARMS, Place, reward, set_clock, tell_some
from .oracle import check, check_replay, to_bytes


def test_picks_are_those_of_a_learner(local, contexts):
    campaign = local.create(kernel=None)
    learner = cg.Learner(ARMS, seed=0)
    for context in contexts[:30]:
        trial = campaign.ask(context)
        assert trial.arm == learner.ask(context)
        campaign.tell(trial, reward(context, trial.arm))
        learner.tell(context, trial.arm, reward(context, trial.arm))
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    assert campaign.recommend(contexts).tolist() == learner.recommend(contexts).tolist()
    assert to_bytes(local.open().learner()) == to_bytes(learner)


def test_the_life_of_a_trial(place):
    campaign = place.create()
    asked = campaign.ask([0.5, 1.0])
    assert (asked.id, asked.state, asked.context) == (1, "open", [0.5, 1.0])
    assert asked.until - asked.asked == pytest.approx(timedelta(days=7), abs=timedelta(seconds=9))
    told = campaign.tell(asked, 0.25)
    assert (told.state, told.reward) == ("told", 0.25)
    assert campaign.trial(1) == told
    other = campaign.ask([0.5, 1.0])
    assert campaign.cancel(other).state == "cancelled"
    assert campaign.learner().pending == 0
    assert campaign.tell(other.id, 1.0).state == "told"  # it was tried all the same
    outside = campaign.tell(contexts=[0.1, 0.2], arms="boom", reward=-1.0)
    assert (outside.id, outside.state, outside.asked) == (3, "told", None)
    assert sum(campaign.learner().counts.values()) == 3
    check(campaign)


def test_a_lease_runs_out(place, monkeypatch):
    campaign = place.create(lease=3600)
    campaign.ask([0.0, 0.0])
    campaign.ask([0.5, 0.5], lease=math.inf)
    assert campaign.status().trials["open"] == 2
    later = values.after(7200)
    set_clock(monkeypatch, later)
    assert campaign.status().trials == {
        "open": 1, "told": 0, "cancelled": 0, "expired": 1, "retracted": 0
    }  # fmt: skip
    assert campaign.learner().pending == 1
    assert campaign.trial(1).state == "expired"
    assert campaign.tell(1, 0.5).state == "told"
    check(campaign)
    check(place.open())


def test_another_process_notices_that_a_lease_ran_out(place, monkeypatch):
    idle = place.create()
    place.open().ask([0.0, 0.0], lease=1)
    later = values.after(2)
    set_clock(monkeypatch, later)
    idle.ask([0.1, 0.0])
    assert idle.learner().pending == 1
    check(idle)


def test_a_late_reward_does_not_answer_for_another_pick(local):
    campaign = local.create()
    first = campaign.ask([0.5, 0.5], arms=["hull"])
    campaign.ask([0.5, 0.5], arms=["hull"])
    campaign.cancel(first)
    campaign.tell(first, 1.0)
    assert campaign.learner().pending == 1
    campaign.tell(contexts=[0.5, 0.5], arms="hull", reward=0.5)
    assert campaign.learner().pending == 1


def test_retracted_rewards_were_never_told(local, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:12], keep_open=[3])
    campaign.retract(5, "the bench was unplugged")
    learner = cg.Learner(ARMS, kernel=cg.Gaussian(0.5), seed=0)
    for number, context in enumerate(contexts[:12], 1):
        arm = campaign.trial(number).arm
        learner.add_pending(context, arm)
        if number == 5:
            learner.cancel(context, arm)
        elif number != 4:
            learner.tell(context, arm, reward(context, arm))
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    assert campaign.trial(5).why == "the bench was unplugged"
    check(campaign)
    check(local.open())


def test_corrected_rewards_are_told_in_their_place(place, contexts):
    campaign = place.create()
    tell_some(campaign, contexts[:10])
    idle = place.open()
    campaign.correct(2, 0.75, "read from the wrong channel")
    campaign.retract(2, "no, it was unplugged")
    campaign.correct(2, 0.5, "no, it was not")
    trial = campaign.trial(2)
    assert (trial.state, trial.reward, trial.why) == ("told", 0.5, "no, it was not")
    assert to_bytes(idle.learner()) == to_bytes(campaign.learner())
    check(campaign)


def test_what_contradicts_the_state_is_refused(local, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:3], keep_open=[2])
    campaign.retract(2, "typo")
    before = campaign.status().events
    with pytest.raises(ConflictError, match=r"trial 1 is told: .* correct\(trial, reward, why\)"):
        campaign.tell(1, 0.5)
    with pytest.raises(ConflictError, match="trial 2 is retracted already"):
        campaign.retract(2, "again")
    with pytest.raises(ConflictError, match="trial 3 is open, without a reward; cancel it"):
        campaign.retract(3, "typo")
    with pytest.raises(ConflictError, match="trial 1 is told, and no longer open"):
        campaign.cancel(1)
    with pytest.raises(NotFoundError, match="there is no trial 9"):
        campaign.tell(9, 1.0)
    with pytest.raises(ValueError, match="why must say the reason"):
        campaign.retract(1, " ")
    with pytest.raises(ConflictError, match="there is a campaign"):
        local.create()
    with pytest.raises(NotFoundError, match="there is no campaign 'other'"):
        cg.Campaign.open(local.database, "other")
    assert campaign.status().events == before
    check(campaign)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.ask([1.0]), "contexts must have 2 numbers each"),
        (lambda c: c.ask([1.0, math.nan]), "contexts must be finite, got nan"),
        (lambda c: c.ask([1.0, math.inf]), "contexts must be finite, got inf"),
        (lambda c: c.ask([1.0, object()]), "contexts must be numbers, text"),
        (lambda c: c.ask(np.zeros((0, 2))), "at least one row"),
        (lambda c: c.ask(), "contexts must be given"),
        (lambda c: c.ask([0.0, 0.0], arms=["keel"]), "arms must be among"),
        (lambda c: c.ask([0.0, 0.0], lease=-1), "lease must be positive"),
        (lambda c: c.ask([0.0, 0.0], key=""), "key must be 1 to 200"),
        (lambda c: c.tell(1, math.nan), "reward must be a finite number"),
        (lambda c: c.tell(1, "high"), "reward must be"),
        (lambda c: c.tell(1, 1e60), "rewards must be at most"),
        (lambda c: c.tell([1, 1], [0.0, 0.0]), "got one twice"),
        (lambda c: c.tell(1, 1.0, arms="hull"), "are for outside data"),
        (lambda c: c.tell(reward=1.0), "tell needs a trial, or contexts="),
        (lambda c: c.tell(contexts=[0.0], arms="hull", reward=1.0), "must have 2 numbers"),
        (lambda c: c.tell(contexts=[0.0, 0.0], arms="keel", reward=1.0), "arms must be among"),
        (lambda c: c.trials("gone"), "state must be one of"),
        (lambda c: c.freeze(""), "name must be 1 to 200"),
        (lambda c: c.freeze("p"), "at least 2 rewards"),
        (lambda c: c.policy("p"), "there is no policy 'p'"),
        (lambda c: c.add_arm("hull"), "is there already"),
        (lambda c: c.tune(), "at least 2 rewards"),
    ],
)
def test_bad_input_changes_nothing(asked, wrong, message):
    before = asked.status().log, to_bytes(asked.learner())
    with pytest.raises((ValueError, TypeError), match=message):
        wrong(asked)
    assert (asked.status().log, to_bytes(asked.learner())) == before


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A campaign with an open trial, which goes on after all that was refused."""
    database = tmp_path_factory.mktemp("asked") / "bench.db"
    campaign = Place(f"sqlite:///{database}?synchronous=normal", "sensors").create()
    campaign.ask([0.0, 0.0])
    yield campaign
    campaign.tell(1, 0.5)
    check(campaign)


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "caf\udce9"])
def test_text_that_cannot_be_shown_again_is_refused(place, text):
    with pytest.raises(ValueError, match="arms must be text without NUL") as refused:
        place.create(["hull", ("boom", text)])
    assert repr(text) in str(refused.value)
    with pytest.raises(ValueError, match=r"reference must be text without NUL .* 'mode'"):
        place.create(goal=cg.StoppingRule(0.1, reference=[{"mode": "eco"}, {"mode": text}]))
    assert place.name not in cg.Campaign.names(place.database)
    campaign = place.create(kernel=None)
    campaign.tell(campaign.ask({"mode": "café"}), 0.5)
    before = campaign.status().log, to_bytes(campaign.learner())
    wrong = {"mode": text}
    for call in (
        lambda: campaign.ask(wrong),
        lambda: campaign.ask([{"mode": "eco"}, wrong]),
        lambda: campaign.ask(pool=[{"mode": "eco"}, wrong]),
        lambda: campaign.tell(contexts=wrong, arms="hull", reward=1.0),
    ):
        with pytest.raises(ValueError, match="in the column 'mode'") as refused:
            call()
        assert repr(text) in str(refused.value)
    for call, message in (
        (lambda: campaign.ask({"mode": "eco", text: 1.0}), "without NUL"),
        (lambda: campaign.add_arm(text), "arms must be text"),
        (lambda: campaign.retract(1, f"typo {text}"), "why must say"),
        (lambda: campaign.ask({"mode": "eco"}, key=text), "key must be"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert (campaign.status().log, to_bytes(campaign.learner())) == before
    assert campaign.trials()["mode"].tolist() == ["café"]
    check(campaign)


@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("mysql://host/db", "SQLite file or PostgreSQL, got 'mysql'"),
        ("sqlite://", "must be a file, which outlives the process"),
        ("://", "must be a file or a URL"),
        (7, "must be a file or a URL"),
        ("sqlite:///x.db?mode=ro", "and nothing else"),
    ],
)
def test_other_databases_are_refused(database, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cg.Campaign.names(database)


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("x,arm,reward\n1,hull,2\n")
    for call in (
        lambda: cg.Campaign.open(file, "s"),
        lambda: cg.Campaign.create(file, "s", ARMS),
        lambda: cg.Campaign.names(file),
    ):
        with pytest.raises(ValueError, match=r"database must be .*log\.csv is not a database"):
            call()
    assert file.read_text() == "x,arm,reward\n1,hull,2\n"
    assert list(tmp_path.iterdir()) == [file]


def test_campaigns_of_a_database_do_not_mix(local, contexts):
    one = local.create()
    two = cg.Campaign.create(local.database, "other", 2, seed=1)
    tell_some(one, contexts[:4])
    assert two.ask([1.0]).id == 1
    assert cg.Campaign.names(local.database) == ("sensors", "other")
    assert one.status().trials["told"] == 4
    assert two.arms == (0, 1)
    two.close()


def test_names_of_a_missing_file(tmp_path):
    assert cg.Campaign.names(tmp_path / "none.db") == ()
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        cg.Campaign.create(tmp_path / "no" / "x.db", "sensors", 2)


def test_trials_as_a_table(local, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:4], keep_open=[1])
    campaign.retract(3, "typo")
    table = campaign.trials()
    assert table.index.tolist() == [1, 2, 3, 4]
    assert table["state"].tolist() == ["told", "open", "retracted", "told"]
    assert table[["x0", "x1"]].to_numpy() == pytest.approx(contexts[:4], abs=0)
    assert campaign.trials("open").index.tolist() == [2]
    assert campaign.trials(["told", "retracted"]).index.tolist() == [1, 3, 4]
    assert campaign.trials("expired").empty


def test_status_says_how_far_it_is(local, contexts):
    goal = cg.StoppingRule(0.5, share=0.9, reference=contexts[100:150])
    campaign = local.create(goal=goal)
    assert campaign.status().settled is not None
    tell_some(campaign, contexts[:40])
    learner, status = campaign.learner(), campaign.status()
    assert status.settled == pytest.approx(learner.settled(goal))
    assert status.wanted == 0.9
    assert status.score.value == learner.score().value
    assert sum(status.rewards.values()) == status.trials["told"] == 40
    past = [e.result for e in _progress(campaign)]
    assert [each["rewards"] for each in past[:20]] == list(range(1, 21))
    half = next(each for each in past if each["rewards"] == 20)
    if 0.9 > status.settled > half["settled"]:
        rate = (status.settled - half["settled"]) / 20
        assert status.asks_left == math.ceil((0.9 - status.settled) / rate)
    assert "settled" in str(status)
    assert local.open().status() == status


def _progress(campaign):
    store = campaign._session.store
    with store.reading() as connection:
        return store.events_of(connection, "progress")


def test_events_that_were_altered_are_noticed(local, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:3])
    from sqlalchemy import text

    with campaign._session.store.locked() as connection:
        statement = "UPDATE contextgap_events SET request = replace(request, '0.', '1.') "
        connection.execute(text(statement + "WHERE kind = 'tell'"))
    with pytest.raises(ValueError, match="was altered"):
        local.open()


def test_a_log_of_a_later_release_is_refused(local):
    campaign = local.create()
    before = campaign._session.replay.hash
    event = Event.following(before, (2, values.now(), "teleport", None, "{}", "{}"))
    with campaign._session.store.locked() as connection:
        campaign._session.store.append(connection, [event])
    with pytest.raises(ValueError, match="'teleport', unknown to this release"):
        local.open()


def test_trials_of_another_campaign_are_refused(local):
    campaign = local.create()
    other = cg.Campaign.create(local.database, "other", ["hull", "panel", "boom"], seed=1)
    trial, own = other.ask([9.0, 9.0]), campaign.ask([0.0, 0.0])
    for call in (
        lambda: campaign.tell(trial, 1.0),
        lambda: campaign.tell([trial], [1.0]),
        lambda: campaign.cancel(trial),
    ):
        with pytest.raises(ValueError, match="trial 1 of this campaign is of"):
            call()
    campaign.tell(own, 1.0)
    told = other.tell(trial, 1.0)
    for call in (
        lambda: campaign.retract(told, "typo"),
        lambda: campaign.correct(told, 2.0, "typo"),
    ):
        with pytest.raises(ValueError, match="is of another"):
            call()
    assert campaign.correct(own, 2.0, "typo").trial == 1
    check(campaign)


def test_a_goal_is_a_share_of_contexts_and_about_all_arms(local):
    for kept, message in (({"average": True}, "share of contexts"), ({"arms": [0]}, "all arms")):
        with pytest.raises(ValueError, match=f"goal must be about .*{message}"):
            local.create(goal=cg.StoppingRule(0.1, reference=[[0.0]], **kept))


def test_noise_and_censoring_are_those_of_a_learner(local, contexts):
    campaign = local.create(kernel=None)
    learner = cg.Learner(ARMS, seed=0)
    for row, context in enumerate(contexts[:24]):
        trial = campaign.ask(context)
        assert trial.arm == learner.ask(context)
        about = [{}, {"noise": 0.2}, {"censored": True}][row % 3]
        campaign.tell(trial, reward(context, trial.arm), **about)
        learner.tell(context, trial.arm, reward(context, trial.arm), **about)
    outside = {"contexts": contexts[30:34], "arms": [ARMS[0]] * 4}
    about = {"noise": [0.0, 0.3, 0.0, 0.0], "censored": [True, False, False, True]}
    campaign.tell(reward=[0.1, 0.2, 0.3, 0.4], **outside, **about)
    learner.tell(*outside.values(), [0.1, 0.2, 0.3, 0.4], **about)
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    assert to_bytes(local.open().learner()) == to_bytes(learner)
    check_replay(campaign)
    with pytest.raises(TypeError, match="censored"):
        campaign.tell(contexts=contexts[0], arms=ARMS[0], reward=0.5, censored="yes")


def test_a_corrected_reward_is_known_and_not_censored(local, contexts):
    campaign = local.create()
    for row, context in enumerate(contexts[:6]):
        campaign.tell(campaign.ask(context), 0.5, censored=row in (2, 4))
    campaign.tell(contexts=contexts[6:8], arms=[ARMS[1]] * 2, reward=[0.1, 0.2], censored=True)
    campaign.correct(3, 0.2, "the run was finished")
    campaign.correct(7, 0.05, "the run was finished")
    log = campaign.learner().state.model.observed
    assert log.censored.tolist() == [4, 7]
    assert log.rewards[[2, 6]].tolist() == [0.2, 0.05]
    assert to_bytes(local.open().learner()) == to_bytes(campaign.learner())


def test_costs_are_those_of_a_learner(local, contexts):
    known = {arm: 1.0 + place for place, arm in enumerate(ARMS)}
    campaign = local.create(kernel=None, costs=known)
    learner = cg.Learner(ARMS, seed=0, costs=known)
    for row, context in enumerate(contexts[:24]):
        trial = campaign.ask(context)
        assert trial.arm == learner.ask(context)
        about = {"cost": 2.0 + row} if row % 2 else {}
        campaign.tell(trial, reward(context, trial.arm), **about)
        learner.tell(context, trial.arm, reward(context, trial.arm), **about)
    outside = {"contexts": contexts[30:32], "arms": [ARMS[0]] * 2}
    campaign.tell(reward=[0.1, 0.2], **outside, cost=[3.0, 4.0])
    learner.tell(*outside.values(), [0.1, 0.2], cost=[3.0, 4.0])
    assert to_bytes(campaign.learner()) == to_bytes(learner)
    assert to_bytes(local.open().learner()) == to_bytes(learner)
    check_replay(campaign)
    spent = campaign.learner().spent
    assert campaign.status().score.spent == spent
    assert f"spent                   {spent:.6g}" in str(campaign.status())
    # A reward that is corrected cost as much as before, one that is retracted is gone.
    campaign.correct(2, 0.2, "a typing error")
    campaign.correct(25, 0.2, "a typing error")
    assert campaign.learner().spent == spent
    campaign.retract(26, "it was another arm")
    assert campaign.learner().spent == spent - 4.0
    with pytest.raises(ValueError, match="cost must be positive"):
        campaign.tell(contexts=contexts[0], arms=ARMS[0], reward=0.5, cost=0)
    with pytest.raises(ValueError, match="cost must be positive"):
        campaign.add_arm("wing", cost=-1)
    campaign.add_arm("wing", cost=7.5)
    assert local.open().learner().state.costs == (*known.values(), 7.5)
    with pytest.raises(ValueError, match="goal must be about certificates"):
        local.create(goal=cg.StoppingRule(budget=3))
