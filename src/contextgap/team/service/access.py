"""Who may do what, and how much: settings, tokens, quotas, and requests without a token.

The secret of a token is 256 random bits, shown once. The database keeps its SHA-256: from that
nobody can guess the secret, because there are too many to try. Slow hashes are for passwords, which
are few enough; here they would only make every request slow.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import os
import secrets
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from starlette.types import Scope

from contextgap.base import checks
from contextgap.team.campaign import ConflictError, NotFoundError, codec
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.methods import check_name

SCOPES = ("read", "explore", "freeze", "admin")  # what a token may be good for
REFRESH = 5.0  # seconds after which a token that was revoked is refused at the latest
_TOKENS = ("required", "none")
_UNKNOWN = 0.2  # seconds between reads of the table for the sake of unknown tokens
_READING = ("GET", "HEAD", "OPTIONS")
_CLIENTS = 10_000  # remembered at once

_METADATA = sa.MetaData()
TOKENS = sa.Table(
    "contextgap_tokens",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("scopes", sa.String(200), nullable=False),  # separated by commas
    sa.Column("campaign", sa.String(200)),  # None for all
    sa.Column("created", sa.String(32), nullable=False),
    sa.Column("until", sa.String(32)),
    sa.Column("revoked", sa.String(32)),
)


@dataclass(frozen=True)
class Settings:
    """How a service listens, whom it trusts, and how much it takes.

    .. versionadded:: 0.2

    Parameters
    ----------
    host, port
        Where it listens.
    tokens
        "required", or "none": everybody who reaches the service may do everything.
    allow_hosts
        Names by which requests may call the service besides this machine's own, where no tokens
        are needed.
    body
        The largest request, in bytes.
    rows, columns
        The most contexts in one request, and the most cells of one context.
    arms
        The most arms of a campaign.
    connections
        Connections open at once; beyond that, the one that is idle longest is closed.
    deadline
        Seconds that a request may take; tuning may take 20 times as long.
    rate
        Requests per second that a token, or an address without one, may go on sending.
    burst
        Requests that it may send at once.
    row_rate
        Contexts per second that a token may go on sending; 100 times as many at once.
    campaign_rate
        Campaigns that a token may begin per day, and at once.
    waiting
        Requests that may wait for one campaign; others are asked to come back.
    campaigns
        Campaigns kept open at once; those not used for longest are closed.
    policies
        Frozen policies kept in memory at once.
    log
        "json" or "text".
    grace
        Seconds after which a service that is stopped has ended, whatever it computes.

    Examples
    --------
    >>> from contextgap.service import Settings
    >>> Settings(port=9000).deadline
    30.0
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: str = "required"
    allow_hosts: tuple[str, ...] = ()
    body: int = 8_000_000
    rows: int = 100_000
    columns: int = 1000
    arms: int = 1000
    connections: int = 1000
    deadline: float = 30.0
    rate: float = 5000.0
    burst: int = 10_000
    row_rate: float = 10_000.0
    campaign_rate: float = 100.0
    waiting: int = 100
    campaigns: int = 32
    policies: int = 128
    log: str = "json"
    grace: float = 30.0

    def __post_init__(self) -> None:
        if self.tokens == "auto":
            warnings.warn(
                "tokens='auto' is deprecated: tokens are now required, on this machine too; "
                "'none' (--no-tokens) does without",
                DeprecationWarning,
                stacklevel=3,
            )
            object.__setattr__(self, "tokens", "required")
        if self.tokens not in _TOKENS:
            raise ValueError(f"tokens must be one of {_TOKENS}, got {self.tokens!r}")
        if self.log not in ("json", "text"):
            raise ValueError(f"log must be json or text, got {self.log!r}")
        for name, value in vars(self).items():
            if isinstance(value, int | float) and name != "port" and not value > 0:
                raise ValueError(f"{name} must be positive, got {value!r}")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def needs_tokens(self) -> bool:
        """Whether every request needs a token."""
        return self.tokens == "required"


@lru_cache(256)
def is_loopback(host: str) -> bool:
    name = host.removeprefix("[").removesuffix("]")
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class RefusedError(Exception):
    def __init__(
        self,
        status: int,
        detail: str,
        *,
        error: str | None = None,  # what a client is to raise; None for one of its own
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error = status, detail, error
        self.headers = headers or {}


def busy(detail: str, status: int = 503, seconds: float = 1.0) -> RefusedError:
    return RefusedError(status, detail, headers={"Retry-After": f"{max(1, round(seconds))}"})


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
        return self.revoked is None and (self.until is None or codec.now() < self.until)


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    database: Database,
    name: str,
    scopes: Sequence[str],
    campaign: str | None = None,
    days: float | None = None,
) -> str:
    check_name("name", name)
    wanted = [scope for scope in SCOPES if scope in scopes]
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not wanted:
        raise ValueError(f"scopes must be among {list(SCOPES)}, got {list(scopes)}")
    secret = f"cgap_{secrets.token_urlsafe(32)}"
    until = None
    if days is not None:
        until = codec.after(86_400 * checks.positive("days", days, "90 is usual"))
    row = {"name": name, "hash": hash_of(secret), "scopes": ",".join(wanted), "until": until}
    row |= {"campaign": campaign, "created": codec.now()}
    with database.writing() as connection:
        _METADATA.create_all(connection)
        try:
            connection.execute(sa.insert(TOKENS), row)
        except IntegrityError:
            raise ConflictError(f"there is a token {name!r} already; choose another name") from None
    return secret


