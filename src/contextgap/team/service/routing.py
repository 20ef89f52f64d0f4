"""Routes that say which scope they need, requests that are read strictly, errors as answers.

What a route needs is its ``security`` in the OpenAPI document, so that what is documented is what
is enforced. A route that says nothing cannot be made. Errors are problem documents (RFC 9457) with
a plain message, never a traceback.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from contextgap.base import checks
from contextgap.team.campaign import (
    AlteredError,
    ConflictError,
    DeadlineError,
    NotFoundError,
    UnavailableError,
)
from contextgap.team.campaign.codec import as_json
from contextgap.team.campaign.store import LARGEST
from contextgap.team.campaign.values import speak_for
from contextgap.team.service.access import SCOPES, Caller, RefusedError, busy

if TYPE_CHECKING:
    from contextgap.team.campaign import Campaign
    from contextgap.team.service.app import Service
    from contextgap.team.service.hosting import Hosting

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
SLASH = "\x1f"  # stands for a slash in the name of a campaign or a policy; no name can have it
CampaignName = Annotated[str, Path(description="The campaign's name.")]
PolicyName = Annotated[str, Path(description="The policy's name.")]
TrialNumber = Annotated[int, Path(description="The trial's number.", ge=1, le=LARGEST)]

_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "error": {"type": "string", "description": "The exception that Python code would get."},
    },
}
UNKNOWN_FIELD = "unknown_field"  # the type of the error about a field that a request does not have
_SAID = {  # in the OpenAPI document, of each status
    400: "The body is not JSON.",
    401: "A token is needed, or the one given is not valid.",
    403: "The token is not good for this, or the request comes from a foreign page.",
    404: "There is no such campaign, trial or policy.",
    409: "The request contradicts what happened before.",
    413: "The request is too large.",
    422: "A value is wrong; the message says which.",
    429: "Too many requests; Retry-After says when to come back.",
    503: "The database is away, or too many requests wait; Retry-After says when to come back.",
}
_OF_FRAMEWORK = {404: "there is no such path", 405: "this path does not take that method"}
_NOT_READ = object()
_SMALL = 16_384  # bytes, up to which a thread would take longer to begin than reading takes
# One, because decoding lets no other thread run: two would keep the event loop waiting for both.
_THREAD = ThreadPoolExecutor(1, "reading bodies")


class StrictRequest(Request):
    """A request whose body is read strictly, and in a thread if it is large."""

    content: Any = _NOT_READ

    @property
    def service(self) -> Service:
        found: Service = self.scope["contextgap.service"]
        return found

    @property
    def hosting(self) -> Hosting:
        return self.service.hosting

    @property
    def campaign(self) -> str:
        return str(self.path_params["campaign"])

    @property
    def caller(self) -> Caller:
        found: Caller = self.scope["contextgap.caller"]
        return found

    def allow_time(self, times: float | None) -> None:
        """Let the request take so many times as long as others; None for ever."""
        limit: asyncio.Timeout = self.scope["contextgap.limit"]
        more = (times or 0.0) - 1.0
        seconds = self.service.settings.deadline
        limit.reschedule(None if times is None else (limit.when() or 0.0) + more * seconds)

    async def json(self) -> Any:
        if self.content is _NOT_READ:
            # No form of a foreign page can say that it is JSON.
            kind = self.caller.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(
                    415, f"the content type must be application/json, got {kind or 'none'}"
                )
            self._body = await self._received()  # where the framework looks for it, too
            self.content = await self.read(strict_json, self._body)
        return self.content

    async def read(self, make: Callable[..., R], *arguments: Any) -> R:
        """Return what ``make`` makes of the body, in a thread if that is large."""
        if len(self._body) <= _SMALL:
            return make(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREAD, _without_collector, make, *arguments)

    async def answer(self, call: Callable[[Campaign], Any], *, brief: bool = False) -> Response:
        return json_answer(await self.hosting.run(self.campaign, call, brief=brief))

    def take_key(self) -> None:
        header = self.caller.headers.get("idempotency-key")
        if header is None or not isinstance(self.content, dict):
            return
        if (key := self.content.get("key")) not in (None, header):
            raise ValueError(f"key is {key!r} in the body and {header!r} in the header")
        self.content["key"] = header

    async def _received(self) -> bytes:
        body, most, more = bytearray(), self.service.settings.body, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            check_length(len(body), most)
            more = message.get("more_body", False)
        return bytes(body)


def _without_collector(make: Callable[..., R], *arguments: Any) -> R:
    """Make something of many parts without looking for garbage, which takes most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return make(*arguments)
    finally:
        if was_enabled:
            gc.enable()


def check_length(size: int, most: int) -> None:
    if size > most:
        raise RefusedError(413, f"a request may have {most} bytes")


def strict_json(body: bytes) -> Any:
    try:
        return _DECODER.decode(body.decode())
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise RefusedError(400, "the body must be JSON in UTF-8") from None
    except ValueError as error:
        raise RefusedError(400, f"the body must be JSON: {error}") from None


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number; write null for a missing value")


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=checks.no_name_twice)


