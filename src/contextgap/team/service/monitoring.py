"""What a service says about itself: a line of log for every request, counts, health, documents."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from html import escape
from typing import Any, TextIO

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from contextgap.insight.watch import Watch
from contextgap.team.campaign.store import check_database
from contextgap.team.service.access import busy
from contextgap.team.service.routing import Router, StrictRequest, json_answer

logger = logging.getLogger("contextgap.service")
router = Router()
_ENCODER = json.JSONEncoder(default=str)
_PLAIN = re.compile(r"[!#-\[\]-~]+")  # ASCII without spaces, quotes and backslashes
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
_PATIENCE = 5.0  # seconds that the database may take to answer
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
td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
.method{display:inline-block;width:3.4rem;font-weight:600}.scope{opacity:.65}
:root{color-scheme:light dark}
"""


def _word(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class Log(logging.StreamHandler[TextIO]):
    """Writes "json" or "text" lines; those of requests directly: a logger takes twice as long."""

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
    """Counts requests by route, so that names of campaigns do not make ever more series."""

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
        """Count one request; methods that clients invent are counted as one."""
        method = method if method in _METHODS else "other"
        self._counter(method, route, str(status)).inc()
        self._timer(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Watches(Collector):
    """What watches over frozen policies know; as many series as policies are watched."""

    def __init__(self, watched: Callable[[], Mapping[tuple[str, str], Watch]]) -> None:
        self._watched = watched

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the numbers of every watch."""
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


@router.on("GET /livez", None, "Whether the service lives", {"ok": 1})
async def livez() -> Response:
    """Answer at once, whatever else goes on."""
    return json_answer({"ok": True})


@router.on("GET /readyz", None, "Whether the service can work", {"ok": True})
async def readyz(request: StrictRequest) -> Response:
    """Answer whether the database can be read and written, and the service is not stopping."""
    service = request.service
    if service.stopping:
        raise busy("the service is stopping")
    loop = asyncio.get_running_loop()
    checked = loop.run_in_executor(service.health, check_database, service.vital)
    try:
        await asyncio.wait_for(checked, _PATIENCE)
    except ValueError as error:  # of another release, or altered
        raise busy(str(error)) from None
    return json_answer({"ok": True})


@router.on("GET /metrics", "read", "Counts for Prometheus", "contextgap_requests_total ...")
async def metrics(request: StrictRequest) -> Response:
    """Return what the service counts."""
    text = await asyncio.to_thread(request.service.metrics.text)  # it waits for busy watches
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.on("GET /openapi.json", None, "This document")
async def openapi(request: StrictRequest) -> Response:
    """Return the OpenAPI document."""
    return json_answer(document(request.app))


@router.on("GET /docs", None, "This document, for people")
async def docs(request: StrictRequest) -> Response:
    """Return all routes as a page."""
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
    info = document["info"]
    routes = "".join(
        _route(
            document, f"<span class=method>{method.upper()}</span><code>{escape(path)}</code>", r
        )
        for path, methods in document["paths"].items()
        for method, r in methods.items()
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])}</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info['description'])}</p>"
        "<p>The same for machines: <a href=openapi.json>openapi.json</a>.</p>"
        f"{routes}</html>"
    )


def _route(document: Mapping[str, Any], name: str, route: Mapping[str, Any]) -> str:
    security = route.get("security", [])
    scope = f"scope {security[0]['token'][0]}" if security else "for everybody"
    rows = [
        (f"{each['name']} ({each['in']})", each.get("description", ""))
        for each in route.get("parameters", ())
    ]
    content = route.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    for field, said in schema.get("properties", {}).items():
        where = f"{field} (body{', required' if field in required else ''})"
        rows.append((where, said.get("description", "")))
    table = "".join(
        f"<tr><td><code>{escape(n)}</code><td>{escape(about)}</tr>" for n, about in rows
    )
    answers = ""
    for status, said in route["responses"].items():
        example = said.get("content", {}).get("application/json", {}).get("example")
        answers += f"<p><b>{escape(status)}</b> {escape(said.get('description', ''))}</p>"
        if example is not None:
            answers += f"<pre>{escape(json.dumps(example, indent=1))}</pre>"
    return (
        f"<details><summary>{name} {escape(route.get('summary', ''))} "
        f"<span class=scope>({scope})</span></summary>"
        f"<p>{escape(route.get('description', ''))}</p><table>{table}</table>{answers}</details>"
    )
