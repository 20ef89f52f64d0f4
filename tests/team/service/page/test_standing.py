"""How campaigns stand according to the page, beside what they say themselves."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.team.campaign import NotFoundError
from tests.team.campaign.conftest import tell_some


@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_the_status_is_the_campaigns_own(place, standings, contexts, tolerance):
    goal = None if tolerance is None else cg.StoppingRule(tolerance, reference=contexts)
    campaign = place.create(goal=goal)
    standing = standings(place.database).of(place.name)
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
    monkeypatch.setattr("contextgap.team.service.page.aggregates.over_time", None)
    assert standing.series() == first
    campaign.ask(contexts[5])
    with pytest.raises(TypeError):
        standing.series()
    campaign.close()


def test_progress_is_thinned_and_keeps_the_newest(local, standings, contexts, monkeypatch):
    monkeypatch.setattr("contextgap.team.service.page.standing._STEPS", 4)
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
