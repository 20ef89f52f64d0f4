"""The application: routes, and what goes on around every request."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import contextgap
from contextgap.team.service import access, problems
from contextgap.team.service.guard import DirectRoute
from contextgap.team.service.logs import logger
from contextgap.team.service.middleware import ServiceMiddleware
from contextgap.team.service.page import routes as page
from contextgap.team.service.routes import campaigns, documents, health, policies, trials
from contextgap.team.service.settings import Settings
from contextgap.team.service.state import READERS, Service


def create_app(
    database: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    log: TextIO | None = None,
) -> ServiceMiddleware:
    """Return the service of a database as an ASGI application.

    Parameters
    ----------
    database
        As for ``Campaign.create``.
    settings
        How it listens, whom it trusts, how much it takes.
    log
        Where a line for every request goes; nowhere by default.
    """
    service = Service(database, settings or Settings(), log)
    app = FastAPI(
        title="contextgap",
        version=contextgap.__version__,
        summary="Campaigns over HTTP",
        openapi_url=None,  # a route of ours, as all others
        redirect_slashes=False,  # it would redirect to whatever Host a request names
        lifespan=_lifespan,
    )
    app.state.service = service
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _other)
    # Not by include_router, which would have every request look for its route twice. Those asked
    # most come first.
    for subject in (policies, trials, campaigns, health, documents, page):
        app.router.routes.extend(subject.router.routes)
    direct = [route for route in app.router.routes if isinstance(route, DirectRoute)]
    return ServiceMiddleware(app, service, direct)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(READERS, "reading"))
    task = asyncio.create_task(_look_at_tokens(service))
    yield
    service.stopping = True
    task.cancel()
    await asyncio.to_thread(service.close)


async def _look_at_tokens(service: Service) -> None:
    """Take in which tokens were made and revoked; while the database is away, nothing changes."""
    while True:
        try:
            await service.guard.refresh()
        except Exception as error:
            logger.warning("cannot read tokens", extra={"fields": {"why": str(error)}})
        await asyncio.sleep(access.REFRESH)


async def _invalid(_: Request, error: Exception) -> Response:
    return problems.answer(problems.of_validation(error))


async def _http(_: Request, error: Exception) -> Response:
    return problems.answer(problems.of_http(error))


async def _other(_: Request, error: Exception) -> Response:
    """Answer what the library raised; the framework then raises it again, to be logged."""
    return problems.answer(problems.refusal(error) or problems.UNKNOWN)
