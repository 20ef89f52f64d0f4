"""Runs the service."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from contextgap.campaign.database import Database
from contextgap.campaign.registry import prepare
from contextgap.service.app import create_app
from contextgap.service.logs import logger, start_logs
from contextgap.service.settings import Settings
from contextgap.service.state import Service


class _Server(uvicorn.Server):
    """A server that says where it listens."""

    def __init__(
        self, config: uvicorn.Config, service: Service, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._service, self._announce = service, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # what was imported stays; looking through it again and again takes time
        if not self.should_exit:
            self._announce(_address(self.servers[0].sockets[0].getsockname()))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stopping = True  # streams end, or the server would wait for them
        await super().shutdown(sockets)


def serve(
    database: str | os.PathLike[str], settings: Settings, announce: Callable[[str], None]
) -> None:
    """Listen until told to stop; then finish what runs, leave snapshots and return.

    Parameters
    ----------
    database
        As for ``Campaign.create``.
    settings
        How to listen, whom to trust, how much to take.
    announce
        Called with the address once it listens; the port is any free one if 0 was asked for.
    """
    where = Database(database)
    try:
        prepare(where)  # so that what is no database, or of a later release, is said at once
    except (OSError, SQLAlchemyError):
        if where.is_file:  # a server may start later
            raise
    where.close()
    start_logs(settings.log, sys.stderr)
    app = create_app(database, settings, log=sys.stderr)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,  # ours
        access_log=False,
        proxy_headers=False,  # who is behind a proxy is not ours to believe
        server_header=False,
        timeout_graceful_shutdown=int(settings.grace),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server has its own, and raises them afterwards
    server = _Server(config, app.service, announce)
    with contextlib.suppress(SystemExit):  # of a server that cannot start
        server.run()
    if not server.started:
        raise OSError(f"cannot listen at {settings.host}, port {settings.port}")
    logger.info("stopped")


def _address(name: Any) -> str:
    host, port = name[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
