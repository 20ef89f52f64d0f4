"""The tables of a database, queries of what is in them, and what operators need.

Events are the truth; all other tables can be made again from them. Version 1 of the tables, of
release 0.2, had no table that says so, no callers, and hashes of events only. A backup is a SQLite
file with the tables of any database, as of one moment.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Table, bindparam, func, insert, select, text, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.sql import ClauseElement, ColumnElement

from contextgap.base import files
from contextgap.team.campaign import values
from contextgap.team.campaign.database import IDLE, NAME, Database, Prepared
from contextgap.team.campaign.values import (
    NOTHING,
    START,
    STATES,
    AlteredError,
    ConflictError,
    Event,
    NotFoundError,
    UnavailableError,
    as_json,
    decode_goal,
    file_hash,
    row_hash,
    summary,
)

VERSION = 2
FORMAT = 2
_MAKING_TABLES = 0x63676170  # any number
METADATA = sa.MetaData()
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # whose integers have 64 bits
LARGEST = 2**63 - 1


def _campaign() -> Column[int]:
    return Column("campaign", NUMBER, sa.ForeignKey("contextgap_campaigns.id"), primary_key=True)


SCHEMA = Table(
    "contextgap_schema",
    METADATA,
    Column("version", sa.Integer, primary_key=True, autoincrement=False),
    Column("checked", sa.String(32)),  # when a write was last tried
)

CAMPAIGNS = Table(
    "contextgap_campaigns",
    METADATA,
    Column("id", NUMBER, primary_key=True),
    Column("name", sa.String(200), nullable=False, unique=True),
    Column("format", sa.Integer, nullable=False),
    Column("summary", sa.Text),  # for lists of campaigns
)

# An event names the one before it, so that none can be missing.
EVENTS = Table(
    "contextgap_events",
    METADATA,
    _campaign(),
    Column("number", NUMBER, primary_key=True),
    Column("at", sa.String(32), nullable=False),
    Column("kind", sa.String(16), nullable=False),
    Column("key", sa.Text),
    Column("request", sa.Text, nullable=False),
    Column("result", sa.Text, nullable=False),
    Column("hash", sa.String(64), nullable=False),
    Column("by", sa.Text),
    Column("previous", NUMBER),
    Column("before", sa.String(64)),
    sa.UniqueConstraint("campaign", "key", name="contextgap_events_keys"),
    sa.UniqueConstraint("campaign", "number", "hash", name="contextgap_events_hashes"),
    sa.ForeignKeyConstraint(
        ["campaign", "previous", "before"],
        ["contextgap_events.campaign", "contextgap_events.number", "contextgap_events.hash"],
        name="contextgap_events_follow",
    ),
    sa.CheckConstraint(
        "number = 1 OR (previous = number - 1 AND before IS NOT NULL)",
        name="contextgap_events_order",
    ),
    sa.Index("contextgap_events_kinds", "campaign", "kind", "number"),
)

TRIALS = Table(
    "contextgap_trials",
    METADATA,
    _campaign(),
    Column("id", NUMBER, primary_key=True),
    Column("state", sa.String(16), nullable=False),
    Column("arm", sa.Text, nullable=False),
    Column("context", sa.Text, nullable=False),
    Column("eligible", sa.Text),
    Column("reward", sa.Double),
    Column("asked", sa.String(32)),
    Column("until", sa.String(32)),  # when the lease runs out
    Column("told", sa.String(32)),
    Column("told_by", NUMBER),  # the number of the event
    Column("why", sa.Text),
    Column("by", sa.Text),
    Column("sha256", sa.String(64), nullable=False),
    sa.Index("contextgap_trials_states", "campaign", "state", "until"),
)

# Snapshots and frozen policies, in parts that every database takes.
FILES = Table(
    "contextgap_files",
    METADATA,
    _campaign(),
    Column("kind", sa.String(16), primary_key=True),
    Column("number", NUMBER, primary_key=True),  # of an event
    Column("part", sa.Integer, primary_key=True),
    Column("bytes", sa.LargeBinary, nullable=False),
    Column("sha256", sa.String(64)),  # in the first part: of the event's hash and the file
)

_OLD = (CAMPAIGNS, EVENTS, TRIALS, FILES)
_DRAWN = ("random_state", "policy_seed")  # unless a seed was given
_PART = 2**20  # bytes: larger parts are slower to read
_NOT_TOLD = [state for state in STATES if state != "told"]
_EVENT_COLUMNS = [EVENTS.c[f.removesuffix("_text")] for f in Event.__dataclass_fields__]
_TRIAL_COLUMNS = TRIALS.c.keys()
_CHANGING = ("state", "reward", "told", "told_by", "why", "by", "sha256")
_PAGE = 1000
_AT_ONCE = 200  # rows copied at once


class Store:
    """A campaign in a database; methods take a connection with a transaction."""

    def __init__(self, database: Database, campaign: int) -> None:
        self.database = database
        self.campaign = campaign
        events, trials, own = EVENTS.c, TRIALS.c, CAMPAIGNS.c.id == campaign
        self._mine = trials.campaign == campaign
        self._log = select(*_EVENT_COLUMNS).where(events.campaign == campaign)
        page = self._log.where(events.number > bindparam("after"))
        page = page.where(events.number <= bindparam("upto"))
        self._events_after = self._prepared(page.order_by(events.number).limit(_PAGE))
        self._event_of_key = self._prepared(self._log.where(events.key == bindparam("wanted")))
        self._append = self._prepared(insert(EVENTS), events.keys())
        last = select(events.number, events.hash).where(events.campaign == campaign)
        self._last_event = self._prepared(last.order_by(events.number.desc()).limit(1))
        idle = func.set_config("idle_in_transaction_session_timeout", str(int(1000 * IDLE)), True)
        self._lock = self._prepared(select(CAMPAIGNS.c.id, idle).where(own).with_for_update())
        is_open = self._mine & (trials.state == "open")
        last_trial = select(func.max(trials.id)).where(self._mine)
        count = select(func.count()).select_from(TRIALS).where(is_open)
        parts = (CAMPAIGNS.c.summary, last_trial.scalar_subquery(), count.scalar_subquery())
        self._summary = self._prepared(select(*parts).where(own))
        self._summarize = self._prepared(update(CAMPAIGNS).where(own), ["summary"])
        wanted = self._mine & (trials.id == bindparam("wanted"))
        self._trial = self._prepared(select(TRIALS).where(wanted))
        self._last_trial = self._prepared(last_trial)
        due = select(trials.id).where(is_open, trials.until <= bindparam("now"))
        self._due = self._prepared(due.order_by(trials.until, trials.id))
        self._add_trials = self._prepared(insert(TRIALS), trials.keys())
        self._change = self._prepared(update(TRIALS).where(wanted), _CHANGING)

    def _prepared(self, statement: ClauseElement, columns: Iterable[str] | None = None) -> Prepared:
        return Prepared(statement, self.database.dialect, columns)

    def reading(self) -> AbstractContextManager[Connection]:
        return self.database.reading()

    @contextmanager
    def locked(self) -> Iterator[Connection]:
        with self.database.connected() as connection, self.locked_on(connection):
            yield connection

    @contextmanager
    def locked_on(self, connection: Connection) -> Iterator[None]:
        """Keep other processes from changing this campaign."""
        with self.database.writing_on(connection):
            if not self.database.is_file:  # whose transactions exclude others
                self._lock.run(connection)
            yield

    def events(
        self, connection: Connection, after: int = 0, upto: int = LARGEST
    ) -> Iterator[Event]:
        """Yield events; callers check that each follows."""
        while True:
            page = self._events_after.run(connection, after=after, upto=upto)
            yield from map(_event, page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def event(self, connection: Connection, number: int) -> Event:
        for event in self.events(connection, number - 1, number):
            return _unaltered(event)
        raise AlteredError(f"event {number} of the campaign is missing")

    def events_of(self, connection: Connection, *kinds: str, after: int = 0) -> list[Event]:
        mine = self._log.where(EVENTS.c.kind.in_(kinds), EVENTS.c.number > after)
        found = connection.execute(mine.order_by(EVENTS.c.number))
        return [_unaltered(_event(row)) for row in found]

    def event_of_key(self, connection: Connection, key: str) -> Event | None:
        found = self._event_of_key.run(connection, wanted=key)
        return _unaltered(_event(found[0])) if found else None

    def last_event(self, connection: Connection) -> tuple[int, str]:
        found = self._last_event.run(connection)
        return (found[0][0], found[0][1]) if found else (0, NOTHING)

    def append(self, connection: Connection, events: Sequence[Event]) -> None:
        """Add events; the database refuses any that do not follow."""
        rows = [
            {
                **vars(event),
                "campaign": self.campaign,
                "request": event.request_text,
                "result": event.result_text,
                "previous": event.number - 1 or None,
                "before": event.before or None,
            }
            for event in events
        ]
        self._append.run_all(connection, rows)

    def last_trial(self, connection: Connection) -> int:
        ((last,),) = self._last_trial.run(connection)
        return int(last or 0)

    def trial(self, connection: Connection, number: int) -> dict[str, Any]:
        found = self._trial.run(connection, wanted=number) if number <= LARGEST else []
        if not found:
            raise NotFoundError(f"there is no trial {number}")
        return _checked(dict(zip(_TRIAL_COLUMNS, found[0], strict=True)))

    def trials(
        self,
        connection: Connection,
        *where: ColumnElement[bool],
        newest_first: bool = False,
        most: int | None = None,
    ) -> list[dict[str, Any]]:
        statement = select(TRIALS).where(self._mine, *where)
        statement = statement.order_by(TRIALS.c.id.desc() if newest_first else TRIALS.c.id)
        statement = statement.limit(None if most is None else min(most, LARGEST))
        return [_checked(dict(row)) for row in connection.execute(statement).mappings()]

    def counts(self, connection: Connection) -> dict[str, int]:
        statement = (
            select(TRIALS.c.state, func.count())
            .where(self._mine, TRIALS.c.state.in_(_NOT_TOLD))
            .group_by(TRIALS.c.state)
        )
        found = {row[0]: row[1] for row in connection.execute(statement)}
        # Trials are numbered without gaps, and most are told: those are not counted.
        return {**found, "told": self.last_trial(connection) - sum(found.values())}

    def due(self, connection: Connection, now: str) -> list[int]:
        return [number for (number,) in self._due.run(connection, now=now)]

    def next_due(self, connection: Connection, after: str = "") -> str | None:
        later = (TRIALS.c.state == "open") & (TRIALS.c.until > after)
        return connection.execute(
            select(func.min(TRIALS.c.until)).where(self._mine, later)
        ).scalar()

    def add_trials(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        self._add_trials.run_all(connection, [self._with_hash(row) for row in rows])

    def change_trials(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        hashed = [self._with_hash(row) for row in rows]
        changed = [{"wanted": row["id"], **{n: row[n] for n in _CHANGING}} for row in hashed]
        self._change.run_all(connection, changed)

    def _with_hash(self, row: Mapping[str, Any]) -> dict[str, Any]:
        whole = {**row, "campaign": self.campaign}
        whole["sha256"] = row_hash(whole)
        return whole

    def summary(self, connection: Connection) -> dict[str, Any]:
        ((known, last, count),) = self._summary.run(connection)
        return {**json.loads(known or "{}"), "trials": int(last or 0), "open": int(count)}

    def summarize(self, connection: Connection, summary: Mapping[str, Any]) -> None:
        self._summarize.run(connection, summary=as_json(summary))

    def progress(self, connection: Connection) -> list[dict[str, Any]]:
        return [event.result for event in self.events_of(connection, "progress")] or [START]

    def files(self, connection: Connection, kind: str) -> list[int]:
        mine = self._files(kind) & (FILES.c.part == 0)
        statement = select(FILES.c.number).where(mine).order_by(FILES.c.number)
        return list(connection.execute(statement).scalars())

    def _files(self, kind: str) -> ColumnElement[bool]:
        return (FILES.c.campaign == self.campaign) & (FILES.c.kind == kind)

    def read_file(self, connection: Connection, kind: str, number: int) -> IO[bytes]:
        mine = self._files(kind) & (FILES.c.number == number)
        statement = select(FILES.c.bytes, FILES.c.sha256).where(mine).order_by(FILES.c.part)
        file, hashed = io.BytesIO(), hashlib.sha256(self.event(connection, number).hash.encode())
        written: list[str | None] = []
        # Some at once: the whole file should be in memory once.
        for part, own in connection.execute(statement, execution_options={"yield_per": 4}):
            file.write(part)
            hashed.update(part)
            written.append(own)
        if written[:1] != [hashed.hexdigest()]:
            raise AlteredError(f"the {kind} of event {number} was altered: its hash is not right")
        file.seek(0)
        return file

    def write_file(
        self, connection: Connection, kind: str, event: tuple[int, str], content: bytes
    ) -> None:
        number, log = event
        own = {"campaign": self.campaign, "kind": kind, "number": number}
        for part, first in enumerate(range(0, len(content), _PART)):
            chunk = content[first : first + _PART]
            hashed = None if part else file_hash(log, content)
            row = {**own, "part": part, "bytes": chunk, "sha256": hashed}
            connection.execute(insert(FILES), row)

    def remove_files(self, connection: Connection, kind: str, numbers: Sequence[int]) -> None:
        if numbers:
            mine = self._files(kind) & FILES.c.number.in_(numbers)
            connection.execute(sa.delete(FILES).where(mine))


def _event(row: Sequence[Any]) -> Event:
    *parts, before = row
    return Event(*parts, *[before or NOTHING])


def _unaltered(event: Event) -> Event:
    if not event.follows(event.before):
        raise AlteredError(f"event {event.number} of the campaign was altered: its hash is wrong")
    return event


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    if row["sha256"] != row_hash(row):
        raise AlteredError(
            f"trial {row['id']} was altered in the table of trials: its hash is not right; "
            "contextgap database verify says what differs from the log"
        )
    return row


def prepare(database: Database) -> None:
    if database.prepared or not database.exists:
        return
    with database.reading() as connection:
        version = check_version(connection)
    if version:
        if version < VERSION:
            upgrade(database)
        database.prepared = True


def upgrade(database: Database) -> bool:
    with database.writing() as connection:
        if not make_tables(database, connection):
            return False
        for campaign in connection.execute(select(CAMPAIGNS.c.id)).scalars().all():
            store = Store(database, campaign)
            store.summarize(connection, _summary(store, connection))
    return True


def _summary(store: Store, connection: Connection) -> dict[str, Any]:
    number, _ = store.last_event(connection)
    (first,), (last,) = store.events(connection, 0, 1), store.events(connection, number - 1, number)
    steps = store.progress(connection)
    found = summary(steps[-1], steps, decode_goal(first.request["goal"]))
    return {**store.summary(connection), **found, "event": last.number, "at": last.at}


def summaries(database: Database) -> list[dict[str, Any]]:
    prepare(database)
    if not database.prepared:
        return []
    statement = select(CAMPAIGNS.c.name, CAMPAIGNS.c.summary).order_by(CAMPAIGNS.c.id)
    with database.reading() as connection:
        found = connection.execute(statement).all()
    return [{"name": name, **json.loads(summary)} for name, summary in found]


def new_store(database: Database, connection: Connection, name: str) -> Store:
    if not database.prepared:
        make_tables(database, connection)
    try:
        made = connection.execute(insert(CAMPAIGNS), {"name": name, "format": FORMAT})
    except IntegrityError:
        raise ConflictError(
            f"there is a campaign {name!r} already; open it, or choose another name"
        ) from None
    return Store(database, int((made.inserted_primary_key or [0])[0]))


def find_store(database: Database, name: str) -> Store:
    prepare(database)
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
    """Return whether this request created a campaign; raise if another has its key."""
    if name not in campaign_names(database):
        return False
    store = find_store(database, name)
    with store.reading() as connection:
        (first,) = store.events(connection, 0, 1)
    if first.key != key:
        return False
    if _settings(first.request) != _settings(request):
        raise ConflictError(f"key {key!r} was used before, for another campaign {name!r}")
    return True


def _settings(request: Mapping[str, Any]) -> dict[str, Any]:
    header, _ = files.read(io.BytesIO(base64.b64decode(request["learner"])), "learner")
    given = {part: request[part] for part in ("arms", "goal", "lease")}
    return {**header, **given, **dict.fromkeys(_DRAWN)}


def campaign_names(database: Database) -> dict[str, tuple[int, int]]:
    if not database.exists:
        return {}
    own = CAMPAIGNS.c
    statement = select(own.name, own.id, own.format).order_by(own.id)
    with database.reading() as connection:
        if not connection.dialect.has_table(connection, CAMPAIGNS.name):
            return {}
        return {name: (number, form) for name, number, form in connection.execute(statement)}


def version_of(connection: Connection) -> int:
    if connection.dialect.has_table(connection, SCHEMA.name):
        return int(connection.execute(select(sa.func.max(SCHEMA.c.version))).scalar() or 0)
    return 1 if connection.dialect.has_table(connection, CAMPAIGNS.name) else 0


def check_version(connection: Connection) -> int:
    version = version_of(connection)
    if version > VERSION:
        raise ValueError(
            f"the database has schema version {version}, and this release knows {VERSION}: use the "
            "contextgap release that wrote it, or a later one"
        )
    if version == VERSION:
        inspector = sa.inspect(connection)
        for table in METADATA.sorted_tables:
            there = inspector.has_table(table.name)
            found = [each["name"] for each in inspector.get_columns(table.name)] if there else []
            if missing := [each.name for each in table.columns if each.name not in found]:
                raise ValueError(
                    f"the table {table.name} of the database lacks {missing}, so somebody altered "
                    "it; contextgap database restore FILE restores a backup"
                )
    return version


def check_database(database: Database) -> None:
    """Raise unless this release can read and write a database."""
    if not database.exists:
        return
    with database.writing() as connection:
        version = check_version(connection)
        if not version:
            return  # the first campaign makes them
        if version < VERSION:
            raise UnavailableError(
                "the database is of an earlier release; contextgap database upgrade upgrades it"
            )
        # Only a commit shows whether there is room left.
        connection.execute(update(SCHEMA).values(checked=values.now()))


def make_tables(database: Database, connection: Connection) -> bool:
    if not database.is_file:  # one process after the other
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_MAKING_TABLES})"))
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    version = check_version(connection)
    if version == VERSION:
        return False
    if version == 1:
        _upgrade_from_1(connection)
    else:
        METADATA.create_all(connection)
    connection.execute(insert(SCHEMA), {"version": VERSION})
    return version > 0


def _upgrade_from_1(connection: Connection) -> None:
    server = connection.dialect.name == "postgresql"
    before = ["DROP INDEX contextgap_events_kinds", "DROP INDEX contextgap_trials_states"]
    if server:
        before.append("ALTER TABLE contextgap_events DROP CONSTRAINT contextgap_events_keys")
    for statement in [*before, *(f"ALTER TABLE {t.name} RENAME TO old_{t.name}" for t in _OLD)]:
        connection.execute(text(statement))
    METADATA.create_all(connection)
    last: dict[int, str] = {}
    for table in _OLD:
        keys = ", ".join(f'"{column.name}"' for column in table.primary_key)
        old = text(f"SELECT * FROM old_{table.name} ORDER BY {keys}")
        rows = connection.execute(old, execution_options={"yield_per": _AT_ONCE}).mappings()
        for part in rows.partitions():
            connection.execute(insert(table), [_upgraded(table, dict(row), last) for row in part])
    if server:
        set_sequences(connection)
    _hash_files(connection)
    for table in reversed(_OLD):
        connection.execute(text(f"DROP TABLE old_{table.name}"))


def _upgraded(table: Table, row: dict[str, Any], last: dict[int, str]) -> dict[str, Any]:
    """Complete a row of version 1; ``last`` has the hashes of last events."""
    if table is CAMPAIGNS:
        return {**row, "format": FORMAT}
    if table is EVENTS:
        before, last[row["campaign"]] = last.get(row["campaign"], NOTHING), row["hash"]
        previous = row["number"] - 1 if before else None
        return {**row, "by": None, "before": before or None, "previous": previous}
    if table is TRIALS:
        row["by"] = None
        return {**row, "sha256": row_hash(row)}
    return row


def set_sequences(connection: Connection) -> None:
    """Have a server number rows after those copied."""
    for name in ("contextgap_campaigns", "contextgap_tokens"):
        if connection.dialect.has_table(connection, name):
            sequence = f"pg_get_serial_sequence('{name}', 'id')"
            last = f"(SELECT coalesce(max(id), 0) + 1 FROM {name})"
            connection.execute(text(f"SELECT setval({sequence}, {last}, false)"))


def _hash_files(connection: Connection) -> None:
    first = FILES.c.part == 0
    found = connection.execute(select(FILES.c.campaign, FILES.c.kind, FILES.c.number).where(first))
    for campaign, kind, number in found.all():
        mine = (FILES.c.campaign == campaign) & (FILES.c.kind == kind) & (FILES.c.number == number)
        parts = connection.execute(select(FILES.c.bytes).where(mine).order_by(FILES.c.part))
        content = b"".join(parts.scalars())
        event = (EVENTS.c.campaign == campaign) & (EVENTS.c.number == number)
        log = connection.execute(select(EVENTS.c.hash).where(event)).scalar() or NOTHING
        hashed = file_hash(log, content)
        connection.execute(update(FILES).where(mine, first).values(sha256=hashed))


def database_status(database: Database) -> dict[str, Any]:
    """Return what a database holds, and whether it can be used."""
    found: dict[str, Any] = {"database": repr(database.url), "release reads": VERSION}
    if not database.exists:
        return {**found, "version": 0, "ready": "there is no file yet"}
    with database.reading() as connection:
        version = found["version"] = version_of(connection)
        if version:
            for table in (CAMPAIGNS, EVENTS, TRIALS):
                count = select(func.count()).select_from(text(table.name))
                name = table.name.removeprefix("contextgap_")
                found[name] = connection.execute(count).scalar()
    try:
        if version:
            check_database(database)
        return {**found, "ready": "yes"}
    except (OSError, ValueError, SQLAlchemyError) as error:
        return {**found, "ready": f"no: {getattr(error, 'orig', None) or error}"}


def backup(database: Database, path: Path) -> None:
    """Write a database to a new file, as of now."""
    if path.exists():
        raise FileExistsError(f"cannot write {path}: there is such a file already")
    if not database.exists:
        raise FileNotFoundError(f"there is no database {database.url!r}")
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        target = sa.create_engine(URL.create("sqlite", database=str(unfinished)))
        with database.reading() as source, target.begin() as connection:
            _copy(source, connection)
        target.dispose()
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def restore(database: Database, path: Path) -> None:
    """Replace a database by a backup; raise if others are connected."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "backup.db"  # and perhaps upgraded
        shutil.copyfile(path, copied)
        source = Database(copied)
        prepare(source)
        with source.reading() as connection:
            if not version_of(connection):
                raise ValueError(f"{path} is no backup: it has no tables of contextgap")
        try:
            with _alone(database) as target, source.reading() as connection:
                for table in reversed(_tables(target).sorted_tables):
                    table.drop(target)
                make_tables(database, target)
                _copy(connection, target)
        finally:
            source.close()


