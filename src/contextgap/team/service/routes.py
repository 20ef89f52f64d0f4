"""The routes about campaigns, their trials and their policies, and what their requests may say."""

from __future__ import annotations

import asyncio
import io
import math
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from fastapi import Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from contextgap.base.checks import encode_label
from contextgap.base.components import UnknownComponentError, build, is_path
from contextgap.insight.watch import Watch
from contextgap.learner import Learner, StoppingRule
from contextgap.policy.policy import Policy
from contextgap.tables.table import read_json
from contextgap.team.campaign import Campaign, values
from contextgap.team.campaign.store import LARGEST
from contextgap.team.campaign.values import encode_goal, read_label
from contextgap.team.service.access import (
    UNKNOWN_FIELD,
    DirectRoute,
    PolicyName,
    RefusedError,
    Router,
    StrictRequest,
    TrialNumber,
    json_answer,
)

_SETTINGS = [name for name in signature(Learner).parameters if name != "arms"]
_CELL: dict[str, Any] = {
    "description": "A number, text, true or false; null if missing; a date as {date: ...}.",
    "anyOf": [
        {"type": "number"},
        {"type": "string"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "object", "properties": {"date": {"type": "string", "format": "date"}}},
        {"type": "object", "properties": {"time": {"type": "string", "format": "date-time"}}},
    ],
}


def _or_several(one: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [one, {"type": "array", "items": one}]}


_NAMED = {"type": "object", "additionalProperties": _CELL}
_ROW = {"type": "array", "items": _CELL}
_ONE = {"anyOf": [_NAMED, _ROW]}
_NAMES = {"type": "array", "items": {"type": "string"}}
_CELLS = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {"columns": _NAMES, "rows": {"type": "array", "items": _ROW}, "levels": _NAMES},
}
_TABLE = {"type": "object", "required": ["table"], "properties": {"table": _CELLS}}
_SEVERAL = {"anyOf": [{"type": "array", "items": _ONE}, _TABLE]}
_LABEL = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]}
_LABELS = {"type": "array", "items": _LABEL}

# Read by the campaign, whose errors say more than a schema's.
OneContext = Annotated[Any, WithJsonSchema(_ONE)]
Contexts = Annotated[Any, WithJsonSchema({"anyOf": [*_ONE["anyOf"], *_SEVERAL["anyOf"]]})]
Table = Annotated[Any, WithJsonSchema(_SEVERAL)]
Label = Annotated[Any, WithJsonSchema(_LABEL)]
Labels = Annotated[Any, WithJsonSchema(_LABELS)]
Eligible = Annotated[Any, WithJsonSchema(_or_several(_LABELS))]
Tried = Annotated[Any, WithJsonSchema(_or_several(_LABEL))]
Trials = Annotated[Any, WithJsonSchema(_or_several({"type": "integer"}))]
Numbers = Annotated[Any, WithJsonSchema(_or_several({"type": "number"}))]
Flags = Annotated[Any, WithJsonSchema(_or_several({"type": "boolean"}))]
Lease = Annotated[
    float | Literal["ever"],
    Field(description='Seconds that a pick counts as pending, or "ever".'),
]
Key = Annotated[
    str | None,
    Field(description="Names the request: sent again with the same key, nothing happens again."),
]


