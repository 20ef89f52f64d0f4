"""Whatever happens, and wherever a process ends, the learner is that of the log, bit for bit."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.team.campaign import session, values

from .conftest import ARMS, tell_some
from .oracle import check, to_bytes

grid = st.sampled_from([-0.5, 0.0, 0.1, 1 / 3, 1.0])  # few, so that picks coincide
number = st.integers(1, 12)
rewards = st.floats(-2, 2, allow_nan=False)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.tuples(grid, grid)),
        st.tuples(st.just("short ask"), st.tuples(grid, grid)),
        st.tuples(st.just("tell"), number, rewards),
        st.tuples(st.just("tell"), number, rewards),
        st.tuples(st.just("record"), st.tuples(grid, grid), st.sampled_from(ARMS), rewards),
        st.tuples(st.just("cancel"), number),
        st.tuples(st.just("retract"), number),
        st.tuples(st.just("correct"), number, rewards),
        st.tuples(st.just("wait")),
        st.tuples(st.just("snapshot")),
        st.tuples(st.just("reopen")),
    ),
    max_size=30,
)


class Clock:
    """A clock that stands still unless moved."""

    def __init__(self):
        self.time = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self):
        return values.as_text(self.time)


def take(campaign, step):
    """Do one step; return whether it was possible."""
    kind, *rest = step
    try:
        if kind == "ask":
            campaign.ask(list(rest[0]))
        elif kind == "short ask":
            campaign.ask(list(rest[0]), lease=60)
        elif kind == "tell":
            campaign.tell(*rest)
        elif kind == "record":
            campaign.tell(contexts=list(rest[0]), arms=rest[1], reward=rest[2])
        elif kind == "cancel":
            campaign.cancel(rest[0])
        elif kind == "retract":
            campaign.retract(rest[0], "typo")
        else:
            campaign.correct(*rest, "typo")
    except (cg.campaign.ConflictError, cg.campaign.NotFoundError):
        return False
    return True


@pytest.mark.parametrize(
    "how",
    [
        {"kernel": cg.Gaussian(0.5), "seed": 3},
        {"kernel": cg.Gaussian(0.5), "sharing": 0.6, "seed": 3, "method": "kernel-ts"},
        {"kernel": cg.Gaussian(0.5), "ridge": 1e-6, "method": "knowledge-gradient", "seed": 3},
        {"kernel": cg.Gaussian(0.5), "points": 2, "seed": 3},
    ],
    ids=["exact", "shared, random", "no noise", "bounded"],
)
@given(steps=steps)
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_history_gives_the_learner_of_its_log(how, steps, monkeypatch):
    time = Clock()
    monkeypatch.setattr(values, "now", time)
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'bench.db'}?synchronous=normal"
        campaign = cg.Campaign.create(database, "c", ARMS, lease=1e9, **how)
        watching = cg.Campaign.open(database, "c")
        # The same calls, in a process that never ends and takes no snapshot.
        other = cg.Campaign.create(database, "steady", ARMS, lease=1e9, **how)
        for step in steps:
            if step[0] == "wait":
                time.time += timedelta(seconds=100)
            elif step[0] == "snapshot":
                campaign.arms  # noqa: B018  # takes in what happened
                campaign._session.write_snapshot()
            elif step[0] == "reopen":
                campaign.close()
                campaign = cg.Campaign.open(database, "c")
            else:
                assert take(campaign, step) == take(other, step)
        check(campaign)
        assert to_bytes(watching.learner()) == to_bytes(campaign.learner())
        assert to_bytes(other.learner()) == to_bytes(campaign.learner())
        for each in (campaign, watching, other):
            each.close()


def test_snapshots_are_taken_and_thinned_out(local, contexts, monkeypatch):
    monkeypatch.setattr(session, "_MOST", 8)
    campaign = local.create()
    tell_some(campaign, contexts[:40])
    with campaign._session.store.reading() as connection:
        kept = campaign._session.store.files(connection, "snapshot")
    assert len(kept) < 9
    assert max(kept) > campaign.status().events - 9
    check(campaign)
    campaign.retract(2, "typo")  # told before nearly all snapshots
    check(campaign)
    check(local.open())


def test_a_process_that_ends_leaves_a_snapshot(place, contexts, monkeypatch):
    monkeypatch.setattr(session, "_AT_THE_END", 0.0)
    with place.create() as campaign:
        tell_some(campaign, contexts[:6])
    again = place.open()
    with again._session.store.reading() as connection:
        (kept,) = again._session.store.files(connection, "snapshot")
    assert kept == again.status().events
    again.close()  # there is nothing to add
    again.ask(contexts[6])  # and it may go on
    check(again)


def test_a_process_that_was_away_loads_a_snapshot(local, contexts, monkeypatch):
    monkeypatch.setattr(session, "_MOST", 20)
    monkeypatch.setattr(session, "_BEHIND", 30)
    idle = local.create()
    tell_some(local.open(), contexts[:40])
    check(idle)


def test_a_write_that_fails_changes_nothing(local, contexts, monkeypatch):
    campaign = local.create()
    tell_some(campaign, contexts[:5])
    before = campaign.status()

    def fail(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(campaign._session.store, "append", fail)
        for call in (lambda: campaign.ask(contexts[5]), lambda: campaign.retract(1, "typo")):
            with pytest.raises(OSError, match="disk is full"):
                call()
    with monkeypatch.context() as patch:
        patch.setattr(campaign._session.store, "add_trials", fail)  # after the pick was made
        with pytest.raises(OSError, match="disk is full"):
            campaign.ask(contexts[5])
    assert campaign.status() == before
    check(campaign)
    tell_some(campaign, contexts[5:8])
    check(campaign)


def test_learnt_scales_and_arms_that_come_and_go(local, contexts):
    campaign = local.create(kernel=None, arms=["hull", "panel"])
    for context in contexts[:16]:
        trial = campaign.ask(context)
        campaign.tell(trial, float(context[0] * (trial.arm == "hull")))
    campaign.add_arm("boom")
    campaign.remove_arm("hull")
    for context in contexts[16:20]:
        campaign.tell(campaign.ask(context), 0.5)
    campaign.tune("loo")
    assert campaign.arms == ("panel", "boom")
    assert campaign.status().tuning.criterion == "loo"
    again = local.open()
    assert to_bytes(again.learner()) == to_bytes(campaign.learner())
    with campaign._session.store.reading() as connection:
        alone = campaign._session.rebuilt(connection, 2**31 - 1, from_log=True)
    assert to_bytes(alone.learner) == to_bytes(campaign.learner())
    assert np.isfinite(campaign.learner().decide(contexts[0]).mean).all()


def test_propensities_are_part_of_the_log(local, contexts):
    """A replayed campaign scores its explored data as the one that drew them."""
    campaign = local.create(method="proportional-response")
    tell_some(campaign, contexts[:20])
    batch = campaign.ask(contexts[20:26])
    campaign.tell(list(batch), [0.1 * number for number in range(6)])
    again = cg.Campaign.open(local.database, local.name)
    cards = [each.learner().score() for each in (campaign, again)]
    assert cards[0] == cards[1]
    assert cards[0].estimator == "doubly robust"


def test_trials_that_are_over_take_no_memory(local, contexts):
    """However many are cancelled or expire; a late reward still finds where it was tried."""
    campaign = local.create()
    for context in contexts[:5]:
        campaign.cancel(campaign.ask(context))
    campaign.ask(contexts[5], lease=1e-6)
    assert campaign.status(fresh=False).trials["expired"] == 1
    assert campaign._session.replay._picks == {}
    assert campaign.tell(3, 0.5).reward == 0.5
    assert campaign.tell(6, 0.25).reward == 0.25
    check(campaign)
    campaign.close()


def test_a_pool_without_repeats(local):
    pool = [[0.1, 0.2], [0.3, 0.4]]
    campaign = local.create()
    trials = [campaign.ask(pool=pool, once=True) for _ in range(6)]
    assert len({(tuple(trial.context), trial.arm) for trial in trials}) == 6
    with pytest.raises(ValueError, match="every arm was tried"):
        campaign.ask(pool=pool, once=True)
    with pytest.raises(TypeError, match="once= is about a pool"):
        campaign.ask(pool[0], once=True)
    again = cg.Campaign.open(local.database, local.name)
    assert to_bytes(again.learner()) == to_bytes(campaign.learner())
    campaign.close()
