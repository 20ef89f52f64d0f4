"""Routes that say which scope they need, and are closed to requests without it.

What a route needs is its ``security`` in the OpenAPI document, so that what is documented is what
is enforced. A route that says nothing cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from contextgap.service.strict import StrictRequest

SCOPES = ("read", "explore", "freeze", "admin")
"""What a token may be good for."""

SLASH = "\x1f"
"""Stands for a slash in the name of a campaign or a policy; no name can have it."""

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
            names = {name: value.replace(SLASH, "/") for name, value in request.path_params.items()}
            request.scope["path_params"] = names
            if self.scope_needed is not None:
                await request.app.state.service.guard.check(request, self.scope_needed)
            strict = StrictRequest(request.scope, request.receive)
            if request.method == "POST":
                await (
                    strict.json()
                )  # here, because the framework would say less about what is wrong
            return await handle(strict)

        return guarded


def guarded_router() -> APIRouter:
    """Return a router all of whose routes are guarded."""
    return APIRouter(route_class=GuardedRoute)