def create_first_token(database: str | os.PathLike[str]) -> str | None:
    """Make a token that may do everything, if there is no good one; return its secret, or None."""
    where = Database(database)
    try:
        if any(token.good for token in read_tokens(where).values()):
            return None
        return create_token(where, f"made at {codec.now()}", SCOPES)
    except (SQLAlchemyError, OSError, ConflictError):
        return None
    finally:
        where.close()


def revoke_token(database: Database, name: str) -> None:
    with database.writing() as connection:
        known = [row["name"] for row in _rows(connection)]
        if name not in known:
            raise NotFoundError(f"there is no token {name!r}; there are {known}")
        mine = (TOKENS.c.name == name) & TOKENS.c.revoked.is_(None)
        connection.execute(sa.update(TOKENS).where(mine).values(revoked=codec.now()))


def read_tokens(database: Database) -> dict[str, Token]:
    if not database.exists:
        return {}
    with database.reading() as connection:
        rows = _rows(connection)
    found = {}
    for row in rows:
        rest = {name: row[name] for name in ("name", "campaign", "created", "until", "revoked")}
        found[row["hash"]] = Token(scopes=tuple(row["scopes"].split(",")), **rest)
    return found


def _rows(connection: sa.Connection) -> Sequence[sa.RowMapping]:
    if not connection.dialect.has_table(connection, TOKENS.name):
        return []
    return connection.execute(sa.select(TOKENS).order_by(TOKENS.c.id)).mappings().all()


@dataclass
class Caller:
    """Who sends a request, and how: ``headers`` have names in lower case."""

    method: str
    address: str
    headers: dict[str, str]
    token: Token | None = None

    @classmethod
    def of(cls, scope: Scope) -> Caller:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        return cls(scope["method"], (scope.get("client") or ("unknown",))[0], headers)

    @property
    def name(self) -> str:
        return self.address if self.token is None else f"token {self.token.name}"

    def may_see(self, campaign: str) -> bool:
        return self.token is None or self.token.campaign in (None, campaign)


class Guard:
    """Checks who sends a request. Tokens are kept in memory, and read anew now and then."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._tokens: dict[str, Token] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "tokens")  # of its own: others may be busy
        self._allowed = {name.lower() for name in settings.allow_hosts}

    async def refresh(self) -> None:
        self._read_at = time.monotonic()
        loop = asyncio.get_running_loop()
        self._tokens = await loop.run_in_executor(self._thread, read_tokens, self._database)

    async def _refresh_after(self, asked: float) -> None:
        """Read the table after some time; requests that come meanwhile share one read."""
        async with self._reading:
            if self._read_at < asked:
                await asyncio.sleep(max(0.0, self._read_at + _UNKNOWN - time.monotonic()))
                await self.refresh()

    def known(self, caller: Caller) -> Token | None:
        kind, _, secret = caller.headers.get("authorization", "").partition(" ")
        found = self._tokens.get(hash_of(secret.strip())) if kind.lower() == "bearer" else None
        return found if found is not None and found.good else None

    async def check(self, caller: Caller, scope: str, campaign: str | None) -> None:
        """Raise unless a caller may do what needs a scope, on a campaign or on none."""
        if "authorization" not in caller.headers:
            if self._settings.needs_tokens:
                raise _unauthorized("a token is needed: Authorization: Bearer ...")
            return
        if caller.token is None:
            await self._refresh_after(time.monotonic())  # it may be new
            caller.token = self.known(caller)
        token = caller.token
        if token is None:
            raise _unauthorized("the token is unknown, revoked or too old")
        if scope not in token.scopes:
            raise RefusedError(
                403, f"this needs the scope {scope}, and the token has {', '.join(token.scopes)}"
            )
        elsewhere = token.campaign is not None and token.campaign != campaign
        if elsewhere and (campaign is not None or caller.method not in _READING):
            raise RefusedError(403, f"the token is for the campaign {token.campaign!r} alone")

    def check_origin(self, caller: Caller) -> None:
        """Raise if a page elsewhere may have made somebody's browser send a request.

        Names that lead to this machine for a moment (DNS rebinding) show in the Host header, and
        pages of others in Origin. Where tokens are needed, no page of others has one.
        """
        if self._settings.needs_tokens:
            return
        host = caller.headers.get("host", "")
        name = _host_name(host)
        # Nobody else can make an address lead here.
        is_address = ":" in name or name.replace(".", "").isdecimal()
        outside = is_address and not self._settings.local
        if not (outside or is_loopback(name) or name in self._allowed):
            raise RefusedError(
                403, f"the Host {host!r} is not known here; --allow-host makes it known"
            )
        origin = caller.headers.get("origin")
        own = origin is None or origin.lower().partition("://")[2] == host.lower()
        if not own and caller.method not in _READING:
            raise RefusedError(403, f"requests from pages of {origin} are refused")


@lru_cache(256)
def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _unauthorized(detail: str) -> RefusedError:
    return RefusedError(401, detail, headers={"WWW-Authenticate": "Bearer"})


class Rates:
    """A bucket for each client: it holds ``burst`` of ``what``, and ``rate`` more per second."""

    def __init__(
        self,
        what: str,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._rate, self._burst, self._clock = what, rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, client: str, count: float = 1.0) -> None:
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(client, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            wanted = min(count, self._burst)  # more than a full bucket is taken from a full one
            enough = left >= wanted
            self._buckets[client] = (left - wanted if enough else left, now)
            if len(self._buckets) > _CLIENTS:
                self._buckets.popitem(last=False)
        if not enough:
            raise busy(f"too many {self._what}; slow down", 429, (wanted - left) / self._rate)
