"""Requests: who may send what, and how much; how they are read and routed; errors as answers.

The secret of a token is 256 random bits, shown once. The database keeps its SHA-256: nobody can try
so many secrets, so a slow hash is not needed. What a route needs is its ``security`` in the OpenAPI
document; one that says nothing cannot be made. Errors are problem documents (RFC 9457).
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import ipaddress
import json
import os
import secrets
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from contextgap.base import checks
from contextgap.team.campaign import (
    AlteredError,
    ConflictError,
    DeadlineError,
    NotFoundError,
    UnavailableError,
    values,
)
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.methods import check_name
from contextgap.team.campaign.store import LARGEST
from contextgap.team.campaign.values import as_json, speak_for

SCOPES = ("read", "explore", "freeze", "admin")  # of tokens
REFRESH = 5.0  # seconds until a revoked token is refused
_TOKENS = ("required", "none")
_UNKNOWN = 0.2  # seconds between reads of the table for unknown tokens
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
    sa.Column("campaign", sa.String(200)),
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
        error: str | None = None,  # what clients raise, if not their own
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

    name: str
    scopes: tuple[str, ...]
    campaign: str | None  # None for all
    created: str
    until: str | None
    revoked: str | None

    @property
    def good(self) -> bool:
        return self.revoked is None and (self.until is None or values.now() < self.until)


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
        until = values.after(86_400 * checks.positive("days", days, "90 is usual"))
    row = {"name": name, "hash": hash_of(secret), "scopes": ",".join(wanted), "until": until}
    row |= {"campaign": campaign, "created": values.now()}
    with database.writing() as connection:
        _METADATA.create_all(connection)
        try:
            connection.execute(sa.insert(TOKENS), row)
        except IntegrityError:
            raise ConflictError(f"there is a token {name!r} already; choose another name") from None
    return secret


def create_first_token(database: str | os.PathLike[str]) -> str | None:
    """Make a token that may do everything, if none is good; return its secret."""
    where = Database(database)
    try:
        if any(token.good for token in read_tokens(where).values()):
            return None
        return create_token(where, f"made at {values.now()}", SCOPES)
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
        connection.execute(sa.update(TOKENS).where(mine).values(revoked=values.now()))


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
    """Who sends a request; ``headers`` have names in lower case."""

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
    """Checks who sends a request, with tokens in memory that are read anew now and then."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._tokens: dict[str, Token] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "tokens")  # others may be busy
        self._allowed = {name.lower() for name in settings.allow_hosts}

    async def refresh(self) -> None:
        self._read_at = time.monotonic()
        loop = asyncio.get_running_loop()
        self._tokens = await loop.run_in_executor(self._thread, read_tokens, self._database)

    async def _refresh_after(self, asked: float) -> None:
        """Read the table after some time, once for all who wait."""
        async with self._reading:
            if self._read_at < asked:
                await asyncio.sleep(max(0.0, self._read_at + _UNKNOWN - time.monotonic()))
                await self.refresh()

    def known(self, caller: Caller) -> Token | None:
        kind, _, secret = caller.headers.get("authorization", "").partition(" ")
        found = self._tokens.get(hash_of(secret.strip())) if kind.lower() == "bearer" else None
        return found if found is not None and found.good else None

    async def check(self, caller: Caller, scope: str, campaign: str | None) -> None:
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

        Names that lead here for a moment (DNS rebinding) show in the Host header, and foreign
        pages in Origin. No foreign page has a token.
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
            wanted = min(count, self._burst)  # more are taken from a full bucket
            enough = left >= wanted
            self._buckets[client] = (left - wanted if enough else left, now)
            if len(self._buckets) > _CLIENTS:
                self._buckets.popitem(last=False)
        if not enough:
            raise busy(f"too many {self._what}; slow down", 429, (wanted - left) / self._rate)


if TYPE_CHECKING:
    from contextgap.team.campaign import Campaign
    from contextgap.team.service.app import Service
    from contextgap.team.service.hosting import Hosting

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
SLASH = "\x1f"  # stands for a slash in a name; no name can have it
CampaignName = Annotated[str, Path(description="The campaign's name.")]
PolicyName = Annotated[str, Path(description="The policy's name.")]
TrialNumber = Annotated[int, Path(description="The trial's number.", ge=1, le=LARGEST)]

