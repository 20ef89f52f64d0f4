"""Keeps one process's learner up to date with the log, and adds to it what calls do.

A call computes on a *draft* while others may go on. At its end the draft is written, if no other
process added an event meanwhile; else the learner is put back and the call is made again.

Events that told rewards, and ``tune``, have the hyperparameters learnt from them as ``"learnt"``,
None if none were. A retraction or correction has the sets learnt anew by event, and as ``"from"``
the event that told the reward: they replace those of all events between. Logs of releases before
0.3 have none, and whoever replays them learns anew.
"""

from __future__ import annotations

import base64
import io
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from contextgap.base.checks import decode_label
from contextgap.learner.replayed import ReplayedLearner
from contextgap.team.campaign import values
from contextgap.team.campaign.store import TRIALS, Store
from contextgap.team.campaign.values import AlteredError, ConflictError, caller, check_time

R = TypeVar("R")
# Rewards of corrected trials; None for retracted ones.
Changes = Mapping[int, float | None]
_Said = Mapping[str, Any]
_NO_CHANGES: Changes = {}
_ANEW = "anew"  # the learner learns hyperparameters when its rule says so
_LEARNING = ("tell", "record", "tune")  # upon which hyperparameters may be learnt
_REWOUND = ("number", "hash", "at", "sound", "seconds", "since_snapshot", "next_due")
_REDRAWN = ("events", "_trials", "_files", "_stale", "_progress", "_last_trial")
_LEAST_TUNED = 2
_EXACT = {"noise": 0.0, "censored": False}  # unless somebody says more

# Seconds of work, not of waiting: snapshots must not get rarer on a busy machine.
_SECONDS = 0.25  # of replaying that call for a snapshot, and longer where ...
_OF_WRITING = 0.5  # ... that is less than this share of writing one
_AT_THE_END = 0.05  # of replaying that call for a snapshot at the end
_MOST = 1000  # events between snapshots
_BEHIND = 256  # events, from which on a snapshot may be faster
_ATTEMPTS = 3  # to compute while others may go on
_BRIEF = 0.05  # seconds of computing while others are kept out
_WARY = 100  # calls after one that was disturbed
_ARMS = ("add_arm", "remove_arm")  # which a learner cannot undo
_JUMP = 86_400.0  # seconds without an event: the clock is not believed


def loaded(file: IO[bytes]) -> ReplayedLearner:
    learner = ReplayedLearner.load(file)
    learner.check = check_time
    return learner


def changes_in(events: list[values.Event]) -> dict[int, float | None]:
    """Return new rewards of trials, None for retracted ones."""
    return {
        event.request["trial"]: event.request.get("reward")
        for event in events
        if event.kind in ("retract", "correct")
    }


def _learnt_at(event: values.Event, edits: Sequence[values.Event]) -> Any:
    for edit in reversed(edits):
        found = edit.result.get("learnt", {"from": 0, "sets": None})
        if found["from"] <= event.number < edit.number:
            sets = found["sets"]
            return _ANEW if sets is None else sets.get(str(event.number))
    return event.result.get("learnt", _ANEW)


def _about(said: _Said, *, corrected: bool) -> dict[str, Any]:
    """Return what was said of a reward; once corrected, only its cost holds."""
    found = {name: said[name] for name in (*_EXACT, "cost") if name in said}
    return {**found, **{name: _EXACT[name] for name in _EXACT if corrected and name in found}}


