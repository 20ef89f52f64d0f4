"""Who may do what, and how much: tokens, quotas, and what requests without a token must show."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from contextgap.team.campaign.database import Database
from contextgap.team.service.problems import RefusedError, busy
from contextgap.team.service.settings import Settings, is_loopback
from contextgap.team.service.tokens import Token, hash_of, read_tokens

REFRESH = 5.0
"""Seconds after which a token that was revoked is refused at the latest."""

_UNKNOWN = 0.2  # seconds between reads of the table for the sake of unknown tokens
_READING = ("GET", "HEAD", "OPTIONS")
_CLIENTS = 10_000  # remembered at once


@dataclass
class Caller:
    """Who sends a request, and how: ``headers`` have names in lower case."""

    method: str
    address: str
    headers: dict[str, str]
    token: Token | None = None

    @classmethod
    def of(cls, scope: Scope) -> Caller:
        """Return who sends a request."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        return cls(scope["method"], (scope.get("client") or ("unknown",))[0], headers)

    @property
    def name(self) -> str:
        """Under which the caller's requests are counted."""
        return self.address if self.token is None else f"token {self.token.name}"

    def may_see(self, campaign: str) -> bool:
        """Return whether the caller's token, if there is one, is good for a campaign."""
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
        """Read the table of tokens."""
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
        """Return a caller's token, as far as it is in memory and good."""
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
        if not self._trusted(_host_name(host)):
            raise RefusedError(
                403, f"the Host {host!r} is not known here; --allow-host makes it known"
            )
        origin = caller.headers.get("origin")
        own = origin is None or origin.lower().partition("://")[2] == host.lower()
        if not own and caller.method not in _READING:
            raise RefusedError(403, f"requests from pages of {origin} are refused")

    def _trusted(self, name: str) -> bool:
        if is_loopback(name) or name in self._allowed:
            return True
        # Nobody else can make an address lead here.
        is_address = ":" in name or name.replace(".", "").isdecimal()
        return is_address and not self._settings.local


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
        """Take some out of a client's bucket; raise if there are not as many."""
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
