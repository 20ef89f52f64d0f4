"""What all routes share."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Path, Request, Response

from contextgap.team.campaign.payloads import as_json
from contextgap.team.service.hosting import Hosting
from contextgap.team.service.state import Service

CampaignName = Annotated[str, Path(description="The campaign's name.")]
LARGEST = 2**63 - 1
"""The largest number that a database can look for."""

TrialNumber = Annotated[int, Path(description="The trial's number.", ge=1, le=LARGEST)]
PolicyName = Annotated[str, Path(description="The policy's name.")]

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
_SAID = {
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


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    found: Service = request.scope["contextgap.service"]
    return found


def hosting_of(request: Request) -> Hosting:
    """Return the campaigns of the service that a request came to."""
    return service_of(request).hosting


def allow_time(request: Request, times: float | None) -> None:
    """Let a request take so many times as long as others; None for ever."""
    timeout: asyncio.Timeout = request.scope["contextgap.timeout"]
    when = timeout.when()
    if times is not None and when is not None:
        timeout.reschedule(when + (times - 1) * service_of(request).settings.deadline)
    elif times is None:
        timeout.reschedule(None)


def json_answer(content: Any, status: int = 200) -> Response:
    """Return an answer; numbers read back as the same numbers."""
    return Response(as_json(content), status, media_type="application/json")


def said(example: Any, *errors: int, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return what the document says about a route's answers."""
    content = {"application/json": {"example": example}}
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": "What was asked for.", "content": content}
    }
    problem = {"application/problem+json": {"schema": _PROBLEM}}
    for code in sorted({401, 403, 429, 503, *errors}):
        found[code] = {"description": _SAID[code], "content": problem}
    return found
