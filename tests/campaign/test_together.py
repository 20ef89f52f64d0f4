"""Calls that are committed together: one wait for the disk, and the log of calls one by one."""

import subprocess
import sys

import pytest

import contextgap as cg
from contextgap.campaign.campaign import together

from .oracle import check, events


def kinds(campaign):
    return [event.kind for event in events(campaign) if event.kind != "progress"]


def test_all_are_there_at_the_end_and_none_before(place):
    campaign, other = place.create(), place.open()
    with together(campaign):
        trials = [campaign.ask([number / 10, 0.0]) for number in range(5)]
        campaign.tell(trials[0], 1.0)
        campaign.tell([trial.id for trial in trials[1:3]], [0.5, 0.25])
        campaign.cancel(trials[3])
    assert kinds(other) == ["create", *["ask"] * 5, *["tell"] * 3, "cancel"]
    assert [trial.state for trial in other.find_trials()] == ["told"] * 3 + ["cancelled", "open"]
    check(campaign)
    check(other)


def test_one_that_fails_changes_nothing_and_harms_no_other(place):
    campaign = place.create()
    with together(campaign):
        first = campaign.ask([0.0, 0.0], key="first")
        with pytest.raises(ValueError, match="'wing'"):  # by the learner, after the log was begun
            campaign.tell(contexts=[0.5, 0.5], arms="wing", reward=1.0)
        with pytest.raises(ValueError, match="must have 2 numbers"):
            campaign.ask([0.0])
        with pytest.raises(cg.campaign.NotFoundError):
            campaign.tell([first.id, 99], [1.0, 2.0])  # the first of them is undone
        assert campaign.ask([0.0, 0.0], key="first") == first
        campaign.tell(first, 0.5)
    assert kinds(campaign) == ["create", "ask", "tell"]
    assert campaign.trial(first.id).reward == 0.5
    check(campaign)


def test_the_last_one_may_fail(place):
    campaign = place.create()
    with together(campaign):
        campaign.tell(contexts=[0.5, 0.5], arms="hull", reward=1.0)
        with pytest.raises(ValueError, match="'wing'"):
            campaign.tell(contexts=[0.5, 0.5], arms="wing", reward=1.0)
    assert kinds(campaign) == ["create", "record"]
    check(campaign)


def test_a_block_that_fails_undoes_all(place):
    campaign = place.create()
    campaign.ask([0.0, 0.0])

    def fail():
        with together(campaign):
            campaign.ask([1.0, 0.0])
            raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError, match="the power is gone"):
        fail()
    assert kinds(campaign) == ["create", "ask"]
    campaign.tell(1, 1.0)
    check(campaign)


def test_a_kill_before_the_commit_undoes_all(place):
    campaign = place.create()
    campaign.ask([0.0, 0.0])
    program = f"""
import os, signal
import contextgap as cg
from contextgap.campaign.campaign import together

campaign = cg.Campaign.open({place.database!r}, {place.name!r})
with together(campaign):
    campaign.tell(1, 1.0)
    campaign.ask([1.0, 0.0], key="second")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert kinds(campaign) == ["create", "ask"]
    assert campaign.ask([0.5, 0.0], key="second").id == 2
    check(campaign)


def test_a_key_stands_for_one_request_within_a_group(place):
    campaign = place.create()
    with together(campaign):
        asked = [campaign.ask([0.0, 0.0], key="ask") for _ in range(3)]
        with pytest.raises(cg.campaign.ConflictError, match="'ask' was used before"):
            campaign.ask([1.0, 0.0], key="ask")
        told = [campaign.tell(asked[0], 0.5, key="tell") for _ in range(3)]
        with pytest.raises(cg.campaign.ConflictError, match="'tell' was used before"):
            campaign.tell(asked[0], 0.75, key="tell")
    assert asked == asked[:1] * 3
    assert told == told[:1] * 3
    assert kinds(campaign) == ["create", "ask", "tell"]
    assert campaign.trial(1).reward == 0.5
    check(campaign)


def test_leases_that_run_out_meanwhile_expire_at_the_next_call(local):
    campaign = local.create()
    with together(campaign):
        campaign.ask([0.0, 0.0], lease=1e-6)
        campaign.ask([0.5, 0.0])
    assert [trial.state for trial in campaign.find_trials()] == ["expired", "open"]
    check(campaign)


def test_no_group_within_a_group(local):
    campaign = local.create()
    with together(campaign), pytest.raises(RuntimeError, match="together already"):  # noqa: SIM117
        with together(campaign):
            pass