@dataclass(eq=False)
class Replay:
    """The learner after an event; ``find`` returns the pick of an earlier trial."""

    find: Callable[[int], values.Pick]
    number: int = 0
    hash: str = values.NOTHING
    at: str = ""
    learner: ReplayedLearner = field(init=False)  # since the first event
    sound: bool = True  # not while an event is taken in
    seconds: float = 0.0  # that replaying from the last snapshot takes
    since_snapshot: int = 0
    next_due: str | None = None  # no lease runs out before
    learnt: dict[str, Any] = field(default_factory=dict)  # anew, by the event's number
    _picks: dict[int, values.Pick] = field(default_factory=dict)

    def pick(self, trial: int) -> values.Pick:
        return self._picks.get(trial) or self.find(trial)

    def apply(
        self,
        event: values.Event,
        changes: Changes = _NO_CHANGES,
        edits: Sequence[values.Event] = (),
        *,
        anew: bool = False,
    ) -> None:
        """Take in the next event, given later edits; ``anew`` ignores learnt hyperparameters."""
        if event.number != self.number + 1:
            raise RuntimeError(f"event {event.number} cannot follow event {self.number}")
        if not event.follows(self.hash):
            raise AlteredError(
                f"event {event.number} of the campaign was altered, or one before it: its hash is "
                "not that of the log"
            )
        if not hasattr(self, f"_on_{event.kind}"):
            raise ValueError(
                f"event {event.number} is a {event.kind!r}, unknown to this release: use the "
                "contextgap release that wrote it"
            )
        check_time()
        start, self.sound = time.perf_counter(), False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was said when it came
            learnt = _ANEW if anew else _learnt_at(event, edits)
            self._step(event.kind, event.request, event.result, changes, learnt)
        self._went_on(event, start)

    def append(
        self, kind: str, key: str | None, request: Any, result: _Said, *, at: str, by: str | None
    ) -> values.Event:
        """Take in what happens now, but for a pick; return the event."""
        start, self.sound = time.perf_counter(), False
        text = values.as_json(request)
        read = json.loads(text)  # learners are only given what was read back
        if kind in _LEARNING:
            learnt = self._step(kind, read, result, _NO_CHANGES, _ANEW)
            result = {**result, "learnt": learnt}
        elif kind != "ask":
            self._step(kind, read, result, _NO_CHANGES, None)
        parts = (self.number + 1, at, kind, key, text, values.as_json(result))
        event = values.Event.following(self.hash, parts, by)
        vars(event)["request"] = read
        if kind == "ask":
            vars(event)["result"] = result
        self._went_on(event, start)
        return event

    def mark(self) -> tuple[Any, ...]:
        return self.learner.state, dict(self._picks), {n: vars(self)[n] for n in _REWOUND}

    def rewind(self, mark: tuple[Any, ...]) -> None:
        """Undo all events since ``mark``, which must not add or remove arms."""
        state, self._picks, rest = mark
        self.learner.restore(state)
        vars(self).update(rest)

    def _step(self, kind: str, request: _Said, result: _Said, changes: Changes, learnt: Any) -> Any:
        step = getattr(self, f"_on_{kind}")
        if kind not in _LEARNING:
            step(request, result, changes)
            return None
        if learnt != _ANEW:
            if not (kind == "tune" and learnt is None):
                with self.learner.using(learnt):
                    step(request, result, changes)
            return learnt
        self.learner.learnt = None
        step(request, result, changes)
        if (found := self.learner.learnt) is not None:
            self.learnt[str(self.number + 1)] = found
        return found

    def _went_on(self, event: values.Event, start: float) -> None:
        if event.kind == "ask":
            result = event.result
            self._picks |= dict(zip(result["trials"], event.picks, strict=True))
            if result["until"] is not None:
                self.next_due = min(result["until"], self.next_due or result["until"])
        elif event.kind in ("tell", "cancel", "expire"):
            self._picks.pop(event.request["trial"], None)
        self.number, self.hash, self.at = event.number, event.hash, event.at
        self.sound = True
        self.seconds += time.perf_counter() - start
        self.since_snapshot += 1

    def _on_create(self, request: _Said, _: _Said, __: Changes) -> None:
        self.learner = loaded(io.BytesIO(base64.b64decode(request["learner"])))

    def _on_ask(self, request: _Said, result: _Said, _: Changes) -> None:
        if "pool" in result:
            self.learner.learn_columns(values.decode_contexts(result["pool"]))
        contexts = result.get("context") or request["contexts"]
        arms: Any = [decode_label(label) for label in result["arms"]]
        self.learner.add_pending(
            values.decode_contexts(contexts),
            arms if values.is_table(contexts) else arms[0],
            eligible=values.decode_eligible(request["arms"]),
            propensities=result.get("propensities"),
        )
        if "random" in result:
            self.learner.set_random(result["random"])

    def _on_tell(self, request: _Said, result: _Said, changes: Changes) -> None:
        trial = request["trial"]
        pick, reward = self.pick(trial), changes.get(trial, request["reward"])
        context = values.decode_contexts(pick.context)
        if reward is None:
            if not result["late"]:
                self.learner.forget_pick(context, pick.arm)
            return
        if result["late"]:  # or it answers for another pick
            self.learner.add_pending(context, pick.arm, eligible=pick.eligible)
        about = _about(request, corrected=trial in changes)
        self.learner.tell(context, pick.arm, reward, eligible=pick.eligible, **about)

    def _on_record(self, request: _Said, result: _Said, changes: Changes) -> None:
        contexts, trials = request["contexts"], result["trials"]
        told = zip(trials, request["rewards"], strict=True)
        rewards = [changes.get(trial, reward) for trial, reward in told]
        left = [place for place, reward in enumerate(rewards) if reward is not None]
        if len(left) < len(rewards):
            self.learner.learn_columns(values.decode_contexts(contexts))
        if not left:
            return
        arms: Any = [decode_label(request["arms"][place]) for place in left]
        told_there: Any = [rewards[place] for place in left]
        eligible = values.decode_eligible(request["eligible"])
        said = {name: request[name] for name in (*_EXACT, "cost") if name in request}
        each = [
            _about({n: said[n][place] for n in said}, corrected=trials[place] in changes)
            for place in left
        ]
        about: dict[str, Any] = {name: [row[name] for row in each] for name in said}
        if values.is_table(contexts):
            told_rows = [contexts["table"]["rows"][place] for place in left]
            contexts = {"table": {**contexts["table"], "rows": told_rows}}
            if eligible is not None and isinstance(request["eligible"][0], list):
                eligible = [eligible[place] for place in left]
        else:
            arms, told_there = arms[0], told_there[0]
            about = {name: said[0] for name, said in about.items()}
        rows = values.decode_contexts(contexts)
        self.learner.add_pending(rows, arms, eligible=eligible)
        self.learner.tell(rows, arms, told_there, eligible=eligible, **about)

    def _on_cancel(self, request: _Said, _: _Said, __: Changes) -> None:
        pick = self.pick(request["trial"])
        self.learner.forget_pick(values.decode_contexts(pick.context), pick.arm)

    def _on_tune(self, request: _Said, _: _Said, changes: Changes) -> None:
        if changes and len(self.learner.state.model) < _LEAST_TUNED:
            return  # there were more, before some were retracted
        self.learner.tune(request["criterion"])

    def _on_add_arm(self, request: _Said, _: _Said, __: Changes) -> None:
        features = request["features"]
        known = None if features is None else values.decode_contexts(features)
        label, cost = decode_label(request["arm"]), request.get("cost")
        self.learner.add_recorded_arm(label, known, cost)

    def _on_remove_arm(self, request: _Said, _: _Said, __: Changes) -> None:
        self.learner.remove_arm(decode_label(request["arm"]))

    def _on_freeze(self, _: _Said, __: _Said, ___: Changes) -> None:
        """Change how earlier events are read, or nothing at all."""

    _on_expire = _on_cancel
    _on_retract = _on_correct = _on_progress = _on_freeze


