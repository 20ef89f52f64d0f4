"""What happens around every request: limits, origins, errors, logs and counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from contextgap.team.service import problems
from contextgap.team.service.access import Caller
from contextgap.team.service.guard import SLASH, DirectRoute
from contextgap.team.service.logs import logger
from contextgap.team.service.state import Service
from contextgap.team.service.strict import check_length

# Browsers take answers for what they are, and do not keep them.
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_LEFT = 499  # the status that proxies log when a client left


class ServiceMiddleware:
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

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        caller = scope["contextgap.caller"] = Caller.of(scope)
        scope["contextgap.service"] = self.service
        scope["contextgap.task"] = asyncio.current_task()  # ended by the server if the client left
        refused: problems.RefusedError | None = None
        timeout = scope["contextgap.timeout"] = asyncio.timeout(self.service.settings.deadline)
        try:
            async with timeout:
                await self._answer(scope, caller, receive, send_with_headers)
        except asyncio.CancelledError:
            if scope.get("contextgap.left"):
                status = status or _LEFT
            else:
                refused = problems.busy("the service is stopping")
        except Exception as error:
            refused = self._refusal(scope, error, expired=timeout.expired())
        if refused is not None and not status:
            await problems.answer(refused)(scope, receive, send_with_headers)
        self._note(scope, caller, status, time.perf_counter() - start)

    def _refusal(self, scope: Scope, error: Exception, *, expired: bool) -> problems.RefusedError:
        if expired:
            return problems.busy(
                f"this took longer than {self.service.settings.deadline:g} s and was given up; "
                "repeated with the same key it happens once"
            )
        known = problems.refusal(error)
        if known is None:
            logger.error("failed", exc_info=error, extra={"fields": {"path": scope["path"]}})
        return known or problems.UNKNOWN

    async def _answer(self, scope: Scope, caller: Caller, receive: Receive, send: Send) -> None:
        service, length = self.service, caller.headers.get("content-length")
        if length is not None:
            if "transfer-encoding" in caller.headers:
                raise problems.RefusedError(
                    400,
                    "a request has a Content-Length or a Transfer-Encoding, not both",
                    headers={"Connection": "close"},
                )
            check_length(int(length) if length.isdecimal() else 0, service.settings.body)
        service.guard.check_origin(caller)
        caller.token = service.guard.known(caller)
        service.requests_rate.take(caller.name)
        keep_slashes(scope)
        for route in self._direct:
            found = route.path_regex.match(scope["path"])
            if found is not None and caller.method in route.methods:
                scope.update(app=self.inside, route=route, path_params=found.groupdict())
                await route.handle(scope, receive, send)
                return
        await self.inside(scope, receive, send)

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
