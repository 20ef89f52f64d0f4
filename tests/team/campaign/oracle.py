"""The learner of a log, by the definition in docs/campaigns.md and plain calls of a learner."""

import base64
import io
from dataclasses import replace

from contextgap.base.labels import decode_label
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
            learner.expect(*trials[number])
            if "random" in result:
                learner.restore(replace(learner.state, random=result["random"]))
        elif event.kind in ("cancel", "expire"):
            learner.cancel(*trials[request["trial"]])
        elif event.kind == "tell":
            number, late = request["trial"], result["late"]
            reward = told.get(number, request["reward"])
            if late and reward is not None:
                learner.expect(*trials[number])
            if reward is not None:
                learner.tell(*trials[number], reward)
            elif not late:
                learner.cancel(*trials[number])
        elif event.kind == "record":
            (number,), (label,) = result["trials"], request["arms"]
            reward = told.get(number, request["rewards"][0])
            tried = request["contexts"]["row"], decode_label(label)
            if reward is not None:
                learner.expect(*tried)
                learner.tell(*tried, reward)
        elif event.kind == "tune":
            learner.tune(request["criterion"])
        else:
            assert event.kind in ("retract", "correct", "progress", "freeze")
    return learner


def check(campaign) -> None:
    """A campaign's learner is that of its log, from snapshots and without."""
    found = to_bytes(campaign.learner())  # first, because leases may have run out
    log = events(campaign)
    before = ""
    for number, event in enumerate(log, 1):
        assert event.number == number
        assert event.follows(before)
        before = event.hash
    wanted = to_bytes(learner_of(log))
    assert found == wanted
    store = campaign._session.store
    with store.reading() as connection:
        alone = campaign._session.rebuilt(connection, len(log), from_log=True)
        assert to_bytes(alone.learner) == wanted
        for kept in store.files(connection, "snapshot"):
            whole = campaign._session.rebuilt(connection, kept, from_log=True)
            assert store.read_file(connection, "snapshot", kept).read() == to_bytes(whole.learner)
