"""The tables of the database. Events are the truth; all others can be made again from them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from contextgap.team.campaign.payloads import as_json

METADATA = MetaData()
NUMBER = BigInteger().with_variant(Integer, "sqlite")  # whose integers have 64 bits
LARGEST = 2**63 - 1
"""The largest number that such a column holds."""


def _campaign() -> Column[int]:
    return Column("campaign", NUMBER, ForeignKey("contextgap_campaigns.id"), primary_key=True)


SCHEMA = Table(
    "contextgap_schema",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("checked", String(32)),  # when it was last seen that it can be written to
)

CAMPAIGNS = Table(
    "contextgap_campaigns",
    METADATA,
    Column("id", NUMBER, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("format", Integer, nullable=False),  # of the log
    Column("summary", Text),  # how it stands, for lists of campaigns
)

# An event names the one before it by number and hash, so that no event can be missing between.
EVENTS = Table(
    "contextgap_events",
    METADATA,
    _campaign(),
    Column("number", NUMBER, primary_key=True),
    Column("at", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", Text),
    Column("request", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("by", Text),
    Column("previous", NUMBER),
    Column("before", String(64)),
    UniqueConstraint("campaign", "key", name="contextgap_events_keys"),
    UniqueConstraint("campaign", "number", "hash", name="contextgap_events_hashes"),
    ForeignKeyConstraint(
        ["campaign", "previous", "before"],
        ["contextgap_events.campaign", "contextgap_events.number", "contextgap_events.hash"],
        name="contextgap_events_follow",
    ),
    CheckConstraint(
        "number = 1 OR (previous = number - 1 AND before IS NOT NULL)",
        name="contextgap_events_order",
    ),
    Index("contextgap_events_kinds", "campaign", "kind", "number"),
)

TRIALS = Table(
    "contextgap_trials",
    METADATA,
    _campaign(),
    Column("id", NUMBER, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("arm", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("eligible", Text),
    Column("reward", Double),
    Column("asked", String(32)),
    Column("until", String(32)),  # when the lease runs out
    Column("told", String(32)),
    Column("told_by", NUMBER),  # the number of the event
    Column("why", Text),
    Column("by", Text),  # who caused the last event about it
    Column("sha256", String(64), nullable=False),  # of the row
    Index("contextgap_trials_states", "campaign", "state", "until"),
)

# Snapshots of learners and frozen policies, in parts that every database takes.
FILES = Table(
    "contextgap_files",
    METADATA,
    _campaign(),
    Column("kind", String(16), primary_key=True),
    Column("number", NUMBER, primary_key=True),  # of the event after which it was made
    Column("part", Integer, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
    Column("sha256", String(64)),  # of the first part: of the event's hash and the whole file
)

_OF_ROW = [column.name for column in TRIALS.columns if column.name not in ("reward", "sha256")]


def row_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of a row of the table of trials."""
    reward = None if row["reward"] is None else row["reward"] + 0.0  # SQLite knows no -0.0
    values = as_json([*(row[name] for name in _OF_ROW), reward])
    return hashlib.sha256(values.encode()).hexdigest()


def file_hash(log: str, *parts: bytes) -> str:
    """Return the hash of a file in parts that was made when the log had a hash."""
    found = hashlib.sha256(log.encode())
    for part in parts:
        found.update(part)
    return found.hexdigest()
