"""What can be set about a service."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

TOKENS = ("auto", "required", "none")
"""When tokens are needed; "auto" is everywhere but on loopback."""


@dataclass(frozen=True)
class Settings:
    """How a service listens, whom it trusts, and how much it takes.

    Parameters
    ----------
    host, port
        Where it listens.
    tokens
        "required", "none", or "auto": required unless the host is this machine's own (loopback).
    allow_hosts
        Names by which requests may call the service besides this machine's own, where no tokens
        are needed.
    body
        The largest request, in bytes.
    rows
        The most contexts in one request.
    rate
        Requests per second that a token, or an address without one, may go on sending.
    burst
        Requests that it may send at once.
    waiting
        Requests that may wait for one campaign; others are told to come back.
    campaigns
        Campaigns kept open at once; those not used for longest are closed.
    policies
        Frozen policies kept in memory at once.
    log
        "json" or "text".
    grace
        Seconds that a stop waits for what runs.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: str = "auto"
    allow_hosts: tuple[str, ...] = ()
    body: int = 8_000_000
    rows: int = 100_000
    rate: float = 5000.0
    burst: int = 10_000
    waiting: int = 100
    campaigns: int = 32
    policies: int = 128
    log: str = "json"
    grace: float = 30.0

    def __post_init__(self) -> None:
        if self.tokens not in TOKENS:
            raise ValueError(f"tokens must be one of {TOKENS}, got {self.tokens!r}")
        if self.log not in ("json", "text"):
            raise ValueError(f"log must be json or text, got {self.log!r}")
        for name in ("body", "rows", "rate", "burst", "waiting", "campaigns", "policies", "grace"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def needs_tokens(self) -> bool:
        """Whether every request needs a token."""
        return self.tokens == "required" or (self.tokens == "auto" and not self.local)


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine's own."""
    name = host.removeprefix("[").removesuffix("]")
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