@contextmanager
def _alone(database: Database) -> Iterator[Connection]:
    """Yield a connection for a transaction, with no other to the database."""
    database.close()
    others = UnavailableError(
        "others are connected to the database; stop the service and all programs that use it"
    )
    if database.is_file:
        try:
            with database.connected() as connection:
                own: Any = connection.connection.driver_connection
                own.execute("PRAGMA busy_timeout=1000")
                try:
                    own.execute("PRAGMA journal_mode=DELETE")  # needs the file alone
                except sqlite3.OperationalError:
                    raise others from None
                connection.info["begin"] = "BEGIN EXCLUSIVE"
                with connection.begin():
                    yield connection
        finally:
            database.close()
        return
    with database.writing() as connection:
        statement = text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name = :name AND pid <> pg_backend_pid()"
        )
        if connection.execute(statement, {"name": NAME}).scalar():
            raise others
        yield connection
        set_sequences(connection)


def _tables(connection: Connection) -> sa.MetaData:
    found = sa.MetaData()
    found.reflect(connection, only=lambda name, _: name.startswith("contextgap_"))
    for table in found.tables.values():
        for column in table.columns:
            column.type, column.server_default = column.type.as_generic(), None
    return found


def _copy(source: Connection, target: Connection) -> None:
    current = version_of(source) == VERSION
    for table in _tables(source).sorted_tables:
        made: Table = METADATA.tables.get(table.name, table) if current else table
        made.create(target, checkfirst=True)
        if made is SCHEMA and target.execute(select(SCHEMA)).first() is not None:
            continue
        rows = source.execute(
            select(table).order_by(*table.primary_key), execution_options={"yield_per": _AT_ONCE}
        )
        for part in rows.mappings().partitions():
            target.execute(insert(made), [dict(row) for row in part])


