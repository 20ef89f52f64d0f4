"""JSON that means one thing only: no NaN, no infinity, no name twice."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from contextgap.base import checks
from contextgap.team.service.problems import RefusedError

R = TypeVar("R")
_NOT_READ = object()
_SMALL = 16_384  # bytes, up to which a thread would take longer to begin than reading takes
# One, because decoding lets no other thread run: two would keep the event loop waiting for both.
_THREAD = ThreadPoolExecutor(1, "reading bodies")


class StrictRequest(Request):
    """A request whose body is read strictly, and in a thread if it is large."""

    _content: Any = _NOT_READ

    async def json(self) -> Any:
        """Return the body; raise if it is not JSON, or says that it is something else."""
        if self._content is _NOT_READ:
            self._check_kind()
            self._body = await self._received()  # where the framework looks for it, too
            self._content = await self.read(strict_json, self._body)
        return self._content

    async def read(self, make: Callable[..., R], *arguments: Any) -> R:
        """Return what ``make`` makes of the body, in a thread if that is large."""
        if len(self._body) <= _SMALL:
            return make(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREAD, _without_collector, make, *arguments)

    async def _received(self) -> bytes:
        """Return the body; raise if it is longer than the service takes."""
        most, parts, size, more = self.scope["contextgap.service"].settings.body, [], 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            size += len(part)
            check_length(size, most)
        return b"".join(parts)

    def _check_kind(self) -> None:
        """Raise unless the body is said to be JSON, which no form of a foreign page can say."""
        said = self.scope["contextgap.caller"].headers.get("content-type", "")
        kind = said.partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RefusedError(
                415, f"the content type must be application/json, got {kind or 'none'}"
            )


def _without_collector(make: Callable[..., R], *arguments: Any) -> R:
    """Make something of many parts without looking for garbage, which takes most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return make(*arguments)
    finally:
        if was_enabled:
            gc.enable()


def check_length(size: int, most: int) -> None:
    """Raise if a body is too large."""
    if size > most:
        raise RefusedError(413, f"a request may have {most} bytes")


def strict_json(body: bytes) -> Any:
    """Return what JSON text says; raise if it is not JSON, or says a thing twice."""
    try:
        return _DECODER.decode(body.decode())
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise RefusedError(400, "the body must be JSON in UTF-8") from None
    except ValueError as error:
        raise RefusedError(400, f"the body must be JSON: {error}") from None


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number; write null for a gap")


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=checks.no_name_twice)
