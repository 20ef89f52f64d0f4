"""Recommendations, and policies: freezing, listing, downloading, deciding by them."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import Query, Request, Response

from contextgap.base.labels import encode_label
from contextgap.tables.table import read_json
from contextgap.team.campaign import Campaign
from contextgap.team.campaign.replay import to_bytes
from contextgap.team.campaign.wire import frozen_json, read_label
from contextgap.team.service import bodies, reading
from contextgap.team.service.downloads import as_c, as_onnx, download
from contextgap.team.service.guard import VERSION, DirectRoute, guarded_router, needs
from contextgap.team.service.routes.common import (
    CampaignName,
    PolicyName,
    hosting_of,
    json_answer,
    said,
)
from contextgap.team.service.strict import StrictRequest

router = guarded_router(VERSION)
_FROZEN = {
    "name": "first flight",
    "at": "2024-05-01T12:30:00.000000+00:00",
    "event": 26,
    "log": "5f2b...",
    "sha256": "9d81...",
    "recalled": [],
}
_BYTES = "the file's bytes"
_FEW = 16  # rows, up to which a thread would take longer to begin than the answer takes


@router.post(
    "/campaigns/{campaign}/recommend",
    summary="The arm to deploy, given what is known now",
    openapi_extra=needs("read"),
    responses=said({"arm": "hull"}, 400, 404, 413, 422),
)
async def recommend(
    request: StrictRequest, campaign: CampaignName, body: bodies.Recommend
) -> Response:
    """Return {"arm": ...}, or {"arms": [...]} for several contexts."""

    def read() -> tuple[Any, Any]:
        reading.check_size(request, body.contexts)
        return read_json(body.contexts), reading.read_eligible_labels(body.arms)

    contexts, arms = await request.read(read)

    def call(found: Campaign) -> Any:
        return found.recommend(contexts, arms=arms)

    return json_answer(labels_json(await hosting_of(request).run(campaign, call)))


@router.post(
    "/campaigns/{campaign}/policies",
    summary="Freeze a policy",
    openapi_extra=needs("freeze"),
    responses=said(_FROZEN, 400, 404, 409, 422, status=201),
    status_code=201,
)
async def freeze(request: Request, campaign: CampaignName, body: bodies.Freeze) -> Response:
    """Freeze the current decision rule, and keep it under a name."""
    fallback = None if body.fallback is None else read_label(body.fallback, "fallback")
    key = reading.read_key(request, body)

    def call(found: Campaign) -> Any:
        found.freeze(body.name, fallback=fallback, tolerance=body.tolerance, key=key)
        return next(each for each in found.policies() if each.name == body.name)

    return json_answer(frozen_json(await hosting_of(request).run(campaign, call)), 201)


@router.get(
    "/campaigns/{campaign}/policies",
    summary="All frozen policies",
    openapi_extra=needs("read"),
    responses=said({"policies": [_FROZEN]}, 404),
)
async def policies(request: Request, campaign: CampaignName) -> Response:
    """Return what is known of all frozen policies, and which trials they rest on in error."""
    found = await hosting_of(request).run(campaign, lambda c: c.policies())
    return json_answer({"policies": [frozen_json(each) for each in found]})


@router.get(
    "/campaigns/{campaign}/policies/{policy}/card",
    summary="How good a policy is",
    openapi_extra=needs("read"),
    responses=said({"card": {"rewards": 12}}, 404),
)
async def card(request: Request, campaign: CampaignName, policy: PolicyName) -> Response:
    """Return a policy's score card."""
    found = await hosting_of(request).policy(campaign, policy)
    return json_answer({"card": found.card.describe()})


@router.get(
    "/campaigns/{campaign}/policies/{policy}/cgap",
    summary="A policy as a .cgap file",
    openapi_extra=needs("read"),
    responses=said(_BYTES, 404),
)
async def cgap(request: Request, campaign: CampaignName, policy: PolicyName) -> Response:
    """Return a policy's file, for Policy.load."""
    found = await hosting_of(request).policy(campaign, policy)
    return await download(policy, "cgap", to_bytes, found)


@router.get(
    "/campaigns/{campaign}/policies/{policy}/onnx",
    summary="A policy as an ONNX graph",
    openapi_extra=needs("read"),
    responses=said(_BYTES, 404, 422),
)
async def onnx(request: Request, campaign: CampaignName, policy: PolicyName) -> Response:
    """Return a policy as an ONNX graph."""
    found = await hosting_of(request).policy(campaign, policy)
    return await download(policy, "onnx", as_onnx, found)


@router.get(
    "/campaigns/{campaign}/policies/{policy}/c",
    summary="A policy as C99, in a zip file",
    openapi_extra=needs("read"),
    responses=said(_BYTES, 404, 422),
)
async def c_source(
    request: Request,
    campaign: CampaignName,
    policy: PolicyName,
    float32: Annotated[bool, Query(description="Use float instead of double.")] = False,
) -> Response:
    """Return a policy as C source, with a self-test."""
    found = await hosting_of(request).policy(campaign, policy)
    return await download(policy, "zip", lambda p: as_c(p, float32=float32), found)


@router.get(
    "/campaigns/{campaign}/policies/{policy}/rebuilt",
    summary="A policy made again from the log, as a .cgap file",
    openapi_extra=needs("read"),
    responses=said(_BYTES, 404),
)
async def rebuilt(request: Request, campaign: CampaignName, policy: PolicyName) -> Response:
    """Return a policy made again from the log alone; it takes as long as the log is."""
    content = await hosting_of(request).beside(campaign, lambda c: to_bytes(c.rebuild(policy)))
    return await download(policy, "cgap", bytes, content)


def labels_json(found: Any) -> dict[str, Any]:
    """Return one label, or an array of them, as JSON values."""
    if hasattr(found, "tolist"):
        return {"arms": [encode_label(label) for label in found.tolist()]}
    return {"arm": encode_label(found)}


async def recommend_by(request: StrictRequest) -> Response:
    """Answer a request for recommendations, from memory if the policy was used before."""
    hosting, names = hosting_of(request), request.path_params
    body = bodies.Recommend.read(await request.json())
    policy = hosting.policy_in_memory(names["campaign"], names["policy"])
    if policy is None:
        policy = await hosting.policy(names["campaign"], names["policy"])

    def recommend() -> bytes:
        contexts, arms = read_json(body.contexts), reading.read_eligible_labels(body.arms)
        return json.dumps(labels_json(policy.recommend(contexts, arms=arms))).encode()

    if reading.check_size(request, body.contexts) <= _FEW:
        content = recommend()
    else:
        content = await asyncio.to_thread(recommend)
    return Response(content, media_type="application/json")


router.routes.append(
    DirectRoute(
        f"{VERSION}/campaigns/{{campaign}}/policies/{{policy}}/recommend",
        recommend_by,
        methods=["POST"],
        summary="The arm to deploy, by a frozen policy",
        openapi_extra={**needs("read"), **bodies.Recommend.documented("campaign", "policy")},
        responses=said({"arm": "hull"}, 400, 404, 413, 422),
    )
)
