"""The OpenAPI document of the service."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

_ABOUT = (
    "Every change takes a key, in the body or as the header Idempotency-Key: sent again with the "
    "same key, it happens once and gets the same answer. Errors are problem documents (RFC 9457)."
)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by contextgap serve token create.",
}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the document, made once.

    Parameters
    ----------
    app
        The application.
    """
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=_ABOUT,
            routes=app.routes,
        )
        made.setdefault("components", {})["securitySchemes"] = {"token": _TOKEN}
        app.openapi_schema = made
    return app.openapi_schema
