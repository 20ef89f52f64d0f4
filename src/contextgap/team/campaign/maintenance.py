"""What operators of a database need: its status, backups, and whether somebody altered it.

A backup is a SQLite file with the tables of a database of either kind, as of one moment; the
service may run meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    MetaData,
    Table,
    create_engine,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from contextgap.team.campaign.codec import NOTHING, Event, row_hash
from contextgap.team.campaign.database import NAME, Database
from contextgap.team.campaign.store import (
    CAMPAIGNS,
    EVENTS,
    FILES,
    METADATA,
    SCHEMA,
    TRIALS,
    VERSION,
    Store,
    campaign_names,
    check_database,
    make_tables,
    prepare,
    set_sequences,
    version_of,
)
from contextgap.team.campaign.store import upgrade as upgrade
from contextgap.team.campaign.values import AlteredError, UnavailableError

_AT_ONCE = 200  # rows


def database_status(database: Database) -> dict[str, Any]:
    """Return what a database holds, and whether it can be used; nothing is upgraded."""
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
    """Write everything in a database to a new file, as of now; others may go on meanwhile."""
    if path.exists():
        raise FileExistsError(f"cannot write {path}: there is such a file already")
    if not database.exists:
        raise FileNotFoundError(f"there is no database {database.url!r}")
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        target = create_engine(URL.create("sqlite", database=str(unfinished)))
        with database.reading() as source, target.begin() as connection:
            _copy(source, connection)
        target.dispose()
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def restore(database: Database, path: Path) -> None:
    """Replace everything in a database by a backup; raise if others are connected."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "backup.db"  # it may have to be upgraded
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
    """Yield a connection for a transaction that nobody else is connected to the database for."""
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
                    own.execute("PRAGMA journal_mode=DELETE")  # which needs the file for itself
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


def _tables(connection: Connection) -> MetaData:
    """Return the tables of this library in a database, of whatever version they are."""
    found = MetaData()
    found.reflect(connection, only=lambda name, _: name.startswith("contextgap_"))
    for table in found.tables.values():
        for column in table.columns:
            column.type, column.server_default = column.type.as_generic(), None
    return found


def _copy(source: Connection, target: Connection) -> None:
    """Copy all rows, making the tables that are missing."""
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
    """Check hashes, trials against logs, snapshots and policies; yield what is not as written."""
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
    """Make of the table of trials what an event makes of it."""
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
