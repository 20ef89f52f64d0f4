"""JSON that means one thing only: no NaN, no infinity, no name twice."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from contextgap.service.problems import RefusedError

_NOT_READ = object()


class StrictRequest(Request):
    """A request whose body is read strictly."""

    _content: Any = _NOT_READ

    async def json(self) -> Any:
        """Return the body; raise if it is not JSON, or says that it is something else."""
        if self._content is _NOT_READ:
            self._check_kind()
            self._body = await self._received()  # where the framework looks for it, too
            self._content = strict_json(self._body)
        return self._content

    async def _received(self) -> bytes:
        """Return the body; a request's own way takes longer than all that is done with it."""
        body, more = b"", True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body, more = body + message.get("body", b""), message.get("more_body", False)
        return body

    def _check_kind(self) -> None:
        """Raise unless the body is said to be JSON, which no form of a foreign page can say."""
        said = self.scope["contextgap.caller"].headers.get("content-type", "")
        kind = said.partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RefusedError(
                415, f"the content type must be application/json, got {kind or 'none'}"
            )


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} is there twice")
    return found


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_object)
