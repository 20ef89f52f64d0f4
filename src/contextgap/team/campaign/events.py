"""Events: what happened to a campaign, in order, each with the hash of all up to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from contextgap.base.descriptors import lazy
from contextgap.team.campaign import clock
from contextgap.team.campaign.payloads import as_json

NOTHING = ""
"""The hash of a log without events."""


@dataclass(frozen=True)
class Event:
    """One event; ``request`` and ``result`` are JSON texts, and ``hash`` covers all before it.

    ``by`` is who caused it, and ``before`` the hash of the event before it.
    """

    number: int
    at: str
    kind: str
    key: str | None
    request: str
    result: str
    hash: str
    by: str | None = None
    before: str = NOTHING

    @classmethod
    def following(
        cls,
        number: int,
        before: str,
        kind: str,
        key: str | None,
        request: str,
        result: str,
        *,
        at: str | None = None,
        by: str | None = None,
    ) -> Event:
        """Return the event that comes after a log with the hash ``before``."""
        parts = (number, at or clock.now(), kind, key, request, result)
        return cls(*parts, _hash(before, parts, by), by, before)

    def follows(self, before: str) -> bool:
        """Return whether the event's hash is right after a log with the hash ``before``."""
        parts = (self.number, self.at, self.kind, self.key, self.request, self.result)
        return self.before == before and self.hash == _hash(before, parts, self.by)

    @lazy
    def requested(self) -> dict[str, Any]:
        """What was requested, read from JSON."""
        return dict(json.loads(self.request))

    @lazy
    def came_of_it(self) -> dict[str, Any]:
        """What came of the request, read from JSON."""
        return dict(json.loads(self.result))


def _hash(before: str, parts: tuple[Any, ...], by: str | None) -> str:
    logged = parts if by is None else (*parts, by)  # releases before 0.3 did not log callers
    return hashlib.sha256(f"{before}\n{as_json(logged)}".encode()).hexdigest()
