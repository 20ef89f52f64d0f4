"""Campaign: a learner whose log of events is in a database, and the policies frozen from it."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import RLock
from typing import Any, Self, TypeVar

import numpy as np
from sqlalchemy import Connection

from contextgap.base import checks
from contextgap.base.labels import Label, check_new_label, decode_label, encode_label
from contextgap.learner import Learner, StoppingRule
from contextgap.learner.costs import read_cost
from contextgap.learner.replayed import ReplayedLearner
from contextgap.policy.card import Card
from contextgap.policy.policy import Policy
from contextgap.team.campaign import trials
from contextgap.team.campaign.codec import (
    Event,
    encode_given,
    read_time,
    read_trial,
    to_bytes,
)
from contextgap.team.campaign.database import Database, opened
from contextgap.team.campaign.methods import CampaignMethods
from contextgap.team.campaign.progress import (
    START,
    ProgressCache,
    decode_goal,
    encode_goal,
    seen_contexts,
    summary,
)
from contextgap.team.campaign.replay import Replay, changes_in
from contextgap.team.campaign.session import Draft, Session
from contextgap.team.campaign.store import (
    campaign_names,
    created_before,
    find_store,
    new_store,
    prepare,
)
from contextgap.team.campaign.values import (
    STATES,
    AlteredError,
    CampaignStatus,
    ConflictError,
    FrozenPolicy,
    NotFoundError,
    Recall,
    Recalled,
    Trial,
)

R = TypeVar("R")
_LEAST = 2  # rewards to freeze a policy, so that one can be left out


class Campaign(CampaignMethods):
    """A learner whose log of events is in a database that several processes share.

    ``create`` makes one and ``open`` opens it. Every call takes in first what other processes did;
    one that fails changes nothing. Campaigns are thread-safe.

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
        self._progress = ProgressCache(session, self._goal)

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
            How long a pick counts as pending if its reward does not come: seconds or a timedelta,
            ``math.inf`` for ever.
        key
            Any text of yours that names this request. Created again with the same key, the campaign
            that there is by then is opened.
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
        trials.check_name("name", name)
        trials.check_key(key)
        if goal is not None:
            checks.instance("goal", goal, StoppingRule, "StoppingRule(0.1, reference=contexts)")
        trials.check_arms(arms)
        who = trials.read_caller(by)
        request = trials.read_create(ReplayedLearner(arms, **settings), encode_goal(goal), lease)
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
        where.prepared = True  # now that the tables are there for good
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
        who = trials.read_caller(by)
        return cls(Session(find_store(opened(database), name), who), name)

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

    def _call(self, method: str, /, **given: Any) -> Any:
        with self._lock:
            return super()._call(method, **given)

    def _close(self) -> None:
        self._session.close()

    def _arms(self) -> tuple[Label, ...]:
        with self._session.reading():
            return self._session.replay.learner.arms

    def _ask(
        self, contexts: Any, pool: Any, arms: Any, once: bool, key: str | None, lease: Any
    ) -> Any:
        request = trials.read_ask(contexts, pool, key, lease, once)

        def work(draft: Draft) -> list[Trial]:
            learner = draft.session.replay.learner
            eligible = trials.encode_asked_eligible(arms, learner, request, key)
            return trials.ask(draft, {**request, "arms": eligible}, pool, self._lease, key)

        found = self._session.run(work)
        return found if "table" in request.get("contexts", {}) else found[0]

    def _tell(
        self,
        trial: Any,
        reward: Any,
        contexts: Any,
        arms: Any,
        eligible: Any,
        key: str | None,
        noise: Any = None,
        censored: Any = None,
        cost: Any = None,
    ) -> Any:
        trials.check_key(key)
        trials.check_told(trial, contexts, arms, eligible)
        if trial is None:
            request, single = trials.read_record(contexts, arms, reward)
            request |= trials.read_about(noise, censored, cost, len(request["rewards"]), single)
        else:
            numbers, rewards, single = trials.read_told(trial, reward)
            about = trials.read_about(noise, censored, cost, len(numbers), single)

        def work(draft: Draft) -> list[Trial]:
            with trials.noting_progress(draft, self._goal):
                if trial is not None:
                    trials.check_own(draft, trial)
                    return trials.tell(draft, numbers, rewards, about, key)
                learner = draft.session.replay.learner
                known = trials.encode_told_eligible(eligible, learner, request)
                return trials.record(draft, {**request, "eligible": known}, key)

        found = self._session.run(work)
        return found[0] if single else found

    def _cancel(self, trial: Any, key: str | None) -> Trial:
        number = trials.read_trial_number(trial)
        trials.check_key(key)

        def work(draft: Draft) -> Trial:
            trials.check_own(draft, trial)
            return trials.cancel(draft, number, key)

        return self._session.run(work)

    def _retract(self, trial: Any, why: str, key: str | None) -> Recall:
        return self._change(trial, None, why, key)

    def _correct(self, trial: Any, reward: float, why: str, key: str | None) -> Recall:
        return self._change(trial, checks.reward("reward", reward), why, key)

    def _change(self, trial: Any, reward: float | None, why: str, key: str | None) -> Recall:
        number = trials.read_trial_number(trial)
        trials.check_why(why)
        trials.check_key(key)
        with self._session.reading() as connection:
            trials.check_own(Draft(self._session, connection), trial)
        told_by = trials.change(self._session, number, reward, why, key)
        with self._session.reading() as connection:
            return _recall(self._session, connection, number, told_by, self._goal)

    def _find_trials(
        self, state: str | Sequence[str] | None, after: int, most: int | None
    ) -> list[Trial]:
        states = [state] if isinstance(state, str) else None if state is None else list(state)
        for each in states or ():
            if each not in STATES:
                raise ValueError(f"state must be one of {STATES}, got {each!r}")
        start = checks.whole("after", after, least=0)
        with self._session.reading() as connection:
            rows = self._session.store.trials(connection, states, after=start, most=most)
        return [read_trial(row) for row in rows]

    def _trial(self, number: int) -> Trial:
        wanted = trials.read_trial_number(number)
        with self._session.reading() as connection:
            return read_trial(self._session.store.trial(connection, wanted))

    def _recommend(self, contexts: Any, arms: Any) -> Any:
        with self._session.reading():
            return self._session.replay.learner.recommend(contexts, arms=arms)

    def _learner(self) -> Learner:
        with self._session.reading():
            return Learner.from_state(deepcopy(self._session.replay.learner.state))

    def _freeze(
        self, name: str, fallback: Label | None, tolerance: float | None, key: str | None
    ) -> Policy:
        trials.check_name("name", name)
        trials.check_key(key)
        if tolerance is not None:
            tolerance = checks.real("tolerance", tolerance)
        return _keep(self._session, name, fallback, tolerance, key)

    def _policies(self) -> tuple[FrozenPolicy, ...]:
        with self._session.store.reading() as connection:
            return _all_frozen(self._session, connection)

    def _policy(self, name: str) -> Policy:
        with self._session.store.reading() as connection:
            event = _find_policy(self._session, connection, name)
            return _load(self._session, connection, event)

    def _rebuild(self, name: str) -> Policy:
        with self._session.store.reading() as connection:
            event = _find_policy(self._session, connection, name)
            return _rebuild(self._session, connection, event)

    def _tune(self, criterion: str, key: str | None) -> None:
        self._append("tune", {"criterion": criterion}, key)

    def _add_arm(self, label: Label, features: Any, cost: float | None, key: str | None) -> None:
        trials.check_arms(len(self.arms) + 1)
        known = None if features is None else encode_given(features, called="features")
        check_new_label(label, self.arms)
        request = {"arm": trials.encode_new_label(label), "features": known}
        if cost is not None:
            request["cost"] = read_cost("cost", cost)
        self._append("add_arm", request, key)

    def _remove_arm(self, label: Label, key: str | None) -> None:
        self._append("remove_arm", {"arm": encode_label(label)}, key)

    def _status(self, fresh: bool) -> CampaignStatus:
        return self._progress.status(self._name, fresh=fresh)

    def _append(self, kind: str, request: dict[str, Any], key: str | None) -> None:
        trials.check_key(key)

        def work(draft: Draft) -> None:
            if draft.known(key, kind, request) is None:
                draft.append(kind, request, {}, key)

        self._session.run(work)


