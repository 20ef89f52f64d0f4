"""The routes about campaigns, their trials and their policies."""

from __future__ import annotations

import asyncio
import io
import math
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Depends, Query, Response

from contextgap.base.labels import encode_label
from contextgap.insight.watch import Watch
from contextgap.learner import StoppingRule
from contextgap.policy.policy import Policy
from contextgap.tables.table import read_json
from contextgap.team.campaign import Campaign, codec
from contextgap.team.campaign.progress import encode_goal
from contextgap.team.campaign.store import LARGEST
from contextgap.team.service import bodies
from contextgap.team.service.access import RefusedError
from contextgap.team.service.routing import (
    CampaignName,
    DirectRoute,
    PolicyName,
    Router,
    StrictRequest,
    TrialNumber,
    describe,
    json_answer,
)

T = TypeVar("T")
router = Router("/v1/campaigns")
most_used = Router("/v1/campaigns", DirectRoute)
own = Router("/v1/campaigns/{campaign}", among=router)
frozen = Router("/v1/campaigns/{campaign}/policies/{policy}", among=router)
direct = Router("/v1/campaigns/{campaign}", DirectRoute, most_used)
_FEW_RECOMMENDED = 16  # contexts, up to which a thread would take longer to begin than answering
_FEW = 64  # contexts, up to which an ask or a tell is brief
_SURELY = 0.2  # of the deadline, up to which the last ask says that the next one is in time
_PROBES = 8, 32  # contexts asked for to see how long an ask takes
_TUNING = 20  # times as long as other requests a tuning may take
_PAGE, _MOST = 1000, 10_000  # trials in one answer, if not said otherwise and at most

_CHANGE = 400, 404, 409, 422  # how a change may be refused
_ENTRY = *_CHANGE, 413  # where it has contexts
_ASKED = 400, 404, 413, 422  # and how a question with contexts may be
_BYTES = "the file's bytes"
_FROZEN = {
    "name": "first flight",
    "at": "2024-05-01T12:30:00.000000+00:00",
    "event": 26,
    "log": "5f2b...",
    "sha256": "9d81...",
    "recalled": [],
}
_WATCHED = {
    "watch": {"rows": 1200, "alarm": None, "evidence": 0.3},
    "level": 20.0,
    "text": "1,200 rows ...",
}
_AUDIT = {"places": [17, 3], "arms": ["hull", "boom"], "weights": [0.8, 1.6]}
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
_CANCELLED = {"trial": {**_TRIAL, "state": "cancelled"}}
_RECALL = {"trial": 1, "policies": [{"policy": "first flight", "contexts": 200, "changed": 3}]}
_ARMS = ["hull", "panel", "boom"]
_ABOUT = {"name": "sensors", "arms": _ARMS, "goal": None}
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


@own.on(
    "POST /recommend",
    "read",
    "The arm to deploy, given what is known now",
    {"arm": "hull"},
    *_ASKED,
)
async def recommend(request: StrictRequest, body: bodies.Recommend) -> Response:
    """Return {"arm": ...}, or {"arms": [...]} for several contexts."""

    def read() -> tuple[Any, Any]:
        bodies.check_size(request, body.contexts)
        return read_json(body.contexts), bodies.read_eligible_labels(body.arms)

    contexts, arms = await request.read(read)
    return await request.answer(lambda c: _labels_json(c.recommend(contexts, arms=arms)))


@own.on("POST /policies", "freeze", "Freeze a policy", _FROZEN, *_CHANGE, status=201)
async def freeze(request: StrictRequest, body: bodies.Freeze) -> Response:
    """Freeze the current decision rule, and keep it under a name."""
    fallback = None if body.fallback is None else codec.read_label(body.fallback, "fallback")

    def call(found: Campaign) -> Any:
        found.freeze(body.name, fallback=fallback, tolerance=body.tolerance, key=body.key)
        return next(vars(each) for each in found.policies() if each.name == body.name)

    return json_answer(await request.hosting.run(request.campaign, call), 201)