def verify(database: Database) -> Iterator[str]:
    prepare(database)
    for name, (number, _) in campaign_names(database).items():
        with database.reading() as connection:
            store = Store(database, number)
            for problem in _verify(store, connection):
                yield f"campaign {name!r}: {problem}"


def _verify(store: Store, connection: Connection) -> Iterator[str]:
    rows: dict[int, dict[str, Any]] = {}
    policies: dict[int, str] = {}
    last = (0, NOTHING)
    for each in store.events(connection):
        if each.number != last[0] + 1:
            yield f"event {each.number} comes after event {last[0]}: events are missing"
        elif not each.follows(last[1]):
            yield f"event {each.number} was altered, or one before it: its hash is wrong"
        last = each.number, each.hash
        try:
            follow(rows, each)
            if each.kind == "freeze":
                policies[each.number] = each.result["sha256"]
        except (KeyError, TypeError, ValueError) as error:
            yield f"event {each.number} makes no sense: {type(error).__name__} {error}"
    if not last[0]:
        yield "it has no events"
    yield from _verify_trials(store, connection, rows)
    yield from _verify_files(store, connection, policies)


def follow(rows: dict[int, dict[str, Any]], event: Event) -> None:
    if event.kind in ("ask", "record"):
        rows.update({row["id"]: row for row in event.trial_rows})
    elif change := event.trial_change:
        rows[event.request["trial"]] |= change


