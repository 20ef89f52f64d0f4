"""Who makes a call, and for how long it may compute."""

import getpass
import time

import pytest

import contextgap as cg
from contextgap.team.campaign import DeadlineError, calling

from .conftest import tell_some
from .oracle import check, events, to_bytes


def test_a_call_that_takes_too_long_changes_nothing(place, contexts):
    campaign = place.create()
    tell_some(campaign, contexts[:6])
    before, learner = events(campaign), to_bytes(campaign.learner())
    looked = []

    def left():
        looked.append(True)
        return len(looked) > 9

    late = time.monotonic() - 1
    for how, call in [
        ({"deadline": late}, lambda: campaign.ask(contexts[7])),
        ({"deadline": late}, lambda: campaign.tell(contexts=contexts[7], arms="hull", reward=1.0)),
        ({"cancelled": left}, lambda: campaign.ask(contexts[:50])),
        ({"deadline": late}, lambda: cg.Campaign.open(place.database, place.name)),
    ]:
        with calling(**how), pytest.raises(DeadlineError, match="nothing was changed"):
            call()
    assert len(looked) == 10  # between contexts
    assert events(campaign) == before
    assert to_bytes(campaign.learner()) == learner
    with calling(deadline=time.monotonic() + 60, cancelled=lambda: False):
        campaign.ask(contexts[8])
    check(campaign)


def test_hyperparameters_are_not_learnt_when_it_is_too_late(local, contexts):
    campaign = local.create(kernel=None)
    tell_some(campaign, contexts[:5])
    looked = []

    def left():
        looked.append(True)
        return len(looked) > 1

    with calling(cancelled=left), pytest.raises(DeadlineError, match="cancelled"):
        campaign.tune()
    assert campaign.learner().tuning is None
    check(campaign)


def test_every_event_says_who_caused_it(place, contexts):
    campaign = place.create(by="anna")
    first = campaign.ask(contexts[0], lease=1e-6)
    second = place.open().ask(contexts[1])
    with calling("bench-3"):
        told = campaign.tell(second, 0.5)
        with calling(cancelled=lambda: False):
            campaign.retract(second, "typo")
    log = [(event.kind, event.by) for event in events(campaign) if event.kind != "progress"]
    assert log == [
        ("create", "anna"),
        ("ask", "anna"),
        ("expire", None),
        ("ask", getpass.getuser()),
        ("tell", "bench-3"),
        ("retract", "bench-3"),
    ]
    assert (first.by, second.by, told.by) == ("anna", getpass.getuser(), "bench-3")
    assert campaign.trials()["by"].iloc[1] == "bench-3"
    check(campaign)
    with pytest.raises(ValueError, match="by must be 1 to 200 printable letters"):
        cg.Campaign.open(place.database, place.name, by="\n")
