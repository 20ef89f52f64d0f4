"""One line for every request and every event of the service, for machines or for people."""

from __future__ import annotations

import json
import logging
import re
import time
from datetime import UTC, datetime
from typing import Any, TextIO

logger = logging.getLogger("contextgap.service")
_ENCODER = json.JSONEncoder(default=str)
_PLAIN = re.compile(r"[!#-\[\]-~]+")  # ASCII without spaces, quotes and backslashes


class Lines(logging.Formatter):
    """Formats what is logged as one line: JSON, or text.

    Parameters
    ----------
    kind
        "json" or "text".
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._json = kind == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        level, message = record.levelname.lower(), record.getMessage()
        if record.exc_info:
            fields = {**fields, "traceback": self.formatException(record.exc_info)}
        return self.line(record.created, level, message, fields)

    def line(self, at: float, level: str, message: str, fields: dict[str, Any]) -> str:
        """Return the line of something that happened at some time."""
        said = {
            "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
            "level": level,
            "message": message,
        }
        if self._json:
            return _ENCODER.encode(said | fields)
        words = [f"{name}={_word(value)}" for name, value in fields.items() if value is not None]
        if not message.isprintable():
            said["message"] = _word(message)
        return " ".join([*said.values(), *words])


def _word(value: Any) -> str:
    """Return a value as one word: what could look like a field or a line of its own is quoted."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class RequestLog:
    """Writes a line for every request; not by a logger, which takes as long as a decision.

    Parameters
    ----------
    kind
        "json" or "text".
    stream
        Where to; None for nowhere.
    """

    def __init__(self, kind: str, stream: TextIO | None) -> None:
        self._lines, self._stream = Lines(kind), stream

    def note(self, **fields: Any) -> None:
        """Write the line of a request."""
        if self._stream is not None:
            self._stream.write(self._lines.line(time.time(), "info", "request", fields) + "\n")


def start_logs(kind: str, stream: TextIO) -> None:
    """Write what this library and its server log to a stream.

    Parameters
    ----------
    kind
        "json" or "text".
    stream
        Where to.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(kind))
    logging.captureWarnings(True)
    for name, level in (
        ("contextgap.service", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("py.warnings", logging.WARNING),
    ):
        found = logging.getLogger(name)
        found.handlers, found.propagate = [handler], False
        found.setLevel(level)
