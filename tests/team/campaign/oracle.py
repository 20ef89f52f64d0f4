"""The learner of a log, by the definition in docs/campaigns.md and plain calls of a learner."""

import base64
import io
from dataclasses import replace

from contextgap.base.checks import decode_label
from contextgap.learner import Learner


def events(campaign):
    """All events of a campaign, read anew."""
    store = campaign._session.store
    with store.reading() as connection:
        return list(store.events(connection))


def to_bytes(thing) -> bytes:
    file = io.BytesIO()
    thing.save(file)
    return file.getvalue()


def learner_of(log) -> Learner:
    """Feed a log of single contexts to a learner, in order."""
    *_, learner = learners_of(log)
    return learner


def learners_of(log):
    """Yield the same learner after each event."""
    told = {}
    for event in log:
        if event.kind in ("retract", "correct"):
            request = event.request
            told[request["trial"]] = request.get("reward")
    trials = {}
    learner = None
    for event in log:
        request, result = event.request, event.result
        if event.kind == "create":
            learner = Learner.load(io.BytesIO(base64.b64decode(request["learner"])))
        elif event.kind == "ask":
            (number,), (label,) = result["trials"], result["arms"]
            trials[number] = request["contexts"]["row"], decode_label(label)
            learner.add_pending(*trials[number])
            if "random" in result:
                learner.restore(replace(learner.state, random=result["random"]))
        elif event.kind in ("cancel", "expire"):
            learner.cancel(*trials[request["trial"]])
        elif event.kind == "tell":
            number, late = request["trial"], result["late"]
            reward = told.get(number, request["reward"])
            if late and reward is not None:
                learner.add_pending(*trials[number])
            if reward is not None:
                learner.tell(*trials[number], reward)
            elif not late:
                learner.cancel(*trials[number])
        elif event.kind == "record":
            (number,), (label,) = result["trials"], request["arms"]
            reward = told.get(number, request["rewards"][0])
            tried = request["contexts"]["row"], decode_label(label)
            if reward is not None:
                learner.add_pending(*tried)
                learner.tell(*tried, reward)
        elif event.kind == "tune":
            learner.tune(request["criterion"])
        else:
            assert event.kind in ("retract", "correct", "progress", "freeze")
        yield learner


def check(campaign) -> None:
    """A campaign's learner is that of its log, from snapshots and without."""
    found = to_bytes(campaign.learner())  # first, because leases may have run out
    log = events(campaign)
    session, before = campaign._session, ""
    with session.store.reading() as connection:
        kept = {
            number: session.store.read_file(connection, "snapshot", number).read()
            for number in session.store.files(connection, "snapshot")
        }
        for event, learner in zip(log, learners_of(log), strict=True):
            assert event.follows(before)
            before = event.hash
            if event.number in kept:  # edits since then are of later rewards: others remove it
                assert kept.pop(event.number) == to_bytes(learner)
        assert [event.number for event in log] == [*range(1, len(log) + 1)]
        assert not kept
        assert found == to_bytes(learner)
    check_replay(campaign)


def check_replay(campaign) -> None:
    """A campaign's learner is what its log gives without any snapshot."""
    session, count = campaign._session, len(events(campaign))
    with session.store.reading() as connection:
        alone = session.rebuilt(connection, count, from_log=True)
        assert to_bytes(alone.learner) == to_bytes(campaign.learner())
