"""Keys: the same request twice is one event."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.team.campaign import ConflictError
from contextgap.team.campaign import campaign as campaign_module

from .conftest import tell_some
from .oracle import check, to_bytes


def test_the_same_key_and_payload_give_the_same_answer(place):
    campaign = place.create()
    trial = campaign.ask([0.1, 0.2], key="bench 1")
    assert campaign.ask([0.1, 0.2], key="bench 1") == trial
    assert place.open().ask([0.1, 0.2], key="bench 1") == trial
    told = campaign.tell(trial, 0.5, key="result 1")
    assert campaign.tell(trial, 0.5, key="result 1") == told
    batch = campaign.ask([[0.0, 0.0], [1.0, 1.0]], key="batch")
    assert campaign.ask([[0.0, 0.0], [1.0, 1.0]], key="batch") == batch
    campaign.tell(batch, [1.0, 2.0], key="both")
    campaign.tell(batch, [1.0, 2.0], key="both")
    outside = campaign.tell(contexts=[0.0, 0.0], arms="hull", reward=1.0, key="by hand")
    assert campaign.tell(contexts=[0.0, 0.0], arms="hull", reward=1.0, key="by hand") == outside
    assert campaign.retract(1, "typo", key="undo") == campaign.retract(1, "typo", key="undo")
    campaign.correct(1, 0.25, "no", key="redo")
    campaign.correct(1, 0.25, "no", key="redo")
    gone = campaign.cancel(campaign.ask([0.5, 0.5]), key="gone")
    assert campaign.cancel(gone, key="gone") == gone
    policy = campaign.freeze("first", key="freeze")
    assert campaign.freeze("first", key="freeze").counts == policy.counts
    kinds = [event.kind for event in _events(campaign) if event.kind != "progress"]
    assert kinds == [
        "create", "ask", "tell", "ask", "tell", "tell", "record", "retract", "correct", "ask",
        "cancel", "freeze",
    ]  # fmt: skip


def _events(campaign):
    store = campaign._session.store
    with store.reading() as connection:
        return list(store.events(connection))


@pytest.mark.parametrize(
    "other",
    [
        lambda c: c.ask([0.1, 0.3], key="k"),
        lambda c: c.ask([0.1, 0.2], arms=["hull"], key="k"),
        lambda c: c.ask([0.1, 0.2], lease=5, key="k"),
        lambda c: c.ask(pool=[[0.1, 0.2]], key="k"),
        lambda c: c.tell(1, 0.5, key="k"),
        lambda c: c.cancel(1, key="k"),
    ],
)
def test_a_key_used_for_something_else_is_a_conflict(local, other):
    campaign = local.create()
    campaign.ask([0.1, 0.2], key="k")
    before = campaign.status().log
    with pytest.raises(ConflictError, match="key 'k' was used before, for another ask"):
        other(campaign)
    assert campaign.status().log == before
    check(campaign)


def test_columns_may_come_in_another_order(local):
    campaign = local.create()
    trial = campaign.ask({"a": 1.0, "b": 2.0}, key="k")
    assert campaign.ask({"b": 2.0, "a": 1.0}, key="k") == trial


def test_a_key_stands_for_all_trials_told_together(local):
    campaign = local.create()
    campaign.ask([[0.0, 0.0]] * 4)
    told = campaign.tell([1, 2], [0.1, 0.2], key="monday")
    assert campaign.tell([1, 2], [0.1, 0.2], key="monday") == told
    for trials, rewards in [(3, 0.3), (1, 0.1), ([1, 2, 4], [0.1, 0.2, 0.4]), ([1, 2], [0.1, 0.3])]:
        with pytest.raises(ConflictError, match="key 'monday' was used before"):
            campaign.tell(trials, rewards, key="monday")
    assert campaign.status().trials["told"] == 2


@pytest.mark.parametrize(
    "other",
    [
        {"reward": "minimize"},
        {"method": "uniform"},
        {"kernel": cg.Gaussian(3.0)},
        {"lease": 5},
        {"arms": ("hull", "panel")},
        {"goal": cg.StoppingRule(0.1, reference=[[0.0, 0.0]])},
    ],
)
def test_a_campaign_is_created_once_by_a_key_and_its_settings(local, other):
    first = local.create(key="k", seed=None)
    assert local.create(key="k", seed=None).learner().counts == first.learner().counts
    with pytest.raises(ConflictError, match="for another campaign 'sensors'"):
        local.create(key="k", seed=None, **other)


def test_requests_that_come_twice_at_once_are_one(local, contexts, monkeypatch):
    """The second looks before the first has written, and finds it when it writes."""
    monkeypatch.setattr(campaign_module, "created_before", _late(campaign_module.created_before))
    local.create(key="k")
    campaign = local.create(key="k")
    tell_some(campaign, contexts[:4])
    policy = campaign.freeze("first", key="f")
    known = campaign_module.Draft.known
    late = _late(known, None)
    monkeypatch.setattr(campaign_module.Draft, "known", lambda *given: late(*given))
    unused = campaign_module._check_unused
    monkeypatch.setattr(campaign_module, "_check_unused", _late(unused, None))
    assert to_bytes(campaign.freeze("first", key="f")) == to_bytes(policy)
    assert [event.kind for event in _events(campaign)].count("freeze") == 1


def _late(function, answer=False):
    """Return a function that finds nothing when it is called first."""
    calls = []

    def called(*given):
        calls.append(given)
        return answer if len(calls) == 1 else function(*given)

    return called


def test_a_repeated_request_may_name_an_arm_that_was_removed(local):
    campaign = local.create()
    mask = np.array([True, False, True])
    trials = [campaign.ask([0.1, 0.2], arms=["hull", "boom"], key="k")]
    trials.append(campaign.ask([0.1, 0.2], arms=mask, key="m"))
    campaign.remove_arm("hull")
    assert campaign.ask([0.1, 0.2], arms=["hull", "boom"], key="k") == trials[0]
    assert campaign.ask([0.1, 0.2], arms=mask, key="m") == trials[1]
    for key in (None, "new"):
        with pytest.raises(ValueError, match="arms must be among"):
            campaign.ask([0.1, 0.2], arms=["hull", "boom"], key=key)
    assert campaign.status().trials["open"] == 2
