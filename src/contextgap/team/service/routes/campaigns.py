"""Campaigns: which there are, beginning one, how one stands, its arms, its learner."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from contextgap.base.labels import encode_label
from contextgap.tables.table import read_json
from contextgap.team.campaign import Campaign
from contextgap.team.campaign.goal import encode_goal
from contextgap.team.campaign.replay import to_bytes
from contextgap.team.campaign.wire import read_label, status_json
from contextgap.team.service import bodies, reading
from contextgap.team.service.guard import VERSION, guarded_router, needs
from contextgap.team.service.routes.common import (
    CampaignName,
    allow_time,
    hosting_of,
    json_answer,
    said,
    service_of,
)
from contextgap.team.service.strict import StrictRequest

router = guarded_router(VERSION)
_TUNING = 20  # times as long as other requests a tuning may take
_ABOUT = {"name": "sensors", "arms": ["hull", "panel", "boom"], "goal": None}
_STATUS = {
    "name": "sensors",
    "trials": {"open": 1, "told": 12, "cancelled": 0, "expired": 0, "retracted": 0},
    "rewards": [{"arm": "hull", "count": 12}],
    "settled": 0.4,
    "wanted": 0.95,
    "asks_left": 31,
    "tuning": None,
    "score": None,
    "events": 26,
    "log": "5f2b...",
    "looked_after": 26,
}


@router.get(
    "/campaigns",
    summary="The names of all campaigns",
    openapi_extra=needs("read"),
    responses=said({"campaigns": ["sensors"]}),
)
async def names(request: Request) -> Response:
    """Return the names of all campaigns that the token may see."""
    token = request.scope["contextgap.caller"].token
    found = [
        name
        for name in await hosting_of(request).names()
        if token is None or token.campaign in (None, name)
    ]
    return json_answer({"campaigns": found})


@router.post(
    "/campaigns",
    summary="Begin a campaign",
    openapi_extra=needs("admin"),
    responses=said(_ABOUT, 400, 409, 413, 422, status=201),
    status_code=201,
)
async def create(request: StrictRequest, body: bodies.Create) -> Response:
    """Begin a campaign."""
    hosting, caller = hosting_of(request), request.scope["contextgap.caller"]

    def read() -> dict[str, Any]:
        several = isinstance(body.arms, list)
        count = len(body.arms) if several else body.arms
        reading.check_arms(request, count if isinstance(count, int) else 0)
        reference = None if body.goal is None else body.goal.reference
        reading.check_size(request, reference, *reading.tables_of(body.settings))
        return {
            "arms": reading.read_tried(body.arms) if several else body.arms,
            "goal": reading.read_goal(body.goal),
            "lease": reading.read_lease(body.lease),
            "key": reading.read_key(request, body),
            **reading.read_settings(body.settings),
        }

    how = await request.read(read)
    service_of(request).campaigns_rate.take(caller.name)
    await hosting.create(body.name, **how)
    return json_answer(await hosting.run(body.name, _about), 201)


@router.get(
    "/campaigns/{campaign}",
    summary="A campaign's name, arms and goal",
    openapi_extra=needs("read"),
    responses=said(_ABOUT, 404),
)
async def about(request: Request, campaign: CampaignName) -> Response:
    """Return what a campaign is about."""
    return json_answer(await hosting_of(request).run(campaign, _about))


@router.get(
    "/campaigns/{campaign}/status",
    summary="How a campaign stands",
    openapi_extra=needs("read"),
    responses=said(_STATUS, 404),
)
async def status(
    request: Request,
    campaign: CampaignName,
    fresh: Annotated[
        bool, Query(description="Whether to compute the settled share and the score now.")
    ] = True,
) -> Response:
    """Return how a campaign stands; looked_after says after which event that was computed."""
    found = await hosting_of(request).run(campaign, lambda c: status_json(c.status(fresh=fresh)))
    return json_answer(found)


@router.get(
    "/campaigns/{campaign}/arms",
    summary="The arms to choose from",
    openapi_extra=needs("read"),
    responses=said({"arms": ["hull", "panel", "boom"]}, 404),
)
async def arms(request: Request, campaign: CampaignName) -> Response:
    """Return the arms to choose from."""
    return json_answer({"arms": await hosting_of(request).run(campaign, _arms)})


@router.post(
    "/campaigns/{campaign}/arms/add",
    summary="Add an arm",
    openapi_extra=needs("admin"),
    responses=said({"arms": ["hull", "panel", "boom", "tail"]}, 400, 404, 409, 422),
)
async def add_arm(request: Request, campaign: CampaignName, body: bodies.AddArm) -> Response:
    """Add an arm."""
    key, label = reading.read_key(request, body), read_label(body.arm)
    reading.check_size(request, body.features)
    features = read_json(body.features, "features")

    def call(found: Campaign) -> Any:
        reading.check_arms(request, len(found.arms) + 1)
        found.add_arm(label, features, key=key)
        return _arms(found)

    return json_answer({"arms": await hosting_of(request).run(campaign, call)})


@router.post(
    "/campaigns/{campaign}/arms/remove",
    summary="Never choose an arm again",
    openapi_extra=needs("admin"),
    responses=said({"arms": ["hull", "panel"]}, 400, 404, 409, 422),
)
async def remove_arm(request: Request, campaign: CampaignName, body: bodies.RemoveArm) -> Response:
    """Never choose an arm again."""
    key, label = reading.read_key(request, body), read_label(body.arm)

    def call(found: Campaign) -> Any:
        found.remove_arm(label, key=key)
        return _arms(found)

    return json_answer({"arms": await hosting_of(request).run(campaign, call)})


@router.post(
    "/campaigns/{campaign}/tune",
    summary="Learn the hyperparameters again from all rewards",
    openapi_extra=needs("admin"),
    responses=said({"tuned": True}, 400, 404, 409, 422),
)
async def tune(request: Request, campaign: CampaignName, body: bodies.Tune) -> Response:
    """Learn the hyperparameters again."""
    key = reading.read_key(request, body)
    allow_time(request, _TUNING)
    await hosting_of(request).run(campaign, lambda c: c.tune(body.criterion, key=key))
    return json_answer({"tuned": True})


@router.get(
    "/campaigns/{campaign}/learner",
    summary="A copy of the learner, as a .cgap file",
    openapi_extra=needs("read"),
    responses=said("the file's bytes", 404),
)
async def learner(request: Request, campaign: CampaignName) -> Response:
    """Return a copy of the learner."""
    content = await hosting_of(request).run(campaign, lambda c: to_bytes(c.learner()))
    return Response(content, media_type="application/octet-stream")


def _arms(campaign: Campaign) -> list[Any]:
    return [encode_label(label) for label in campaign.arms]


def _about(campaign: Campaign) -> dict[str, Any]:
    return {
        "name": campaign.name,
        "arms": _arms(campaign),
        "goal": encode_goal(campaign.goal),
    }