_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "error": {"type": "string", "description": "The exception that Python code would get."},
    },
}
UNKNOWN_FIELD = "unknown_field"
_SAID = {  # in the OpenAPI document, of each status
    400: "The body is not JSON.",
    401: "A token is needed, or the one given is not valid.",
    403: "The token is not good for this, or the request comes from a foreign page.",
    404: "There is no such campaign, trial or policy.",
    409: "The request contradicts what happened before.",
    413: "The request is too large.",
    422: "A value is wrong; the message says which.",
    429: "Too many requests; Retry-After says when to come back.",
    503: "The database is away, or too many requests wait; Retry-After says when to come back.",
}
_OF_FRAMEWORK = {404: "there is no such path", 405: "this path does not take that method"}
_NOT_READ = object()
_SMALL = 16_384  # bytes that are read at once, which a thread would not make faster
# One: decoding lets no other thread run.
_THREAD = ThreadPoolExecutor(1, "reading bodies")


class StrictRequest(Request):
    """A request whose body is read strictly."""

    content: Any = _NOT_READ

    @property
    def service(self) -> Service:
        found: Service = self.scope["contextgap.service"]
        return found

    @property
    def hosting(self) -> Hosting:
        return self.service.hosting

    @property
    def campaign(self) -> str:
        return str(self.path_params["campaign"])

    @property
    def caller(self) -> Caller:
        found: Caller = self.scope["contextgap.caller"]
        return found

    def allow_time(self, times: float | None) -> None:
        """Let the request take ``times`` as long as others; None for ever."""
        limit: asyncio.Timeout = self.scope["contextgap.limit"]
        more = (times or 0.0) - 1.0
        seconds = self.service.settings.deadline
        limit.reschedule(None if times is None else (limit.when() or 0.0) + more * seconds)

    async def json(self) -> Any:
        if self.content is _NOT_READ:
            # No form of a foreign page can say that it is JSON.
            kind = self.caller.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(
                    415, f"the content type must be application/json, got {kind or 'none'}"
                )
            self._body = await self._received()  # where the framework finds it
            self.content = await self.read(strict_json, self._body)
        return self.content

    async def read(self, make: Callable[..., R], *arguments: Any) -> R:
        if len(self._body) <= _SMALL:
            return make(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREAD, _without_collector, make, *arguments)

    async def answer(self, call: Callable[[Campaign], Any], *, brief: bool = False) -> Response:
        return json_answer(await self.hosting.run(self.campaign, call, brief=brief))

    def take_key(self) -> None:
        header = self.caller.headers.get("idempotency-key")
        if header is None or not isinstance(self.content, dict):
            return
        if (key := self.content.get("key")) not in (None, header):
            raise ValueError(f"key is {key!r} in the body and {header!r} in the header")
        self.content["key"] = header

    async def _received(self) -> bytes:
        body, most, more = bytearray(), self.service.settings.body, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            check_length(len(body), most)
            more = message.get("more_body", False)
        return bytes(body)


