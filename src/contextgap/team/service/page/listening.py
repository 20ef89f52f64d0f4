"""Server-sent events: one task looks at the log of a campaign for all who listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import contextmanager, suppress
from typing import Any

from contextgap.team.service.logs import logger
from contextgap.team.service.page.standing import Standing, Standings
from contextgap.team.service.problems import busy

LOOK = 0.5
"""Seconds between two looks at a log, to which other processes may add."""

HEARTBEAT = 15.0
"""Seconds after which those who listen are told that nothing happened."""

LISTENERS = 200
"""The most who may listen at once."""


class Listening:
    """Tells listeners when the log of a campaign grows.

    Parameters
    ----------
    standings
        The campaigns.
    stopping
        Says whether the service is about to end, and so are all streams.
    """

    def __init__(self, standings: Standings, stopping: Callable[[], bool]) -> None:
        self._standings = standings
        self._stopping = stopping
        self._channels: dict[str, _Channel] = {}

    async def listen(self, campaign: str, allowed: Callable[[], Awaitable[Any]]) -> Any:
        """Return a stream for one listener, which ends when ``allowed`` raises."""
        standing = await asyncio.to_thread(self._standings.of, campaign)
        if sum(len(channel.ears) for channel in self._channels.values()) >= LISTENERS:
            raise busy(f"{LISTENERS} pages listen already")
        return self._stream(campaign, standing, allowed)

    async def _stream(
        self, campaign: str, standing: Standing, allowed: Callable[[], Awaitable[Any]]
    ) -> AsyncIterator[str]:
        with self._joined(campaign, standing) as (channel, ear):
            said = 0
            yield "retry: 3000\n\n"
            while not self._stopping():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ear.wait(), HEARTBEAT)
                ear.clear()
                try:
                    await allowed()
                except Exception:  # the token was revoked; the next request says so
                    return
                if channel.event != said:
                    said = channel.event
                    yield f'event: log\ndata: {{"event": {said}}}\n\n'
                elif not self._stopping():
                    yield ": nothing new\n\n"

    @contextmanager
    def _joined(self, campaign: str, standing: Standing) -> Any:
        channel = self._channels.get(campaign)
        if channel is None:
            channel = self._channels[campaign] = _Channel()
            channel.task = asyncio.create_task(self._look(campaign, channel, standing))
        ear = asyncio.Event()
        channel.ears.add(ear)
        if channel.event:
            ear.set()
        try:
            yield channel, ear
        finally:
            channel.ears.discard(ear)

    async def _look(self, campaign: str, channel: _Channel, standing: Standing) -> None:
        """Look at a log as long as anybody listens."""
        while channel.ears:
            event = channel.event
            try:
                event = await asyncio.to_thread(standing.last_event)
            except Exception as error:  # it may come back
                logger.warning("cannot look at a log", extra={"fields": {"why": str(error)}})
            if event != channel.event or self._stopping():
                channel.event = event
                for ear in channel.ears:
                    ear.set()
            if self._stopping():
                break
            await asyncio.sleep(LOOK)
        self._channels.pop(campaign, None)


class _Channel:
    """Those who listen to one campaign, and the last event they may know of."""

    def __init__(self) -> None:
        self.event = 0
        self.ears: set[asyncio.Event] = set()
        self.task: asyncio.Task[None] | None = None
