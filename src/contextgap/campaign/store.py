"""Queries: one campaign's events, trials and files in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from contextgap.campaign.database import Database
from contextgap.campaign.errors import ConflictError, NotFoundError
from contextgap.campaign.events import Event
from contextgap.campaign.parts import joined
from contextgap.campaign.tables import CAMPAIGNS, EVENTS, FILES, TRIALS
from contextgap.campaign.trial import STATES

FORMAT = 1
"""The format of the log and the tables that this release writes."""

_PART = 2**20  # bytes; from larger parts, reading is slower
_NOT_TOLD = [state for state in STATES if state != "told"]
_EVENT = (EVENTS.c.number, EVENTS.c.at, EVENTS.c.kind, EVENTS.c.key, EVENTS.c.request)
_EVENT_COLUMNS = (*_EVENT, EVENTS.c.result, EVENTS.c.hash)


class Store:
    """One campaign's part of a database; methods take the connection of a transaction."""

    def __init__(self, database: Database, campaign: int) -> None:
        self.database = database
        self.campaign = campaign
        # Made once: building a statement takes longer than running it.
        mine = EVENTS.c.campaign == campaign
        self._events_after = (
            select(*_EVENT_COLUMNS)
            .where(mine, EVENTS.c.number > bindparam("after"), EVENTS.c.number <= bindparam("upto"))
            .order_by(EVENTS.c.number)
        )
        self._event_of_key = select(*_EVENT_COLUMNS).where(
            mine, EVENTS.c.key == bindparam("wanted")
        )
        self._lock = select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.id == campaign).with_for_update()
        self._change = update(TRIALS).where(
            TRIALS.c.campaign == campaign, TRIALS.c.id == bindparam("wanted")
        )
        self._trial = select(TRIALS).where(
            TRIALS.c.campaign == campaign, TRIALS.c.id == bindparam("wanted")
        )
        self._due = (
            select(TRIALS.c.id)
            .where(
                TRIALS.c.campaign == campaign,
                TRIALS.c.state == "open",
                TRIALS.c.until <= bindparam("now"),
            )
            .order_by(TRIALS.c.until, TRIALS.c.id)
        )
        self._last_trial = select(func.max(TRIALS.c.id)).where(TRIALS.c.campaign == campaign)

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
                connection.execute(self._lock)
            yield connection

    def events(
        self, connection: Connection, after: int = 0, upto: int = 2**31 - 1
    ) -> Iterator[Event]:
        """Yield the events with numbers above ``after`` and up to ``upto``, in order."""
        rows = connection.execute(self._events_after, {"after": after, "upto": upto})
        return (Event(*row) for row in rows)

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
        row = connection.execute(self._event_of_key, {"wanted": key}).first()
        return None if row is None else Event(*row)

    def append(self, connection: Connection, event: Event) -> None:
        """Add an event to the log."""
        connection.execute(insert(EVENTS), {"campaign": self.campaign, **_plain(event)})

    def last_trial(self, connection: Connection) -> int:
        """Return the number of the last trial, 0 before the first."""
        return int(connection.execute(self._last_trial).scalar() or 0)

    def trial(self, connection: Connection, number: int) -> dict[str, Any]:
        """Return the row of one trial."""
        row = connection.execute(self._trial, {"wanted": number}).mappings().first()
        if row is None:
            raise NotFoundError(f"there is no trial {number}")
        return dict(row)

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
            statement = statement.where(TRIALS.c.id.in_(numbers))
        if after:
            statement = statement.where(TRIALS.c.id > after)
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
        return list(connection.execute(self._due, {"now": now}).scalars())

    def next_due(self, connection: Connection) -> str | None:
        """Return when the next lease of an open trial runs out; None if there is none."""
        mine = (TRIALS.c.campaign == self.campaign) & (TRIALS.c.state == "open")
        return connection.execute(select(func.min(TRIALS.c.until)).where(mine)).scalar()

    def add_trials(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add trials."""
        connection.execute(insert(TRIALS), [{"campaign": self.campaign, **row} for row in rows])

    def change_trial(self, connection: Connection, number: int, **values: Any) -> None:
        """Change what became of a trial."""
        connection.execute(self._change, {"wanted": number, **values})

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


def new_store(database: Database, connection: Connection, name: str) -> Store:
    """Add a campaign without events."""
    database.make_tables(connection)
    try:
        made = connection.execute(insert(CAMPAIGNS), {"name": name, "format": FORMAT})
    except IntegrityError:
        raise ConflictError(
            f"there is a campaign {name!r} already; open it, or choose another name"
        ) from None
    return Store(database, int((made.inserted_primary_key or [0])[0]))


def find_store(database: Database, name: str) -> Store:
    """Return the part of a campaign that exists."""
    known = campaign_names(database)
    if name not in known:
        there = f"there are {list(known)}" if known else "there is none"
        raise NotFoundError(f"there is no campaign {name!r} in {database.url!r}; {there}")
    number, written = known[name]
    if written > FORMAT:
        raise ValueError(
            f"the campaign {name!r} has format {written}, and this release reads {FORMAT}: use the "
            "contextgap release that wrote it"
        )
    return Store(database, number)


def created_before(database: Database, name: str, key: str, request: Mapping[str, Any]) -> bool:
    """Return whether a campaign was created by this very request; raise if by another with its key.

    Learners without a seed draw one, so that two requests with the same settings may differ there.
    """
    if name not in campaign_names(database):
        return False
    store = find_store(database, name)
    with store.reading() as connection:
        (first,) = store.events(connection, 0, 1)
    if first.key != key:
        return False
    same = ("arms", "goal", "lease")
    if [first.requested[part] for part in same] != [request[part] for part in same]:
        raise ConflictError(f"key {key!r} was used before, for another campaign {name!r}")
    return True


def campaign_names(database: Database) -> dict[str, tuple[int, int]]:
    """Return the number and the format of every campaign, by name."""
    if not database.exists:
        return {}
    statement = select(CAMPAIGNS.c.name, CAMPAIGNS.c.id, CAMPAIGNS.c.format).order_by(
        CAMPAIGNS.c.id
    )
    with database.reading() as connection:
        if not connection.dialect.has_table(connection, CAMPAIGNS.name):
            return {}
        return {name: (number, form) for name, number, form in connection.execute(statement)}


def _plain(event: Event) -> dict[str, Any]:
    return {column.name: getattr(event, column.name) for column in _EVENT_COLUMNS}