def together(campaign: Campaign, calls: Sequence[Callable[[Campaign], R]]) -> list[R | Exception]:
    """Ask, tell and cancel as calls say, and commit it at once; return results, or errors.

    A call that fails changes nothing, and does not undo the others. Waiting for the disk is most of
    the time that short calls take, and this way they wait once. A call may be made several times,
    and only what the last time did counts.
    """
    with campaign._lock:
        return campaign._session.together([partial(call, campaign) for call in calls])


def _find_policy(session: Session, connection: Connection, name: str) -> Event:
    """Return the freeze event of a policy."""
    for event in session.store.events_of(connection, "freeze"):
        if event.request["name"] == name:
            return event
    raise NotFoundError(f"there is no policy {name!r}")


def _check_unused(events: Sequence[Event], name: str) -> None:
    """Raise if there is a policy of that name among those of events."""
    if any(event.request["name"] == name for event in events):
        raise ConflictError(f"there is a policy {name!r} already; choose another name")


def _all_frozen(session: Session, connection: Connection) -> tuple[FrozenPolicy, ...]:
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


def _freeze(
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
    policy = learner.freeze(card, fallback=fallback, tolerance=tolerance)
    # The time of the last event, which is the same whenever the policy is made again.
    state = policy.state.made_now(read_time(replay.at))
    return Policy(replace(state, reward_range=card.reward_range))  # earlier releases logged none


def _keep(
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
            return _load(session, connection, event)
        _check_unused(session.store.events_of(connection, "freeze"), name)
    # Scoring takes a while, in which others may go on: what is frozen is the log up to here.
    replay = session.replay
    replay.learner.learnt = None
    upto, policy = replay.number, _freeze(replay, fallback, tolerance)
    content = to_bytes(policy)
    result = {"upto": upto, "log": replay.hash, "sha256": hashlib.sha256(content).hexdigest()}
    # A later release may estimate otherwise, and finish the search for hyperparameters elsewhere.
    result |= {"card": policy.card.describe(), "learnt": replay.learner.learnt}

    def work(draft: Draft) -> Policy:
        known = draft.known(key, "freeze", request)
        if known is not None:  # the same request came twice at once
            return _load(session, draft.connection, known)
        _check_unused(draft.events_of("freeze"), name)
        draft.add_file("policy", draft.append("freeze", request, result, key), content)
        return policy

    return session.run(work)


def _rebuild(session: Session, connection: Connection, event: Event) -> Policy:
    """Return the policy that a freeze event froze, made again from the log alone."""
    replay = session.rebuilt(connection, event.result["upto"], from_log=True)
    card = event.result.get("card")  # releases before 0.3 did not log it
    with replay.learner.using(event.result.get("learnt")):
        return _freeze(replay, *_how(event), None if card is None else Card.restored(card))


def _load(session: Session, connection: Connection, event: Event) -> Policy:
    """Return the policy that a freeze event froze, from its file."""
    content = session.store.read_file(connection, "policy", event.number).read()
    if hashlib.sha256(content).hexdigest() != event.result["sha256"]:
        raise AlteredError(f"the policy {event.request['name']!r} was altered: its hash is wrong")
    return Policy.load(io.BytesIO(content))


def load_policy(database: Database, campaign: str, name: str) -> Policy:
    """Return a frozen policy of a campaign that need not be opened for it."""
    session = Session(find_store(database, campaign))
    with session.store.reading() as connection:
        return _load(session, connection, _find_policy(session, connection, name))


def _how(event: Event) -> tuple[Label | None, float | None]:
    fallback = event.request["fallback"]
    label = None if fallback is None else decode_label(fallback["arm"])
    return label, event.request["tolerance"]


def _recall(
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
        then = _load(session, connection, event)
        contexts = goal.given if goal is not None else seen_contexts(then.state)
        changed = then.recommend(contexts) != without.recommend(contexts)
        name = event.request["name"]
        found.append(Recalled(name, len(changed), int(np.count_nonzero(changed))))
    return Recall(trial, tuple(found))
