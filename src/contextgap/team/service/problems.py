"""Errors as answers: problem documents (RFC 9457) with a plain message, never a traceback."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import Response

from contextgap.team.campaign import (
    AlteredError,
    ConflictError,
    DeadlineError,
    NotFoundError,
    UnavailableError,
)

UNKNOWN_FIELD = "unknown_field"
"""The type of the error about a field that a request does not have."""

SAID = {
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
"""What the OpenAPI document says of each status."""

_AGAIN = 1  # seconds after which to try again
_OF_FRAMEWORK = {404: "there is no such path", 405: "this path does not take that method"}


class RefusedError(Exception):
    """A request that is not carried out, with the status and the headers of its answer."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        error: str | None = None,  # what a client is to raise; None for one of its own
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.error = status, detail, error
        self.headers = headers or {}


UNKNOWN = RefusedError(500, "the service failed; its log says how")
"""For errors that should not happen."""


def busy(detail: str, status: int = 503, seconds: float = _AGAIN) -> RefusedError:
    """Return an answer that asks to come back later."""
    return RefusedError(status, detail, headers={"Retry-After": f"{max(1, round(seconds))}"})


def refusal(error: Exception) -> RefusedError | None:
    """Return how an error is answered; None if it is none of those that may happen."""
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
        case TypeError():
            return RefusedError(422, str(error), error="TypeError")
        case ValueError():
            return RefusedError(422, str(error), error="ValueError")
        case DataError() | OverflowError():
            why = f"the database cannot look for this: {_first_line(error)}"
            return RefusedError(422, why, error="ValueError")
        case ImportError():
            return RefusedError(501, str(error))
        case OperationalError() | InterfaceError() | PoolTimeout() | OSError():
            return busy(f"the database cannot be used now: {_first_line(error)}")
    return None


def _first_error(error: RequestValidationError) -> str:
    """Return the first of the errors in a body or in parameters, in words."""
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


def answer(refused: RefusedError) -> Response:
    """Return the answer to a request that is not carried out."""
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
    """Return the first line of an error, or of the one of a database that it is about."""
    cause = getattr(error, "orig", error)
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