class Body(BaseModel):
    """A request; other fields than these are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, content: Any) -> Any:
        fields = cls.model_fields
        for name in content if isinstance(content, dict) else ():
            if name not in fields:
                said = {"field": name, "fields": ", ".join(fields)}
                raise PydanticCustomError(
                    UNKNOWN_FIELD, "is not a field of this request; its fields are {fields}", said
                )
        return content


class Keyed(Body):
    key: Key = None


class Ask(Keyed):
    contexts: Contexts = Field(None, description="One context, or several as a batch.")
    pool: Table = Field(None, description="Instead: contexts one of which may be chosen.")
    arms: Eligible = Field(None, description="The eligible arms; all by default.")
    once: bool = Field(False, description="From a pool: never a context and an arm again.")
    lease: Lease | None = None


class Tell(Keyed):
    trial: Trials = Field(None, description="The trial's number, or several.")
    reward: Numbers = Field(None, description="The reward, or one for each.")
    contexts: Contexts = Field(None, description="For outside data: where it was tried.")
    arms: Tried = Field(None, description="For outside data: what was tried.")
    eligible: Eligible = Field(None, description="For outside data: what could have been tried.")
    noise: Numbers = Field(None, description="The standard error of the reward, or one for each.")
    cost: Numbers = Field(None, description="What the trial cost, or one for each.")
    censored: Flags = Field(
        None,
        description="Whether the true reward is at most, or the true cost at least, the given one.",
    )


class Retract(Keyed):
    why: str = Field(description="The reason, for those who read the log.")


class Correct(Retract):
    reward: Annotated[Any, WithJsonSchema({"type": "number"})] = Field(
        description="The right reward."
    )


class Recommend(Body):
    contexts: Contexts = Field(description="One context, or several.")
    arms: Eligible = Field(None, description="The eligible arms; all by default.")


class Audit(Body):
    contexts: Contexts = Field(description="Contexts that the policy met recently.")
    k: int = Field(20, description="How many rows to draw.", ge=1, le=10_000)
    costs: list[float] | None = Field(None, description="What each costs to measure.")
    against: bool = Field(False, description="Whether to measure the best single arm, too.")


class Audited(Body):
    contexts: Contexts = Field(description="Where they were measured.")
    arms: list[Label] = Field(description="The arm of each.")
    rewards: list[float] = Field(description="What each gave.")
    weights: list[float] | None = Field(None, description="Those of the audit.")


class Freeze(Keyed):
    name: str = Field(description="The policy's name, new in this campaign.")
    fallback: Label = Field(
        None, description="A safe arm, for contexts where regret bounds are too large."
    )
    tolerance: float | None = Field(None, description="The largest bound it is not for.")


class Tune(Keyed):
    criterion: str = Field("evidence", description='"evidence" or "loo".')


class AddArm(Keyed):
    arm: Label = Field(description="A new label.")
    features: OneContext = Field(None, description="Its features, where arms have them.")
    cost: float | None = Field(None, description="What a trial costs, where that is known of arms.")


class RemoveArm(Keyed):
    arm: Label = Field(description="One of the arms.")


class Goal(Body):
    """When exploring may end."""

    tolerance: float
    share: float = 0.95
    reference: Table = Field(description="Contexts like those to deploy on.")


class Create(Keyed):
    name: str = Field(description="A name for the campaign.")
    arms: Annotated[Any, WithJsonSchema({"anyOf": [_LABELS, {"type": "integer"}]})] = Field(
        description="The arms to choose from, or how many."
    )
    goal: Goal | None = None
    lease: Lease = 604_800.0
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of Learner: method, seed, reward, kernel and so on; parts such as "
        'kernels by their fields: {"type": "Gaussian", "bandwidth": 0.5}.',
    )


def check_size(request: StrictRequest, *given: Any) -> int:
    """Return how many contexts a request has, taken from the caller's; raise if too many."""
    most, count = request.service.settings, 0
    for value in given:
        if value is None:
            continue
        rows, cells = _size(value)
        if rows > most.rows:
            raise RefusedError(
                413, f"a request may have {most.rows} contexts, got {rows}; send several"
            )
        if cells > most.columns:
            raise RefusedError(413, f"a context may have {most.columns} cells, got {cells}")
        count += rows
    request.service.rows_rate.take(request.caller.name, count)
    return count


def _size(value: Any) -> tuple[int, int]:
    if type(value) is dict and type(value.get("table")) is dict:
        columns, rows = (value["table"].get(part) for part in ("columns", "rows"))
        count, cells = _size(rows) if type(rows) is list else (1, 1)
        return count, max(cells, len(columns) if type(columns) is list else 1)
    if type(value) is list:
        inside = [len(row) for row in value if type(row) in (list, dict)]
        return (len(value), max(inside)) if inside else (1, len(value))
    return 1, len(value) if type(value) is dict else 1


def check_arms(request: StrictRequest, count: int) -> None:
    most = request.service.settings.arms
    if count > most:
        raise RefusedError(413, f"a campaign may have {most} arms, got {count}")


