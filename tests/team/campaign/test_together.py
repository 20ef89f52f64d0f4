"""Calls that are committed together: one wait for the disk, and the log of calls one by one."""

import subprocess
import sys

import pytest

import contextgap as cg
from contextgap.team.campaign.campaign import together

from .oracle import check, events


def kinds(campaign):
    return [event.kind for event in events(campaign) if event.kind != "progress"]


def test_all_are_there_at_the_end(place):
    campaign, other = place.create(), place.open()
    asks = [lambda c, number=number: c.ask([number / 10, 0.0]) for number in range(5)]
    answers = together(
        campaign,
        [
            *asks,
            lambda c: c.tell(1, 1.0),
            lambda c: c.tell([2, 3], [0.5, 0.25]),
            lambda c: c.cancel(4),
        ],
    )
    assert [trial.id for trial in answers[:5]] == [1, 2, 3, 4, 5]
    assert answers[-1].state == "cancelled"
    assert kinds(other) == ["create", *["ask"] * 5, *["tell"] * 3, "cancel"]
    assert [trial.state for trial in other.find_trials()] == ["told"] * 3 + ["cancelled", "open"]
    check(campaign)
    check(other)


def test_one_that_fails_changes_nothing_and_harms_no_other(local):
    campaign = local.create()
    answers = together(
        campaign,
        [
            lambda c: c.ask([0.0, 0.0], key="first"),
            lambda c: c.tell(contexts=[0.5, 0.5], arms="wing", reward=1.0),
            lambda c: c.ask([0.0]),
            lambda c: c.tell([1, 99], [1.0, 2.0]),  # the first of them is undone
            lambda c: c.ask([0.0, 0.0], key="first"),
            lambda c: c.tell(1, 0.5),
        ],
    )
    first, *wrong, again, told = answers
    assert [type(each) for each in wrong] == [ValueError, ValueError, cg.campaign.NotFoundError]
    assert "'wing'" in str(wrong[0])  # by the learner, after the log was begun
    assert first == again
    assert told.reward == 0.5
    assert kinds(campaign) == ["create", "ask", "tell"]
    assert campaign.trial(first.id).reward == 0.5
    check(campaign)


def test_the_last_one_may_fail(local):
    campaign = local.create()
    answers = together(
        campaign,
        [
            lambda c: c.tell(contexts=[0.5, 0.5], arms="hull", reward=1.0),
            lambda c: c.tell(contexts=[0.5, 0.5], arms="wing", reward=1.0),
        ],
    )
    assert isinstance(answers[1], ValueError)
    assert kinds(campaign) == ["create", "record"]
    check(campaign)


def test_an_interrupt_undoes_all(local):
    campaign = local.create()
    campaign.ask([0.0, 0.0])

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        together(campaign, [lambda c: c.ask([1.0, 0.0]), interrupt])
    assert kinds(campaign) == ["create", "ask"]
    campaign.tell(1, 1.0)
    check(campaign)


def test_a_kill_before_the_commit_undoes_all(place):
    campaign = place.create()
    campaign.ask([0.0, 0.0])
    program = f"""
import os, signal
import contextgap as cg
from contextgap.team.campaign.campaign import together

campaign = cg.Campaign.open({place.database!r}, {place.name!r})
together(campaign, [
    lambda c: c.tell(1, 1.0),
    lambda c: c.ask([1.0, 0.0], key="second"),
    lambda c: os.kill(os.getpid(), signal.SIGKILL),
])
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert kinds(campaign) == ["create", "ask"]
    assert campaign.ask([0.5, 0.0], key="second").id == 2
    check(campaign)


def test_a_key_stands_for_one_request_within_a_group(local):
    campaign = local.create()
    *asked, wrong, told, again, other = together(
        campaign,
        [
            *[lambda c: c.ask([0.0, 0.0], key="ask")] * 3,
            lambda c: c.ask([1.0, 0.0], key="ask"),
            lambda c: c.tell(1, 0.5, key="tell"),
            lambda c: c.tell(1, 0.5, key="tell"),
            lambda c: c.tell(1, 0.75, key="tell"),
        ],
    )
    for each, key in ((wrong, "ask"), (other, "tell")):
        assert isinstance(each, cg.campaign.ConflictError)
        assert f"'{key}' was used before" in str(each)
    assert asked == asked[:1] * 3
    assert told == again
    assert kinds(campaign) == ["create", "ask", "tell"]
    assert campaign.trial(1).reward == 0.5
    check(campaign)


def test_leases_that_run_out_meanwhile_expire_at_the_next_call(local):
    campaign = local.create()
    asks = [lambda c: c.ask([0.0, 0.0], lease=1e-6), lambda c: c.ask([0.5, 0.0])]
    together(campaign, asks)
    assert [trial.state for trial in campaign.find_trials()] == ["expired", "open"]
    check(campaign)


def test_no_group_within_a_group(local):
    campaign = local.create()
    (found,) = together(campaign, [lambda c: together(c, [])])
    assert isinstance(found, RuntimeError)
    assert "together already" in str(found)
