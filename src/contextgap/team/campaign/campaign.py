"""Campaign: a learner whose log of events is in a database, and the policies frozen from it.

What is done adds events to a draft and changes the table of trials alike.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from sqlalchemy import Connection

from contextgap.base import checks
from contextgap.base.checks import Label, check_new_label, decode_label, encode_label, read_eligible
from contextgap.learner import Learner, StoppingRule
from contextgap.learner.replayed import ReplayedLearner
from contextgap.policy.answers import QUICK
from contextgap.policy.policy import Policy
from contextgap.policy.state import Card
from contextgap.team.campaign import values
from contextgap.team.campaign.database import Database, opened
from contextgap.team.campaign.methods import (
    CampaignMethods,
    check_arms,
    check_key,
    check_name,
    encode_new_label,
    read_lease,
    read_number,
)
from contextgap.team.campaign.session import Draft, Replay, Session, changes_in
from contextgap.team.campaign.store import (
    LARGEST,
    TRIALS,
    Store,
    campaign_names,
    created_before,
    find_store,
    new_store,
    prepare,
)
from contextgap.team.campaign.values import (
    START,
    STATES,
    AlteredError,
    CampaignStatus,
    ConflictError,
    FrozenPolicy,
    NotFoundError,
    Recall,
    Recalled,
    Trial,
    decode_goal,
    encode_goal,
    is_due,
    progress,
    seen_contexts,
    summary,
    this_user,
)

if TYPE_CHECKING:
    from contextgap.insight.watch import Watch

R = TypeVar("R")
_LEAST = 2  # rewards to freeze a policy: one is left out


class Campaign(CampaignMethods):
    """A learner whose log of events is in a database that several processes share.

    Every call takes in first what other processes did; one that fails changes nothing. Campaigns
    are thread-safe.

    ``docs/campaigns.md`` says what is promised.

    .. versionadded:: 0.2

    See Also
    --------
    client.Campaign : The same over HTTP.
    Learner : The same in memory.

    Examples
    --------
    >>> trial = campaign.ask([0.3, 0.1])
    >>> _ = campaign.tell(trial, measure([0.3, 0.1], trial.arm))
    >>> cg.Campaign.open("bench.db", "bench").status().trials["told"]
    3
    """

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self._lock = RLock()
        with session.reading() as connection:
            first = session.store.event(connection, 1)
        self._goal = decode_goal(first.request["goal"])
        self._lease: float | None = first.request["lease"]
        self._last: _Progress | None = None

    @classmethod
    def create(
        cls,
        database: str | os.PathLike[str] | Database,
        name: str,
        arms: Any,
        *,
        goal: StoppingRule | None = None,
        lease: float | timedelta = timedelta(days=7),
        key: str | None = None,
        by: str | None = None,
        **settings: Any,
    ) -> Self:
        """Begin a campaign.

        Parameters
        ----------
        database
            A SQLite file, made if missing, or a URL: ``sqlite:///bench.db``,
            ``postgresql://user@host/database``.
        name
            The campaign's name; a database may hold many.
        arms
            As for ``Learner``.
        goal
            When exploring may end, for ``status``; its reference contexts say what the columns are.
        lease
            How long a pick counts as pending: seconds or a timedelta, ``math.inf`` for ever.
        key
            Names this request: created again with the same key, the campaign is opened.
        by
            Who makes the calls, for the log; the user of this process by default.
        settings
            All others of ``Learner``: ``kernel``, ``method``, ``seed``, ``features`` and so on.

        See Also
        --------
        open : Open one that exists.

        Examples
        --------
        >>> campaign = cg.Campaign.create("bench.db", "rig 2", ["left", "right"], seed=0)
        >>> cg.Campaign.names("bench.db")
        ('bench', 'rig 2')
        """
        check_name("name", name)
        check_key(key)
        if goal is not None:
            checks.instance("goal", goal, StoppingRule, "StoppingRule(0.1, reference=contexts)")
        check_arms(arms)
        who = _read_caller(by)
        request = _read_create(ReplayedLearner(arms, **settings), encode_goal(goal), lease)
        where = opened(database)
        prepare(where)
        if key is not None and created_before(where, name, key, request):
            return cls.open(where, name, by=by)
        try:
            with where.writing() as connection:
                session = Session(new_store(where, connection, name), who)
                session.begin(connection, request, key, summary(START, [], goal))
        except ConflictError:
            if key is None or not created_before(where, name, key, request):
                raise
            return cls.open(where, name, by=by)  # the same request came twice at once
        where.prepared = True
        return cls(session, name)

    @classmethod
    def open(
        cls, database: str | os.PathLike[str] | Database, name: str, *, by: str | None = None
    ) -> Self:
        """Open a campaign that exists; a database of an earlier release is upgraded.

        Parameters
        ----------
        database
            As for ``create``.
        name
            The campaign's name.
        by
            As for ``create``.

        See Also
        --------
        create : Begin a new one.

        Examples
        --------
        >>> cg.Campaign.open("bench.db", "bench").arms
        ('left', 'right')
        """
        return cls(Session(find_store(opened(database), name), _read_caller(by)), name)

    @staticmethod
    def names(database: str | os.PathLike[str] | Database) -> tuple[str, ...]:
        """Return the names of all campaigns in a database.

        Parameters
        ----------
        database
            As for ``create``.

        Examples
        --------
        >>> cg.Campaign.names("bench.db")
        ('bench',)
        """
        return tuple(campaign_names(opened(database)))

    def __repr__(self) -> str:
        return f"Campaign({self._name!r}, {self._session.store.database.url!r})"

    def _call(self, method: str, /, *given: Any) -> Any:
        with self._lock:
            return super()._call(method, *given)

    def _close(self) -> None:
        self._session.close()

    def _arms(self) -> tuple[Label, ...]:
        with self._session.reading():
            return self._session.replay.learner.arms

    def _ask(self, request: dict[str, Any], arms: Any, key: str | None) -> Any:
        pool = request.get("pool")
        if pool is not None:
            request = {**request, "pool": hashlib.sha256(values.as_json(pool).encode()).hexdigest()}

        def work(draft: Draft) -> list[Trial]:
            learner = draft.session.replay.learner
            try:
                eligible = _encode_eligible(arms, learner.arms, request)
            except ValueError:
                if key is None:
                    raise
                # Those of a repeated request may have been removed.
                eligible = _encode_eligible(arms, learner.state.labels, request)
            asked = {**request, "arms": eligible}
            if (known := draft.known(key, "ask", asked)) is not None:
                return _known_trials(draft, known)
            result = _pick(draft.session.replay, asked, pool)
            result["trials"] = draft.new_numbers(len(result["arms"]))
            lease: Any = request["lease"] or self._lease or "ever"
            result["until"] = None if lease == "ever" else values.after(lease, draft.now())
            return _add(draft, draft.append("ask", asked, result, key))

        found = self._session.run(work)
        return found if values.is_table(request.get("contexts", {})) else found[0]

    def _tell(
        self, said: dict[str, Any], single: bool, trial: Any, eligible: Any, key: str | None
    ) -> Any:
        def work(draft: Draft) -> list[Trial]:
            with _noting_progress(draft, self._goal):
                if trial is not None:
                    _check_own(draft, trial)
                    return _tell_trials(draft, said, key)
                # Arms that were removed may be named too.
                learner = draft.session.replay.learner
                removed = [each for each in learner.state.labels if each not in learner.arms]
                among = _encode_eligible(eligible, [*learner.arms, *removed], said)
                request = {**said, "eligible": among}
                if (known := draft.known(key, "record", request)) is not None:
                    return _known_trials(draft, known)
                numbers = draft.new_numbers(len(said["arms"]))
                return _add(draft, draft.append("record", request, {"trials": numbers}, key))

        found = self._session.run(work)
        return found[0] if single else found

    def _cancel(self, trial: Any, key: str | None) -> Trial:
        number = read_number(trial)

        def work(draft: Draft) -> Trial:
            _check_own(draft, trial)
            row, request = draft.trial(number), {"trial": number}
            if draft.known(key, "cancel", request) is not None:
                return values.read_trial(row)
            if row["state"] != "open":
                raise ConflictError(f"trial {number} is {row['state']}, and no longer open")
            draft.append("cancel", request, {}, key)
            return values.read_trial(draft.change_trial(row))

        return self._session.run(work)

    def _change(self, trial: Any, reward: float | None, why: str, key: str | None) -> Recall:
        told_by = _edit(self._session, trial, reward, why, key)
        with self._session.reading() as connection:
            return _recall(self._session, connection, read_number(trial), told_by, self._goal)

    def _find_trials(self, states: list[str] | None, after: int, most: int | None) -> list[Trial]:
        where = [TRIALS.c.id > min(after, LARGEST)]
        if states is not None:
            where.append(TRIALS.c.state.in_(states))
        with self._session.reading() as connection:
            rows = self._session.store.trials(connection, *where, most=most)
        return [values.read_trial(row) for row in rows]

    def _trial(self, number: int) -> Trial:
        with self._session.reading() as connection:
            return values.read_trial(self._session.store.trial(connection, number))

    def _recommend(self, contexts: Any, arms: Any) -> Any:
        with self._session.reading():
            return self._session.replay.learner.recommend(contexts, arms=arms)

    def _learner(self) -> Learner:
        with self._session.reading():
            return Learner.from_state(deepcopy(self._session.replay.learner.state))

    def _freeze(self, name: str, fallback: Any, tolerance: float | None, key: str | None) -> Policy:
        session, safe = self._session, None if fallback is None else {"arm": fallback}
        request = {"name": name, "fallback": safe, "tolerance": tolerance}
        with session.reading() as connection:
            event = Draft(session, connection).known(key, "freeze", request)
            if event is not None:
                return _load(session.store, connection, event)
            _check_unused(session.store.events_of(connection, "freeze"), name)
        # Scoring takes a while, in which others may go on: the log up to here is frozen.
        replay = session.replay
        replay.learner.learnt = None
        upto, policy = replay.number, _frozen(replay, *_how(request))
        content = values.to_bytes(policy)
        result = {"upto": upto, "log": replay.hash, "sha256": hashlib.sha256(content).hexdigest()}
        # A later release may estimate otherwise.
        result |= {"card": policy.card.describe(), "learnt": replay.learner.learnt}

        def work(draft: Draft) -> Policy:
            known = draft.known(key, "freeze", request)
            if known is not None:  # the same request came twice at once
                return _load(session.store, draft.connection, known)
            _check_unused(draft.events_of("freeze"), name)
            draft.add_file("policy", draft.append("freeze", request, result, key), content)
            return policy

        return session.run(work)

    def _policies(self) -> tuple[FrozenPolicy, ...]:
        store, found = self._session.store, []
        with store.reading() as connection:
            edits, told_by = _edits(store, connection)
            for event in store.events_of(connection, "freeze"):
                upto, log, sha256 = (event.result[name] for name in ("upto", "log", "sha256"))
                recalled = tuple(sorted(_edited(edits, told_by, upto)))
                name = event.request["name"]
                found.append(FrozenPolicy(name, event.at, upto, log, sha256, recalled))
        return tuple(found)

    def _policy(self, name: str) -> Policy:
        with self._session.store.reading() as connection:
            event = _find_policy(self._session.store, connection, name)
            return _load(self._session.store, connection, event)

    def _rebuild(self, name: str) -> Policy:
        with self._session.store.reading() as connection:
            event = _find_policy(self._session.store, connection, name)
            replay = self._session.rebuilt(connection, event.result["upto"], from_log=True)
        card = event.result.get("card")  # releases before 0.3 did not log it
        known = None if card is None else Card.restored(card)
        with replay.learner.using(event.result.get("learnt")):
            return _frozen(replay, *_how(event.request), known)

    def _status(self, fresh: bool) -> CampaignStatus:
        with self._session.reading() as connection:
            store, replay = self._session.store, self._session.replay
            counts, before = store.counts(connection), store.progress(connection)
        last, learner = self._last, replay.learner
        rewards = len(learner.state.model)
        then = 0 if last is None else last.found["rewards"]
        old = fresh or rewards < then or is_due(then, rewards)
        if last is None or (last.log != replay.hash and old):
            score = learner.score(rows=QUICK) if rewards > 1 else None
            found = progress(learner, self._goal)
            last = self._last = _Progress(replay.hash, replay.number, found, score)
        return CampaignStatus(
            name=self._name,
            trials={state: counts.get(state, 0) for state in STATES},
            rewards=learner.counts,
            **summary(last.found, before, self._goal),
            tuning=learner.tuning,
            score=last.score,
            events=replay.number,
            log=replay.hash,
            looked_after=last.after,
        )

    def _append(self, kind: str, request: dict[str, Any], key: str | None) -> None:
        if kind == "add_arm":
            check_arms(len(self.arms) + 1)
            check_new_label(decode_label(request["arm"]), self.arms)

        def work(draft: Draft) -> None:
            if draft.known(key, kind, request) is None:
                draft.append(kind, request, {}, key)

        self._session.run(work)


@dataclass(frozen=True)
class _Progress:
    log: str
    after: int
    found: dict[str, Any]
    score: Card | None


def together(campaign: Campaign, calls: Sequence[Callable[[Campaign], R]]) -> list[R | Exception]:
    """Make calls and commit them at once; return results, or errors, which undo nothing else.

    A call may be made several times; what the last time did counts.
    """
    with campaign._lock:
        return campaign._session.together([partial(call, campaign) for call in calls])


def _read_caller(by: Any) -> str | None:
    if by is None:
        return this_user()
    check_name("by", by)
    return str(by)


def _read_create(
    learner: ReplayedLearner, goal: dict[str, Any] | None, lease: float | timedelta
) -> dict[str, Any]:
    if goal is not None:
        values.check_cells(goal["reference"], "reference")
        learner.learn_columns(values.decode_contexts(goal["reference"]))
    length = read_lease(lease)
    return {
        "arms": [encode_new_label(label) for label in learner.arms],
        "learner": base64.b64encode(values.to_bytes(learner)).decode(),
        "goal": goal,
        "lease": None if length == "ever" else length,
    }


def _encode_eligible(arms: Any, labels: Sequence[Label], request: Mapping[str, Any]) -> Any:
    single = not values.is_table(request.get("contexts", {}))
    rows = 1 if single else len(values.rows_of(request["contexts"]))
    mask = read_eligible(arms, labels, rows, single=single)
    if mask is None:
        return None
    same = single or mask.strides[0] == 0
    return values.named_arms(mask[:1], labels)[0] if same else values.named_arms(mask, labels)


def _pick(replay: Replay, request: Mapping[str, Any], pool: Any) -> dict[str, Any]:
    """Ask the learner, which is ahead of the log then; return the result for the log."""
    start, learner = time.perf_counter(), replay.learner
    before, arms = learner.state.random, values.decode_eligible(request["arms"])
    learner.forget_followed()
    found: dict[str, Any] = {}
    if pool is None:
        asked = learner.ask(values.decode_contexts(request["contexts"]), arms=arms)
        labels = asked.tolist() if values.is_table(request["contexts"]) else [asked]
    else:
        if not learner.knows_columns(values.decode_contexts(pool)):
            found["pool"] = pool
        once = request.get("once", False)
        row, label = learner.ask(pool=values.decode_contexts(pool), arms=arms, once=once)
        found["context"], labels = values.encode_contexts(row), [label]
    found["arms"] = [encode_label(label) for label in labels]
    if (chances := learner.last_propensities(labels)) is not None:
        found["propensities"] = chances
    if (after := learner.state.random) != before:
        found["random"] = after
    # A tell uses what was computed for its arm; a replay of that tell has to compute it.
    replay.seconds += (time.perf_counter() - start) / len(learner.arms)
    return found


def _check_own(draft: Draft, given: Any) -> None:
    for trial in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(trial, Trial):
            continue
        row = draft.trial(trial.id)
        arm, asked = decode_label(json.loads(row["arm"])), values.read_time(row["asked"])
        if (arm, asked) != (trial.arm, trial.asked):
            raise ValueError(
                f"trial {trial.id} of this campaign is of {arm!r}, asked for at "
                f"{asked}; the one given, of {trial.arm!r} at {trial.asked}, is of another"
            )


def _tell_trials(draft: Draft, said: Mapping[str, Sequence[Any]], key: str | None) -> list[Trial]:
    told: list[dict[str, Any]] = [
        dict(zip(said, row, strict=True)) for row in zip(*said.values(), strict=True)
    ]
    if not told:
        return []
    first = dict(told[0])
    if key is not None and len(told) > 1:
        first["with"] = told[1:]
    if draft.known(key, "tell", first) is not None:
        return [values.read_trial(draft.trial(number)) for number in said["trial"]]
    return [_tell_one(draft, first, key), *(_tell_one(draft, each, None) for each in told[1:])]


def _tell_one(draft: Draft, request: dict[str, Any], key: str | None) -> Trial:
    number = request["trial"]
    row = draft.trial(number)
    if row["told_by"] is not None:
        raise ConflictError(
            f"trial {number} is {row['state']}: {row['reward']!r} was told at {row['told']}; "
            "correct(trial, reward, why) changes it"
        )
    draft.append("tell", request, {"late": row["state"] != "open"}, key)
    return values.read_trial(draft.change_trial(row))


@contextmanager
def _noting_progress(draft: Draft, goal: StoppingRule | None) -> Iterator[None]:
    """Record progress after the block, if the rewards it told make that due."""
    learner = draft.session.replay.learner
    before = len(learner.state.model)
    yield
    if is_due(before, len(learner.state.model)):
        past = [event.result for event in draft.events_of("progress")]
        now = progress(learner, goal)
        draft.append("progress", {}, now)
        draft.note(**summary(now, past, goal))


def _known_trials(draft: Draft, event: values.Event) -> list[Trial]:
    return [values.read_trial(row) for row in draft.trials(event.result["trials"])]


def _add(draft: Draft, event: values.Event) -> list[Trial]:
    rows = event.trial_rows
    draft.add_trials(rows)
    return [values.read_trial(row, pick) for row, pick in zip(rows, event.picks, strict=True)]


def _edit(session: Session, trial: Any, reward: float | None, why: str, key: str | None) -> int:
    """Correct a reward, or retract it if the new one is None; return the event that told it."""
    number = read_number(trial)
    kind = "retract" if reward is None else "correct"
    request: dict[str, Any] = {"trial": number, "why": why}
    if reward is not None:
        request["reward"] = reward
    changes = {number: reward}
    with session.reading() as connection:
        draft = Draft(session, connection)
        _check_own(draft, trial)
        told_by = _told_by(draft.trial(number), kind)
        if draft.known(key, kind, request) is not None:
            return told_by
        # This takes long, and others may go on.
        replay = session.rebuilt(connection, session.replay.number, changes, told_by)
    at = replay.number, replay.hash

    def work(draft: Draft) -> int:
        nonlocal replay, at
        if draft.known(key, kind, request) is not None:
            return told_by
        row = draft.trial(number)
        if kind == "retract" and row["state"] == "retracted":
            raise ConflictError(f"trial {number} is retracted already")
        replay.number, replay.hash = at  # where it was before a failed attempt
        replay = session.brought_up(draft.connection, replay, changes, told_by)
        at = replay.number, replay.hash
        sets = {event: each for event, each in replay.learnt.items() if int(event) >= told_by}
        result = {"learnt": {"from": told_by, "sets": sets}}
        replay.apply(draft.append(kind, request, result, key))
        draft.adopt(replay, told_by)
        draft.change_trial(row)
        return told_by

    return session.run(work)


def _told_by(row: dict[str, Any], kind: str) -> int:
    if row["told_by"] is None:
        hint = "cancel it, if it will not be tried" if kind == "retract" else "tell its reward"
        raise ConflictError(f"trial {row['id']} is {row['state']}, without a reward; {hint}")
    return int(row["told_by"])


def _find_policy(store: Store, connection: Connection, name: str) -> values.Event:
    for event in store.events_of(connection, "freeze"):
        if event.request["name"] == name:
            return event
    raise NotFoundError(f"there is no policy {name!r}")


def _check_unused(events: Sequence[values.Event], name: str) -> None:
    if any(event.request["name"] == name for event in events):
        raise ConflictError(f"there is a policy {name!r} already; choose another name")


def _edits(store: Store, connection: Connection) -> tuple[list[values.Event], dict[int, int]]:
    edits = store.events_of(connection, "retract", "correct")
    mine = TRIALS.c.id.in_([each.request["trial"] for each in edits])
    rows = store.trials(connection, mine)
    return edits, {row["id"]: row["told_by"] for row in rows}


def _edited(
    edits: list[values.Event], told_by: Mapping[int, int], upto: int
) -> dict[int, float | None]:
    """Return changes made since to rewards told up to an event."""
    since = changes_in([each for each in edits if each.number > upto])
    return {trial: reward for trial, reward in since.items() if told_by[trial] <= upto}


def _frozen(
    replay: Replay, fallback: Label | None, tolerance: float | None, card: Card | None = None
) -> Policy:
    learner, rewards = replay.learner, len(replay.learner.state.model)
    if card is None and rewards < _LEAST:
        raise ValueError(
            f"freeze needs at least {_LEAST} rewards, for the policy's score card; "
            f"there are {rewards}"
        )
    if card is None:
        card = replace(learner.score(fallback=fallback, tolerance=tolerance), log=replay.hash)
    policy = learner.freeze(card, fallback=fallback, tolerance=tolerance)
    # The time of the last event, so that it is the same when rebuilt.
    state = policy.state.made_now(values.read_time(replay.at))
    return Policy(replace(state, reward_range=card.reward_range))  # earlier releases logged none


def _load(store: Store, connection: Connection, event: values.Event) -> Policy:
    content = store.read_file(connection, "policy", event.number).read()
    if hashlib.sha256(content).hexdigest() != event.result["sha256"]:
        raise AlteredError(f"the policy {event.request['name']!r} was altered: its hash is wrong")
    return Policy.load(io.BytesIO(content))


def load_policy(database: Database, campaign: str, name: str) -> Policy:
    store = find_store(database, campaign)
    with store.reading() as connection:
        return _load(store, connection, _find_policy(store, connection, name))


def load_watch(database: Database, campaign: str, name: str, policy: Policy) -> Watch | None:
    store = find_store(database, campaign)
    with store.reading() as connection:
        number = _find_policy(store, connection, name).number
        if number not in store.files(connection, "watch"):
            return None
        content = store.read_file(connection, "watch", number)
    from contextgap.insight.watch import Watch

    return Watch.load(content, policy)


def save_watch(database: Database, campaign: str, name: str, watch: Watch) -> None:
    store, content = find_store(database, campaign), values.to_bytes(watch)
    with store.locked() as connection:
        event = _find_policy(store, connection, name)
        store.remove_files(connection, "watch", [event.number])
        store.write_file(connection, "watch", (event.number, event.hash), content)


def watched_policies(database: Database) -> list[tuple[str, str]]:
    found = []
    for campaign in campaign_names(database):
        store = find_store(database, campaign)
        with store.reading() as connection:
            numbers = store.files(connection, "watch")
            events = [store.event(connection, number) for number in numbers]
        found += [(campaign, event.request["name"]) for event in events]
    return found


def _how(request: Mapping[str, Any]) -> tuple[Label | None, float | None]:
    fallback = request["fallback"]
    return None if fallback is None else decode_label(fallback["arm"]), request["tolerance"]


def _recall(
    session: Session,
    connection: Connection,
    trial: int,
    told_by: int,
    goal: StoppingRule | None,
) -> Recall:
    """Return what policies frozen on a trial would have decided, given all edits since."""
    found = []
    edits, tells = _edits(session.store, connection)
    for event in session.store.events_of(connection, "freeze"):
        upto = event.result["upto"]
        if upto < told_by:
            continue
        since = _edited(edits, tells, upto)
        before = min([told_by, *(tells[number] for number in since)])
        fallback, tolerance = _how(event.request)
        learner = session.rebuilt(connection, upto, since, before).learner
        without = learner.freeze(fallback=fallback, tolerance=tolerance)
        then = _load(session.store, connection, event)
        contexts = goal.given if goal is not None else seen_contexts(then.state)
        changed = then.recommend(contexts) != without.recommend(contexts)
        name = event.request["name"]
        found.append(Recalled(name, len(changed), int(np.count_nonzero(changed))))
    return Recall(trial, tuple(found))
