"""Queries: one campaign's events, trials and files in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update
from sqlalchemy.sql import ClauseElement

from contextgap.campaign.database import Database
from contextgap.campaign.errors import NotFoundError
from contextgap.campaign.events import Event
from contextgap.campaign.parts import joined
from contextgap.campaign.prepared import Prepared
from contextgap.campaign.tables import CAMPAIGNS, EVENTS, FILES, TRIALS
from contextgap.campaign.trial import STATES

_PART = 2**20  # bytes; from larger parts, reading is slower
_NOT_TOLD = [state for state in STATES if state != "told"]
_EVENT = (EVENTS.c.number, EVENTS.c.at, EVENTS.c.kind, EVENTS.c.key, EVENTS.c.request)
_EVENT_COLUMNS = (*_EVENT, EVENTS.c.result, EVENTS.c.hash)
_TRIAL_COLUMNS = TRIALS.c.keys()
LARGEST = 2**63 - 1  # number that databases can look for
_PAGE = 1000  # events read at once


class Store:
    """One campaign's part of a database; methods take the connection of a transaction."""

    def __init__(self, database: Database, campaign: int) -> None:
        self.database = database
        self.campaign = campaign
        mine = EVENTS.c.campaign == campaign
        of_event, of_trial = select(*_EVENT_COLUMNS).where(mine), TRIALS.c.campaign == campaign
        after, upto = EVENTS.c.number > bindparam("after"), EVENTS.c.number <= bindparam("upto")
        wanted = TRIALS.c.id == bindparam("wanted")
        due = (TRIALS.c.state == "open") & (TRIALS.c.until <= bindparam("now"))
        self._events_after = self._prepared(
            of_event.where(after, upto).order_by(EVENTS.c.number).limit(_PAGE)
        )
        self._event_of_key = self._prepared(of_event.where(EVENTS.c.key == bindparam("wanted")))
        self._append = self._prepared(insert(EVENTS), EVENTS.c.keys())
        self._lock = self._prepared(
            select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.id == campaign).with_for_update()
        )
        self._trial = self._prepared(select(TRIALS).where(of_trial, wanted))
        self._last_trial = self._prepared(select(func.max(TRIALS.c.id)).where(of_trial))
        self._due = self._prepared(
            select(TRIALS.c.id).where(of_trial, due).order_by(TRIALS.c.until, TRIALS.c.id)
        )
        self._add_trials = self._prepared(insert(TRIALS), TRIALS.c.keys())
        self._change = update(TRIALS).where(of_trial, wanted)
        self._changes: dict[tuple[str, ...], Prepared] = {}
        self._begin_part = self._prepared(text("SAVEPOINT contextgap"))
        self._undo_part = self._prepared(text("ROLLBACK TO SAVEPOINT contextgap"))
        self._end_part = self._prepared(text("RELEASE SAVEPOINT contextgap"))

    def _prepared(self, statement: ClauseElement, columns: Iterable[str] | None = None) -> Prepared:
        return Prepared(statement, self.database.dialect, columns)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection to read with."""
        with self.database.reading() as connection:
            yield connection

    @contextmanager
    def locked(self) -> Iterator[Connection]:
        """Yield a connection while no other process can change this campaign."""
        with self.database.writing() as connection:
            if not self.database.is_file:  # of a file, the transaction is the only one that writes
                self._lock.run(connection)
            yield connection

    @contextmanager
    def part(self, connection: Connection) -> Iterator[None]:
        """Undo what is done within the block, and nothing else, if the block raises."""
        self._begin_part.run(connection)
        try:
            yield
        except BaseException:
            if not connection.invalidated:
                self._undo_part.run(connection)
                self._end_part.run(connection)
            raise
        self._end_part.run(connection)

    def events(
        self, connection: Connection, after: int = 0, upto: int = 2**31 - 1
    ) -> Iterator[Event]:
        """Yield the events with numbers above ``after`` and up to ``upto``, in order."""
        while True:
            page = self._events_after.rows(connection, after=after, upto=upto)
            yield from (Event(*row) for row in page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def events_of(self, connection: Connection, *kinds: str, after: int = 0) -> list[Event]:
        """Return all events of some kinds."""
        statement = (
            select(*_EVENT_COLUMNS)
            .where(EVENTS.c.campaign == self.campaign, EVENTS.c.kind.in_(kinds))
            .where(EVENTS.c.number > after)
            .order_by(EVENTS.c.number)
        )
        return [Event(*row) for row in connection.execute(statement)]

    def event_of_key(self, connection: Connection, key: str) -> Event | None:
        """Return the event that was asked for with a key."""
        found = self._event_of_key.rows(connection, wanted=key)
        return Event(*found[0]) if found else None

    def append(self, connection: Connection, event: Event) -> None:
        """Add an event to the log."""
        values = {column.name: getattr(event, column.name) for column in _EVENT_COLUMNS}
        self._append.run(connection, campaign=self.campaign, **values)

    def last_trial(self, connection: Connection) -> int:
        """Return the number of the last trial, 0 before the first."""
        ((last,),) = self._last_trial.rows(connection)
        return int(last or 0)

    def trial(self, connection: Connection, number: int) -> dict[str, Any]:
        """Return the row of one trial."""
        found = self._trial.rows(connection, wanted=number) if number <= LARGEST else []
        if not found:
            raise NotFoundError(f"there is no trial {number}")
        return dict(zip(_TRIAL_COLUMNS, found[0], strict=True))

    def trials(
        self,
        connection: Connection,
        states: Sequence[str] | None = None,
        numbers: Sequence[int] | None = None,
        after: int = 0,
        between: tuple[int, int] | None = None,
        most: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the rows of trials: all, those in some states, or with some numbers."""
        statement = select(TRIALS).where(TRIALS.c.campaign == self.campaign)
        if states is not None:
            statement = statement.where(TRIALS.c.state.in_(states))
        if numbers is not None:
            small = [number for number in numbers if number <= LARGEST]
            statement = statement.where(TRIALS.c.id.in_(small))
        if after:
            statement = statement.where(TRIALS.c.id > min(after, LARGEST))
        if between is not None:
            statement = statement.where(TRIALS.c.id.between(*between))
        statement = statement.order_by(TRIALS.c.id).limit(most)
        return [dict(row) for row in connection.execute(statement).mappings()]

    def counts(self, connection: Connection) -> dict[str, int]:
        """Return how many trials there are in each state.

        Trials are numbered without gaps, and most of them are told: those need not be counted.
        """
        statement = (
            select(TRIALS.c.state, func.count())
            .where(TRIALS.c.campaign == self.campaign, TRIALS.c.state.in_(_NOT_TOLD))
            .group_by(TRIALS.c.state)
        )
        found = {row[0]: row[1] for row in connection.execute(statement)}
        return {**found, "told": self.last_trial(connection) - sum(found.values())}

    def due(self, connection: Connection, now: str) -> list[int]:
        """Return the open trials whose lease has run out."""
        return [number for (number,) in self._due.rows(connection, now=now)]

    def next_due(self, connection: Connection) -> str | None:
        """Return when the next lease of an open trial runs out; None if there is none."""
        mine = (TRIALS.c.campaign == self.campaign) & (TRIALS.c.state == "open")
        return connection.execute(select(func.min(TRIALS.c.until)).where(mine)).scalar()

    def add_trials(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add trials."""
        self._add_trials.run_all(connection, [{"campaign": self.campaign, **row} for row in rows])

    def change_trial(self, connection: Connection, number: int, **values: Any) -> None:
        """Change what became of a trial."""
        columns = tuple(values)
        if columns not in self._changes:
            self._changes[columns] = self._prepared(self._change, columns)
        self._changes[columns].run(connection, wanted=number, **values)

    def files(self, connection: Connection, kind: str) -> list[int]:
        """Return the numbers of all files of a kind."""
        statement = (
            select(FILES.c.number)
            .where(FILES.c.campaign == self.campaign, FILES.c.kind == kind, FILES.c.part == 0)
            .order_by(FILES.c.number)
        )
        return list(connection.execute(statement).scalars())

    def read_file(self, connection: Connection, kind: str, number: int) -> IO[bytes]:
        """Return a file, to be read from."""
        statement = (
            select(FILES.c.bytes)
            .where(FILES.c.campaign == self.campaign)
            .where(FILES.c.kind == kind, FILES.c.number == number)
            .order_by(FILES.c.part)
        )
        return joined(list(connection.execute(statement).scalars()))

    def write_file(self, connection: Connection, kind: str, number: int, content: bytes) -> None:
        """Add a file, in parts."""
        own = {"campaign": self.campaign, "kind": kind, "number": number}
        for part, first in enumerate(range(0, len(content), _PART)):
            chunk = content[first : first + _PART]
            connection.execute(insert(FILES), {**own, "part": part, "bytes": chunk})

    def remove_files(self, connection: Connection, kind: str, numbers: Sequence[int]) -> None:
        """Remove files."""
        if numbers:
            mine = (FILES.c.campaign == self.campaign) & (FILES.c.kind == kind)
            connection.execute(delete(FILES).where(mine, FILES.c.number.in_(numbers)))
