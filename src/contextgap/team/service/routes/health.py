"""Whether the service lives, and whether it can work."""

from __future__ import annotations

import asyncio

from fastapi import Request, Response

from contextgap.team.campaign.schema import check_database
from contextgap.team.service.guard import PUBLIC, guarded_router, needs
from contextgap.team.service.metrics import CONTENT_TYPE
from contextgap.team.service.problems import busy
from contextgap.team.service.routes.common import json_answer, said, service_of

router = guarded_router()
_PATIENCE = 5.0  # seconds that the database may take to answer


@router.get(
    "/livez", summary="Whether the service lives", openapi_extra=PUBLIC, responses=said({"ok": 1})
)
async def livez() -> Response:
    """Answer at once, whatever else goes on."""
    return json_answer({"ok": True})


@router.get(
    "/readyz",
    summary="Whether the service can work",
    openapi_extra=PUBLIC,
    responses=said({"ok": True}),
)
async def readyz(request: Request) -> Response:
    """Answer whether the database can be read and written, and the service is not stopping."""
    service = service_of(request)
    if service.stopping:
        raise busy("the service is stopping")
    looked = asyncio.get_running_loop().run_in_executor(
        service.health, check_database, service.vital
    )
    try:
        await asyncio.wait_for(looked, _PATIENCE)
    except ValueError as error:  # of another release, or altered
        raise busy(str(error)) from None
    return json_answer({"ok": True})


@router.get(
    "/metrics",
    summary="Counts for Prometheus",
    openapi_extra=needs("read"),
    responses=said("contextgap_requests_total ..."),
)
async def metrics(request: Request) -> Response:
    """Return what the service counts."""
    return Response(service_of(request).metrics.text(), headers={"Content-Type": CONTENT_TYPE})
