"""The application: what all requests share, the routes, and what goes on around them."""

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
from starlette.types import Receive, Scope, Send

import contextgap
from contextgap.team.campaign.database import Database
from contextgap.team.service import handbook, monitoring, page_routes, problems, routes
from contextgap.team.service.access import REFRESH, Guard, Rates
from contextgap.team.service.hosting import CREATING, REBUILDING, Hosting
from contextgap.team.service.middleware import ServiceMiddleware
from contextgap.team.service.page_beliefs import Beliefs
from contextgap.team.service.page_counts import Standings
from contextgap.team.service.page_routes import Listening
from contextgap.team.service.routing import DirectRoute
from contextgap.team.service.settings import Settings

_READERS = 16  # threads that read policies, names and what the page shows
_DAY = 86_400.0  # seconds
_ROWS_AT_ONCE = 100.0  # seconds of rows that may be sent at once


class Service:
    """What all requests to a service share."""

    def __init__(
        self, database: str | os.PathLike[str], settings: Settings, log: TextIO | None = None
    ) -> None:
        self.log = None if log is None else monitoring.start_log(settings.log, log)
        # A connection for each thread. Those of tokens and health wait for no others.
        threads = settings.campaigns + CREATING + REBUILDING + _READERS
        opened = Database(database, connections=threads)
        self.vital = Database(database)
        self.settings = settings
        self.hosting = Hosting(opened, settings)
        self.guard = Guard(self.vital, settings)
        self.health = ThreadPoolExecutor(1, "health")
        self.requests_rate = Rates("requests", settings.rate, settings.burst)
        rows, new = settings.row_rate, settings.campaign_rate
        self.rows_rate = Rates("contexts", rows, _ROWS_AT_ONCE * rows)
        self.campaigns_rate = Rates("new campaigns", new / _DAY, new)
        self.metrics = monitoring.Metrics(self.hosting.waiting)
        self.stopping = False
        self.ended = True  # whether nothing is computed any more, after the end
        self.standings = Standings(opened)
        self.beliefs = Beliefs(self.hosting, self.standings)
        self.listening = Listening(self.standings, lambda: self.stopping)

    def close(self) -> None:
        """Finish what runs as far as there is time, leave snapshots, and close everything."""
        self.ended = self.hosting.close(self.settings.grace / 2)
        self.vital.close()


class ServiceApp(FastAPI):
    """The routes of a service, and what happens around every request."""

    def __init__(self, service: Service) -> None:
        super().__init__(
            title="contextgap",
            version=contextgap.__version__,
            summary="Campaigns over HTTP",
            openapi_url=None,  # a route of ours, as all others
            redirect_slashes=False,  # it would redirect to whatever Host a request names
            lifespan=_lifespan,
            exception_handlers=dict.fromkeys(
                (HTTPException, RequestValidationError, Exception), _answer
            ),
        )
        self.state.service = service
        # Not by include_router, which would have every request look for its route twice.
        rest = [subject.router for subject in (routes, monitoring, handbook, page_routes)]
        for router in (routes.most_used, *rest):
            self.router.routes.extend(router.routes)
        direct = [route for route in self.routes if isinstance(route, DirectRoute)]
        self._around = ServiceMiddleware(super().__call__, service, direct)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._around(scope, receive, send)


def create_app(
    database: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    log: TextIO | None = None,
) -> FastAPI:
    """Return the service of a database as an ASGI application.

    Parameters
    ----------
    database
        As for ``Campaign.create``.
    settings
        How it listens, whom it trusts, how much it takes.
    log
        Where a line for every request goes, and what else is logged; nowhere by default.
    """
    return ServiceApp(Service(database, settings or Settings(), log))


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_READERS, "reading"))
    task = asyncio.create_task(_refresh_tokens(service))
    yield
    service.stopping = True
    task.cancel()
    await asyncio.to_thread(service.close)


async def _refresh_tokens(service: Service) -> None:
    """Take in which tokens were made and revoked; while the database is away, nothing changes."""
    while True:
        try:
            await service.guard.refresh()
        except Exception as error:
            monitoring.logger.warning("cannot read tokens", extra={"fields": {"why": str(error)}})
        await asyncio.sleep(REFRESH)


async def _answer(_: Request, error: Exception) -> Response:
    """Answer an error of the framework, such as an unknown path or a bad parameter."""
    return problems.answer(problems.refusal(error) or problems.UNKNOWN)
