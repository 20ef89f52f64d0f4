"""Frozen policies of a campaign, and which of them rest on a trial that was taken back."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sqlalchemy import Connection

from contextgap.base.labels import Label, decode_label, encode_label
from contextgap.learner import StoppingRule
from contextgap.policy.card import Card
from contextgap.policy.policy import Policy
from contextgap.team.campaign.codec import Event, to_bytes
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.progress import seen_contexts
from contextgap.team.campaign.replay import Replay, changes_in
from contextgap.team.campaign.session import Draft, Session
from contextgap.team.campaign.store import find_store
from contextgap.team.campaign.values import (
    AlteredError,
    ConflictError,
    FrozenPolicy,
    NotFoundError,
    Recall,
    Recalled,
)

_LEAST = 2  # rewards, so that one can be left out


def find(session: Session, connection: Connection, name: str) -> Event:
    """Return the freeze event of a policy."""
    for event in session.store.events_of(connection, "freeze"):
        if event.request["name"] == name:
            return event
    raise NotFoundError(f"there is no policy {name!r}")


def check_unused(events: Sequence[Event], name: str) -> None:
    """Raise if there is a policy of that name among those of events."""
    if any(event.request["name"] == name for event in events):
        raise ConflictError(f"there is a policy {name!r} already; choose another name")


def all_frozen(session: Session, connection: Connection) -> tuple[FrozenPolicy, ...]:
    """Return what is known of all frozen policies."""
    store = session.store
    changed = store.events_of(connection, "retract", "correct")
    trials = store.trials(connection, numbers=[each.request["trial"] for each in changed])
    told_by = {row["id"]: row["told_by"] for row in trials}
    found = []
    for event in store.events_of(connection, "freeze"):
        upto, log, sha256 = (event.result[name] for name in ("upto", "log", "sha256"))
        since = {each.request["trial"] for each in changed if each.number > upto}
        recalled = tuple(sorted(trial for trial in since if told_by[trial] <= upto))
        found.append(FrozenPolicy(event.request["name"], event.at, upto, log, sha256, recalled))
    return tuple(found)


def freeze(
    replay: Replay, fallback: Label | None, tolerance: float | None, card: Card | None = None
) -> Policy:
    """Return the policy of a learner, with a card that carries the hash of the log."""
    learner, rewards = replay.learner, len(replay.learner.state.model)
    if card is None and rewards < _LEAST:
        raise ValueError(
            f"freeze needs at least {_LEAST} rewards, for the policy's score card; "
            f"there are {rewards}"
        )
    if card is None:
        card = replace(learner.score(fallback=fallback, tolerance=tolerance), log=replay.hash)
    return learner.freeze(card, fallback=fallback, tolerance=tolerance)


def keep(
    session: Session,
    name: str,
    fallback: Label | None,
    tolerance: float | None,
    key: str | None,
) -> Policy:
    """Freeze the learner's policy and keep it under a name; return it, or the key's if known."""
    safe = None if fallback is None else {"arm": encode_label(fallback)}
    request = {"name": name, "fallback": safe, "tolerance": tolerance}
    with session.reading() as connection:
        event = session.known(connection, key, "freeze", request)
        if event is not None:
            return load(session, connection, event)
        check_unused(session.store.events_of(connection, "freeze"), name)
    # Scoring takes a while, in which others may go on: what is frozen is the log up to here.
    replay = session.replay
    replay.learner.learnt = None
    upto, policy = replay.number, freeze(replay, fallback, tolerance)
    content = to_bytes(policy)
    result = {"upto": upto, "log": replay.hash, "sha256": hashlib.sha256(content).hexdigest()}
    # A later release may estimate otherwise, and finish the search for hyperparameters elsewhere.
    result |= {"card": policy.card.describe(), "learnt": replay.learner.learnt}

    def work(draft: Draft) -> Policy:
        known = draft.known(key, "freeze", request)
        if known is not None:  # the same request came twice at once
            return load(session, draft.connection, known)
        check_unused(draft.events_of("freeze"), name)
        draft.add_file("policy", draft.append("freeze", request, result, key), content)
        return policy

    return session.run(work)


def rebuild(session: Session, connection: Connection, event: Event) -> Policy:
    """Return the policy that a freeze event froze, made again from the log alone."""
    replay = session.rebuilt(connection, event.result["upto"], from_log=True)
    card = event.result.get("card")  # releases before 0.3 did not log it
    with replay.learner.using(event.result.get("learnt")):
        return freeze(replay, *_how(event), None if card is None else Card.restored(card))


def load(session: Session, connection: Connection, event: Event) -> Policy:
    """Return the policy that a freeze event froze, from its file."""
    content = session.store.read_file(connection, "policy", event.number).read()
    if hashlib.sha256(content).hexdigest() != event.result["sha256"]:
        raise AlteredError(f"the policy {event.request['name']!r} was altered: its hash is wrong")
    return Policy.load(io.BytesIO(content))


def load_policy(database: Database, campaign: str, name: str) -> Policy:
    """Return a frozen policy of a campaign that need not be opened for it."""
    session = Session(find_store(database, campaign))
    with session.store.reading() as connection:
        return load(session, connection, find(session, connection, name))


def _how(event: Event) -> tuple[Label | None, float | None]:
    fallback = event.request["fallback"]
    label = None if fallback is None else decode_label(fallback["arm"])
    return label, event.request["tolerance"]


def recall(
    session: Session,
    connection: Connection,
    trial: int,
    told_by: int,
    goal: StoppingRule | None,
) -> Recall:
    """Return what policies frozen on a trial would have decided, had all edits since been known."""
    found = []
    store = session.store
    edits = store.events_of(connection, "retract", "correct")
    trials = store.trials(connection, numbers=[each.request["trial"] for each in edits])
    tells = {row["id"]: row["told_by"] for row in trials}
    for event in store.events_of(connection, "freeze"):
        upto = event.result["upto"]
        if upto < told_by:
            continue
        since = changes_in([each for each in edits if each.number > upto])
        since = {number: reward for number, reward in since.items() if tells[number] <= upto}
        before = min([told_by, *(tells[number] for number in since)])
        fallback, tolerance = _how(event)
        learner = session.rebuilt(connection, upto, since, before).learner
        without = learner.freeze(fallback=fallback, tolerance=tolerance)
        then = load(session, connection, event)
        contexts = goal.given if goal is not None else seen_contexts(then.state)
        changed = then.recommend(contexts) != without.recommend(contexts)
        name = event.request["name"]
        found.append(Recalled(name, len(changed), int(np.count_nonzero(changed))))
    return Recall(trial, tuple(found))
