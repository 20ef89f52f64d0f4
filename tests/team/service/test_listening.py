"""Server-sent events: who is told what, and when streams end."""

import asyncio
import contextlib

import pytest

from contextgap.team.service import page
from contextgap.team.service.access import RefusedError
from contextgap.team.service.page import Listening


class Log:
    """A log that grows when told to."""

    def __init__(self) -> None:
        self.event, self.looks = 1, 0

    def of(self, _: str) -> "Log":
        return self

    def last_event(self) -> int:
        self.looks += 1
        if self.event < 0:
            raise OSError("the database is away")
        return self.event


async def allowed() -> None:
    return None


async def said(stream, count: int) -> list[str]:
    return [await asyncio.wait_for(anext(stream), 5) for _ in range(count)]


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(page, "READ_EVERY", 0.01)
    return Log()


def test_listeners_share_one_look_and_are_told_what_changes(log):
    async def listen():
        hub = Listening(log, lambda: False)
        streams = [await hub.listen("sensors", allowed) for _ in range(5)]
        firsts = [await said(stream, 2) for stream in streams]
        assert firsts == 5 * [["retry: 3000\n\n", 'event: log\ndata: {"event": 1}\n\n']]
        looks = log.looks
        waiting = asyncio.gather(*(said(stream, 1) for stream in streams))
        await asyncio.sleep(0.1)
        assert 0 < log.looks - looks < 25  # not five times as many
        log.event = 9
        assert await waiting == 5 * [['event: log\ndata: {"event": 9}\n\n']]
        for stream in streams:
            await stream.aclose()
        await asyncio.sleep(0.1)
        looks = log.looks
        await asyncio.sleep(0.1)
        assert log.looks == looks  # nobody listens, nobody looks

    asyncio.run(listen())


def test_silence_is_filled_with_comments(log, monkeypatch):
    monkeypatch.setattr(page, "HEARTBEAT", 0.05)

    async def listen():
        stream = await Listening(log, lambda: False).listen("sensors", allowed)
        parts = await said(stream, 5)
        assert parts[2:] == 3 * [": nothing new\n\n"]
        await stream.aclose()

    asyncio.run(listen())


def test_streams_end_when_the_service_stops(log):
    async def listen():
        stopping = False
        stream = await Listening(log, lambda: stopping).listen("sensors", allowed)
        await said(stream, 2)
        stopping = True
        with pytest.raises(StopAsyncIteration):
            await said(stream, 3)

    asyncio.run(listen())


def test_streams_end_when_a_token_is_revoked(log, monkeypatch):
    monkeypatch.setattr(page, "HEARTBEAT", 0.05)

    async def listen():
        good = True

        async def check():
            if not good:
                raise RefusedError(401, "revoked")

        stream = await Listening(log, lambda: False).listen("sensors", check)
        await said(stream, 2)
        good = False
        with pytest.raises(StopAsyncIteration):
            await said(stream, 3)

    asyncio.run(listen())


def test_too_many_listeners_are_sent_away(log, monkeypatch):
    monkeypatch.setattr(page, "LISTENERS", 2)

    async def listen():
        hub = Listening(log, lambda: False)
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                stream = await hub.listen("sensors", allowed)
                stack.push_async_callback(stream.aclose)
                await said(stream, 1)
            with pytest.raises(RefusedError, match="2 pages listen already") as refused:
                await hub.listen("sensors", allowed)
            assert refused.value.status == 503
        await said(await hub.listen("sensors", allowed), 2)

    asyncio.run(listen())


def test_a_database_that_comes_back_is_looked_at_again(log):
    async def listen():
        stream = await Listening(log, lambda: False).listen("sensors", allowed)
        await said(stream, 2)
        log.event = -1
        await asyncio.sleep(0.05)
        log.event = 5
        assert await said(stream, 1) == ['event: log\ndata: {"event": 5}\n\n']
        await stream.aclose()

    asyncio.run(listen())
