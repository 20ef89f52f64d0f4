"""Trials: asking for them, telling, cancelling, correcting, retracting and listing them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Request, Response

from contextgap.tables.table import read_json
from contextgap.team.campaign import Campaign
from contextgap.team.campaign.wire import recall_json, trial_json
from contextgap.team.service import bodies, reading
from contextgap.team.service.guard import VERSION, DirectRoute, guarded_router, needs
from contextgap.team.service.problems import RefusedError
from contextgap.team.service.routes.common import (
    LARGEST,
    CampaignName,
    TrialNumber,
    hosting_of,
    json_answer,
    said,
    service_of,
)
from contextgap.team.service.strict import StrictRequest

router = guarded_router(VERSION)
_PAGE = 1000  # trials in one answer, if not said otherwise
_MOST = 10_000
_FEW = 64  # contexts, up to which an ask is brief
_SURELY = 0.2  # of the deadline, up to which the last ask says that the next one is in time
_PROBES = 8, 32  # contexts asked for to see how long an ask takes
_TRIAL = {
    "id": 1,
    "arm": "hull",
    "context": {"temperature": 21.5, "mode": "eco"},
    "state": "open",
    "reward": None,
    "eligible": None,
    "asked": "2024-05-01T12:30:00+00:00",
    "until": "2024-05-08T12:30:00+00:00",
    "told": None,
    "why": None,
    "by": "bench-3",
}
_TOLD = {**_TRIAL, "state": "told", "reward": 0.62}
_RECALL = {"trial": 1, "policies": [{"policy": "first flight", "contexts": 200, "changed": 3}]}


async def ask(request: StrictRequest) -> Response:
    """Open a trial: {"trial": ...}, or {"trials": [...]} for several contexts."""
    body = bodies.Ask.read(await request.json())
    campaign, hosting = request.path_params["campaign"], hosting_of(request)

    def read() -> tuple[int, dict[str, Any]]:
        return reading.check_size(request, body.contexts, body.pool), {
            "contexts": read_json(body.contexts),
            "pool": read_json(body.pool, "pool"),
            "arms": reading.read_eligible_labels(body.arms),
            "once": body.once,
            "lease": reading.read_lease(body.lease),
            "key": reading.read_key(request, body),
        }

    rows, how = await request.read(read)

    def call(found: Campaign) -> Any:
        deadline, start = service_of(request).settings.deadline, time.thread_time()
        if rows > _FEW and rows * hosting.pace.get(campaign, math.inf) > _SURELY * deadline:
            if not (how["key"] and hosting.knows_key(campaign, how["key"])):
                check_duration(found, rows, how, deadline)
            start = time.thread_time()
        answer = _trials_json(found.ask(**how))
        if rows > _FEW:
            hosting.pace[campaign] = (time.thread_time() - start) / rows
        return answer

    brief = body.pool is None and rows <= _FEW
    return json_answer(await hosting.run(campaign, call, brief=brief))


def check_duration(campaign: Campaign, rows: int, how: Mapping[str, Any], deadline: float) -> None:
    """Raise if an ask would take longer than a request may.

    A copy of the learner is asked for a few contexts, and for some more, to see what each takes.
    """
    seconds = []
    given = "contexts" if how["pool"] is None else "pool"
    for few in _PROBES:
        learner, some = campaign.learner(), how[given][:few]
        each = how["arms"] if how["arms"] and isinstance(how["arms"][0], list) else None
        start = time.thread_time()
        learner.ask(**{given: some}, arms=how["arms"] if each is None else each[:few])
        seconds.append(time.thread_time() - start)
    per_row = max(0.0, seconds[1] - seconds[0]) / (_PROBES[1] - _PROBES[0])
    expected = seconds[1] + (rows - _PROBES[1]) * per_row
    if expected > deadline:
        most = max(_FEW, int(rows * deadline / expected / 2))
        raise RefusedError(
            413,
            f"asking for {rows} {given} at once would take about {expected:.0f} s, and a request "
            f"may take {deadline:g} s: send at most {most} at a time",
        )


async def tell(request: StrictRequest) -> Response:
    """Take in rewards: {"trial": ...}, or {"trials": [...]} for several."""
    body = bodies.Tell.read(await request.json())

    def read() -> tuple[int, dict[str, Any]]:
        return reading.check_size(request, body.contexts), {
            "contexts": read_json(body.contexts),
            "arms": reading.read_tried(body.arms),
            "eligible": reading.read_eligible_labels(body.eligible, "eligible"),
            "key": reading.read_key(request, body),
        }

    rows, how = await request.read(read)

    def call(found: Campaign) -> Any:
        return _trials_json(found.tell(body.trial, body.reward, **how))

    campaign, brief = request.path_params["campaign"], rows <= _FEW
    return json_answer(await hosting_of(request).run(campaign, call, brief=brief))


# Asked and told most, so these are read without the framework's help.
router.routes.append(
    DirectRoute(
        f"{VERSION}/campaigns/{{campaign}}/ask",
        ask,
        methods=["POST"],
        summary="Ask for an arm to try",
        openapi_extra={**needs("explore"), **bodies.Ask.documented("campaign")},
        responses=said({"trial": _TRIAL}, 400, 404, 409, 413, 422),
    )
)
router.routes.append(
    DirectRoute(
        f"{VERSION}/campaigns/{{campaign}}/tell",
        tell,
        methods=["POST"],
        summary="Tell the reward of a trial, or of outside data",
        openapi_extra={**needs("explore"), **bodies.Tell.documented("campaign")},
        responses=said({"trial": _TOLD}, 400, 404, 409, 413, 422),
    )
)


@router.get(
    "/campaigns/{campaign}/trials",
    summary="List trials",
    openapi_extra=needs("read"),
    responses=said({"trials": [_TRIAL], "next": None}, 404, 422),
)
async def trials(
    request: Request,
    campaign: CampaignName,
    state: Annotated[list[str] | None, Query(description="Only those in these states.")] = None,
    after: Annotated[
        int, Query(description="Only those with larger numbers.", ge=0, le=LARGEST)
    ] = 0,
    most: Annotated[int, Query(description="At most so many.", ge=1, le=_MOST)] = _PAGE,
) -> Response:
    """List trials in the order of their numbers; ``next`` is what to give as ``after`` for more."""

    def call(found: Campaign) -> Any:
        return [trial_json(trial) for trial in found.find_trials(state, after=after, most=most)]

    page = await hosting_of(request).run(campaign, call)
    return json_answer({"trials": page, "next": page[-1]["id"] if len(page) == most else None})


@router.get(
    "/campaigns/{campaign}/trials/{trial}",
    summary="One trial",
    openapi_extra=needs("read"),
    responses=said({"trial": _TRIAL}, 404, 422),
)
async def trial(request: Request, campaign: CampaignName, trial: TrialNumber) -> Response:
    """Return one trial."""
    found = await hosting_of(request).run(campaign, lambda c: trial_json(c.trial(trial)))
    return json_answer({"trial": found})


@router.post(
    "/campaigns/{campaign}/trials/{trial}/cancel",
    summary="Take back an open trial",
    openapi_extra=needs("explore"),
    responses=said({"trial": _TRIAL | {"state": "cancelled"}}, 400, 404, 409, 422),
)
async def cancel(
    request: Request, campaign: CampaignName, trial: TrialNumber, body: bodies.Keyed
) -> Response:
    """Take back an open trial, which will not be tried."""
    key = reading.read_key(request, body)

    def call(found: Campaign) -> Any:
        return trial_json(found.cancel(trial, key=key))

    return json_answer({"trial": await hosting_of(request).run(campaign, call, brief=True)})


@router.post(
    "/campaigns/{campaign}/trials/{trial}/retract",
    summary="Take a reward back",
    openapi_extra=needs("explore"),
    responses=said(_RECALL, 400, 404, 409, 422),
)
async def retract(
    request: Request, campaign: CampaignName, trial: TrialNumber, body: bodies.Retract
) -> Response:
    """Take a reward back, and say which frozen policies rest on it."""
    key = reading.read_key(request, body)
    found = await hosting_of(request).run(campaign, lambda c: c.retract(trial, body.why, key=key))
    return json_answer(recall_json(found))


@router.post(
    "/campaigns/{campaign}/trials/{trial}/correct",
    summary="Replace a reward",
    openapi_extra=needs("explore"),
    responses=said(_RECALL, 400, 404, 409, 422),
)
async def correct(
    request: Request, campaign: CampaignName, trial: TrialNumber, body: bodies.Correct
) -> Response:
    """Replace a reward by the right one, and say which frozen policies rest on it."""
    key = reading.read_key(request, body)

    def call(found: Campaign) -> Any:
        return found.correct(trial, body.reward, body.why, key=key)

    return json_answer(recall_json(await hosting_of(request).run(campaign, call)))


def _trials_json(found: Any) -> dict[str, Any]:
    if isinstance(found, list):
        return {"trials": [trial_json(trial) for trial in found]}
    return {"trial": trial_json(found)}
