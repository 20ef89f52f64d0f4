"""Hyperparameters are in the log: whoever replays it, under any release, has the same ones."""

import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import contextgap as cg
from contextgap.models.tuning import Tuning, choose
from contextgap.policy.state import Card
from contextgap.team.campaign.store import follow
from contextgap.team.campaign.values import Event

from .conftest import tell_some
from .oracle import check, events, to_bytes

DATA = Path(__file__).parent / "data"


@pytest.fixture
def nothing_is_learnt(monkeypatch):
    """A later release, which would learn something else."""

    def begin():
        def fail(*_):
            raise AssertionError("hyperparameters were learnt")

        monkeypatch.setattr(choose, "heavy_tails", fail)

    return begin


def test_a_later_release_rebuilds_the_same_learner_and_policies(local, contexts, nothing_is_learnt):
    campaign = local.create(kernel=None)
    tell_some(campaign, contexts[:25])
    campaign.freeze("first", fallback="hull", tolerance=0.5)
    campaign.retract(3, "typo")  # learns anew, with 24 rewards
    campaign.correct(17, 0.5, "typo")
    campaign.tell(contexts=contexts[25:30], arms=["hull"] * 5, reward=[0.5] * 5)
    campaign.tune("loo")
    campaign.freeze("second")
    campaign.retract(26, "typo")
    wanted = to_bytes(campaign.learner())
    policies = {name: to_bytes(campaign.policy(name)) for name in ("first", "second")}
    nothing_is_learnt()
    again = local.open()
    with again._session.store.reading() as connection:
        alone = again._session.rebuilt(connection, len(events(again)), from_log=True)
    assert to_bytes(alone.learner) == to_bytes(again.learner()) == wanted
    assert {name: to_bytes(again.rebuild(name)) for name in policies} == policies


def test_a_retraction_forgets_hyperparameters_that_rest_on_it(local, contexts):
    campaign = local.create(kernel=None)
    tell_some(campaign, contexts[:11])
    typo = campaign.tell(contexts=contexts[11], arms="hull", reward=1e6)
    campaign.tune()
    assert campaign.learner().ridge > 1e3
    campaign.retract(typo, "typo")
    assert campaign.learner().ridge < 1.0
    tell_some(campaign, contexts[12:20])
    (edit,) = [event for event in events(campaign) if event.kind == "retract"]
    learnt = edit.result["learnt"]
    (told,) = [event for event in events(campaign) if event.kind == "record"]
    assert learnt["from"] == told.number
    assert [int(number) for number in learnt["sets"]] == [edit.number - 1]  # that of the tune
    check(campaign)


def test_features_of_arms_are_not_repeated_in_the_log(local, contexts, nothing_is_learnt):
    features = {"hull": [0.0, "a"], "panel": [1.0, "a"], "boom": [1.0, "b"]}
    campaign = local.create(kernel=None, features=features)
    for context in contexts[:24]:  # what one arm teaches holds for all
        campaign.tell(campaign.ask(context), float(np.sin(3 * context[0])))
    campaign.add_arm("tail", [0.5, "b"])
    campaign.tune()
    learnt = [event.result.get("learnt") for event in events(campaign)]
    shared = [each for each in learnt if each and each["alike"] is not None]
    assert shared
    assert all(each["alike"]["features"] is None for each in shared)
    wanted = to_bytes(campaign.learner())
    nothing_is_learnt()
    assert to_bytes(local.open().learner()) == wanted


def test_logs_without_hyperparameters_learn_anew(tmp_path):
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as made:
        made.executescript(gzip.decompress((DATA / "schema-1.sqlite.sql.gz").read_bytes()).decode())
    made.close()
    campaign = cg.Campaign.open(path, "sensors")
    log = events(campaign)
    assert not any("learnt" in event.result for event in log)
    for name in ("first", "second"):
        again, then = campaign.rebuild(name), campaign.policy(name)
        assert again.card.log == then.card.log
        assert again.card.rewards == then.card.rewards
    before = len(log)
    campaign.tell(8, 0.5)
    campaign.retract(9, "typo")
    told, *_, edit = events(campaign)[before:]
    assert told.result["learnt"] is None
    tuned = next(event.number for event in log if event.kind == "tune")
    assert str(tuned) in edit.result["learnt"]["sets"]  # from now on it is in the log


def test_a_stored_log_gives_the_learner_and_policies_of_the_release_that_wrote_it(
    tmp_path, nothing_is_learnt
):
    stored = json.loads(gzip.decompress((DATA / "log-0.3.json.gz").read_bytes()))
    path = tmp_path / "stored.db"
    campaign = cg.Campaign.create(path, "sensors", ["hull", "panel", "boom"], seed=0)
    store = campaign._session.store
    with store.locked() as connection:  # the first event is another one
        connection.exec_driver_sql("DELETE FROM contextgap_events")
        store.append(connection, [_event(**each) for each in stored["events"]])
        rows = {}
        for event in store.events(connection):
            follow(rows, event)
        store.add_trials(connection, rows.values())
    nothing_is_learnt()
    again = cg.Campaign.open(path, "sensors")
    learner = again.learner()
    assert learner.kernel.describe() == stored["kernel"]
    assert learner.ridge == stored["ridge"]
    assert learner.tuning == Tuning.restored(stored["tuning"])
    for name, then in stored["policies"].items():
        policy = again.rebuild(name)
        assert policy.recommend(stored["grid"]).tolist() == then["arms"]
        assert policy.certificate(stored["grid"]).bound == pytest.approx(then["bounds"], rel=1e-6)
        assert policy.card == Card.restored(then["card"])


def _event(request, result, **rest):
    return Event(request_text=request, result_text=result, **rest)


def test_a_search_that_a_restart_interrupts_goes_on_as_if_there_had_been_none(local, contexts):
    campaign = local.create(kernel=None)
    told = 0
    while campaign.learner().state.searching is None:
        tell_some(campaign, contexts[told : told + 1])
        told += 1
    campaign.freeze("between")
    twin = campaign.learner()
    again = local.open()
    assert again.learner().state.searching.operations == twin.state.searching.operations
    assert to_bytes(again.rebuild("between")) == to_bytes(campaign.policy("between"))
    for context in contexts[told : told + 8]:
        trial = again.ask(context)
        assert trial.arm == twin.ask(context)
        again.tell(trial, float(context[0]))
        twin.tell(context, trial.arm, float(context[0]))
    assert again.learner().kernel == twin.kernel
    check(again)
