"""The campaigns in a database: beginning them, finding them, their names."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from contextgap.base import files
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.errors import ConflictError, NotFoundError
from contextgap.team.campaign.progress import decode_goal, recorded, summary
from contextgap.team.campaign.schema import VERSION, check_version, make_tables
from contextgap.team.campaign.store import Store
from contextgap.team.campaign.tables import CAMPAIGNS

_DRAWN = ("random_state", "policy_seed")  # unless a seed was given
FORMAT = 2
"""The format of the log that this release writes."""


def prepare(database: Database) -> None:
    """Upgrade the tables of an earlier release; raise if this release cannot use them."""
    if database.prepared or not database.exists:
        return
    with database.reading() as connection:
        version = check_version(connection)
    if version:
        if version < VERSION:
            upgrade(database)
        database.prepared = True


def upgrade(database: Database) -> bool:
    """Upgrade the tables of an earlier release; return whether there was something to upgrade."""
    with database.writing() as connection:
        if not make_tables(database, connection):
            return False
        for campaign in connection.execute(select(CAMPAIGNS.c.id)).scalars().all():
            store = Store(database, campaign)
            store.summarize(connection, _summary(store, connection))
    return True


def _summary(store: Store, connection: Connection) -> dict[str, Any]:
    """Return how a campaign stands in a few words, from its log."""
    number, _ = store.last_event(connection)
    (first,), (last,) = store.events(connection, 0, 1), store.events(connection, number - 1, number)
    steps = recorded(store, connection)
    found = summary(steps[-1], steps, decode_goal(first.requested["goal"]))
    return {**store.summary(connection), **found, "event": last.number, "at": last.at}


def summaries(database: Database) -> list[dict[str, Any]]:
    """Return in a few words how every campaign stands, reading a row of each."""
    prepare(database)
    if not database.prepared:
        return []
    statement = select(CAMPAIGNS.c.name, CAMPAIGNS.c.summary).order_by(CAMPAIGNS.c.id)
    with database.reading() as connection:
        found = connection.execute(statement).all()
    return [{"name": name, **json.loads(summary)} for name, summary in found]


def new_store(database: Database, connection: Connection, name: str) -> Store:
    """Add a campaign without events."""
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
    """Return the part of a campaign that exists."""
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
    """Return whether a campaign was created by this very request; raise if by another with its key.

    Learners without a seed draw one, so that two requests with the same settings differ there.
    """
    if name not in campaign_names(database):
        return False
    store = find_store(database, name)
    with store.reading() as connection:
        (first,) = store.events(connection, 0, 1)
    if first.key != key:
        return False
    if _settings(first.requested) != _settings(request):
        raise ConflictError(f"key {key!r} was used before, for another campaign {name!r}")
    return True


def _settings(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a campaign was created with, but for the seed."""
    header, _ = files.read(io.BytesIO(base64.b64decode(request["learner"])), "learner")
    given = {part: request[part] for part in ("arms", "goal", "lease")}
    return {**header, **given, **dict.fromkeys(_DRAWN)}


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
