"""Errors as answers: problem documents (RFC 9457) with a plain message, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Sequence
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

_AGAIN = 1  # seconds after which to try again


class RefusedError(Exception):
    """A request that is not carried out.

    Parameters
    ----------
    status
        The status of the answer.
    detail
        What is wrong, and what to do.
    error
        The name of the exception that a client is to raise; None for one of its own.
    headers
        Headers of the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        error: str | None = None,
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
    """Return how an error is answered that the library or the database raised; None if unknown."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, NotFoundError):
        return RefusedError(404, str(error), error="NotFoundError")
    if isinstance(error, ConflictError):
        return RefusedError(409, str(error), error="ConflictError")
    if isinstance(error, AlteredError):
        return RefusedError(500, str(error))
    if isinstance(error, UnavailableError | DeadlineError):
        return busy(str(error))
    if isinstance(error, TypeError | ValueError):
        name = "TypeError" if isinstance(error, TypeError) else "ValueError"
        return RefusedError(422, str(error), error=name)
    if isinstance(error, DataError | OverflowError):
        why = _first_line(getattr(error, "orig", error))
        return RefusedError(422, f"the database cannot look for this: {why}", error="ValueError")
    if isinstance(error, ImportError):
        return RefusedError(501, str(error))
    if isinstance(error, OperationalError | InterfaceError | PoolTimeout):
        return busy(
            f"the database cannot be used now: {_first_line(getattr(error, 'orig', error))}"
        )
    if isinstance(error, OSError):
        return busy(f"the database cannot be used now: {_first_line(error)}")
    return None


def of_http(error: Exception) -> RefusedError:
    """Return how an error of the framework is answered, such as an unknown path."""
    if not isinstance(error, HTTPException):
        raise error
    said = {404: "there is no such path", 405: "this path does not take that method"}
    detail = said.get(error.status_code, str(error.detail))
    return RefusedError(error.status_code, detail, headers=dict(error.headers or {}))


def of_validation(error: Exception) -> RefusedError:
    """Return how a body or a parameter that is not as documented is answered."""
    if not isinstance(error, RequestValidationError):
        raise error
    return RefusedError(422, first_error(error.errors()), error="ValueError")


def first_error(errors: Sequence[Any]) -> str:
    """Return the first of the errors that a model found, in words."""
    first = errors[0]
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


def _first_line(error: Any) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
