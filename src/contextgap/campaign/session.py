"""Keeps one process's learner up to date with the log, and takes turns with other processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from contextgap.campaign import clock
from contextgap.campaign.errors import ConflictError
from contextgap.campaign.events import Event
from contextgap.campaign.replay import Changes, Replay, changes_in, to_bytes
from contextgap.campaign.store import Store
from contextgap.campaign.trial import Pick
from contextgap.learner import Learner

# Seconds of work, not of waiting: snapshots must not get rarer where others keep the machine busy.
_SECONDS = 0.25  # that replaying the events since the last snapshot may take, and longer where ...
_OF_WRITING = 0.5  # ... that is less than this share of what writing a snapshot takes
_AT_THE_END = 0.05  # seconds of replaying for which a process leaves a snapshot when it ends
_MOST = 1000  # events between snapshots
_BEHIND = 256  # events, from which on loading a snapshot is worth a look


class Session:
    """One process's view of a campaign: the store, and the learner up to some event."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._replay: Replay | None = None
        self._connection: Connection | None = None
        self._shared: Connection | None = None  # of calls that are committed together
        self._writing = 0.0  # seconds that the last snapshot took

    @property
    def replay(self) -> Replay:
        """The learner up to the last event that this process knows."""
        if self._replay is None:
            raise RuntimeError("the log was not read yet")
        return self._replay

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection after taking in all events there are, and leases that ran out."""
        if self._shared is not None:
            with self.turn() as connection:
                yield connection
            return
        with self.store.reading() as connection:
            self._catch_up(connection)
            if not self._is_due():
                yield connection
                return
        with self.turn():
            pass
        with self.store.reading() as connection:
            self._catch_up(connection)
            yield connection

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        """Yield a connection with which events may be added; if the block raises, none are."""
        if self._shared is not None:
            with self._part_of(self._shared) as connection:
                yield connection
            return
        while True:
            with self._alone() as connection:
                if not self._is_due():
                    yield connection
                    self._take_snapshot(connection)
                    return
                # In a transaction of their own: they stay if the block raises.
                self._expire(connection)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have all turns in the block committed at its end, at once."""
        if self._shared is not None:
            raise RuntimeError("calls are committed together already")
        with self.turn() as connection:
            self._shared = connection
            try:
                yield
            finally:
                self._shared = None
            if self._replay is None:  # the last turn failed
                self._catch_up(connection)

    @contextmanager
    def _part_of(self, connection: Connection) -> Iterator[Connection]:
        """Yield the connection of calls that are committed together; undo this one if it raises."""
        if self._replay is None:  # else it knows all events: no other process can add any
            self._catch_up(connection)
        before, finished = self.replay.number, False
        try:
            with self.store.part(connection):
                yield connection
            finished = True
        finally:
            if not finished:
                self._forget_unless(before)

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """Yield a connection while no other process can add events, with all there are taken in."""
        before, finished = -1, False
        try:
            with self.store.locked() as connection:
                self._catch_up(connection)
                before = self.replay.number
                yield connection
            finished = True
        finally:
            if not finished:
                self._forget_unless(before)

    def _forget_unless(self, number: int) -> None:
        """Have the next call read the log again if the learner is ahead of event ``number``."""
        replay = self._replay
        if replay is None or not replay.sound or replay.number != number:
            self._replay = None

    def _is_due(self) -> bool:
        due = self.replay.next_due
        return due is not None and due <= clock.now()

    def _expire(self, connection: Connection) -> None:
        """Add an event for every lease that has run out."""
        for number in self.store.due(connection, clock.now()):
            self.append(connection, "expire", {"trial": number}, {})
            self.store.change_trial(connection, number, state="expired")
        self.replay.next_due = self.store.next_due(connection)

    def close(self) -> None:
        """Leave a snapshot for those who open the campaign next, and close all connections."""
        if self._replay is not None and self._replay.seconds > _AT_THE_END:
            with self._alone() as connection:
                self._take_snapshot(connection, _AT_THE_END)
        self.store.database.close()

    def known(
        self, connection: Connection, key: str | None, kind: str, request: dict[str, Any]
    ) -> Event | None:
        """Return the event that a key already stands for; raise if it stands for another."""
        found = None if key is None else self.store.event_of_key(connection, key)
        if found is not None and (found.kind, found.requested) != (kind, request):
            raise ConflictError(
                f"key {key!r} was used before, for another {found.kind} (event {found.number}); "
                "a key stands for one request"
            )
        return found

    def append(
        self,
        connection: Connection,
        kind: str,
        request: dict[str, Any],
        result: dict[str, Any],
        key: str | None = None,
    ) -> Event:
        """Add an event to the log and give it to the learner."""
        event = self.replay.append(kind, key, request, result)
        self.store.append(connection, event)
        return event

    def begin(self, connection: Connection, request: dict[str, Any], key: str | None) -> None:
        """Add the first event."""
        self._replay = Replay(self._find)
        self._connection = connection
        self.append(connection, "create", request, {}, key)

    def adopt(self, connection: Connection, replay: Replay, told_by: int) -> None:
        """Go on with a learner for which the reward of event ``told_by`` was changed."""
        stale = [number for number in self._snapshots(connection) if number >= told_by]
        self.store.remove_files(connection, "snapshot", stale)
        self._replay = replay
        self._write_snapshot(connection)

    def rebuilt(
        self,
        connection: Connection,
        upto: int,
        changes: Changes | None = None,
        before: int | None = None,
        *,
        from_log: bool = False,
    ) -> Replay:
        """Return the learner after event ``upto``.

        With ``changes`` to the rewards of events from number ``before`` on it is what it would be;
        hyperparameters are learnt anew from there. ``from_log`` reads no snapshot.
        """
        self._connection = connection
        last = upto if before is None else min(upto, before - 1)
        usable = [] if from_log else [n for n in self._snapshots(connection) if n <= last]
        replay = self._loaded(connection, usable[-1]) if usable else Replay(self._find)
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
        """Return what ``rebuilt`` returned with these changes, at the end of the log."""
        self._connection = connection
        new = list(self.store.events(connection, replay.number))
        if changes_in(new):
            return self.rebuilt(connection, self.replay.number, changes, before)
        for event in new:
            replay.apply(event, anew=True)
        return replay

    def _catch_up(self, connection: Connection) -> None:
        self._connection = connection
        if self._replay is None or not self._replay.sound:
            self._replay = self.rebuilt(connection, 2**31 - 1)
            return
        new = list(self.store.events(connection, self._replay.number))
        behind = len(new) >= _BEHIND and self._newest(connection) > self._replay.number
        if behind or changes_in(new):
            self._replay = self.rebuilt(connection, new[-1].number)
            return
        for event in new:
            self._replay.apply(event)

    def _newest(self, connection: Connection) -> int:
        return max(self._snapshots(connection), default=0)

    def _snapshots(self, connection: Connection) -> list[int]:
        return self.store.files(connection, "snapshot")

    def _loaded(self, connection: Connection, number: int) -> Replay:
        learner = Learner.load(self.store.read_file(connection, "snapshot", number))
        (event,) = self.store.events(connection, number - 1, number)
        return Replay(self._find, learner, number, event.hash)

    def _take_snapshot(self, connection: Connection, patience: float | None = None) -> None:
        """Write a snapshot if replaying the events since the last one takes long."""
        replay = self.replay
        if patience is None:
            patience = max(_SECONDS, _OF_WRITING * self._writing)
        if replay.seconds < patience and replay.since_snapshot < _MOST:
            return
        newest = self._newest(connection)
        if newest > replay.number - replay.since_snapshot:  # another process took one meanwhile
            replay.seconds *= (replay.number - newest) / replay.since_snapshot
            replay.since_snapshot = replay.number - newest
        else:
            self._write_snapshot(connection)

    def _write_snapshot(self, connection: Connection) -> None:
        start, replay = time.thread_time(), self.replay
        taken = self._snapshots(connection)
        if replay.number not in taken:
            content = to_bytes(replay.learner)
            self.store.write_file(connection, "snapshot", replay.number, content)
            self.store.remove_files(connection, "snapshot", _surplus([*taken, replay.number]))
        replay.seconds, replay.since_snapshot = 0.0, 0
        self._writing = time.thread_time() - start

    def _find(self, trial: int) -> Pick:
        if self._connection is None:
            raise RuntimeError("there is no connection to look up a trial with")
        return Pick.of(self.store.trial(self._connection, trial))


def _surplus(numbers: list[int]) -> list[int]:
    """Return the snapshots to remove.

    The last two stay, and of the others one for each halving, so that a retraction of an early
    trial need not replay everything; what they hold grows with the square of the number, so they
    take little.
    """
    kept, wanted = set(numbers[-2:]), numbers[-1] // 2
    while wanted:
        kept.update([n for n in numbers if n <= wanted][-1:])
        wanted //= 2
    return [number for number in numbers if number not in kept]