@own.on("GET /policies", "read", "All frozen policies", {"policies": [_FROZEN]}, 404)
async def policies(request: StrictRequest) -> Response:
    """Return what is known of all frozen policies, and which trials they rest on in error."""
    return await request.answer(lambda c: {"policies": [vars(each) for each in c.policies()]})


async def _frozen_policy(request: StrictRequest, policy: PolicyName) -> Policy:
    return await request.hosting.policy(request.campaign, policy)


Frozen = Annotated[Policy, Depends(_frozen_policy)]


@frozen.on("GET /card", "read", "How good a policy is", {"card": {"rewards": 12}}, 404)
async def card(found: Frozen) -> Response:
    """Return a policy's score card."""
    return json_answer({"card": found.card.describe()})


@frozen.on("GET /cgap", "read", "A policy as a .cgap file", _BYTES, 404)
async def cgap(request: StrictRequest, found: Frozen) -> Response:
    """Return a policy's file, for Policy.load."""
    return await _download(request, "cgap", codec.to_bytes, found)


@frozen.on("GET /onnx", "read", "A policy as an ONNX graph", _BYTES, 404, 422)
async def onnx(request: StrictRequest, found: Frozen) -> Response:
    """Return a policy as an ONNX graph."""
    return await _download(request, "onnx", _as_onnx, found)


@frozen.on("GET /c", "read", "A policy as C99, in a zip file", _BYTES, 404, 422)
async def c_source(
    request: StrictRequest,
    found: Frozen,
    float32: Annotated[bool, Query(description="Use float instead of double.")] = False,
) -> Response:
    """Return a policy as C source, with a self-test."""
    return await _download(request, "zip", lambda p: _as_c(p, float32=float32), found)


@frozen.on("GET /rebuilt", "read", "A policy made again from the log, as a .cgap file", _BYTES, 404)
async def rebuilt(request: StrictRequest, policy: PolicyName) -> Response:
    """Return a policy made again from the log alone; it takes as long as the log is."""
    made = await request.hosting.beside(
        request.campaign, lambda c: codec.to_bytes(c.rebuild(policy))
    )
    return await _download(request, "cgap", bytes, made)


@most_used.post(
    "/{campaign}/policies/{policy}/recommend",
    **describe(
        "read", "The arm to deploy, by a frozen policy", {"arm": "hull"}, 400, 404, 413, 422
    ),
)
async def recommend_by(
    request: StrictRequest, campaign: CampaignName, policy: PolicyName, body: bodies.Recommend
) -> Response:
    """Answer a request for recommendations, from memory if the policy was used before."""
    found = await request.hosting.policy(campaign, policy)

    watch = request.hosting.watches.get((campaign, policy))

    def recommend() -> Response:
        contexts, arms = read_json(body.contexts), bodies.read_eligible_labels(body.arms)
        if watch is not None:
            return json_answer(_labels_json(watch.see(contexts, eligible=arms)))
        return json_answer(_labels_json(found.recommend(contexts, arms=arms)))

    few = bodies.check_size(request, body.contexts) <= _FEW_RECOMMENDED
    if few and watch is None:  # which somebody else may be busy with
        return recommend()
    return await asyncio.to_thread(recommend)


@router.get(
    "/{campaign}/policies/{policy}/watch",
    **describe("read", "What a frozen policy meets; begins a watch", _WATCHED, 404, 422),
)
async def watch(request: StrictRequest, campaign: CampaignName, policy: PolicyName) -> Response:
    """Return the report of the watch, which sees what the policy is asked from the first call on.

    It goes on after a restart. A kill loses at most 1000 of its rows, and no audit.
    """
    found = (await request.hosting.watch(campaign, policy)).watch
    return json_answer(await asyncio.to_thread(_watch_json, found))