class Draft:
    """What calls add to a log and its tables."""

    def __init__(self, session: Session, connection: Connection) -> None:
        self.session, self.connection = session, connection
        replay = session.replay
        self.base = replay.number, replay.hash
        self.events: list[values.Event] = []
        self._trials: dict[int, dict[str, Any]] = {}
        self._read: dict[int, dict[str, Any]] = {}
        self._files: list[tuple[str, values.Event, bytes]] = []
        self._stale: list[int] = []
        self._progress: dict[str, Any] = {}
        self._last_trial: int | None = None

    def now(self) -> str:
        return self.session.store.database.now(self.connection)

    def append(
        self,
        kind: str,
        request: dict[str, Any],
        result: dict[str, Any],
        key: str | None = None,
    ) -> values.Event:
        by = None if kind == "expire" else caller(self.session.by)
        replay, at = self.session.replay, self.now()
        self.events.append(replay.append(kind, key, request, result, at=at, by=by))
        return self.events[-1]

    def known(self, key: str | None, kind: str, request: dict[str, Any]) -> values.Event | None:
        if key is None:
            return None
        drafted = next((event for event in self.events if event.key == key), None)
        found = drafted or self.session.store.event_of_key(self.connection, key)
        if found is not None and (found.kind, found.request) != (kind, request):
            raise ConflictError(
                f"key {key!r} was used before, for another {found.kind} (event {found.number}); "
                "a key stands for one request"
            )
        return found

    def events_of(self, *kinds: str) -> list[values.Event]:
        written = self.session.store.events_of(self.connection, *kinds)
        return [*written, *(event for event in self.events if event.kind in kinds)]

    def trial(self, number: int) -> dict[str, Any]:
        known = self._trials.get(number) or self._read.get(number)
        if known is None:
            known = self._read[number] = self.session.store.trial(self.connection, number)
        return dict(known)

    def trials(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        if numbers[0] in self._trials:
            return [self.trial(number) for number in numbers]
        mine = TRIALS.c.id.between(numbers[0], numbers[-1])
        return self.session.store.trials(self.connection, mine)

    def new_numbers(self, count: int) -> list[int]:
        if self._last_trial is None:
            event, known = self.session.summary
            if event == self.base:
                self._last_trial = int(known["trials"])
            else:
                self._last_trial = self.session.store.last_trial(self.connection)
        return [self._last_trial + place + 1 for place in range(count)]

    def add_trials(self, rows: Sequence[dict[str, Any]]) -> None:
        self._trials |= {row["id"]: row for row in rows}
        self._last_trial = rows[-1]["id"]

    def change_trial(self, row: Mapping[str, Any]) -> dict[str, Any]:
        self._trials[row["id"]] = {**row, **self.events[-1].trial_change}
        return self._trials[row["id"]]

    def add_file(self, kind: str, event: values.Event, content: bytes) -> None:
        self._files.append((kind, event, content))

    def adopt(self, replay: Replay, told_by: int) -> None:
        """Go on with a learner for which the reward of event ``told_by`` was changed."""
        store = self.session.store
        self._stale += [n for n in store.files(self.connection, "snapshot") if n >= told_by]
        self.session.replay = replay
        self.add_file("snapshot", self.events[-1], values.to_bytes(replay.learner))
        replay.seconds, replay.since_snapshot = 0.0, 0

    def note(self, **progress: Any) -> None:
        self._progress |= progress

    def mark(self) -> tuple[Any, ...]:
        return {name: copy(vars(self)[name]) for name in _REDRAWN}, self.session.mark()

    def rewind(self, mark: tuple[Any, ...]) -> None:
        own, learner = mark
        self.rewind_learner(learner, len(own["events"]))
        vars(self).update(own)

    def rewind_learner(self, mark: tuple[Any, ...], count: int = 0) -> None:
        fixed = any(event.kind in _ARMS for event in self.events[count:])
        self.session.rewind(mark, possible=not fixed)

    def write(self, connection: Connection) -> bool:
        """Write everything, or return False if the log has grown."""
        store = self.session.store
        if store.last_event(connection) != self.base:
            return False
        if not self.events:
            return True
        store.append(connection, self.events)
        added = [row for number, row in self._trials.items() if number not in self._read]
        changed = [row for number, row in self._trials.items() if number in self._read]
        if added:
            store.add_trials(connection, added)
        if changed:
            store.change_trials(connection, changed)
        store.remove_files(connection, "snapshot", self._stale)
        for kind, event, content in self._files:
            store.write_file(connection, kind, (event.number, event.hash), content)
        last = self.events[-1]
        now = {**self._progress, "event": last.number, "at": last.at}
        summary = {**self._summary(connection), **now}
        store.summarize(connection, summary)
        self.session.summary = (last.number, last.hash), summary
        return True

    def _summary(self, connection: Connection) -> dict[str, Any]:
        """Return the summary with the trials written."""
        event, known = self.session.summary
        if event != self.base:
            return self.session.store.summary(connection)
        before = [self._read[number] for number in self._trials if number in self._read]
        more = _count_open(self._trials.values()) - _count_open(before)
        added = len(self._trials) - len(before)
        return {**known, "trials": known["trials"] + added, "open": known["open"] + more}


def _count_open(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(row["state"] == "open" for row in rows)


class Session:
    """One process's view of a campaign."""

    def __init__(self, store: Store, by: str | None = None) -> None:
        self.store = store
        self.by = by
        self.replay = Replay(self._find, sound=False)
        self._connection: Connection | None = None
        self._group: Draft | None = None  # of calls that are committed together
        self._writing = 0.0
        self._computing = 0.0
        self._wary = 0  # calls to come that expect others
        self._altered: list[int] = []
        self.summary: tuple[Any, dict[str, Any]] = (None, {})  # its event, and the summary

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection after taking in all events and leases that ran out."""
        if self._group is not None:
            yield self._group.connection
            return
        with self.store.reading() as connection:
            self._catch_up(connection)
            if not self._is_due(connection):
                yield connection
                return
        self.run(lambda _: None)
        with self.store.reading() as connection:
            self._catch_up(connection)
            yield connection

    def run(self, work: Callable[[Draft], R]) -> R:
        """Have ``work`` fill a draft and write it, again if the log grew."""
        if self._group is not None:
            mark = self._group.mark()
            try:
                return work(self._group)
            except BaseException:
                self._group.rewind(mark)
                raise
        attempt = 0
        while True:
            check_time()
            # At last, others are kept out.
            brief = self._wary > 0 and self._computing < _BRIEF
            alone = brief or attempt >= _ATTEMPTS
            self._wary, attempt = max(0, self._wary - 1), attempt + 1
            written, expired, found = self._attempt(work, alone=alone)
            if not written:
                self._wary = _WARY
            elif not expired:
                self._take_snapshot()
                result: R = found
                return result

    def _attempt(self, work: Callable[[Draft], R], *, alone: bool) -> tuple[bool, bool, Any]:
        """Try a call; return if it was written, if only leases ran out, and the result."""
        draft: Draft | None = None
        try:
            # Reads need not be as of one moment: they count if no event came meanwhile.
            with self.store.database.connected() as connection:
                self._catch_up(connection)
                with self.store.locked_on(connection) if alone else nullcontext():
                    if alone:
                        self._catch_up(connection)
                    # Leases that ran out stay so if the call raises.
                    due = self._is_due(connection)
                    draft = Draft(self, connection)
                    mark, start = self.mark(), time.monotonic()
                    found = (self._expire if due else work)(draft)
                    self._computing = time.monotonic() - start
                    written = draft.write(connection) if alone else not draft.events
                if not written:
                    with self.store.locked_on(connection):
                        written = draft.write(connection)
        except BaseException:
            if draft is not None:
                draft.rewind_learner(mark)
            raise
        if not written:
            draft.rewind_learner(mark)
        return written, due, found

    def together(self, calls: Sequence[Callable[[], R]]) -> list[R | Exception]:
        if self._group is not None:
            raise RuntimeError("calls are committed together already")

        def outcome(call: Callable[[], R]) -> R | Exception:
            try:
                return call()
            except Exception as error:
                return error

        def work(draft: Draft) -> list[R | Exception]:
            self._group = draft
            try:
                return [outcome(call) for call in calls]
            finally:
                self._group = None

        return self.run(work)

    def mark(self) -> tuple[Any, ...]:
        return self.replay, self.replay.mark()

    def rewind(self, mark: tuple[Any, ...], *, possible: bool) -> None:
        """Put the learner back, or have it read from the log."""
        self.replay, state = mark
        if possible:
            self.replay.rewind(state)
        else:
            self.replay.sound = False

    def _is_due(self, connection: Connection) -> bool:
        due, now = self.replay.next_due, self.store.database.now(connection)
        if due is None or due > now:
            return False
        if self.store.database.is_file and now > (values.after(_JUMP, self.replay.at) or now):
            warnings.warn(
                f"the clock says {now[:19]}, more than a day after the last event, so no lease "
                "runs out now; it will after the next ask or tell, if the clock is right",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
        return True

    def _expire(self, draft: Draft) -> None:
        for number in self.store.due(draft.connection, draft.now()):
            draft.append("expire", {"trial": number}, {})
            draft.change_trial(draft.trial(number))
        self.replay.next_due = self.store.next_due(draft.connection, draft.now())

    def close(self) -> None:
        """Leave a snapshot, and close all connections."""
        if self.replay.sound and self.replay.seconds > _AT_THE_END:
            with self.store.reading() as connection:
                self._catch_up(connection)
            self._take_snapshot(_AT_THE_END)
        self.store.database.close()

    def begin(
        self,
        connection: Connection,
        request: dict[str, Any],
        key: str | None,
        progress: Mapping[str, Any],
    ) -> None:
        self.replay = Replay(self._find)
        self._connection = connection
        draft = Draft(self, connection)
        draft.append("create", request, {}, key)
        draft.note(**progress)
        draft.write(connection)

    def rebuilt(
        self,
        connection: Connection,
        upto: int,
        changes: Changes | None = None,
        before: int | None = None,
        *,
        from_log: bool = False,
    ) -> Replay:
        """Return the learner after event ``upto``, with ``changes`` to events from ``before``."""
        self._connection = connection
        last = upto if before is None else min(upto, before - 1)
        replay = None if from_log else self._loaded(connection, last)
        replay = replay or Replay(self._find)
        later = self.store.events_of(connection, "retract", "correct", after=replay.number)
        edits = [event for event in later if event.number <= upto]
        known = {**changes_in(edits), **(changes or {})}
        for event in self.store.events(connection, replay.number, upto):
            anew = before is not None and event.number >= before
            replay.apply(event, known, edits, anew=anew)
        replay.next_due = self.store.next_due(connection)
        return replay

    def brought_up(
        self, connection: Connection, replay: Replay, changes: Changes, before: int
    ) -> Replay:
        """Return what ``rebuilt`` returned, at the end of the log."""
        self._connection = connection
        new = list(self.store.events(connection, replay.number))
        follows = not new or new[0].before == replay.hash
        if changes_in(new) or not follows:
            return self.rebuilt(connection, self.replay.number, changes, before)
        for event in new:
            replay.apply(event, anew=True)
        return replay

    def _catch_up(self, connection: Connection) -> None:
        """Take in new events; start anew if the log is another."""
        self._connection = connection
        known = self.replay
        if known.sound:
            if self.store.last_event(connection) == (known.number, known.hash):
                return
            found = list(self.store.events(connection, known.number - 1))
            new = found[1:]
            if [(e.number, e.hash) for e in found[:1]] == [(known.number, known.hash)]:
                behind = len(new) >= _BEHIND and self._newest(connection) > known.number
                if not behind and not changes_in(new):
                    for event in new:
                        known.apply(event)
                    return
        known.sound = False  # as after the restoring of a backup
        self.replay = self.rebuilt(connection, self.store.last_event(connection)[0])

    def _newest(self, connection: Connection) -> int:
        return max(self._snapshots(connection), default=0)

    def _snapshots(self, connection: Connection) -> list[int]:
        found = self.store.files(connection, "snapshot")
        return [number for number in found if number not in self._altered]

    def _loaded(self, connection: Connection, last: int) -> Replay | None:
        for number in reversed([n for n in self._snapshots(connection) if n <= last]):
            try:
                learner = loaded(self.store.read_file(connection, "snapshot", number))
            except AlteredError as error:
                if number not in self.store.files(connection, "snapshot"):
                    continue  # another process removed it meanwhile
                self._altered.append(number)
                what = f"{error}; the log is read instead, and contextgap database verify says more"
                warnings.warn(what, RuntimeWarning, stacklevel=2)
                continue
            event = self.store.event(connection, number)
            replay = Replay(self._find, number, event.hash, event.at)
            replay.learner = learner
            return replay
        return None

    def _take_snapshot(self, patience: float | None = None) -> None:
        replay = self.replay
        if patience is None:
            patience = max(_SECONDS, _OF_WRITING * self._writing)
        if replay.seconds < patience and replay.since_snapshot < _MOST:
            return
        with suppress(OSError, SQLAlchemyError):
            with self.store.reading() as connection:
                newest = self._newest(connection)
            if newest > replay.number - replay.since_snapshot:  # another process took one meanwhile
                replay.seconds *= (replay.number - newest) / replay.since_snapshot
                replay.since_snapshot = replay.number - newest
            else:
                self.write_snapshot()

    def write_snapshot(self) -> None:
        start, replay = time.perf_counter(), self.replay
        content, event = values.to_bytes(replay.learner), (replay.number, replay.hash)
        with self.store.locked() as connection:
            taken = self._snapshots(connection)
            if self.store.last_event(connection) == event and replay.number not in taken:
                self.store.remove_files(connection, "snapshot", self._altered)
                self.store.write_file(connection, "snapshot", event, content)
                self.store.remove_files(connection, "snapshot", _surplus([*taken, replay.number]))
                self._altered.clear()
        replay.seconds, replay.since_snapshot = 0.0, 0
        self._writing = time.perf_counter() - start

    def _find(self, trial: int) -> values.Pick:
        if self._connection is None:
            raise RuntimeError("there is no connection to read a trial with")
        return values.Pick.of(self.store.trial(self._connection, trial))


def _surplus(numbers: list[int]) -> list[int]:
    """Return snapshots to remove: all but the last two, and one per halving before."""
    # Retractions of early trials then replay less; early snapshots are small.
    kept, wanted = set(numbers[-2:]), numbers[-1] // 2
    while wanted:
        kept.update([n for n in numbers if n <= wanted][-1:])
        wanted //= 2
    return [number for number in numbers if number not in kept]
