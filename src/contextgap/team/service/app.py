"""The application: its log, counts and documents; what happens around requests; its server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import math
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from html import escape
from types import FrameType
from typing import Any, TextIO
from urllib.parse import unquote

import h11
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import contextgap
from contextgap.insight.watch import Watch
from contextgap.kernels.stationary import scipy_cdist
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.store import check_database, prepare
from contextgap.team.service import page, routes
from contextgap.team.service.access import (
    REFRESH,
    SLASH,
    UNKNOWN,
    Caller,
    DirectRoute,
    Guard,
    Rates,
    RefusedError,
    Router,
    Settings,
    StrictRequest,
    busy,
    check_length,
    json_answer,
    problem,
    refusal,
)
from contextgap.team.service.hosting import CREATING, REBUILDING, Hosting
from contextgap.team.service.page import Beliefs, Listening, Standings

logger = logging.getLogger("contextgap.service")
router = Router()
_ENCODER = json.JSONEncoder(default=str)
_PLAIN = re.compile(r"[!#-\[\]-~]+")  # nothing to quote
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
_PATIENCE = 5.0  # seconds for the database to answer
_ABOUT = (
    "Every change takes a key, in the body or as the header Idempotency-Key: sent again with the "
    "same key, it happens once and gets the same answer. Errors are problem documents (RFC 9457)."
)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Made by contextgap serve token create.",
}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem}
summary{cursor:pointer;padding:.35rem 0}code,pre{font:14px/1.45 ui-monospace,monospace}
pre{background:#8881;padding:.7rem;overflow-x:auto}table{border-collapse:collapse}
td{padding:.2rem .8rem .2rem 0;vertical-align:top}i{opacity:.65}
:root{color-scheme:light dark}
"""


