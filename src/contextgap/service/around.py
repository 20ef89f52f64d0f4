"""What happens around every request: limits, origins, errors, logs and counts."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextgap.service import problems
from contextgap.service.guard import SLASH
from contextgap.service.limits import limited
from contextgap.service.logs import log_request, logger
from contextgap.service.state import Service

_FAILED = "the service failed; its log says how"
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


class Around:
    """The outermost part of the application.

    Parameters
    ----------
    app
        What is inside.
    service
        What all requests share.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def note_and_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        headers = Headers(scope=scope)
        try:
            await self._answer(scope, headers, receive, note_and_send)
        except Exception as error:
            known = error if isinstance(error, problems.RefusedError) else None
            if known is None:
                logger.exception("failed", extra={"fields": {"path": scope["path"]}})
                known = problems.RefusedError(500, _FAILED)
            if not status:
                await problems.answer(known)(scope, receive, note_and_send)
        seconds = time.perf_counter() - start
        self._note(scope, headers, status, seconds)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        service = self._service
        service.guard.check_origin(scope["method"], headers)
        token = service.guard.known(headers)
        client = scope.get("client") or ("unknown", 0)
        scope.setdefault("state", {})["token"] = token
        service.rates.take(client[0] if token is None else f"token {token.name}")
        inside = limited(receive, headers.get("content-length"), service.settings.body)
        keep_slashes(scope)
        await self._app(scope, inside, send)

    def _note(self, scope: Scope, headers: Headers, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.note(scope["method"], route, status, seconds)
        token = scope.get("state", {}).get("token")
        log_request(
            method=scope["method"],
            path=scope["path"].replace(SLASH, "%2F"),
            status=status,
            ms=round(1000 * seconds, 3),
            client=(scope.get("client") or ("unknown", 0))[0],
            token=None if token is None else token.name,
            key=headers.get("idempotency-key"),
        )


def keep_slashes(scope: Scope) -> None:
    """Tell the slashes inside names from those between the parts of a path."""
    raw: Any = scope.get("raw_path")
    if raw is not None and b"%2f" in raw.lower():
        parts = raw.decode("ascii").split("/")
        scope["path"] = "/".join(unquote(part).replace("/", SLASH) for part in parts)