def read_lease(lease: float | str | None) -> float | None:
    return math.inf if lease == "ever" else lease  # type: ignore[return-value]  # text is "ever"


def read_eligible_labels(arms: Any, called: str = "arms") -> Any:
    if arms is None:
        return None
    if not isinstance(arms, list):
        raise TypeError(f"{called} must be a list of labels, got {arms!r}")
    return [
        [read_label(label, called) for label in entry]
        if isinstance(entry, list)
        else read_label(entry, called)
        for entry in arms
    ]


def read_tried(arms: Any) -> Any:
    if isinstance(arms, list):
        return [read_label(label, "arms") for label in arms]
    return None if arms is None else read_label(arms, "arms")


def read_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(settings)
    for name in found:
        if name not in _SETTINGS:
            raise ValueError(f"settings must be among {_SETTINGS}, got {name!r}")
    if isinstance(found.get("method"), str) and is_path(found["method"]):
        raise ValueError(
            f"method must be a name from METHODS, got {found['method']!r}: what a request names is "
            "not imported"
        )
    for name in ("kernel", "width", "method"):
        if isinstance(found.get(name), Mapping):
            found[name] = _built(name, found[name])
    if isinstance(found.get("columns"), Mapping):
        kinds = found["columns"].items()
        found["columns"] = {n: _built(n, k) if isinstance(k, Mapping) else k for n, k in kinds}
    features = found.get("features")
    if isinstance(features, Mapping) and "table" not in features:
        found["features"] = {label: read_json(row) for label, row in features.items()}
    elif features is not None:
        read = read_json(features, "features")
        found["features"] = list(read) if isinstance(features, list) else read
    return found


def tables_of(settings: Mapping[str, Any]) -> list[Any]:
    """Return the parts of settings that have a size."""
    features, columns = settings.get("features"), settings.get("columns")
    by_arm = isinstance(features, Mapping) and "table" not in features
    return [list(features.values()) if by_arm else features, columns]  # type: ignore[union-attr]  # a mapping


def _built(name: str, description: Mapping[str, Any]) -> Any:
    try:
        return build(description)
    except UnknownComponentError:
        kind = description.get("type")
        raise ValueError(f"{name} has the type {kind!r}, which this service does not know") from (
            None
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{name} cannot be made of {dict(description)!r}: {error}") from None


T = TypeVar("T")
router = Router("/v1/campaigns")
most_used = Router("/v1/campaigns", DirectRoute)
own = Router("/v1/campaigns/{campaign}", among=router)
frozen = Router("/v1/campaigns/{campaign}/policies/{policy}", among=router)
direct = Router("/v1/campaigns/{campaign}", DirectRoute, most_used)
_FEW_RECOMMENDED = 16  # contexts answered without a thread
_FEW = 64  # contexts, up to which an ask or a tell is brief
_SURELY = 0.2  # of the deadline: the next ask is in time if the last one was in this
_PROBES = 8, 32  # contexts asked for to see how long that takes
_TUNING = 20  # times as long as other requests
_PAGE, _MOST = 1000, 10_000  # trials in one answer, usually and at most

_CHANGE = 400, 404, 409, 422  # how a change may be refused
_ENTRY = *_CHANGE, 413  # where it has contexts
_ASKED = 400, 404, 413, 422  # how a question may be
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
    {"arm": "hull"},
    *_ASKED,
)
async def recommend(request: StrictRequest, body: Recommend) -> Response:
    """The arm to deploy, given what is known now.

    Answers {"arm": ...}, or {"arms": [...]} for several contexts.
    """

    def read() -> tuple[Any, Any]:
        check_size(request, body.contexts)
        return read_json(body.contexts), read_eligible_labels(body.arms)

    contexts, arms = await request.read(read)
    return await request.answer(lambda c: _labels_json(c.recommend(contexts, arms=arms)))


