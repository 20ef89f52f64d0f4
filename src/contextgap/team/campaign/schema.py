"""The tables of a database: made, upgraded from earlier releases, or refused.

Events are the truth; all other tables can be made again from them.

Version 1, of release 0.2, had no table that says so, no callers, and no hashes but those of events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Table, insert, select, text, update

from contextgap.team.campaign import calls
from contextgap.team.campaign.codec import NOTHING, file_hash, row_hash
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.values import UnavailableError

VERSION = 2
"""The version that this release writes."""

_MAKING_TABLES = 0x63676170  # any number, the same in all processes
_PAGE = 1000  # rows copied at once

METADATA = sa.MetaData()
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # whose integers have 64 bits
LARGEST = 2**63 - 1
"""The largest number that such a column holds."""


def _campaign() -> Column[int]:
    return Column("campaign", NUMBER, sa.ForeignKey("contextgap_campaigns.id"), primary_key=True)


SCHEMA = Table(
    "contextgap_schema",
    METADATA,
    Column("version", sa.Integer, primary_key=True, autoincrement=False),
    Column("checked", sa.String(32)),  # when it was last seen that it can be written to
)

CAMPAIGNS = Table(
    "contextgap_campaigns",
    METADATA,
    Column("id", NUMBER, primary_key=True),
    Column("name", sa.String(200), nullable=False, unique=True),
    Column("format", sa.Integer, nullable=False),  # of the log
    Column("summary", sa.Text),  # how it stands, for lists of campaigns
)

# An event names the one before it by number and hash, so that no event can be missing between.
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
    Column("by", sa.Text),  # who caused the last event about it
    Column("sha256", sa.String(64), nullable=False),  # of the row
    sa.Index("contextgap_trials_states", "campaign", "state", "until"),
)

# Snapshots of learners and frozen policies, in parts that every database takes.
FILES = Table(
    "contextgap_files",
    METADATA,
    _campaign(),
    Column("kind", sa.String(16), primary_key=True),
    Column("number", NUMBER, primary_key=True),  # of the event after which it was made
    Column("part", sa.Integer, primary_key=True),
    Column("bytes", sa.LargeBinary, nullable=False),
    Column("sha256", sa.String(64)),  # of the first part: of the event's hash and the whole file
)

_OLD = (CAMPAIGNS, EVENTS, TRIALS, FILES)


def version_of(connection: Connection) -> int:
    """Return the version of the tables in a database; 0 if there are none."""
    if connection.dialect.has_table(connection, SCHEMA.name):
        return int(connection.execute(select(sa.func.max(SCHEMA.c.version))).scalar() or 0)
    return 1 if connection.dialect.has_table(connection, CAMPAIGNS.name) else 0


def check_version(connection: Connection) -> int:
    """Return the version of the tables; raise if this release cannot use them."""
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
    """Raise unless a database can be read and written by this release: for ``/readyz``."""
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
        connection.execute(update(SCHEMA).values(checked=calls.now()))


def make_tables(database: Database, connection: Connection) -> bool:
    """Make tables, or upgrade them; return whether there was something to upgrade."""
    if not database.is_file:  # processes that do so at once do it one after the other
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
    """Make the tables anew and copy all rows; the transaction is undone if that fails."""

    def run(*statements: str) -> None:
        for statement in statements:
            connection.execute(text(statement))

    server = connection.dialect.name == "postgresql"
    if server:
        run("ALTER TABLE contextgap_events DROP CONSTRAINT contextgap_events_keys")
    run("DROP INDEX contextgap_events_kinds", "DROP INDEX contextgap_trials_states")
    run(*(f"ALTER TABLE {table.name} RENAME TO old_{table.name}" for table in _OLD))
    METADATA.create_all(connection)
    run(
        "INSERT INTO contextgap_campaigns (id, name, format) "
        "SELECT id, name, 2 FROM old_contextgap_campaigns"
    )
    if server:
        sequence = "pg_get_serial_sequence('contextgap_campaigns', 'id')"
        run(f"SELECT setval({sequence}, (SELECT max(id) FROM contextgap_campaigns))")
    before: dict[int, str] = {}
    for rows in _pages(connection, "events", "number"):
        for row in rows:
            last = before.get(row["campaign"], NOTHING)
            row |= {"before": last or None, "by": None}
            row["previous"] = row["number"] - 1 if last else None
            before[row["campaign"]] = row["hash"]
        connection.execute(insert(EVENTS), rows)
    for rows in _pages(connection, "trials", "id"):
        for row in rows:
            row["by"] = None
            row["sha256"] = row_hash(row)
        connection.execute(insert(TRIALS), rows)
    run(
        "INSERT INTO contextgap_files (campaign, kind, number, part, bytes) "
        "SELECT campaign, kind, number, part, bytes FROM old_contextgap_files"
    )
    _hash_files(connection)
    run(*(f"DROP TABLE old_{table.name}" for table in reversed(_OLD)))


def _pages(connection: Connection, name: str, number: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a table of version 1 in order, some at once."""
    statement = text(f"SELECT * FROM old_contextgap_{name} ORDER BY campaign, {number}")
    rows = connection.execute(statement, execution_options={"yield_per": _PAGE}).mappings()
    for page in rows.partitions():
        yield [dict(row) for row in page]


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
