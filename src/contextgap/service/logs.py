"""One line for every request and every event of the service, for machines or for people."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

logger = logging.getLogger("contextgap.service")


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
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = getattr(record, "fields", {})
        said = {"at": at, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        if self._json:
            return json.dumps({**said, **fields}, default=str)
        words = [f"{name}={value}" for name, value in fields.items() if value is not None]
        lines = [" ".join([at, said["level"], said["message"], *words])]
        return "\n".join([*lines, *([said["traceback"]] if "traceback" in said else [])])


def start_logs(kind: str, stream: TextIO | None = None) -> None:
    """Write what this library and its server log to a stream, by default that of errors.

    Parameters
    ----------
    kind
        "json" or "text".
    stream
        Where to.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
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


def log_request(**fields: Any) -> None:
    """Write the line of a request."""
    if logger.isEnabledFor(logging.INFO):
        # By hand, because a logger would look up who calls it.
        record = logging.LogRecord(logger.name, logging.INFO, "", 0, "request", None, None)
        record.fields = fields
        logger.handle(record)