@router.post(
    "/{campaign}/policies/{policy}/watch/audit",
    **describe("read", "Which rows to measure", _AUDIT, 400, 404, 413, 422),
)
async def audit(
    request: StrictRequest, campaign: CampaignName, policy: PolicyName, body: bodies.Audit
) -> Response:
    """Draw rows to measure: those with most regret in doubt, and some at random."""
    bodies.check_size(request, body.contexts)
    found = await request.hosting.watch(campaign, policy)

    def call(watch: Watch) -> dict[str, Any]:
        contexts = read_json(body.contexts)
        drawn = watch.audit(contexts, body.k, costs=body.costs, against=body.against)
        arms = _labels_json(drawn.arms)
        return {"places": drawn.places.tolist(), **arms, "weights": drawn.weights.tolist()}

    return json_answer(await asyncio.to_thread(found.change, call))


@router.post(
    "/{campaign}/policies/{policy}/watch/tell",
    **describe("explore", "Tell what audits gave", _WATCHED, 400, 404, 413, 422),
)
async def audited(
    request: StrictRequest, campaign: CampaignName, policy: PolicyName, body: bodies.Audited
) -> Response:
    """Take in rewards measured in deployment, and return the report."""
    bodies.check_size(request, body.contexts)
    found = await request.hosting.watch(campaign, policy)

    def call(watch: Watch) -> dict[str, Any]:
        arms = bodies.read_tried(body.arms)
        watch.tell(read_json(body.contexts), arms, body.rewards, weights=body.weights)
        return _watch_json(watch)

    return json_answer(await asyncio.to_thread(found.change, call))


def _watch_json(watch: Watch) -> dict[str, Any]:
    report = watch.report()
    level = 1 / watch.failure_probability
    return {"watch": report.describe(), "level": level, "text": str(report)}


def _labels_json(found: Any) -> dict[str, Any]:
    if hasattr(found, "tolist"):
        return {"arms": [encode_label(label) for label in found.tolist()]}
    return {"arm": encode_label(found)}


async def _download(
    request: StrictRequest, ending: str, make: Callable[[T], bytes], thing: T
) -> Response:
    """Answer with a policy's file, which is made in a thread."""
    content = await asyncio.to_thread(make, thing)
    name = quote(request.path_params["policy"], safe="")
    how = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}.{ending}"}
    kind = "application/zip" if ending == "zip" else "application/octet-stream"
    return Response(content, media_type=kind, headers=how)


def _as_onnx(policy: Policy) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.onnx"
        policy.to_onnx(path)
        return path.read_bytes()


def _as_c(policy: Policy, *, float32: bool) -> bytes:
    file = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(file, "w") as archive:
        policy.to_c(folder, float32=float32)
        for path in sorted(Path(folder).rglob("*")):
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes())
    return file.getvalue()


@direct.on("POST /ask", "explore", "Ask for an arm to try", {"trial": _TRIAL}, *_ENTRY)
async def ask(request: StrictRequest, body: bodies.Ask) -> Response:
    """Open a trial: {"trial": ...}, or {"trials": [...]} for several contexts."""
    hosting, campaign = request.hosting, request.campaign
    deadline = request.service.settings.deadline

    def read() -> tuple[int, dict[str, Any]]:
        return bodies.check_size(request, body.contexts, body.pool), {
            "contexts": read_json(body.contexts),
            "pool": read_json(body.pool, "pool"),
            "arms": bodies.read_eligible_labels(body.arms),
            "once": body.once,
            "lease": bodies.read_lease(body.lease),
            "key": body.key,
        }

    rows, how = await request.read(read)

    def call(found: Campaign) -> Any:
        key, expected = how["key"], rows * hosting.pace.get(campaign, math.inf)
        uncertain = rows > _FEW and expected > _SURELY * deadline
        if uncertain and not (key and hosting.knows_key(campaign, key)):
            check_duration(found, rows, how, deadline)
        if rows <= _FEW:
            return _trials_json(found.ask(**how))
        start = time.thread_time()
        answer = _trials_json(found.ask(**how))
        hosting.pace[campaign] = (time.thread_time() - start) / rows
        return answer

    brief = body.pool is None and rows <= _FEW
    return await request.answer(call, brief=brief)


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


