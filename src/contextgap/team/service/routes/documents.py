"""The OpenAPI document, and a page that shows it without loading anything from elsewhere."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from contextgap.team.service.guard import PUBLIC, guarded_router
from contextgap.team.service.handbook import handbook
from contextgap.team.service.openapi import document
from contextgap.team.service.routes.common import json_answer

router = guarded_router()


@router.get("/openapi.json", summary="This document", openapi_extra=PUBLIC)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return json_answer(document(request.app))


@router.get("/docs", summary="This document, for people", openapi_extra=PUBLIC)
async def docs(request: Request) -> Response:
    """Return all routes as a page."""
    allowed = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    content = handbook(document(request.app))
    return HTMLResponse(content, headers={"Content-Security-Policy": allowed})
