"""Tokens: secrets that let a program do some things for some time.

A secret is 256 random bits, shown once. The database keeps its SHA-256: from that nobody can guess
the secret, because there are too many to try. Slow hashes are for passwords, which are few enough;
here they would only make every request slow.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from contextgap.base import checks
from contextgap.team.campaign import ConflictError, NotFoundError, calls
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.trials import check_name

SCOPES = ("read", "explore", "freeze", "admin")
"""What a token may be good for."""

_METADATA = MetaData()
TOKENS = Table(
    "contextgap_tokens",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("scopes", String(200), nullable=False),  # separated by commas
    Column("campaign", String(200)),  # None for all
    Column("created", String(32), nullable=False),
    Column("until", String(32)),
    Column("revoked", String(32)),
)


@dataclass(frozen=True)
class Token:
    """What is known of a token; its secret is not."""

    name: str  # who or what uses it
    scopes: tuple[str, ...]
    campaign: str | None  # the only one that it is good for; None for all
    created: str
    until: str | None  # None for ever
    revoked: str | None

    @property
    def good(self) -> bool:
        """Whether it is still good for something."""
        return self.revoked is None and (self.until is None or calls.now() < self.until)


def hash_of(secret: str) -> str:
    """Return what the database keeps of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    database: Database,
    name: str,
    scopes: Sequence[str],
    campaign: str | None = None,
    days: float | None = None,
) -> str:
    """Make a token, by default for all campaigns and for ever; return its secret, this once."""
    check_name("name", name)
    wanted = [scope for scope in SCOPES if scope in scopes]
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not wanted:
        raise ValueError(f"scopes must be among {list(SCOPES)}, got {list(scopes)}")
    now, until = datetime.now(UTC), None
    if days is not None:
        until = calls.after(86_400 * checks.positive("days", days, "90 is usual"))
    secret = f"cgap_{secrets.token_urlsafe(32)}"
    row = {"name": name, "hash": hash_of(secret), "scopes": ",".join(wanted), "until": until}
    row |= {"campaign": campaign, "created": calls.as_text(now)}
    with database.writing() as connection:
        _METADATA.create_all(connection)
        try:
            connection.execute(insert(TOKENS), row)
        except IntegrityError:
            raise ConflictError(f"there is a token {name!r} already; choose another name") from None
    return secret


def create_first_token(database: str | os.PathLike[str]) -> str | None:
    """Make a token that may do everything, if there is no good one; return its secret, or None."""
    where = Database(database)
    try:
        if any(token.good for token in read_tokens(where).values()):
            return None
        return create_token(where, f"made at {calls.now()}", SCOPES)
    except (SQLAlchemyError, OSError, ConflictError):
        return None
    finally:
        where.close()


def revoke_token(database: Database, name: str) -> None:
    """Make a token good for nothing."""
    with database.writing() as connection:
        known: Sequence[str] = []
        if _there(connection):
            known = connection.scalars(select(TOKENS.c.name)).all()
        if name not in known:
            raise NotFoundError(f"there is no token {name!r}; there are {known}")
        mine = (TOKENS.c.name == name) & TOKENS.c.revoked.is_(None)
        connection.execute(update(TOKENS).where(mine).values(revoked=calls.now()))


def read_tokens(database: Database) -> dict[str, Token]:
    """Return all tokens by the hashes of their secrets."""
    if not database.exists:
        return {}
    with database.reading() as connection:
        if not _there(connection):
            return {}
        rows = connection.execute(select(TOKENS).order_by(TOKENS.c.id)).mappings().all()
    found = {}
    for row in rows:
        rest = {name: row[name] for name in ("name", "campaign", "created", "until", "revoked")}
        found[row["hash"]] = Token(scopes=tuple(row["scopes"].split(",")), **rest)
    return found


def _there(connection: Connection) -> bool:
    return connection.dialect.has_table(connection, TOKENS.name)