def _word(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class Log(logging.StreamHandler[TextIO]):
    """Writes "json" or "text" lines, those of requests directly: a logger is slow."""

    def __init__(self, kind: str, stream: TextIO) -> None:
        super().__init__(stream)
        self._json = kind == "json"

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        if record.exc_info:
            traceback = logging.Formatter().formatException(record.exc_info)
            fields = {**fields, "traceback": traceback}
        return self._line(record.created, record.levelname.lower(), record.getMessage(), fields)

    def note_request(self, **fields: Any) -> None:
        line = self._line(time.time(), "info", "request", fields)
        with suppress(OSError, ValueError):
            self.stream.write(f"{line}\n")
            self.stream.flush()

    def _line(self, at: float, level: str, message: str, fields: Mapping[str, Any]) -> str:
        date = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
        if self._json:
            return _ENCODER.encode({"at": date, "level": level, "message": message, **fields})
        words = [f"{name}={_word(value)}" for name, value in fields.items() if value is not None]
        return " ".join([date, level, message if message.isprintable() else _word(message), *words])


def start_log(kind: str, stream: TextIO) -> Log:
    log = Log(kind, stream)
    logging.captureWarnings(True)
    for name, level in (
        ("contextgap.service", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("py.warnings", logging.WARNING),
    ):
        found = logging.getLogger(name)
        found.handlers, found.propagate = [log], False
        found.setLevel(level)
    return log


class Metrics:
    """Counts requests by route: names of campaigns make no series."""

    def __init__(
        self,
        waiting: Callable[[], Mapping[str, int]],
        watched: Callable[[], Mapping[tuple[str, str], Watch]],
    ) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(_Watches(watched))
        labels = ["method", "route", "status"]
        about = "Requests that were answered."
        requests = Counter("contextgap_requests", about, labels, registry=registry)
        seconds = Histogram(
            "contextgap_request_seconds",
            "Seconds until the answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        # Looked up once: that takes longer than counting.
        self._counter, self._timer = cache(requests.labels), cache(seconds.labels)
        ProcessCollector(registry=registry)
        opened = Gauge("contextgap_campaigns_open", "Open campaigns.", registry=registry)
        opened.set_function(lambda: len(waiting()))
        total = Gauge("contextgap_requests_waiting", "Requests that wait.", registry=registry)
        total.set_function(lambda: sum(waiting().values()))

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self._counter(method, route, str(status)).inc()
        self._timer(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Watches(Collector):
    """A few series for each watched policy."""

    def __init__(self, watched: Callable[[], Mapping[tuple[str, str], Watch]]) -> None:
        self._watched = watched

    def collect(self) -> Iterator[GaugeMetricFamily]:
        labels = ["campaign", "policy"]
        reports = [(names, watch.report()) for names, watch in self._watched().items()]
        for name, about, read in (
            ("rows", "Rows that a watched policy was asked about.", lambda r: r.rows),
            ("evidence", "Wealth of the bets that contexts have changed.", lambda r: r.evidence),
            ("alarm", "Whether contexts have changed.", lambda r: r.alarm is not None),
            ("outside", "Share of rows outside what was seen.", lambda r: r.outside[0]),
            ("audits", "Audits of a watched policy.", lambda r: r.audits),
            ("drift", "Whether rewards have changed.", lambda r: r.drift is not None),
        ):
            family = GaugeMetricFamily(f"contextgap_watch_{name}", about, labels=labels)
            for names, report in reports:
                family.add_metric(names, float(read(report)))
            yield family


@router.on("GET /livez", None, {"ok": 1})
async def livez() -> Response:
    """Whether the service lives."""
    return json_answer({"ok": True})


@router.on("GET /readyz", None, {"ok": True})
async def readyz(request: StrictRequest) -> Response:
    """Whether the service can work.

    It can if the database can be read and written, and the service is not stopping.
    """
    service = request.service
    if service.stopping:
        raise busy("the service is stopping")
    loop = asyncio.get_running_loop()
    checked = loop.run_in_executor(service.health, check_database, service.vital)
    try:
        await asyncio.wait_for(checked, _PATIENCE)
    except ValueError as error:
        raise busy(str(error)) from None
    return json_answer({"ok": True})


@router.on("GET /metrics", "read", "contextgap_requests_total ...")
async def metrics(request: StrictRequest) -> Response:
    """Counts for Prometheus."""
    text = await asyncio.to_thread(request.service.metrics.text)  # it waits for busy watches
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.on("GET /openapi.json", None)
async def openapi(request: StrictRequest) -> Response:
    """OpenAPI document."""
    return json_answer(document(request.app))


@router.on("GET /docs", None)
async def docs(request: StrictRequest) -> Response:
    """All routes as a page."""
    allowed = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    content = handbook(document(request.app))
    return HTMLResponse(content, headers={"Content-Security-Policy": allowed})


def document(app: FastAPI) -> dict[str, Any]:
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


def handbook(document: Mapping[str, Any]) -> str:
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    routes = [
        _route(document["components"]["schemas"], f"{method.upper()} {path}", route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{title}</h1><p>{escape(document['info']['description'])}</p>"
        "<p>The same for machines: <a href=openapi.json>openapi.json</a>.</p>"
        f"{''.join(routes)}</html>"
    )


def _route(schemas: Mapping[str, Any], name: str, route: Mapping[str, Any]) -> str:
    security = route["security"]
    scope = f"scope {security[0]['token'][0]}" if security else "for everybody"
    rows = {
        f"{each['name']} ({each['in']})": each["description"]
        for each in route.get("parameters", ())
    }
    if body := route.get("requestBody"):
        named = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        required = schemas[named].get("required", ())
        for field, said in schemas[named]["properties"].items():
            where = f"{field} (body{', required' if field in required else ''})"
            rows[where] = said.get("description", "")
    table = [f"<tr><td><code>{escape(n)}</code><td>{escape(said)}" for n, said in rows.items()]
    answers = []
    for status, said in route["responses"].items():
        answers.append(f"<p><b>{status}</b> {escape(said['description'])}</p>")
        example = said.get("content", {}).get("application/json", {}).get("example")
        if example is not None:
            answers.append(f"<pre>{escape(json.dumps(example, indent=1))}</pre>")
    summary, _, more = route["description"].partition("\n")
    return (
        f"<details><summary><code>{escape(name)}</code> {escape(summary)} <i>({scope})</i>"
        f"</summary><p>{escape(more)}</p><table>{''.join(table)}</table>{''.join(answers)}</details>"
    )


_READERS = 16
_DAY = 86_400.0  # seconds
_SAVING = 1.0  # seconds after which watches are saved
_ROWS_AT_ONCE = 100.0  # seconds of rows
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_LEFT = 499  # as proxies log it when a client left
_IDLE = 10.0  # seconds for a header, or the rest of an answered request


class Service:
    def __init__(
        self, database: str | os.PathLike[str], settings: Settings, log: TextIO | None = None
    ) -> None:
        self.log = None if log is None else start_log(settings.log, log)
        # A connection for each thread; tokens and health have their own.
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
        self.metrics = Metrics(self.hosting.waiting, self.hosting.watched)
        self.stopping = False
        self.ended = True
        self.standings = Standings(opened)
        self.beliefs = Beliefs(self.hosting, self.standings)
        self.listening = Listening(self.standings, lambda: self.stopping)

    def close(self) -> None:
        self.ended = self.hosting.close(self.settings.grace / 2)
        self.vital.close()


class ServiceApp(FastAPI):
    """The routes of a service, and what happens around every request.

    That, and answering direct routes, is done outside of the slow framework.
    """

    def __init__(self, service: Service) -> None:
        super().__init__(
            title="contextgap",
            version=contextgap.__version__,
            summary="Campaigns over HTTP",
            openapi_url=None,
            redirect_slashes=False,  # to any Host a request names
            lifespan=_lifespan,
            exception_handlers=dict.fromkeys(
                (HTTPException, RequestValidationError, Exception), _answer
            ),
        )
        self.state.service = self._service = service
        # include_router would look for every route twice.
        for each in (routes.most_used, routes.router, router, page.router):
            self.routes.extend(each.routes)
        self._direct = [route for route in self.routes if isinstance(route, DirectRoute)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        caller = scope["contextgap.caller"] = Caller.of(scope)
        scope["contextgap.service"] = self._service
        scope["contextgap.task"] = asyncio.current_task()
        seconds = self._service.settings.deadline
        limit = scope["contextgap.limit"] = asyncio.timeout(seconds)
        refused: RefusedError | None = None
        try:
            async with limit:
                self._check(caller)
                raw: Any = scope.get("raw_path")
                if raw is not None and b"%2" in raw and b"%2f" in raw.lower():
                    parts = map(unquote, raw.decode("ascii").split("/"))
                    scope["path"] = "/".join(part.replace("/", SLASH) for part in parts)
                await self._found(scope)(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            if scope.get("contextgap.left"):
                status = status or _LEFT
            else:
                refused = busy("the service is stopping")
        except Exception as error:
            if limit.expired() and type(error) is TimeoutError:
                refused = busy(
                    f"this took longer than {seconds:g} s and was given up; repeated with the same "
                    "key it happens once"
                )
            else:
                refused = refusal(error) or UNKNOWN
                if refused is UNKNOWN:
                    logger.error(
                        "failed", exc_info=error, extra={"fields": {"path": scope["path"]}}
                    )
        if refused is not None and not status:
            await problem(refused)(scope, receive, send_with_headers)
        self._note(scope, caller, status, time.perf_counter() - start)

    def _found(self, scope: Scope) -> ASGIApp:
        for route in self._direct:
            match = route.path_regex.match(scope["path"])
            if match is not None and scope["method"] in route.methods:
                scope.update(route=route, path_params=match.groupdict())
                return route.handle
        return super().__call__

    def _check(self, caller: Caller) -> None:
        service, length = self._service, caller.headers.get("content-length")
        if length is not None:
            if "transfer-encoding" in caller.headers:
                raise RefusedError(
                    400,
                    "a request has a Content-Length or a Transfer-Encoding, not both",
                    headers={"Connection": "close"},
                )
            check_length(int(length) if length.isdecimal() else 0, service.settings.body)
        service.guard.check_origin(caller)
        caller.token = service.guard.known(caller)
        service.requests_rate.take(caller.name)

    def _note(self, scope: Scope, caller: Caller, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._service.metrics.note(caller.method, route, status, seconds)
        if self._service.log is not None:
            self._service.log.note_request(
                method=caller.method,
                path=scope["path"].replace(SLASH, "%2F"),
                status=status,
                ms=round(1000 * seconds, 3),
                client=caller.address,
                token=None if caller.token is None else caller.token.name,
                key=caller.headers.get("idempotency-key"),
            )


def create_app(
    database: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    log: TextIO | None = None,
) -> FastAPI:
    """Return the service of a database as an ASGI application.

    .. versionadded:: 0.2

    Parameters
    ----------
    database
        As for ``Campaign.create``.
    settings
        How it listens, whom it trusts, how much it takes.
    log
        Where a line for every request goes, and what else is logged; nowhere by default.

    See Also
    --------
    client.Campaign : Uses the service.

    Examples
    --------
    >>> from contextgap.service import Settings, create_app
    >>> app = create_app("bench.db", Settings(tokens="none"))
    >>> app.title
    'contextgap'
    """
    return ServiceApp(Service(database, settings or Settings(), log))


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_READERS, "reading"))
    tasks = [asyncio.create_task(each(service)) for each in (_refresh_tokens, _keep_watches)]
    scipy_cdist()  # now, and not while somebody waits
    yield
    service.stopping = True
    for task in tasks:
        task.cancel()
    await asyncio.to_thread(service.close)


async def _refresh_tokens(service: Service) -> None:
    while True:
        try:
            await service.guard.refresh()
        except Exception as error:
            logger.warning("cannot read tokens", extra={"fields": {"why": str(error)}})
        await asyncio.sleep(REFRESH)


async def _keep_watches(service: Service) -> None:
    try:
        await service.hosting.restore_watches()
    except Exception as error:  # it is tried again upon use
        logger.warning("cannot read watches", extra={"fields": {"why": str(error)}})
    while True:
        await asyncio.sleep(_SAVING)
        await service.hosting.save_watches()


async def _answer(_: Request, error: Exception) -> Response:
    return problem(refusal(error) or UNKNOWN)


class _Protocol(H11Protocol):
    """A connection that is closed if slow, large, or one too many."""

    connections: Any
    cycle: Any

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the server's own
        super().connection_made(transport)
        self.idle_since, self._surplus = self.loop.time(), 0
        self._settings: Settings = self.config.app.state.service.settings  # type: ignore[union-attr]  # ours
        most = self._settings.connections
        if hasattr(os, "sysconf"):  # databases need descriptors, too
            most = min(most, max(16, os.sysconf("SC_OPEN_MAX") // 2))
        if len(self.connections) > most:
            opened = [each for each in self.connections if not each.transport.is_closing()]
            if len(opened) > most:
                idle = [each for each in opened if each.idle]
                min(idle, key=lambda each: each.idle_since).transport.abort()

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.idle and self.conn.their_state is h11.SEND_BODY:
            self._surplus += len(data)  # it will not be read
            if self._surplus > self._settings.body:
                self.transport.abort()

    def on_response_complete(self) -> None:
        self.idle_since, self._surplus = self.loop.time(), 0
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.idle:
            task: asyncio.Task[None] | None = self.scope.get("contextgap.task")  # type: ignore[assignment]  # ours
            if task is not None:  # nobody waits for its answer any more
                self.scope["contextgap.left"] = True  # type: ignore[typeddict-unknown-key]  # ours
                task.cancel()


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, service: Service, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._service, self._announce = service, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # imports stay
        if not self.should_exit:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            where = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            await asyncio.to_thread(self._announce, where)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            before = asyncio.get_running_loop().time() - _IDLE
            for each in list(self.server_state.connections):
                if isinstance(each, _Protocol) and each.idle and each.idle_since < before:
                    each.transport.abort()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in any case: nothing uncommitted was promised."""
        super().handle_exit(sig, frame)
        last = threading.Timer(self._service.settings.grace, os._exit, (0,))
        last.daemon = True
        last.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stopping = True  # or streams go on
        await super().shutdown(sockets)


def serve(
    database: str | os.PathLike[str], settings: Settings, announce: Callable[[str], None]
) -> None:
    """Listen, ``announce`` the address, and at a signal finish what runs and leave snapshots."""
    where = Database(database)
    try:
        prepare(where)  # what is no database is said at once
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
        log_config=None,
        access_log=False,
        proxy_headers=False,  # who is behind a proxy is not ours to believe
        server_header=False,
        http=_Protocol,
        ws="none",
        backlog=128,  # those beyond are closed once accepted
        timeout_graceful_shutdown=math.ceil(settings.grace / 3),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server raises them afterwards
    server = _Server(config, service, announce)
    with contextlib.suppress(SystemExit):
        server.run()
    if not server.started:
        raise OSError(f"cannot listen at {settings.host}, port {settings.port}")
    logger.info("stopped")
    if not service.ended:
        sys.stdout.flush()
        os._exit(0)  # Python would abort while a thread still computes