def _verify_trials(
    store: Store, connection: Connection, rows: dict[int, dict[str, Any]]
) -> Iterator[str]:
    statement = select(TRIALS).where(TRIALS.c.campaign == store.campaign).order_by(TRIALS.c.id)
    there = connection.execute(statement, execution_options={"yield_per": _AT_ONCE})
    for row in there.mappings():
        wanted = rows.pop(row["id"], None)
        if wanted is None:
            yield f"trial {row['id']} is in the table of trials, and not in the log"
            continue
        whole = {**wanted, "campaign": store.campaign}
        differ = [name for name in wanted if wanted[name] != row[name]]
        if differ:
            told = ", ".join(f"{name} is {row[name]!r}, not {wanted[name]!r}" for name in differ)
            yield f"trial {row['id']} is not as in the log: {told}"
        elif row["sha256"] != row_hash(whole):
            yield f"the hash of trial {row['id']} was altered"
    for number in rows:
        yield f"trial {number} is missing in the table of trials"


def _verify_files(store: Store, connection: Connection, policies: dict[int, str]) -> Iterator[str]:
    statement = select(FILES.c.kind, FILES.c.number).where(FILES.c.campaign == store.campaign)
    found = {tuple(row) for row in connection.execute(statement.distinct())}
    for kind, number in sorted(found):
        try:
            content = store.read_file(connection, kind, number).read()
        except (AlteredError, SQLAlchemyError):
            yield f"the {kind} of event {number} was altered, or cannot be read"
            continue
        if kind == "policy" and policies.get(number) != hashlib.sha256(content).hexdigest():
            yield f"the policy of event {number} is not the one that was frozen"
    for number in sorted(set(policies) - {n for kind, n in found if kind == "policy"}):
        yield f"the policy of event {number} is missing"
