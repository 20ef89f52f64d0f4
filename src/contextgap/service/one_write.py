"""Answers that leave in one piece: the server alone would send headers and body one by one."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol


class _Gathered:
    """A transport that sends what is written to it before the loop goes on, all at once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class OneWriteProtocol(H11Protocol):
    """HTTP/1.1, with one write for each answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base
        """Begin to listen to a client."""
        gathered = cast(asyncio.Transport, _Gathered(transport, self.loop))
        super().connection_made(gathered)
