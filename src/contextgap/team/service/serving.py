"""Runs the service."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import h11
import uvicorn
from sqlalchemy.exc import SQLAlchemyError
from uvicorn.protocols.http.h11_impl import H11Protocol

from contextgap.team.campaign.database import Database
from contextgap.team.campaign.store import prepare
from contextgap.team.service.app import Service, create_app
from contextgap.team.service.monitoring import logger
from contextgap.team.service.routing import Deadline
from contextgap.team.service.settings import Settings

_IDLE = 10.0  # seconds that a header, or the rest of a request that was answered, may take


class _Protocol(H11Protocol):
    """A connection that is closed if it sends too slowly, too much, or if there are too many."""

    connections: Any  # all of them
    cycle: Any  # the last request, None before the first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the server's own
        super().connection_made(transport)
        self.idle_since, self._surplus = self.loop.time(), 0
        self._settings: Settings = self.config.app.state.service.settings  # type: ignore[union-attr]  # ours
        most = _most_connections(self._settings.connections)
        if len(self.connections) > most:
            opened = [each for each in self.connections if not each.transport.is_closing()]
            if len(opened) > most:
                idle = [each for each in opened if each.idle]
                min(idle, key=lambda each: each.idle_since).transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.idle and self.conn.their_state is h11.SEND_BODY:
            self._surplus += len(data)  # it was refused, and will not be read
            if self._surplus > self._settings.body:
                self.transport.abort()

    def on_response_complete(self) -> None:
        self.idle_since, self._surplus = self.loop.time(), 0
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.idle:
            deadline: Deadline | None = self.scope.get("contextgap.deadline")  # type: ignore[assignment]  # ours
            if deadline is not None:
                deadline.leave()


def _most_connections(wanted: int) -> int:
    """Return how many connections may be open; databases and files need descriptors, too."""
    files = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 2 * wanted
    return min(wanted, max(16, files // 2))


class _Server(uvicorn.Server):
    """A server that says where it listens, and ends in time."""

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
            where = _address(self.servers[0].sockets[0].getsockname())
            await asyncio.to_thread(self._announce, where)  # it may write to the database

    async def on_tick(self, counter: int) -> bool:
        """Close connections on which no whole request comes."""
        if counter % 10 == 0:
            before = asyncio.get_running_loop().time() - _IDLE
            for each in list(self.server_state.connections):
                if isinstance(each, _Protocol) and each.idle and each.idle_since < before:
                    each.transport.abort()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, and end in any case: nothing that was not committed was promised."""
        super().handle_exit(sig, frame)
        last = threading.Timer(self._service.settings.grace, os._exit, (0,))
        last.daemon = True
        last.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stopping = True  # streams end, or the server would wait for them
        await super().shutdown(sockets)


def serve(
    database: str | os.PathLike[str], settings: Settings, announce: Callable[[str], None]
) -> None:
    """Listen, ``announce`` the address, and at a signal finish what runs and leave snapshots."""
    where = Database(database)
    try:
        prepare(where)  # so that what is no database, or of a later release, is said at once
    except (OSError, SQLAlchemyError):
        if where.is_file:  # a server may start later
            raise
    where.close()
    app = create_app(database, settings, log=sys.stderr)
    service: Service = app.state.service
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,  # ours
        access_log=False,
        proxy_headers=False,  # who is behind a proxy is not ours to believe
        server_header=False,
        http=_Protocol,
        ws="none",
        backlog=128,  # as many are accepted at once, before those that are too many are closed
        timeout_graceful_shutdown=math.ceil(settings.grace / 3),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server has its own, and raises them afterwards
    server = _Server(config, service, announce)
    with contextlib.suppress(SystemExit):  # of a server that cannot start
        server.run()
    if not server.started:
        raise OSError(f"cannot listen at {settings.host}, port {settings.port}")
    logger.info("stopped")
    if not service.ended:
        sys.stdout.flush()
        os._exit(0)  # Python would abort while a thread still computes


def _address(name: Any) -> str:
    host, port = name[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