class GuardedRoute(APIRoute):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        security = (self.openapi_extra or {}).get("security")
        if security is None:
            raise TypeError(f"the route {self.path} must say which scope it needs: describe(...)")
        self.scope_needed: str | None = security[0]["token"][0] if security else None
        self._body: type[BaseModel] | None = get_type_hints(self.endpoint).get("body")
        self._keyed = self._body is not None and "key" in self._body.model_fields

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            return await handle(await self._checked(request.scope, request.receive))

        return guarded

    async def _checked(self, scope: Scope, receive: Receive) -> StrictRequest:
        request = StrictRequest(scope, receive)
        names = {name: each.replace(SLASH, "/") for name, each in scope["path_params"].items()}
        scope["path_params"] = names
        if self.scope_needed is not None:
            caller = request.caller
            await request.service.guard.check(caller, self.scope_needed, names.get("campaign"))
            speak_for(None if caller.token is None else caller.token.name)
        if request.method == "POST":
            await request.json()  # here: the framework would say less about what is wrong
            if self._keyed:
                request.take_key()
        return request


class DirectRoute(GuardedRoute):
    """A guarded route with names and a body, for which the framework reads nothing: it is slow."""

    methods: set[str]
    _body: type[BaseModel]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._left_out = self.param_convertors.keys() - get_type_hints(self.endpoint).keys()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in self.methods:
            raise HTTPException(405, headers={"Allow": ", ".join(self.methods)})
        request = await self._checked(scope, receive)
        try:
            body = self._body.model_validate(request.content)
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from None
        names = request.path_params
        if self._left_out:  # StrictRequest.campaign has it
            names = {name: each for name, each in names.items() if name not in self._left_out}
        response = await self.endpoint(request, body=body, **names)
        await response(scope, receive, send)


class Router(APIRouter):
    def __init__(
        self,
        prefix: str = "",
        kind: type[GuardedRoute] = GuardedRoute,
        among: Router | None = None,
    ) -> None:
        named = [Depends(_campaign_name)] if "{campaign}" in prefix else []
        super().__init__(prefix=prefix, route_class=kind, dependencies=named)
        if among is not None:
            self.routes = among.routes  # in the order in which they are defined

    def on(self, where: str, *said: Any, **how: Any) -> Callable[[F], F]:
        """Add a route to a method and a path, such as "GET /status"; the rest: ``describe``."""
        method, _, path = where.partition(" ")
        return self.api_route(path, methods=[method], **describe(*said, **how))


async def _campaign_name(campaign: CampaignName) -> None:
    """Document a name in the path, which ``StrictRequest.campaign`` returns."""


def describe(
    scope: str | None, summary: str, example: Any = None, *errors: int, status: int = 200
) -> dict[str, Any]:
    """Return what a route says: the scope it needs (None: it is public) and what it answers."""
    if scope not in (None, *SCOPES):
        raise ValueError(f"scope must be one of {SCOPES}, got {scope!r}")
    said: dict[str, Any] = {
        "summary": summary,
        "openapi_extra": {"security": [] if scope is None else [{"token": [scope]}]},
    }
    if example is None:
        return said
    content = {"application/json": {"example": example}}
    refused = {"application/problem+json": {"schema": _PROBLEM}}
    answers: dict[int, Any] = {status: {"description": "What was asked for.", "content": content}}
    for code in sorted({401, 403, 429, 503, *errors}):
        answers[code] = {"description": _SAID[code], "content": refused}
    return {**said, "responses": answers, "status_code": status}


def json_answer(content: Any, status: int = 200) -> Response:
    return Response(as_json(content), status, media_type="application/json")


# For errors that should not happen.
UNKNOWN = RefusedError(500, "the service failed; its log says how")


def refusal(error: Exception) -> RefusedError | None:
    match error:
        case RefusedError():
            return error
        case RequestValidationError():
            return RefusedError(422, _first_error(error), error="ValueError")
        case HTTPException(status_code=status):
            detail = _OF_FRAMEWORK.get(status, str(error.detail))
            return RefusedError(status, detail, headers=dict(error.headers or {}))
        case NotFoundError():
            return RefusedError(404, str(error), error="NotFoundError")
        case ConflictError():
            return RefusedError(409, str(error), error="ConflictError")
        case AlteredError():
            return RefusedError(500, str(error))
        case UnavailableError() | DeadlineError():
            return busy(str(error))
        case TypeError() | ValueError():
            kind = "TypeError" if isinstance(error, TypeError) else "ValueError"
            return RefusedError(422, str(error), error=kind)
        case DataError() | OverflowError():
            why = f"the database cannot look for this: {_first_line(error)}"
            return RefusedError(422, why, error="ValueError")
        case ImportError():
            return RefusedError(501, str(error))
        case OperationalError() | InterfaceError() | PoolTimeout() | OSError():
            return busy(f"the database cannot be used now: {_first_line(error)}")
    return None


def _first_error(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    kind, message = first["type"], str(first["msg"])
    if kind == UNKNOWN_FIELD:
        place.append(first["ctx"]["field"])
    elif kind == "missing":
        message = "must be given"
    else:
        message = f"{message[:1].lower()}{message[1:]}, got {_short(first.get('input'))}"
    return f"{'.'.join(place) or 'body'}: {message}"


def problem(refused: RefusedError) -> Response:
    title = HTTPStatus(refused.status).phrase
    content = {"title": title, "status": refused.status, "detail": refused.detail}
    if refused.error is not None:
        content["error"] = refused.error
    return Response(
        json.dumps(content),
        refused.status,
        refused.headers,
        media_type="application/problem+json",
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _first_line(error: Exception) -> str:
    cause = getattr(error, "orig", error)
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
