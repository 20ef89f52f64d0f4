"""What a service says about itself: a line of log for every request, counts, and its health."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, TextIO

from fastapi import Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from contextgap.team.campaign.schema import check_database
from contextgap.team.service.problems import busy
from contextgap.team.service.routing import StrictRequest, describe, guarded_router, json_answer

logger = logging.getLogger("contextgap.service")
router = guarded_router()
_ENCODER = json.JSONEncoder(default=str)
_PLAIN = re.compile(r"[!#-\[\]-~]+")  # ASCII without spaces, quotes and backslashes
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
_PATIENCE = 5.0  # seconds that the database may take to answer


class Lines(logging.Formatter):
    """Formats what is logged as one line: "json", or "text"."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._json = kind == "json"
        self._second, self._date = -1, ""  # the last one that was formatted

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        if record.exc_info:
            fields = {**fields, "traceback": self.formatException(record.exc_info)}
        return self.line(record.created, record.levelname.lower(), record.getMessage(), fields)

    def line(self, at: float, level: str, message: str, fields: Mapping[str, Any]) -> str:
        """Return the line about something at a time, in seconds since 1970."""
        second, milliseconds = divmod(int(1000 * at), 1000)
        if second != self._second:
            self._second, self._date = second, datetime.fromtimestamp(second, UTC).isoformat()[:19]
        date = f"{self._date}.{milliseconds:03}+00:00"
        if self._json:
            return _ENCODER.encode({"at": date, "level": level, "message": message, **fields})
        words = [f"{name}={_word(value)}" for name, value in fields.items() if value is not None]
        return " ".join([date, level, message if message.isprintable() else _word(message), *words])


def _word(value: Any) -> str:
    """Return a value as one word: what could look like a field or a line of its own is quoted."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class Log(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; those of requests without a logger, which takes longer than all."""

    def __init__(self, kind: str, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines = self.formatter = Lines(kind)

    def note_request(self, **fields: Any) -> None:
        """Write the line of a request; one that cannot be written is left out."""
        line = self._lines.line(time.time(), "info", "request", fields)
        with suppress(OSError, ValueError):
            self.stream.write(f"{line}\n")


def start_log(kind: str, stream: TextIO) -> Log:
    """Write what this library and its server log to a stream; return what requests are noted by."""
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

    def __init__(self, waiting: Callable[[], Mapping[str, int]]) -> None:
        self._registry = registry = CollectorRegistry()
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
        """Return all counts as Prometheus reads them."""
        return generate_latest(self._registry)


@router.get("/livez", **describe(None, "Whether the service lives", {"ok": 1}))
async def livez() -> Response:
    """Answer at once, whatever else goes on."""
    return json_answer({"ok": True})


@router.get("/readyz", **describe(None, "Whether the service can work", {"ok": True}))
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


@router.get(
    "/metrics", **describe("read", "Counts for Prometheus", "contextgap_requests_total ...")
)
async def metrics(request: StrictRequest) -> Response:
    """Return what the service counts."""
    return Response(request.service.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})