def _without_collector(make: Callable[..., R], *arguments: Any) -> R:
    """Make many parts without looking for garbage, which takes most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return make(*arguments)
    finally:
        if was_enabled:
            gc.enable()


def check_length(size: int, most: int) -> None:
    if size > most:
        raise RefusedError(413, f"a request may have {most} bytes")


def strict_json(body: bytes) -> Any:
    try:
        return _DECODER.decode(body.decode())
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise RefusedError(400, "the body must be JSON in UTF-8") from None
    except ValueError as error:
        raise RefusedError(400, f"the body must be JSON: {error}") from None


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number; write null for a missing value")


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=checks.no_name_twice)


class GuardedRoute(APIRoute):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        security = (self.openapi_extra or {}).get("security")
        if security is None:
            raise TypeError(f"the route {self.path} must say which scope it needs: Router.on(...)")
        self.scope_needed: str | None = security[0]["token"][0] if security else None
        self._body: type[BaseModel] | None = get_type_hints(self.endpoint).get("body")
        self._keyed = self._body is not None and "key" in self._body.model_fields

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            return await handle(await self._checked(request.scope, request.receive))

        return guarded

    async def _checked(self, scope: Scope, receive: Receive) -> StrictRequest:
        request = StrictRequest(scope, receive)
        names = {name: each.replace(SLASH, "/") for name, each in scope["path_params"].items()}
        scope["path_params"] = names
        if self.scope_needed is not None:
            caller = request.caller
            await request.service.guard.check(caller, self.scope_needed, names.get("campaign"))
            speak_for(None if caller.token is None else caller.token.name)
        if request.method == "POST":
            await request.json()  # the framework would say less
            if self._keyed:
                request.take_key()
        return request


class DirectRoute(GuardedRoute):
    """A guarded route for which the slow framework reads nothing."""

    methods: set[str]
    _body: type[BaseModel]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._left_out = self.param_convertors.keys() - get_type_hints(self.endpoint).keys()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in self.methods:
            raise HTTPException(405, headers={"Allow": ", ".join(self.methods)})
        request = await self._checked(scope, receive)
        try:
            body = self._body.model_validate(request.content)
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from None
        names = request.path_params
        if self._left_out:  # StrictRequest.campaign has it
            names = {name: each for name, each in names.items() if name not in self._left_out}
        response = await self.endpoint(request, body=body, **names)
        await response(scope, receive, send)


class Router(APIRouter):
    def __init__(
        self,
        prefix: str = "",
        kind: type[GuardedRoute] = GuardedRoute,
        among: Router | None = None,
    ) -> None:
        named = [Depends(_campaign_name)] if "{campaign}" in prefix else []
        super().__init__(prefix=prefix, route_class=kind, dependencies=named)
        if among is not None:
            self.routes = among.routes  # in order of definition

    def on(
        self, where: str, scope: str | None, example: Any = None, *errors: int, status: int = 200
    ) -> Callable[[F], F]:
        """Add a route such as "GET /status", whose docstring begins with its summary.

        ``scope`` is what it needs, None if it is public; ``example`` is an answer.
        """
        if scope not in (None, *SCOPES):
            raise ValueError(f"scope must be one of {SCOPES}, got {scope!r}")
        method, _, path = where.partition(" ")
        said: dict[str, Any] = {}
        if example is not None:
            shown = {"application/json": {"example": example}}
            refused = {"application/problem+json": {"schema": _PROBLEM}}
            answers = {
                code: {"description": _SAID[code], "content": refused}
                for code in sorted({401, 403, 429, 503, *errors})
            }
            answers[status] = {"description": "What was asked for.", "content": shown}
            said = {"responses": answers, "status_code": status}
        needed = {"security": [] if scope is None else [{"token": [scope]}]}

        def add(function: F) -> F:
            summary = (function.__doc__ or "").partition("\n")[0].rstrip(".")
            how = {"methods": [method], "summary": summary, "openapi_extra": needed, **said}
            return self.api_route(path, **how)(function)

        return add


async def _campaign_name(campaign: CampaignName) -> None:
    """Document a name in the path, which ``StrictRequest.campaign`` returns."""


def json_answer(content: Any, status: int = 200) -> Response:
    return Response(as_json(content), status, media_type="application/json")


# For errors that should not happen.
UNKNOWN = RefusedError(500, "the service failed; its log says how")


def refusal(error: Exception) -> RefusedError | None:
    match error:
        case RefusedError():
            return error
        case RequestValidationError():
            return RefusedError(422, _first_error(error), error="ValueError")
        case HTTPException(status_code=status):
            detail = _OF_FRAMEWORK.get(status, str(error.detail))
            return RefusedError(status, detail, headers=dict(error.headers or {}))
        case NotFoundError() | ConflictError():
            status = 404 if isinstance(error, NotFoundError) else 409
            return RefusedError(status, str(error), error=type(error).__name__)
        case AlteredError():
            return RefusedError(500, str(error))
        case UnavailableError() | DeadlineError():
            return busy(str(error))
        case TypeError() | ValueError():
            kind = "TypeError" if isinstance(error, TypeError) else "ValueError"
            return RefusedError(422, str(error), error=kind)
        case DataError() | OverflowError():
            why = f"the database cannot look for this: {_first_line(error)}"
            return RefusedError(422, why, error="ValueError")
        case ImportError():
            return RefusedError(501, str(error))
        case OperationalError() | InterfaceError() | PoolTimeout() | OSError():
            return busy(f"the database cannot be used now: {_first_line(error)}")
    return None


def _first_error(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    kind, message = first["type"], str(first["msg"])
    if kind == UNKNOWN_FIELD:
        place.append(first["ctx"]["field"])
    elif kind == "missing":
        message = "must be given"
    else:
        message = f"{message[:1].lower()}{message[1:]}, got {_short(first.get('input'))}"
    return f"{'.'.join(place) or 'body'}: {message}"


def problem(refused: RefusedError) -> Response:
    title = HTTPStatus(refused.status).phrase
    content = {"title": title, "status": refused.status, "detail": refused.detail}
    if refused.error is not None:
        content["error"] = refused.error
    return Response(
        json.dumps(content),
        refused.status,
        refused.headers,
        media_type="application/problem+json",
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _first_line(error: Exception) -> str:
    cause = getattr(error, "orig", error)
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