@own.on("POST /policies", "freeze", _FROZEN, *_CHANGE, status=201)
async def freeze(request: StrictRequest, body: Freeze) -> Response:
    """Freeze a policy."""
    fallback = None if body.fallback is None else values.read_label(body.fallback, "fallback")

    def call(found: Campaign) -> Any:
        found.freeze(body.name, fallback=fallback, tolerance=body.tolerance, key=body.key)
        return next(vars(each) for each in found.policies() if each.name == body.name)

    return json_answer(await request.hosting.run(request.campaign, call), 201)


@own.on("GET /policies", "read", {"policies": [_FROZEN]}, 404)
async def policies(request: StrictRequest) -> Response:
    """All frozen policies."""
    return await request.answer(lambda c: {"policies": [vars(each) for each in c.policies()]})


async def _frozen_policy(request: StrictRequest, policy: PolicyName) -> Policy:
    return await request.hosting.policy(request.campaign, policy)


Frozen = Annotated[Policy, Depends(_frozen_policy)]


@frozen.on("GET /card", "read", {"card": {"rewards": 12}}, 404)
async def card(found: Frozen) -> Response:
    """How good a policy is."""
    return json_answer({"card": found.card.describe()})


@frozen.on("GET /cgap", "read", _BYTES, 404)
async def cgap(request: StrictRequest, found: Frozen) -> Response:
    """A policy as a .cgap file."""
    return await _download(request, "cgap", values.to_bytes, found)


@frozen.on("GET /onnx", "read", _BYTES, 404, 422)
async def onnx(request: StrictRequest, found: Frozen) -> Response:
    """A policy as an ONNX graph."""
    return await _download(request, "onnx", _as_onnx, found)


@frozen.on("GET /c", "read", _BYTES, 404, 422)
async def c_source(
    request: StrictRequest,
    found: Frozen,
    float32: Annotated[bool, Query(description="Use float instead of double.")] = False,
) -> Response:
    """A policy as C99, in a zip file."""
    return await _download(request, "zip", lambda p: _as_c(p, float32=float32), found)


@frozen.on("GET /rebuilt", "read", _BYTES, 404)
async def rebuilt(request: StrictRequest, policy: PolicyName) -> Response:
    """A policy made again from the log, as a .cgap file.

    It takes as long as the log is.
    """
    made = await request.hosting.beside(
        request.campaign, lambda c: values.to_bytes(c.rebuild(policy))
    )
    return await _download(request, "cgap", bytes, made)


@direct.on(
    "POST /policies/{policy}/recommend",
    "read",
    {"arm": "hull"},
    *_ASKED,
)
async def recommend_by(request: StrictRequest, policy: PolicyName, body: Recommend) -> Response:
    """The arm to deploy, by a frozen policy."""
    found = await request.hosting.policy(request.campaign, policy)
    watch = request.hosting.watches.get((request.campaign, policy))

    def recommend() -> Response:
        contexts, arms = read_json(body.contexts), read_eligible_labels(body.arms)
        if watch is not None:
            return json_answer(_labels_json(watch.see(contexts, eligible=arms)))
        return json_answer(_labels_json(found.recommend(contexts, arms=arms)))

    few = check_size(request, body.contexts) <= _FEW_RECOMMENDED
    if few and watch is None:  # it may be busy
        return recommend()
    return await asyncio.to_thread(recommend)


@frozen.on("GET /watch", "read", _WATCHED, 404, 422)
async def watch(request: StrictRequest, policy: PolicyName) -> Response:
    """What a frozen policy meets; begins a watch.

    The watch sees what the policy is asked from the first call on. It goes on after a restart. A
    kill loses at most 1000 of its rows, and no audit.
    """
    found = (await request.hosting.watch(request.campaign, policy)).watch
    return json_answer(await asyncio.to_thread(_watch_json, found))


@frozen.on("POST /watch/audit", "read", _AUDIT, *_ASKED)
async def audit(request: StrictRequest, policy: PolicyName, body: Audit) -> Response:
    """Which rows to measure."""
    check_size(request, body.contexts)
    found = await request.hosting.watch(request.campaign, policy)

    def call(watch: Watch) -> dict[str, Any]:
        contexts = read_json(body.contexts)
        drawn = watch.audit(contexts, body.k, costs=body.costs, against=body.against)
        arms = _labels_json(drawn.arms)
        return {"places": drawn.places.tolist(), **arms, "weights": drawn.weights.tolist()}

    return json_answer(await asyncio.to_thread(found.change, call))


