"""Connections to SQLite files and PostgreSQL servers."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.sql import ClauseElement

from contextgap.team.campaign import values
from contextgap.team.campaign.values import UnavailableError, seconds_left

WAIT = 60.0  # seconds for another process that writes to a file
# Seconds on PostgreSQL: for a lock, for a statement, for an idle holder of a lock.
LOCKED, RUNNING, IDLE = 10.0, 60.0, 15.0
NAME = "contextgap"
_KEPT = 5  # idle connections
_CLOCK = 60.0  # seconds between reads of the server's clock
_NETWORK = re.compile(
    r"nfs4?|cifs|smb3|smbfs|afs|ceph|glusterfs|lustre|beegfs|gpfs"
    r"|fuse\.(sshfs|glusterfs|ceph|s3fs|rclone|gcsfuse)"
)
_MOUNTS = Path("/proc/self/mountinfo")
_UNAVAILABLE = {  # by SQLSTATE or SQLite's code
    "55P03": f"another process held a lock for {LOCKED:g} s",
    "57014": f"the server took longer than {RUNNING:g} s",
    "25P03": f"this process was idle for {IDLE:g} s while others waited for it",
    "25006": "the server takes no writes, as a replica does",
    "53100": "the server's disk is full",
    sqlite3.SQLITE_READONLY: "the file can only be read",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
}


class Database:
    def __init__(self, database: str | os.PathLike[str], connections: int = 15) -> None:
        self.url = _read_url(database)
        self._process = os.getpid()
        self.is_file = self.url.get_backend_name() == "sqlite"
        if self.is_file:
            path = Path(str(self.url.database))
            if path.is_dir():
                raise IsADirectoryError(f"cannot open {path}: it is a folder")
            check_local(path)
            if not path.parent.is_dir():
                raise FileNotFoundError(f"cannot open {path}: there is no folder {path.parent}")
        make = _sqlite if self.is_file else _postgresql
        self._engine = make(self.url, pool_size=_KEPT, max_overflow=connections - _KEPT)
        as_of_one = {} if self.is_file else {"isolation_level": "REPEATABLE READ"}
        self._readers = self._engine.execution_options(**as_of_one)
        self._server_time: tuple[float, datetime] | None = None  # when asked, and the answer
        self.prepared = False  # whether its tables are known to be those of this release
        weakref.finalize(self, _close, self._engine, self._process)

    @property
    def exists(self) -> bool:
        return not self.is_file or Path(str(self.url.database)).is_file()

    @property
    def dialect(self) -> Dialect:
        return self._engine.dialect

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection on which everything is as of one moment."""
        self._leave_to_parent()
        with _unavailable(), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self.connected() as connection, self.writing_on(connection):
            yield connection

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """Yield a connection without a transaction."""
        self._leave_to_parent()
        with _unavailable(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing_on(self, connection: Connection) -> Iterator[None]:
        """Have a transaction on a connection, undone if the block raises."""
        connection.rollback()
        if self.is_file:
            connection.info["begin"] = "BEGIN IMMEDIATE"
        else:
            connection.connection.rollback()  # the driver takes a read for the beginning of one
        with connection.begin():
            yield

    def now(self, connection: Connection) -> str:
        """Return the server's time, which all clients share, or this machine's."""
        if self.is_file:
            return values.now()
        passed = time.monotonic()  # does not jump when somebody sets the clock
        if self._server_time is None or passed - self._server_time[0] > _CLOCK:
            asked_for = text("SELECT clock_timestamp() AT TIME ZONE 'UTC'")
            there = connection.execute(asked_for).scalar_one().replace(tzinfo=UTC)
            self._server_time = passed, there
        asked, found = self._server_time
        return values.as_text(found + timedelta(seconds=passed - asked))

    def close(self) -> None:
        self._engine.dispose()

    def _leave_to_parent(self) -> None:
        if self._process != os.getpid():
            self._engine.dispose(close=False)
            self._process = os.getpid()


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "sqlite_errorcode", 0)
        known = _UNAVAILABLE.get(code if isinstance(code, str) else int(code or 0) & 0xFF)
        if known is None:
            raise
        raise UnavailableError(f"the database cannot be used now: {known}") from error


def opened(database: str | os.PathLike[str] | Database) -> Database:
    return database if isinstance(database, Database) else Database(database)


def _close(engine: Engine, process: int) -> None:
    if process == os.getpid():
        engine.dispose()


def _read_url(database: str | os.PathLike[str]) -> URL:
    if isinstance(database, str) and "://" in database:
        try:
            url = make_url(database)
        except ArgumentError:
            raise ValueError(f"database must be a file or a URL, got {database!r}") from None
    elif isinstance(database, str | os.PathLike):
        url = URL.create("sqlite", database=os.fspath(database))
    else:
        raise TypeError(f"database must be a file or a URL, got {database!r}")
    kind = url.get_backend_name()
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise ValueError(f"database must be a SQLite file or PostgreSQL, got {kind!r}")
    if url.database in (None, "", ":memory:") or str(url.database).startswith("file:"):
        raise ValueError(f"database must be a file, which outlives the process, got {database!r}")
    return url


