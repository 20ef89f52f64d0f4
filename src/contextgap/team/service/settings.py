"""What can be set about a service."""

from __future__ import annotations

import ipaddress
import warnings
from dataclasses import dataclass
from functools import lru_cache

_TOKENS = ("required", "none")


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
    """Return whether a name or an address is this machine's own."""
    name = host.removeprefix("[").removesuffix("]")
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