@frozen.on("POST /watch/tell", "explore", _WATCHED, *_ASKED)
async def audited(request: StrictRequest, policy: PolicyName, body: Audited) -> Response:
    """Tell what audits gave."""
    check_size(request, body.contexts)
    found = await request.hosting.watch(request.campaign, policy)

    def call(watch: Watch) -> dict[str, Any]:
        arms = read_tried(body.arms)
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


@direct.on("POST /ask", "explore", {"trial": _TRIAL}, *_ENTRY)
async def ask(request: StrictRequest, body: Ask) -> Response:
    """Ask for an arm to try.

    Answers {"trial": ...}, or {"trials": [...]} for several contexts.
    """
    hosting, campaign = request.hosting, request.campaign
    deadline = request.service.settings.deadline

    def read() -> tuple[int, dict[str, Any]]:
        return check_size(request, body.contexts, body.pool), {
            "contexts": read_json(body.contexts),
            "pool": read_json(body.pool, "pool"),
            "arms": read_eligible_labels(body.arms),
            "once": body.once,
            "lease": read_lease(body.lease),
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
    """Raise if an ask would take too long, by asking a copy for few contexts."""
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
    {"trial": _TOLD},
    *_ENTRY,
)
async def tell(request: StrictRequest, body: Tell) -> Response:
    """Tell the reward of a trial, or of outside data.

    Answers {"trial": ...}, or {"trials": [...]} for several.
    """

    def read() -> tuple[int, dict[str, Any]]:
        return check_size(request, body.contexts), {
            "contexts": read_json(body.contexts),
            "arms": read_tried(body.arms),
            "eligible": read_eligible_labels(body.eligible, "eligible"),
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
        return {"trials": [values.trial_json(trial) for trial in found]}
    return {"trial": values.trial_json(found)}


@own.on("GET /trials", "read", {"trials": [_TRIAL], "next": None}, 404, 422)
async def trials(
    request: StrictRequest,
    state: Annotated[list[str] | None, Query(description="Only those in these states.")] = None,
    after: Annotated[
        int, Query(description="Only those with larger numbers.", ge=0, le=LARGEST)
    ] = 0,
    most: Annotated[int, Query(description="At most so many.", ge=1, le=_MOST)] = _PAGE,
) -> Response:
    """List trials.

    In the order of their numbers; ``next`` is what to give as ``after`` for more.
    """

    def call(found: Campaign) -> Any:
        page = [
            values.trial_json(each) for each in found.find_trials(state, after=after, most=most)
        ]
        return {"trials": page, "next": page[-1]["id"] if len(page) == most else None}

    return await request.answer(call)


@own.on("GET /trials/{trial}", "read", {"trial": _TRIAL}, 404, 422)
async def trial(request: StrictRequest, trial: TrialNumber) -> Response:
    """One trial."""
    return await request.answer(lambda c: _trials_json(c.trial(trial)))


@own.on("POST /trials/{trial}/cancel", "explore", _CANCELLED, *_CHANGE)
async def cancel(request: StrictRequest, trial: TrialNumber, body: Keyed) -> Response:
    """Take back an open trial."""
    return await request.answer(lambda c: _trials_json(c.cancel(trial, key=body.key)), brief=True)


@own.on("POST /trials/{trial}/retract", "explore", _RECALL, *_CHANGE)
async def retract(request: StrictRequest, trial: TrialNumber, body: Retract) -> Response:
    """Take a reward back.

    Says which frozen policies rest on it.
    """
    return await request.answer(lambda c: asdict(c.retract(trial, body.why, key=body.key)))


@own.on("POST /trials/{trial}/correct", "explore", _RECALL, *_CHANGE)
async def correct(request: StrictRequest, trial: TrialNumber, body: Correct) -> Response:
    """Replace a reward.

    Says which frozen policies rest on it.
    """
    return await request.answer(
        lambda c: asdict(c.correct(trial, body.reward, body.why, key=body.key))
    )


@router.on("GET ", "read", {"campaigns": ["sensors"]})
async def names(request: StrictRequest) -> Response:
    """The names of all campaigns."""
    found = await request.hosting.names()
    return json_answer({"campaigns": [*filter(request.caller.may_see, found)]})


@router.on("POST ", "admin", _ABOUT, 400, 409, 413, 422, status=201)
async def create(request: StrictRequest, body: Create) -> Response:
    """Begin a campaign."""
    service = request.service

    def read() -> dict[str, Any]:
        several = isinstance(body.arms, list)
        count = len(body.arms) if several else body.arms
        check_arms(request, count if isinstance(count, int) else 0)
        goal, stop = body.goal, None
        reference = None if goal is None else goal.reference
        check_size(request, reference, *tables_of(body.settings))
        if goal is not None:
            contexts = read_json(reference, "reference")
            stop = StoppingRule(goal.tolerance, share=goal.share, reference=contexts)
        return {
            "arms": read_tried(body.arms) if several else body.arms,
            "goal": stop,
            "lease": read_lease(body.lease),
            "key": body.key,
            **read_settings(body.settings),
        }

    how = await request.read(read)
    service.campaigns_rate.take(request.caller.name)
    await service.hosting.create(body.name, **how)
    return json_answer(await service.hosting.run(body.name, _about), 201)


@own.on("GET ", "read", _ABOUT, 404)
async def about(request: StrictRequest) -> Response:
    """A campaign's name, arms and goal."""
    return await request.answer(_about)


@own.on("GET /status", "read", _STATUS, 404)
async def status(
    request: StrictRequest,
    fresh: Annotated[
        bool, Query(description="Whether to compute the settled share and the score now.")
    ] = True,
) -> Response:
    """How a campaign stands.

    looked_after says after which event that was computed.
    """

    def call(found: Campaign) -> Any:
        standing = found.status(fresh=fresh)
        counts = [{"arm": encode_label(a), "count": n} for a, n in standing.rewards.items()]
        return {**standing.describe(), "rewards": counts}

    return await request.answer(call)


@own.on("GET /arms", "read", {"arms": _ARMS}, 404)
async def arms(request: StrictRequest) -> Response:
    """The arms to choose from."""
    return await request.answer(_arms)


@own.on("POST /arms/add", "admin", {"arms": [*_ARMS, "tail"]}, *_CHANGE)
async def add_arm(request: StrictRequest, body: AddArm) -> Response:
    """Add an arm."""
    label = values.read_label(body.arm)
    check_size(request, body.features)
    features = read_json(body.features, "features")

    def call(found: Campaign) -> Any:
        check_arms(request, len(found.arms) + 1)
        found.add_arm(label, features, cost=body.cost, key=body.key)
        return _arms(found)

    return await request.answer(call)


@own.on("POST /arms/remove", "admin", {"arms": _ARMS[:2]}, *_CHANGE)
async def remove_arm(request: StrictRequest, body: RemoveArm) -> Response:
    """Never choose an arm again."""
    label = values.read_label(body.arm)

    def call(found: Campaign) -> Any:
        found.remove_arm(label, key=body.key)
        return _arms(found)

    return await request.answer(call)


@own.on(
    "POST /tune",
    "admin",
    {"tuned": True},
    *_CHANGE,
)
async def tune(request: StrictRequest, body: Tune) -> Response:
    """Learn the hyperparameters again from all rewards."""
    request.allow_time(_TUNING)
    await request.hosting.run(request.campaign, lambda c: c.tune(body.criterion, key=body.key))
    return json_answer({"tuned": True})


@own.on("GET /learner", "read", _BYTES, 404)
async def learner(request: StrictRequest) -> Response:
    """A copy of the learner, as a .cgap file."""
    content = await request.hosting.run(request.campaign, lambda c: values.to_bytes(c.learner()))
    return Response(content, media_type="application/octet-stream")


def _arms(campaign: Campaign) -> dict[str, Any]:
    return {"arms": [encode_label(label) for label in campaign.arms]}


def _about(campaign: Campaign) -> dict[str, Any]:
    return {"name": campaign.name, **_arms(campaign), "goal": encode_goal(campaign.goal)}
