"""What happens around every request: limits, origins, errors, logs and counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextgap.team.service import problems
from contextgap.team.service.access import Caller
from contextgap.team.service.monitoring import logger
from contextgap.team.service.routing import SLASH, Deadline, DirectRoute, check_length

if TYPE_CHECKING:
    from contextgap.team.service.app import Service

# Browsers take answers for what they are, and do not keep them.
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_LEFT = 499  # the status that proxies log when a client left


class ServiceMiddleware:
    """Checks every request, gives it a deadline, answers errors, and notes what came of it.

    It is outside of the framework, whose layers take longer than a decision: ``direct`` routes
    are found and answered without them.
    """

    def __init__(self, app: ASGIApp, service: Service, direct: Sequence[DirectRoute]) -> None:
        self._app = app
        self._service = service
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        caller = scope["contextgap.caller"] = Caller.of(scope)
        scope["contextgap.service"] = self._service
        deadline = scope["contextgap.deadline"] = Deadline(self._service.settings.deadline)
        refused: problems.RefusedError | None = None
        try:
            self._check(caller)
            _keep_slashes(scope)
            await self._found(scope)(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            if deadline.left:
                status = status or _LEFT
            else:
                refused = problems.busy(deadline.cause)
        except Exception as error:
            refused = self._refusal(scope, error)
        deadline.extend(None)
        if refused is not None and not status:
            await problems.answer(refused)(scope, receive, send_with_headers)
        self._note(scope, caller, status, time.perf_counter() - start)

    def _found(self, scope: Scope) -> ASGIApp:
        """Return what answers a request: a direct route, or the application."""
        for route in self._direct:
            match = route.path_regex.match(scope["path"])
            if match is not None and scope["method"] in route.methods:
                scope.update(route=route, path_params=match.groupdict())
                return route.handle
        return self._app

    def _check(self, caller: Caller) -> None:
        """Raise if a request is too large, comes from a foreign page, or is one too many."""
        service, length = self._service, caller.headers.get("content-length")
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

    def _refusal(self, scope: Scope, error: Exception) -> problems.RefusedError:
        known = problems.refusal(error)
        if known is None:
            logger.error("failed", exc_info=error, extra={"fields": {"path": scope["path"]}})
        return known or problems.UNKNOWN

    def _note(self, scope: Scope, caller: Caller, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.note(caller.method, route, status, seconds)
        if self._service.log is not None:
            self._service.log.note_request(
                method=caller.method,
                path=scope["path"].replace(SLASH, "%2F"),
                status=status,
                ms=round(1000 * seconds, 3),
                client=caller.address,
                token=None if caller.token is None else caller.token.name,
                key=caller.headers.get("idempotency-key"),
            )


def _keep_slashes(scope: Scope) -> None:
    """Mark the slashes inside names, which are not those between the parts of a path."""
    raw: Any = scope.get("raw_path")
    if raw is not None and b"%2" in raw and b"%2f" in raw.lower():
        parts = raw.decode("ascii").split("/")
        scope["path"] = "/".join(unquote(part).replace("/", SLASH) for part in parts)