@direct.on(
    "POST /tell",
    "explore",
    "Tell the reward of a trial, or of outside data",
    {"trial": _TOLD},
    *_ENTRY,
)
async def tell(request: StrictRequest, body: bodies.Tell) -> Response:
    """Take in rewards: {"trial": ...}, or {"trials": [...]} for several."""

    def read() -> tuple[int, dict[str, Any]]:
        return bodies.check_size(request, body.contexts), {
            "contexts": read_json(body.contexts),
            "arms": bodies.read_tried(body.arms),
            "eligible": bodies.read_eligible_labels(body.eligible, "eligible"),
            "key": body.key,
            "noise": body.noise,
            "censored": body.censored,
            "cost": body.cost,
        }

    rows, how = await request.read(read)
    return await request.answer(
        lambda c: _trials_json(c.tell(body.trial, body.reward, **how)), brief=rows <= _FEW
    )


def _trials_json(found: Any) -> dict[str, Any]:
    if isinstance(found, list):
        return {"trials": [codec.trial_json(trial) for trial in found]}
    return {"trial": codec.trial_json(found)}


@own.on("GET /trials", "read", "List trials", {"trials": [_TRIAL], "next": None}, 404, 422)
async def trials(
    request: StrictRequest,
    state: Annotated[list[str] | None, Query(description="Only those in these states.")] = None,
    after: Annotated[
        int, Query(description="Only those with larger numbers.", ge=0, le=LARGEST)
    ] = 0,
    most: Annotated[int, Query(description="At most so many.", ge=1, le=_MOST)] = _PAGE,
) -> Response:
    """List trials in the order of their numbers; ``next`` is what to give as ``after`` for more."""

    def call(found: Campaign) -> Any:
        page = [codec.trial_json(each) for each in found.find_trials(state, after=after, most=most)]
        return {"trials": page, "next": page[-1]["id"] if len(page) == most else None}

    return await request.answer(call)


@own.on("GET /trials/{trial}", "read", "One trial", {"trial": _TRIAL}, 404, 422)
async def trial(request: StrictRequest, trial: TrialNumber) -> Response:
    """Return one trial."""
    return await request.answer(lambda c: _trials_json(c.trial(trial)))


@own.on("POST /trials/{trial}/cancel", "explore", "Take back an open trial", _CANCELLED, *_CHANGE)
async def cancel(request: StrictRequest, trial: TrialNumber, body: bodies.Keyed) -> Response:
    """Take back an open trial, which will not be tried."""
    return await request.answer(lambda c: _trials_json(c.cancel(trial, key=body.key)), brief=True)


@own.on("POST /trials/{trial}/retract", "explore", "Take a reward back", _RECALL, *_CHANGE)
async def retract(request: StrictRequest, trial: TrialNumber, body: bodies.Retract) -> Response:
    """Take a reward back, and say which frozen policies rest on it."""
    return await request.answer(lambda c: asdict(c.retract(trial, body.why, key=body.key)))


@own.on("POST /trials/{trial}/correct", "explore", "Replace a reward", _RECALL, *_CHANGE)
async def correct(request: StrictRequest, trial: TrialNumber, body: bodies.Correct) -> Response:
    """Replace a reward by the right one, and say which frozen policies rest on it."""
    return await request.answer(
        lambda c: asdict(c.correct(trial, body.reward, body.why, key=body.key))
    )


@router.on("GET ", "read", "The names of all campaigns", {"campaigns": ["sensors"]})
async def names(request: StrictRequest) -> Response:
    """Return the names of all campaigns that the token may see."""
    found = await request.hosting.names()
    return json_answer({"campaigns": [*filter(request.caller.may_see, found)]})


