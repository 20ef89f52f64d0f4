"""The routes of the live page, and its server-sent events; changes go through the other routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from contextgap.tables.table import read_json
from contextgap.team.campaign import NotFoundError
from contextgap.team.campaign.codec import read_label
from contextgap.team.service import bodies, page_data
from contextgap.team.service.monitoring import logger
from contextgap.team.service.page_data import Standing, Standings
from contextgap.team.service.problems import busy
from contextgap.team.service.routing import (
    LARGEST,
    CampaignName,
    StrictRequest,
    describe,
    guarded_router,
    json_answer,
)

READ_EVERY = 0.5
"""Seconds between two reads of a log, to which other processes may add."""

HEARTBEAT = 15.0
"""Seconds after which those who listen are sent a comment, if nothing happened."""

LISTENERS = 200
"""The most who may listen at once."""

ALLOWED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
"""The content security policy of the page."""

_HEADERS = {
    "Content-Security-Policy": ALLOWED,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
router = guarded_router()


class Along(bodies.Body):
    """What is believed along a column."""

    column: str = Field(description="The column's name.")
    at: bodies.OneContext = Field(None, description="All other columns; by default typical ones.")


class Why(bodies.Body):
    """Why an arm is recommended."""

    context: bodies.OneContext = Field(description="One context.")
    against: bodies.Label = Field(None, description="The other arm; by default the next best.")


def _describe(summary: str, example: Any, *errors: int) -> dict[str, Any]:
    return describe("read", summary, example, 404, *errors)


@cache
def assets() -> dict[str, tuple[bytes, str]]:
    """Return all files of the page by name, each with its type."""
    found = {}
    own = files("contextgap.team.service").joinpath("static")
    for file in (*own.iterdir(), files("contextgap.base").joinpath("look.css")):
        kind = next((kind for end, kind in _KINDS.items() if file.name.endswith(end)), None)
        if kind is not None:
            found[file.name] = file.read_bytes(), f"{kind}; charset=utf-8"
    return found


def _file(name: str) -> Response:
    found = assets().get(name)
    if found is None:
        raise NotFoundError(f"there is no file {name!r}")
    content, kind = found
    return Response(content, headers={**_HEADERS, "Content-Type": kind})


@router.get("/", **describe(None, "The live page"))
async def page() -> Response:
    """Return the page, which has no data in it."""
    return _file("index.html")


@router.get("/page/assets/{name}", **describe(None, "A file of the live page"))
async def asset(name: Annotated[str, Path(description="The file's name.")]) -> Response:
    """Return a script or a style of the page."""
    return _file(name)


@router.get(
    "/page/campaigns",
    **describe("read", "How all campaigns stand, for the page", {"campaigns": []}),
)
async def campaigns(request: StrictRequest) -> Response:
    """Return every campaign that the token may see, in a few words."""
    found = await asyncio.to_thread(request.service.standings.all, request.caller.may_see)
    return json_answer({"campaigns": found})


async def _from_log(
    request: StrictRequest, campaign: str, make: Callable[[Standing], dict[str, Any]]
) -> Response:
    """Answer with what is made of a campaign's log, in a thread."""
    standings = request.service.standings
    return json_answer(await asyncio.to_thread(lambda: make(standings.of(campaign))))


@router.get(
    "/page/campaigns/{campaign}/status",
    **_describe(
        "Counts and progress as last recorded, for the page",
        {"event": 26, "trials": {"open": 1, "told": 12}},
    ),
)
async def status(request: StrictRequest, campaign: CampaignName) -> Response:
    """Return how a campaign stands; unlike the service's own status it waits for nothing."""
    return await _from_log(request, campaign, Standing.status)


@router.get(
    "/page/campaigns/{campaign}/series",
    **_describe(
        "Picks, rewards and progress over time, for the page",
        {"event": 26, "bins": [[1, 2]], "picks": [[1, 1]]},
    ),
)
async def series(request: StrictRequest, campaign: CampaignName) -> Response:
    """Return what the page draws over time, in a bounded number of bins."""
    return await _from_log(request, campaign, Standing.series)


@router.get(
    "/page/campaigns/{campaign}/trials",
    **_describe("Trials, the newest first, for the page", {"trials": [], "next": None}, 422),
)
async def trials(
    request: StrictRequest,
    campaign: CampaignName,
    state: Annotated[list[str] | None, Query(description="Only those in these states.")] = None,
    arm: Annotated[str | None, Query(description="Only those of this arm, as JSON.")] = None,
    text: Annotated[str, Query(description="Only those with this text.", max_length=200)] = "",
    before: Annotated[
        int | None, Query(description="Only those with smaller numbers.", ge=0, le=LARGEST)
    ] = None,
) -> Response:
    """Return a page of trials; ``next`` is what to give as ``before`` for the next page."""

    def find(standing: Standing) -> dict[str, Any]:
        return standing.find_trials(states=state or (), arm=arm, text=text, before=before)

    return await _from_log(request, campaign, find)


@router.get(
    "/page/campaigns/{campaign}/score",
    **_describe(
        "The score card in words, for the page",
        {"event": 26, "rows": [["value of the policy", "0.81 ± 0.02 (direct)"]]},
    ),
)
async def score(request: StrictRequest, campaign: CampaignName) -> Response:
    """Return what deploying would earn as of an event, which may not be the last."""
    belief = await request.service.beliefs.of(campaign)
    return json_answer(await asyncio.to_thread(page_data.score, belief))


