"""The application: routes, and what goes on around every request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import contextgap
from contextgap.campaign.database import Database
from contextgap.service import problems
from contextgap.service.access import Guard
from contextgap.service.hosting import Hosting
from contextgap.service.routes import campaigns, health, policies, trials
from contextgap.service.settings import Settings
from contextgap.service.state import Service

VERSION = "/v1"


def create_app(database: str | os.PathLike[str], settings: Settings | None = None) -> FastAPI:
    """Return the service of a database as an ASGI application.

    Parameters
    ----------
    database
        As for ``Campaign.create``.
    settings
        How it listens, whom it trusts, how much it takes.
    """
    settings = settings or Settings()
    service = Service(settings, Hosting(Database(database), settings), Guard(settings))
    app = FastAPI(
        title="contextgap",
        version=contextgap.__version__,
        summary="Campaigns over HTTP",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = service
    app.include_router(health.router)
    for subject in (campaigns, trials, policies):
        app.include_router(subject.router, prefix=VERSION)
    # A live page would be included here: app.include_router(page.router).
    app.add_exception_handler(Exception, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for known in (problems.RefusedError, ValueError, TypeError, ImportError, OSError):
        app.add_exception_handler(known, _failed)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.service.stopping = True
    app.state.service.hosting.close()


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problems.answer(problems.of_validation(error))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problems.answer(problems.of_http(error))


async def _failed(_: Request, error: Exception) -> Response:
    return problems.answer(
        problems.refusal(error)
        or problems.RefusedError(500, "the service failed; its log says how")
    )
