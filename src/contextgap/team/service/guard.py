"""Routes that say which scope they need, and are closed to requests without it.

What a route needs is its ``security`` in the OpenAPI document, so that what is documented is what
is enforced. A route that says nothing cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from contextgap.team.campaign.calls import speak_for
from contextgap.team.service.strict import StrictRequest

SCOPES = ("read", "explore", "freeze", "admin")
"""What a token may be good for."""

SLASH = "\x1f"
"""Stands for a slash in the name of a campaign or a policy; no name can have it."""

VERSION = "/v1"
"""Before the paths of all routes about campaigns."""

PUBLIC: dict[str, Any] = {"security": []}
"""For routes that everybody may use."""


def needs(scope: str) -> dict[str, Any]:
    """Return what a route says that needs a scope."""
    if scope not in SCOPES:
        raise ValueError(f"scope must be one of {SCOPES}, got {scope!r}")
    return {"security": [{"token": [scope]}]}


class GuardedRoute(APIRoute):
    """A route that checks the token before it reads anything of the request's body."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        security = (self.openapi_extra or {}).get("security")
        if security is None:
            raise TypeError(f"the route {self.path} must say which scope it needs, or PUBLIC")
        self.scope_needed: str | None = security[0]["token"][0] if security else None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            return await handle(await self._checked(request.scope, request.receive))

        return guarded

    async def _checked(self, scope: Scope, receive: Receive) -> StrictRequest:
        """Return a request that may be answered."""
        request = StrictRequest(scope, receive)
        names = scope["path_params"].items()
        scope["path_params"] = {name: value.replace(SLASH, "/") for name, value in names}
        if self.scope_needed is not None:
            guard, campaign = request.app.state.service.guard, scope["path_params"].get("campaign")
            caller = scope["contextgap.caller"]
            await guard.check(caller, self.scope_needed, campaign)
            speak_for(None if caller.token is None else caller.token.name)
        if request.method == "POST":
            await request.json()  # here: the framework would say less about what is wrong
        return request


class DirectRoute(GuardedRoute):
    """A route whose endpoint is given the request and nothing else, to save time."""

    methods: set[str]

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        response = await self.endpoint(await self._checked(scope, receive))
        await response(scope, receive, send)


def guarded_router(prefix: str = "") -> APIRouter:
    """Return a router all of whose routes are guarded."""
    return APIRouter(prefix=prefix, route_class=GuardedRoute)