@router.get(
    "/page/campaigns/{campaign}/columns",
    **_describe(
        "What contexts look like, for the page",
        {"event": 26, "named": True, "columns": [], "typical": None},
    ),
)
async def columns(request: StrictRequest, campaign: CampaignName) -> Response:
    """Return the columns of contexts, their values, and the most typical context."""
    belief = await request.service.beliefs.of(campaign)
    return json_answer(await asyncio.to_thread(page_data.columns, belief))


@router.post(
    "/page/campaigns/{campaign}/along",
    **_describe(
        "What is believed along a column, for the page",
        {"event": 26, "column": "temperature", "values": [0.0, 1.0]},
        400,
        422,
    ),
)
async def along(request: StrictRequest, campaign: CampaignName, body: Along) -> Response:
    """Return every arm's mean and interval along one column."""
    bodies.check_size(request, body.at)
    belief = await request.service.beliefs.of(campaign)
    at = read_json(body.at, "at")
    return json_answer(await asyncio.to_thread(page_data.course, belief, body.column, at))


@router.post(
    "/page/campaigns/{campaign}/why",
    **_describe(
        "Why an arm is answered, for the page",
        {"event": 26, "ranking": [], "explanation": None},
        400,
        422,
    ),
)
async def why(request: StrictRequest, campaign: CampaignName, body: Why) -> Response:
    """Return the arms at a context, best first, and what makes the difference."""
    bodies.check_size(request, body.context)
    belief = await request.service.beliefs.of(campaign)
    context = read_json(body.context, "context")
    against = None if body.against is None else read_label(body.against, "against")

    def find(standing: Standing) -> dict[str, Any]:
        found = page_data.why(belief, context, against)
        if found["explanation"] is not None:
            arguments, counted = found["explanation"]["trials"], standing.trials()
            numbers = counted.told_order([each["place"] for each in arguments])
            for each, number in zip(arguments, numbers, strict=True):
                same = counted.is_trial(number, each["arm"]["key"], each["reward"])
                each["trial"] = number if same else None
        return found

    return await _from_log(request, campaign, find)


@router.get(
    "/page/campaigns/{campaign}/events",
    **_describe(
        "Server-sent events: the number of the last event, whenever it changes",
        'event: log\ndata: {"event": 26}',
    ),
)
async def events(request: StrictRequest, campaign: CampaignName) -> Response:
    """Return a stream that ends when the service stops or the token is revoked."""
    service, caller = request.service, request.caller

    async def check() -> None:
        caller.token = service.guard.known(caller)
        await service.guard.check(caller, "read", campaign)

    request.allow_time(None)
    stream = await service.listening.listen(campaign, check)
    at_once = {"X-Accel-Buffering": "no"}  # so that nginx does not collect them
    return StreamingResponse(stream, media_type="text/event-stream", headers=at_once)


class Listening:
    """Sends the number of the last event to listeners; one task reads a log for all of them."""

    def __init__(self, standings: Standings, stopping: Callable[[], bool]) -> None:
        self._standings = standings
        self._stopping = stopping
        self._channels: dict[str, _Channel] = {}

    async def listen(self, campaign: str, check: Callable[[], Awaitable[Any]]) -> Any:
        """Return a stream for one listener, which ends when ``check`` raises."""
        standing = await asyncio.to_thread(self._standings.of, campaign)
        if sum(len(channel.listeners) for channel in self._channels.values()) >= LISTENERS:
            raise busy(f"{LISTENERS} pages listen already")
        return self._stream(campaign, standing, check)

    async def _stream(
        self, campaign: str, standing: Standing, check: Callable[[], Awaitable[Any]]
    ) -> AsyncIterator[str]:
        with self._joined(campaign, standing) as (channel, changed):
            said = 0
            yield "retry: 3000\n\n"
            while not self._stopping():
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), HEARTBEAT)
                changed.clear()
                try:
                    await check()
                except Exception:  # the token was revoked; the next request says so
                    return
                if channel.event != said:
                    said = channel.event
                    yield f'event: log\ndata: {{"event": {said}}}\n\n'
                elif not self._stopping():
                    yield ": nothing new\n\n"

    @contextmanager
    def _joined(
        self, campaign: str, standing: Standing
    ) -> Iterator[tuple[_Channel, asyncio.Event]]:
        channel = self._channels.get(campaign)
        if channel is None:
            channel = self._channels[campaign] = _Channel()
            channel.task = asyncio.create_task(self._read(campaign, channel, standing))
        changed = asyncio.Event()
        channel.listeners.add(changed)
        if channel.event:
            changed.set()
        try:
            yield channel, changed
        finally:
            channel.listeners.discard(changed)

    async def _read(self, campaign: str, channel: _Channel, standing: Standing) -> None:
        """Read a log as long as anybody listens."""
        while channel.listeners:
            event = channel.event
            try:
                event = await asyncio.to_thread(standing.last_event)
            except Exception as error:  # it may come back
                logger.warning("cannot read a log", extra={"fields": {"why": str(error)}})
            if event != channel.event or self._stopping():
                channel.event = event
                for changed in channel.listeners:
                    changed.set()
            if self._stopping():
                break
            await asyncio.sleep(READ_EVERY)
        self._channels.pop(campaign, None)


class _Channel:
    """Those who listen to one campaign, and the last event they may know of."""

    def __init__(self) -> None:
        self.event = 0
        self.listeners: set[asyncio.Event] = set()
        self.task: asyncio.Task[None] | None = None