@router.on("POST ", "admin", "Begin a campaign", _ABOUT, 400, 409, 413, 422, status=201)
async def create(request: StrictRequest, body: bodies.Create) -> Response:
    """Begin a campaign."""
    service = request.service

    def read() -> dict[str, Any]:
        several = isinstance(body.arms, list)
        count = len(body.arms) if several else body.arms
        bodies.check_arms(request, count if isinstance(count, int) else 0)
        goal, stop = body.goal, None
        reference = None if goal is None else goal.reference
        bodies.check_size(request, reference, *bodies.tables_of(body.settings))
        if goal is not None:
            contexts = read_json(reference, "reference")
            stop = StoppingRule(goal.tolerance, share=goal.share, reference=contexts)
        return {
            "arms": bodies.read_tried(body.arms) if several else body.arms,
            "goal": stop,
            "lease": bodies.read_lease(body.lease),
            "key": body.key,
            **bodies.read_settings(body.settings),
        }

    how = await request.read(read)
    service.campaigns_rate.take(request.caller.name)
    await service.hosting.create(body.name, **how)
    return json_answer(await service.hosting.run(body.name, _about), 201)


@own.on("GET ", "read", "A campaign's name, arms and goal", _ABOUT, 404)
async def about(request: StrictRequest) -> Response:
    """Return what a campaign is about."""
    return await request.answer(_about)


@own.on("GET /status", "read", "How a campaign stands", _STATUS, 404)
async def status(
    request: StrictRequest,
    fresh: Annotated[
        bool, Query(description="Whether to compute the settled share and the score now.")
    ] = True,
) -> Response:
    """Return how a campaign stands; looked_after says after which event that was computed."""

    def call(found: Campaign) -> Any:
        standing = found.status(fresh=fresh)
        counts = [{"arm": encode_label(a), "count": n} for a, n in standing.rewards.items()]
        return {**standing.describe(), "rewards": counts}  # arms keep their types

    return await request.answer(call)


@own.on("GET /arms", "read", "The arms to choose from", {"arms": _ARMS}, 404)
async def arms(request: StrictRequest) -> Response:
    """Return the arms to choose from."""
    return await request.answer(_arms)


@own.on("POST /arms/add", "admin", "Add an arm", {"arms": [*_ARMS, "tail"]}, *_CHANGE)
async def add_arm(request: StrictRequest, body: bodies.AddArm) -> Response:
    """Add an arm."""
    label = codec.read_label(body.arm)
    bodies.check_size(request, body.features)
    features = read_json(body.features, "features")

    def call(found: Campaign) -> Any:
        bodies.check_arms(request, len(found.arms) + 1)
        found.add_arm(label, features, cost=body.cost, key=body.key)
        return _arms(found)

    return await request.answer(call)


@own.on("POST /arms/remove", "admin", "Never choose an arm again", {"arms": _ARMS[:2]}, *_CHANGE)
async def remove_arm(request: StrictRequest, body: bodies.RemoveArm) -> Response:
    """Never choose an arm again."""
    label = codec.read_label(body.arm)

    def call(found: Campaign) -> Any:
        found.remove_arm(label, key=body.key)
        return _arms(found)

    return await request.answer(call)


@own.on(
    "POST /tune",
    "admin",
    "Learn the hyperparameters again from all rewards",
    {"tuned": True},
    *_CHANGE,
)
async def tune(request: StrictRequest, body: bodies.Tune) -> Response:
    """Learn the hyperparameters again."""
    request.allow_time(_TUNING)
    await request.hosting.run(request.campaign, lambda c: c.tune(body.criterion, key=body.key))
    return json_answer({"tuned": True})


@own.on("GET /learner", "read", "A copy of the learner, as a .cgap file", _BYTES, 404)
async def learner(request: StrictRequest) -> Response:
    """Return a copy of the learner."""
    content = await request.hosting.run(request.campaign, lambda c: codec.to_bytes(c.learner()))
    return Response(content, media_type="application/octet-stream")


def _arms(campaign: Campaign) -> dict[str, Any]:
    return {"arms": [encode_label(label) for label in campaign.arms]}


def _about(campaign: Campaign) -> dict[str, Any]:
    return {"name": campaign.name, **_arms(campaign), "goal": encode_goal(campaign.goal)}
