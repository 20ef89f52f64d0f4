"""Campaign: a learner whose log of events is in a database."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import timedelta
from functools import partial
from threading import RLock
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from contextgap.base import checks
from contextgap.base.descriptors import synchronized
from contextgap.base.labels import Label, check_new_label, encode_label
from contextgap.learner import Learner, StoppingRule
from contextgap.learner.replayed import ReplayedLearner
from contextgap.policy.policy import Policy
from contextgap.team.campaign import policies, trials
from contextgap.team.campaign.codec import encode_given, read_trial
from contextgap.team.campaign.database import Database, opened
from contextgap.team.campaign.progress import (
    START,
    ProgressCache,
    decode_goal,
    encode_goal,
    summary,
)
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
    CampaignStatus,
    ConflictError,
    FrozenPolicy,
    Recall,
    Trial,
    trials_frame,
)

R = TypeVar("R")


class Campaign:
    """A learner that lasts: its log of events is in a database that several processes may use.

    ``create`` makes one and ``open`` opens it. Every call takes in first what other processes did;
    one that fails changes nothing. Campaigns are thread-safe.

    ``docs/campaigns.md`` says what is promised.
    """

    def __init__(self, session: Session, name: str, connection: Connection | None = None) -> None:
        self._session = session
        self._name = name
        self._lock = RLock()
        if connection is None:
            with session.reading() as connection:
                first = session.store.event(connection, 1)
        else:
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
        """
        return tuple(campaign_names(opened(database)))

    def __repr__(self) -> str:
        return f"Campaign({self._name!r}, {self._session.store.database.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @synchronized
    def close(self) -> None:
        """Close all connections to the database; what takes long to replay is saved before."""
        self._session.close()

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self._name

    @property
    def goal(self) -> StoppingRule | None:
        """When exploring may end."""
        return self._goal

    @property
    @synchronized
    def arms(self) -> tuple[Label, ...]:
        """The arms to choose from."""
        with self._session.reading():
            return self._session.replay.learner.arms

    @synchronized
    def ask(
        self,
        contexts: Any = None,
        *,
        pool: Any = None,
        arms: Any = None,
        once: bool = False,
        key: str | None = None,
        lease: float | timedelta | None = None,
    ) -> Any:
        """Return a trial: the arm to try at a context.

        Parameters
        ----------
        contexts
            One context, or several to be tried as a batch, as for ``Learner.ask``.
        pool
            Instead of ``contexts``: a table of contexts one of which may be chosen.
        arms
            The eligible arms, all by default, as for ``Learner.ask``.
        once
            With a pool: never return a context and an arm that were told before or are pending.
        key
            Any text of yours that names this request. Asked again with the same key, the same
            trial is returned and nothing happens.
        lease
            How long the pick counts as pending if its reward does not come; by default as long as
            ``create`` was told.

        Returns
        -------
        trial
            A ``Trial`` for one context or a pool; a list of them, one per row, for several.
        """
        request = trials.read_ask(contexts, pool, key, lease, once)

        def work(draft: Draft) -> list[Trial]:
            learner = draft.session.replay.learner
            eligible = trials.encode_asked_eligible(arms, learner, request, key)
            return trials.ask(draft, {**request, "arms": eligible}, pool, self._lease, key)

        found = self._session.run(work)
        return found if "table" in request.get("contexts", {}) else found[0]

    @synchronized
    def tell(
        self,
        trial: Any = None,
        reward: Any = None,
        *,
        contexts: Any = None,
        arms: Any = None,
        eligible: Any = None,
        key: str | None = None,
    ) -> Any:
        """Take in the reward of a trial, or of something that was tried without being asked for.

        A reward that comes after its trial was cancelled, or its lease ran out, is taken all the
        same. To change a reward, ``correct`` it.

        Parameters
        ----------
        trial
            A trial or its number; several at once are told together or not at all. None for
            outside data.
        reward
            The reward, or one for each trial or context.
        contexts
            For outside data: one context, or several.
        arms
            For outside data: the arm tried, or one for each context.
        eligible
            For outside data: the arms that could have been tried, as for ``Learner.tell``.
        key
            Any text of yours that names this request. Told again with the same key, nothing
            happens.

        Returns
        -------
        trial
            The ``Trial`` as it is now, or a list of them; outside data become trials too.
        """
        trials.check_key(key)
        if trial is None:
            request, single = trials.read_record(contexts, arms, reward)

            def work(draft: Draft) -> list[Trial]:
                known = trials.encode_told_eligible(eligible, draft.session.replay.learner, request)
                with trials.noting_progress(draft, self._goal):
                    return trials.record(draft, {**request, "eligible": known}, key)

            found = self._session.run(work)
            return found[0] if single else found
        if not (contexts is None and arms is None and eligible is None):
            raise TypeError("contexts, arms and eligible are for outside data, without a trial")
        numbers, rewards, single = trials.read_told(trial, reward)

        def told(draft: Draft) -> list[Trial]:
            with trials.noting_progress(draft, self._goal):
                trials.check_own(draft, trial)
                return trials.tell(draft, numbers, rewards, key)

        found = self._session.run(told)
        return found[0] if single else found

    @synchronized
    def cancel(self, trial: Any, *, key: str | None = None) -> Trial:
        """Take back an open trial: it will not be tried, and stops counting as pending.

        Parameters
        ----------
        trial
            A trial or its number.
        key
            As for ``ask``.
        """
        number = trials.read_trial_number(trial)
        trials.check_key(key)

        def work(draft: Draft) -> Trial:
            trials.check_own(draft, trial)
            return trials.cancel(draft, number, key)

        return self._session.run(work)

    @synchronized
    def retract(self, trial: Any, why: str, *, key: str | None = None) -> Recall:
        """Take a reward back: it was never told, as far as the learner is concerned.

        Parameters
        ----------
        trial
            A trial or its number.
        why
            The reason, for those who read the log.
        key
            As for ``ask``.

        Returns
        -------
        recall
            Which frozen policies rest on the trial, and how many of their decisions would change.
        """
        return self._change(trial, None, why, key)

    @synchronized
    def correct(self, trial: Any, reward: float, why: str, *, key: str | None = None) -> Recall:
        """Replace a reward by another, as if that had been told in the first place.

        A retracted trial counts again from then on.

        Parameters
        ----------
        trial
            A trial or its number.
        reward
            The right reward.
        why
            The reason, for those who read the log.
        key
            As for ``ask``.

        Returns
        -------
        recall
            Which frozen policies rest on the trial, and how many of their decisions would change.
        """
        return self._change(trial, checks.reward("reward", reward), why, key)

    @synchronized
    def trials(self, state: str | Sequence[str] | None = None) -> Any:
        """Return the trials as a DataFrame, one row each, with the columns of their contexts.

        Parameters
        ----------
        state
            Only those in this state, or these: "open", "told", "cancelled", "expired", "retracted".
        """
        return trials_frame(self.find_trials(state))

    @synchronized
    def find_trials(
        self,
        state: str | Sequence[str] | None = None,
        *,
        after: int = 0,
        most: int | None = None,
    ) -> list[Trial]:
        """Return the trials, in the order in which they were asked for.

        Parameters
        ----------
        state
            As for ``trials``.
        after
            Only those with larger numbers.
        most
            Return at most so many.
        """
        states = [state] if isinstance(state, str) else None if state is None else list(state)
        for each in states or ():
            if each not in STATES:
                raise ValueError(f"state must be one of {STATES}, got {each!r}")
        start = checks.whole("after", after, least=0)
        with self._session.reading() as connection:
            rows = self._session.store.trials(connection, states, after=start, most=most)
        return [read_trial(row) for row in rows]

    @synchronized
    def trial(self, number: int) -> Trial:
        """Return one trial.

        Parameters
        ----------
        number
            Its number.
        """
        wanted = trials.read_trial_number(number)
        with self._session.reading() as connection:
            return read_trial(self._session.store.trial(connection, wanted))

    @synchronized
    def recommend(self, contexts: Any, *, arms: Any = None) -> Any:
        """Return the arm to deploy, given what is known now, as ``Learner.recommend`` does.

        Parameters
        ----------
        contexts
            One context, or many.
        arms
            The eligible arms, all by default.
        """
        with self._session.reading():
            return self._session.replay.learner.recommend(contexts, arms=arms)

    @synchronized
    def learner(self) -> Learner:
        """Return a copy of the learner, to look at whatever ``Learner`` tells, or to go on with."""
        with self._session.reading():
            return Learner.from_state(deepcopy(self._session.replay.learner.state))

    @synchronized
    def freeze(
        self,
        name: str,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        key: str | None = None,
    ) -> Policy:
        """Return the current decision rule, and keep it under a name.

        Its card carries the hash of the log up to now, from which ``rebuild`` makes it again.

        Parameters
        ----------
        name
            The policy's name, new in this campaign.
        fallback, tolerance
            As for ``Learner.freeze``.
        key
            As for ``ask``.
        """
        trials.check_name("name", name)
        trials.check_key(key)
        if tolerance is not None:
            tolerance = checks.real("tolerance", tolerance)
        return policies.keep(self._session, name, fallback, tolerance, key)

    @synchronized
    def policies(self) -> tuple[FrozenPolicy, ...]:
        """Return what is known of all frozen policies, and which trials they rest on in error."""
        with self._session.store.reading() as connection:
            return policies.all_frozen(self._session, connection)

    @synchronized
    def policy(self, name: str) -> Policy:
        """Return a frozen policy.

        Parameters
        ----------
        name
            Its name.
        """
        with self._session.store.reading() as connection:
            event = policies.find(self._session, connection, name)
            return policies.load(self._session, connection, event)

    @synchronized
    def rebuild(self, name: str) -> Policy:
        """Return a frozen policy, made again from the log alone; its file has the same bytes.

        Parameters
        ----------
        name
            Its name.
        """
        with self._session.store.reading() as connection:
            event = policies.find(self._session, connection, name)
            return policies.rebuild(self._session, connection, event)

    @synchronized
    def tune(self, criterion: str = "evidence", *, key: str | None = None) -> None:
        """Learn the hyperparameters again from all rewards, as ``Learner.tune`` does.

        Parameters
        ----------
        criterion
            "evidence" or "loo".
        key
            As for ``ask``.
        """
        self._simple("tune", {"criterion": criterion}, key)

    @synchronized
    def add_arm(self, label: Label, features: Any = None, *, key: str | None = None) -> None:
        """Add an arm, as ``Learner.add_arm`` does.

        Parameters
        ----------
        label
            A new label.
        features
            Its features, where arms have them.
        key
            As for ``ask``.
        """
        trials.check_arms(len(self.arms) + 1)
        known = None if features is None else encode_given(features, called="features")
        check_new_label(label, self.arms)
        self._simple("add_arm", {"arm": trials.encode_new_label(label), "features": known}, key)

    @synchronized
    def remove_arm(self, label: Label, *, key: str | None = None) -> None:
        """Never choose an arm again, as ``Learner.remove_arm`` says.

        Parameters
        ----------
        label
            One of ``arms``.
        key
            As for ``ask``.
        """
        self._simple("remove_arm", {"arm": encode_label(label)}, key)

    @synchronized
    def status(self, *, fresh: bool = True) -> CampaignStatus:
        """Return how the campaign stands.

        Parameters
        ----------
        fresh
            Whether to compute the settled share and the score now. Otherwise they are those of the
            last look, computed anew whenever there are 5 % more rewards; the status says of when.
        """
        return self._progress.status(self._name, fresh=fresh)

    def _change(self, trial: Any, reward: float | None, why: str, key: str | None) -> Recall:
        number = trials.read_trial_number(trial)
        trials.check_why(why)
        trials.check_key(key)
        with self._session.reading() as connection:
            trials.check_own(Draft(self._session, connection), trial)
        told_by = trials.change(self._session, number, reward, why, key)
        with self._session.reading() as connection:
            return policies.recall(self._session, connection, number, told_by, self._goal)

    def _simple(self, kind: str, request: dict[str, Any], key: str | None) -> None:
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
