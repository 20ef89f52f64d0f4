"""The tables of the database. Events are the truth; all others can be made again from them."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()


def _campaign() -> Column[int]:
    return Column("campaign", Integer, ForeignKey("contextgap_campaigns.id"), primary_key=True)


CAMPAIGNS = Table(
    "contextgap_campaigns",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("format", Integer, nullable=False),  # of the log and the tables
)

EVENTS = Table(
    "contextgap_events",
    METADATA,
    _campaign(),
    Column("number", Integer, primary_key=True),
    Column("at", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", Text),
    Column("request", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("campaign", "key", name="contextgap_events_keys"),
    Index("contextgap_events_kinds", "campaign", "kind", "number"),
)

TRIALS = Table(
    "contextgap_trials",
    METADATA,
    _campaign(),
    Column("id", Integer, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("arm", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("eligible", Text),
    Column("reward", Double),
    Column("asked", String(32)),
    Column("until", String(32)),  # when the lease runs out
    Column("told", String(32)),
    Column("told_by", Integer),  # the number of the event
    Column("why", Text),
    Index("contextgap_trials_states", "campaign", "state", "until"),
)

# Snapshots of learners and frozen policies, in parts that every database takes.
FILES = Table(
    "contextgap_files",
    METADATA,
    _campaign(),
    Column("kind", String(16), primary_key=True),
    Column("number", Integer, primary_key=True),  # of the event after which it was made
    Column("part", Integer, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)
