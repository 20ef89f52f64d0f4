"""The routes of the live page. Changes go through those of the service itself."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from contextgap.tables.table import read_json
from contextgap.team.campaign import NotFoundError
from contextgap.team.campaign.wire import read_label
from contextgap.team.service import bodies
from contextgap.team.service.guard import PUBLIC, guarded_router, needs
from contextgap.team.service.page import aggregates, beliefs
from contextgap.team.service.page.assets import HEADERS, assets
from contextgap.team.service.page.search import find_trials
from contextgap.team.service.page.state import Pages
from contextgap.team.service.reading import check_size
from contextgap.team.service.routes.common import (
    LARGEST,
    CampaignName,
    allow_time,
    json_answer,
    said,
    service_of,
)

router = guarded_router()
_READ = needs("read")


class Along(bodies.Body):
    """What is believed along a column."""

    column: str = Field(description="The column's name.")
    at: bodies.OneContext = Field(None, description="All other columns; by default typical ones.")


class Why(bodies.Body):
    """Why an arm is answered."""

    context: bodies.OneContext = Field(description="One context.")
    against: bodies.Label = Field(None, description="The other arm; by default the next best.")


@router.get("/", summary="The live page", openapi_extra=PUBLIC)
async def page() -> Response:
    """Return the page, which has no data in it."""
    return _file("index.html")


@router.get("/page/assets/{name}", summary="A file of the live page", openapi_extra=PUBLIC)
async def asset(name: Annotated[str, Path(description="The file's name.")]) -> Response:
    """Return a script or a style of the page."""
    return _file(name)


@router.get(
    "/page/campaigns",
    summary="How all campaigns stand, for the page",
    openapi_extra=_READ,
    responses=said({"campaigns": []}),
)
async def campaigns(request: Request) -> Response:
    """Return every campaign that the token may see, in a few words."""
    token = request.scope["contextgap.caller"].token

    def visible(name: str) -> bool:
        return token is None or token.campaign in (None, name)

    found = await asyncio.to_thread(_pages(request).standings.all, visible)
    return json_answer({"campaigns": found})


@router.get(
    "/page/campaigns/{campaign}/status",
    summary="Counts and progress as last recorded, for the page",
    openapi_extra=_READ,
    responses=said({"event": 26, "trials": {"open": 1, "told": 12}}, 404),
)
async def status(request: Request, campaign: CampaignName) -> Response:
    """Return how a campaign stands; unlike the service's own status it waits for nothing."""
    return json_answer(await _from_log(request, campaign, "status"))


@router.get(
    "/page/campaigns/{campaign}/series",
    summary="Picks, rewards and progress over time, for the page",
    openapi_extra=_READ,
    responses=said({"event": 26, "bins": [[1, 2]], "picks": [[1, 1]]}, 404),
)
async def series(request: Request, campaign: CampaignName) -> Response:
    """Return what the page draws over time, in a bounded number of bins."""
    return json_answer(await _from_log(request, campaign, "series"))


@router.get(
    "/page/campaigns/{campaign}/trials",
    summary="Trials, the newest first, for the page",
    openapi_extra=_READ,
    responses=said({"trials": [], "next": None}, 404, 422),
)
async def trials(
    request: Request,
    campaign: CampaignName,
    state: Annotated[list[str] | None, Query(description="Only those in these states.")] = None,
    arm: Annotated[str | None, Query(description="Only those of this arm, as JSON.")] = None,
    text: Annotated[str, Query(description="Only those with this text.", max_length=200)] = "",
    before: Annotated[
        int | None, Query(description="Only those with smaller numbers.", ge=0, le=LARGEST)
    ] = None,
) -> Response:
    """Return a page of trials; ``next`` is what to give as ``before`` for the next page."""

    def find() -> dict[str, Any]:
        store = _pages(request).standings.of(campaign).store
        with store.reading() as connection:
            return find_trials(
                store, connection, states=state or (), arm=arm, text=text, before=before
            )

    return json_answer(await asyncio.to_thread(find))


