"""What happens around every request: limits, origins, errors, logs and counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from contextgap.service import problems
from contextgap.service.caller import Caller
from contextgap.service.guard import SLASH, DirectRoute
from contextgap.service.limits import limited
from contextgap.service.logs import logger
from contextgap.service.state import Service


class Around:
    """The service as an ASGI application.

    Parameters
    ----------
    inside
        All routes.
    service
        What all requests share.
    direct
        Routes that are looked for before all others, to save time.
    """

    def __init__(self, inside: FastAPI, service: Service, direct: Sequence[DirectRoute]) -> None:
        self.inside = inside
        self.service = service
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.inside(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def note_and_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        caller = scope["contextgap.caller"] = Caller.of(scope)
        try:
            await self._answer(scope, caller, receive, note_and_send)
        except Exception as error:
            known = problems.refusal(error)
            if known is None:
                logger.exception("failed", extra={"fields": {"path": scope["path"]}})
                known = problems.UNKNOWN
            if not status:
                await problems.answer(known)(scope, receive, note_and_send)
        self._note(scope, caller, status, time.perf_counter() - start)

    async def _answer(self, scope: Scope, caller: Caller, receive: Receive, send: Send) -> None:
        service = self.service
        service.guard.check_origin(caller)
        caller.token = service.guard.known(caller)
        service.rates.take(caller.name)
        inside = limited(receive, caller.headers.get("content-length"), service.settings.body)
        keep_slashes(scope)
        for route in self._direct:
            found = route.path_regex.match(scope["path"])
            if found is not None and caller.method in route.methods:
                scope.update(app=self.inside, route=route, path_params=found.groupdict())
                await route.handle(scope, inside, send)
                return
        await self.inside(scope, inside, send)

    def _note(self, scope: Scope, caller: Caller, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self.service.metrics.note(caller.method, route, status, seconds)
        self.service.requests.note(
            method=caller.method,
            path=scope["path"].replace(SLASH, "%2F"),
            status=status,
            ms=round(1000 * seconds, 3),
            client=caller.address,
            token=None if caller.token is None else caller.token.name,
            key=caller.headers.get("idempotency-key"),
        )


def keep_slashes(scope: Scope) -> None:
    """Tell the slashes inside names from those between the parts of a path."""
    raw: Any = scope.get("raw_path")
    if raw is not None and b"%2" in raw and b"%2f" in raw.lower():
        parts = raw.decode("ascii").split("/")
        scope["path"] = "/".join(unquote(part).replace("/", SLASH) for part in parts)