def _postgresql(url: URL, **pool: Any) -> Engine:
    asked = {"application_name": NAME}
    engine = create_engine(url, connect_args=asked, pool_pre_ping=True, **pool)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # Who holds a lock and stops must not stop others; see Store.locked for IDLE.
        limits = {"lock_timeout": LOCKED, "statement_timeout": RUNNING}
        for name, seconds in limits.items():
            connection.execute(f"SET {name} = {int(1000 * seconds)}")
        connection.commit()

    return engine


def _sqlite(url: URL, **pool: Any) -> Engine:
    # FULL: what was committed survives a power cut; NORMAL is faster, and survives a kill.
    asked = str(url.query.get("synchronous", "full")).lower()
    if asked not in ("full", "normal") or set(url.query) - {"synchronous"}:
        raise ValueError(f"database may have ?synchronous=normal and nothing else, got {url!r}")
    url = url.set(query={})
    how = {"timeout": WAIT, "check_same_thread": False}
    engine = create_engine(url, connect_args=how, **pool)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # they begin below
        mode = _journal_mode(connection, url.database)
        if mode != "wal":
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise OSError(
                f"{url.database} cannot be used by several processes: SQLite has no write-ahead "
                "log there; use a file on a local disk"
            )
        connection.execute(f"PRAGMA synchronous={asked}")
        connection.execute("PRAGMA foreign_keys=ON")
        record.info["file"] = _identity(url.database)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.info["file"] != _identity(url.database):
            # What is written to a file without a name is lost.
            raise OSError(f"{url.database} was removed or replaced while it was in use")
        how = connection.info.pop("begin", "BEGIN")
        if how == "BEGIN IMMEDIATE":
            _begin_writing(connection.connection.driver_connection)
        else:
            connection.exec_driver_sql(how)

    return engine


def _identity(path: str | None) -> tuple[int, int] | None:
    try:
        found = os.stat(str(path))
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _journal_mode(connection: Any, path: str | None) -> str:
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        connection.close()
        raise ValueError(
            f"database must be a SQLite file, or a name for a new one; {path} is not a database"
        ) from None


def _begin_writing(connection: Any) -> None:
    # SQLite would sleep up to a tenth of a second between attempts.
    patience = seconds_left(WAIT)
    deadline = time.monotonic() + patience
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"the database was written to by another process for {patience:.3g} s"
                    ) from None
            time.sleep(random.uniform(0.0005, 0.003))
    finally:
        connection.execute(f"PRAGMA busy_timeout={int(1000 * WAIT)}")


def check_local(path: Path) -> None:
    kind = "a Windows share" if str(path).startswith("\\\\") else filesystem(path)
    if kind == "a Windows share" or _NETWORK.fullmatch(kind or ""):
        raise ValueError(
            f"database must be on a local disk, and {path} is on a network disk ({kind}), where "
            "SQLite loses data when several processes write; use a local file, or PostgreSQL for "
            "several machines"
        )


def filesystem(path: Path) -> str | None:
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    target = path.resolve()
    best, kind = -1, None
    for line in mounts:
        left, _, right = line.partition(" - ")
        mounted = Path(left.split()[4].replace("\\040", " "))
        # The last mount at a place covers the others.
        if (target == mounted or mounted in target.parents) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), right.split()[0]
    return kind


class Prepared:
    """A statement for connections with a transaction."""

    def __init__(
        self, statement: ClauseElement, dialect: Dialect, columns: Iterable[str] | None = None
    ) -> None:
        names = None if columns is None else list(columns)
        compiled: Any = statement.compile(dialect=dialect, column_keys=names)
        self._text: str = str(compiled)
        self._fixed = {name: v for name, v in compiled.params.items() if v is not None}
        self._order: Sequence[str] | None = compiled.positiontup
        self._dialect = dialect
        self._errors: Any = dialect.loaded_dbapi.Error

    def run(self, connection: Connection, **values: Any) -> list[Any]:
        return self._execute(connection, values)

    def run_all(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        self._execute(connection, *rows)

    def _arguments(self, values: Mapping[str, Any]) -> Any:
        given = {**self._fixed, **values} if self._fixed else values
        return given if self._order is None else [given[name] for name in self._order]

    def _execute(self, connection: Connection, *rows: Mapping[str, Any]) -> list[Any]:
        raw = connection.connection
        cursor = raw.cursor()
        try:
            if len(rows) == 1:
                cursor.execute(self._text, self._arguments(rows[0]))
            else:
                cursor.executemany(self._text, [self._arguments(row) for row in rows])
            return list(cursor.fetchall()) if cursor.description else []
        except self._errors as error:
            lost = self._dialect.is_disconnect(error, raw.driver_connection, cursor)
            if lost:
                connection.invalidate(error)
            said: Any = (self._text, rows, error, self._errors)
            how: Any = {"connection_invalidated": lost, "dialect": self._dialect}
            raise DBAPIError.instance(*said, **how) from error
        finally:
            cursor.close()