@router.get(
    "/page/campaigns/{campaign}/score",
    summary="The score card in words, for the page",
    openapi_extra=_READ,
    responses=said({"event": 26, "rows": [["value of the policy", "0.81 ± 0.02 (direct)"]]}, 404),
)
async def score(request: Request, campaign: CampaignName) -> Response:
    """Return what deploying would earn as of an event, which may not be the last."""
    look = await _pages(request).beliefs.look(campaign)
    return json_answer(await asyncio.to_thread(beliefs.score, look))


@router.get(
    "/page/campaigns/{campaign}/columns",
    summary="What contexts look like, for the page",
    openapi_extra=_READ,
    responses=said({"event": 26, "named": True, "columns": [], "typical": None}, 404),
)
async def columns(request: Request, campaign: CampaignName) -> Response:
    """Return the columns of contexts, their values, and the most typical context."""
    look = await _pages(request).beliefs.look(campaign)
    return json_answer(await asyncio.to_thread(beliefs.columns, look))


@router.post(
    "/page/campaigns/{campaign}/along",
    summary="What is believed along a column, for the page",
    openapi_extra=_READ,
    responses=said({"event": 26, "column": "temperature", "values": [0.0, 1.0]}, 400, 404, 422),
)
async def along(request: Request, campaign: CampaignName, body: Along) -> Response:
    """Return every arm's mean and interval along one column."""
    check_size(request, body.at)
    look = await _pages(request).beliefs.look(campaign)
    at = read_json(body.at, "at")
    return json_answer(await asyncio.to_thread(beliefs.course, look, body.column, at))


@router.post(
    "/page/campaigns/{campaign}/why",
    summary="Why an arm is answered, for the page",
    openapi_extra=_READ,
    responses=said({"event": 26, "ranking": [], "explanation": None}, 400, 404, 422),
)
async def why(request: Request, campaign: CampaignName, body: Why) -> Response:
    """Return the arms at a context, best first, and what makes the difference."""
    pages = _pages(request)
    check_size(request, body.context)
    look = await pages.beliefs.look(campaign)
    context = read_json(body.context, "context")
    against = None if body.against is None else read_label(body.against, "against")

    def find() -> dict[str, Any]:
        found = beliefs.why(look, context, against)
        if found["explanation"] is not None:
            arguments = found["explanation"]["trials"]
            counted = pages.standings.of(campaign).trials()
            numbers = aggregates.told_order(counted, [each["place"] for each in arguments])
            for each, number in zip(arguments, numbers, strict=True):
                each["trial"] = number if _is_same(counted, number, each) else None
        return found

    return json_answer(await asyncio.to_thread(find))


@router.get(
    "/page/campaigns/{campaign}/events",
    summary="Server-sent events: the number of the last event, whenever it changes",
    openapi_extra=_READ,
    responses=said('event: log\ndata: {"event": 26}', 404),
)
async def events(request: Request, campaign: CampaignName) -> Response:
    """Return a stream that ends when the service stops or the token is revoked."""
    service, caller = service_of(request), request.scope["contextgap.caller"]

    async def allowed() -> None:
        caller.token = service.guard.known(caller)
        await service.guard.check(caller, "read", campaign)

    allow_time(request, None)
    stream = await service.pages.listening.listen(campaign, allowed)
    at_once = {"X-Accel-Buffering": "no"}  # so that nginx does not collect them
    return StreamingResponse(stream, media_type="text/event-stream", headers=at_once)


def _pages(request: Request) -> Pages:
    return service_of(request).pages


async def _from_log(request: Request, campaign: str, what: str) -> dict[str, Any]:
    standings = _pages(request).standings
    return await asyncio.to_thread(lambda: getattr(standings.of(campaign), what)())


def _is_same(counted: Any, number: int | None, argument: dict[str, Any]) -> bool:
    """Whether a trial is the one meant; the log may have grown since the look at the learner."""
    if number is None:
        return False
    place = number - 1
    same_arm = counted.arms[counted.arm[place]] == argument["arm"]["key"]
    return bool(same_arm and counted.reward[place] == argument["reward"])


def _file(name: str) -> Response:
    found = assets().get(name)
    if found is None:
        raise NotFoundError(f"there is no file {name!r}")
    content, kind = found
    return Response(content, headers={**HEADERS, "Content-Type": kind})
