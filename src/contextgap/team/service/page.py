"""The live page: what it shows, its routes, and its server-sent events.

Pages ask every second, and counting in the database is slow. So counts are kept here, in 21 bytes a
trial, and only what is new is read. Drawings have at most so many bins and points. What the learner
believes is computed beside the campaign's thread. Changes go through the other routes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from numpy.typing import NDArray
from pydantic import Field
from sqlalchemy import ColumnElement, Connection, select

from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import decode_label, encode_label
from contextgap.insight.learnt import along as believed_along
from contextgap.insight.learnt import read_context, values_of
from contextgap.learner import StoppingRule
from contextgap.models.tuning import Tuning
from contextgap.policy.answers import QUICK
from contextgap.policy.policy import Policy
from contextgap.tables.columns import Category, Number
from contextgap.tables.table import read_json
from contextgap.team.campaign import Campaign, NotFoundError
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.methods import check_states
from contextgap.team.campaign.store import (
    EVENTS,
    LARGEST,
    TRIALS,
    Store,
    campaign_names,
    find_store,
    summaries,
)
from contextgap.team.campaign.values import (
    STATES,
    as_json,
    decode_goal,
    read_label,
    read_trial,
    summary,
    trial_json,
)
from contextgap.team.service.access import Router, StrictRequest, busy, json_answer
from contextgap.team.service.hosting import Hosting
from contextgap.team.service.routes import Body, Label, OneContext, check_size

logger = logging.getLogger("contextgap.service")
READ_EVERY = 0.5  # seconds between reads of a log
HEARTBEAT = 15.0  # seconds without news until listeners are sent a comment
LISTENERS = 200
# The content security policy of the page.
ALLOWED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
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

# The most bins along time, single rewards, and arms with a colour of their own.
BINS, POINTS, SHOWN = 120, 500, 8
PAGE = 50
_FINE = 2.0  # bins per root of the number of trials
_COLUMNS = (TRIALS.c.id, TRIALS.c.state, TRIALS.c.arm, TRIALS.c.reward, TRIALS.c.told_by)
_CHANGES = ("tell", "cancel", "expire", "retract", "correct")
_AT_ONCE = 500
_BEHIND = 20_000  # changes, beyond which all is read anew
_STEPS = 240  # records of progress in one answer
_SHARE = 0.1  # of the time, for freezing
_QUICK = 0.1  # seconds, up to which that does not matter
_ARGUMENTS = 6  # named in an explanation
_CAMPAIGNS = 32  # whose last belief is kept
_EXAMPLE = {"event": 26}
router = Router()
own = Router("/page/campaigns/{campaign}", among=router)


class Counted(NamedTuple):
    """All trials up to an event, one per entry."""

    event: int
    arms: tuple[str, ...]  # as JSON
    arm: NDArray[np.int32]  # places among these
    state: NDArray[np.int8]  # places in STATES
    reward: FloatArray  # NaN before it is told
    told_by: IntArray  # 0 before

    def are(self, state: str) -> NDArray[np.bool_]:
        return np.asarray(self.state == STATES.index(state))

    def by_state(self) -> dict[str, int]:
        counts = np.bincount(self.state, minlength=len(STATES))
        return dict(zip(STATES, counts.tolist(), strict=True))

    def by_arm(self) -> list[dict[str, Any]]:
        told, size = self.are("told"), len(self.arms)
        picks = np.bincount(self.arm, minlength=size)
        rewards = np.bincount(self.arm[told], minlength=size)
        sums = np.bincount(self.arm[told], self.reward[told], minlength=size)
        return [
            {
                **_arm(key),
                "picks": int(picks[place]),
                "rewards": int(rewards[place]),
                "mean": float(sums[place] / rewards[place]) if rewards[place] else None,
            }
            for place, key in enumerate(self.arms)
        ]

    def over_time(self) -> dict[str, Any]:
        shown = self._shown()
        series = np.full(len(self.arms), len(shown), dtype=np.intp)
        series[shown] = np.arange(len(shown))
        arms: list[dict[str, Any]] = [_arm(self.arms[place]) for place in shown]
        if len(shown) < len(self.arms):
            arms.append({"key": None, "text": "all others"})
        own, count = series[self.arm], len(self.arm)
        bins = min(BINS, count, round(_FINE * math.sqrt(count)))
        edges = np.linspace(0, count, bins + 1).round().astype(np.intp)
        (told,) = np.nonzero(self.are("told"))
        some = evenly(told, POINTS)
        return {
            "event": self.event,
            "arms": arms,
            "bins": [[int(a) + 1, int(b)] for a, b in pairwise(edges)],
            "picks": _sums(own, np.arange(len(own)), edges, len(arms)).astype(int).tolist(),
            "rewards": _means(own, told, self.reward, edges, len(arms)),
            "points": [[int(i) + 1, int(own[i]), float(self.reward[i])] for i in some],
        }

    def _shown(self) -> list[int]:
        count = len(self.arms)
        if count <= SHOWN:
            return list(range(count))
        picks = np.bincount(self.arm, minlength=count)
        return sorted(np.argsort(-picks, kind="stable")[: SHOWN - 1].tolist())

    def told_order(self, places: Sequence[int]) -> list[int | None]:
        """Return the numbers of trials by their places among rewards, as told."""
        (told,) = np.nonzero(self.are("told"))
        order = told[np.lexsort((told, self.told_by[told]))] + 1
        return [int(order[place]) if place < len(order) else None for place in places]

    def is_trial(self, number: int | None, arm: str, reward: float) -> bool:
        if number is None:
            return False
        same_arm = self.arms[self.arm[number - 1]] == arm
        return bool(same_arm and self.reward[number - 1] == reward)


_NOTHING = Counted(
    0, (), np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0), np.empty(0, np.intp)
)


def _arm(key: str) -> dict[str, Any]:
    return {"key": key, "text": str(decode_label(json.loads(key)))}


def _sums(
    own: IntArray, numbers: IntArray, edges: IntArray, arms: int, weights: FloatArray | None = None
) -> FloatArray:
    bins = np.searchsorted(edges, numbers, side="right") - 1
    size = (len(edges) - 1) * arms
    sums = np.bincount(bins * arms + own[numbers], weights, minlength=size)
    return np.asarray(sums.reshape(-1, max(arms, 1)), dtype=float)


def _means(
    own: IntArray, told: IntArray, rewards: FloatArray, edges: IntArray, arms: int
) -> list[list[float | None]]:
    counts, sums = _sums(own, told, edges, arms), _sums(own, told, edges, arms, rewards[told])
    with np.errstate(invalid="ignore"):
        means = (sums / counts).tolist()
    return [[None if mean != mean else mean for mean in row] for row in means]


class Standing:
    """How a campaign stands, for all threads; kept until the next event."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._counted = _NOTHING
        self._log = ""
        self._goal: tuple[StoppingRule | None] | None = None
        self._kept: dict[str, tuple[Counted, Any]] = {}

    def last_event(self) -> int:
        with self.store.reading() as connection:
            return self.store.last_event(connection)[0]

    def trials(self) -> Counted:
        with self.store.reading() as connection:
            return self._count(connection)

    def status(self) -> dict[str, Any]:
        return self._once("status", self._status)

    def series(self) -> dict[str, Any]:
        return self._once("series", self._series)

    def _once(
        self, what: str, make: Callable[[Connection, Counted], dict[str, Any]]
    ) -> dict[str, Any]:
        with self.store.reading() as connection:
            trials = self._count(connection)
            known, found = self._kept.get(what, (None, {}))
            if known is not trials:
                found = make(connection, trials)
                self._kept[what] = trials, found
            return dict(found)

    def _status(self, connection: Connection, trials: Counted) -> dict[str, Any]:
        if self._goal is None:  # it never changes
            (first,) = self.store.events(connection, 0, 1)
            self._goal = (decode_goal(first.request["goal"]),)
        (goal,), steps = self._goal, self.store.progress(connection)
        (last,) = self.store.events(connection, trials.event - 1, trials.event)
        return {
            "event": trials.event,
            "at": last.at,
            "log": last.hash,
            **summary(steps[-1], steps, goal),
            "settled_at": steps[-1]["rewards"],
            "bounds": steps[-1].get("bounds"),
            "tolerance": None if goal is None else goal.tolerance,
            "trials": trials.by_state(),
            "arms": trials.by_arm(),
        }

    def _series(self, connection: Connection, trials: Counted) -> dict[str, Any]:
        events = self.store.events_of(connection, "progress")
        stride = -(-len(events) // _STEPS) or 1
        some = events[::-1][::stride][::-1]  # with the last one
        steps = [{**event.result, "at": event.at} for event in some]
        return {**trials.over_time(), "progress": steps}

    def _count(self, connection: Connection) -> Counted:
        with self._lock:
            event, log = self.store.last_event(connection)
            known = self._counted
            if (event, log) != (known.event, self._log):
                then = self.store.events(connection, known.event - 1, known.event)
                if [each.hash for each in then] != [self._log]:  # a backup was restored
                    known, self._places = _NOTHING, {}
                self._log = log
                changed = self._changed(connection, known.event)
                if len(changed) > _BEHIND:
                    known, changed = _NOTHING, []
                self._counted = self._updated(connection, known, changed, event)
            return self._counted

    def _changed(self, connection: Connection, after: int) -> list[int]:
        if not after:
            return []
        statement = select(EVENTS.c.request).where(
            EVENTS.c.campaign == self.store.campaign,
            EVENTS.c.kind.in_(_CHANGES),
            EVENTS.c.number > after,
        )
        return [json.loads(request)["trial"] for request in connection.scalars(statement)]

    def _updated(
        self, connection: Connection, known: Counted, changed: Sequence[int], event: int
    ) -> Counted:
        mine = select(*_COLUMNS).where(TRIALS.c.campaign == self.store.campaign)
        old, size = [each for each in changed if each <= len(known.arm)], len(known.arm)
        rows: list[Any] = []
        for first in range(0, len(old), _AT_ONCE):
            some = TRIALS.c.id.in_(old[first : first + _AT_ONCE])
            rows += connection.execute(mine.where(some)).all()
        rows += connection.execute(mine.where(TRIALS.c.id > size).order_by(TRIALS.c.id)).all()
        count = max([size, *(row[0] for row in rows[-1:])])
        # Copies: what was returned before stays as it was.
        copies = [np.concatenate([each, np.zeros(count - size, each.dtype)]) for each in known[2:]]
        if rows:
            numbers, states, arms, rewards, told_by = zip(*rows, strict=True)
            at = np.asarray(numbers) - 1
            copies[0][at] = [self._places.setdefault(arm, len(self._places)) for arm in arms]
            copies[1][at] = [STATES.index(state) for state in states]
            copies[2][at] = [np.nan if reward is None else reward for reward in rewards]
            copies[3][at] = [number or 0 for number in told_by]
        return Counted(event, tuple(self._places), *copies)

    def find_trials(
        self,
        *,
        states: Sequence[str] = (),
        arm: str | None = None,
        text: str = "",
        before: int | None = None,
    ) -> dict[str, Any]:
        """Return trials before a number, the newest first, and the next ``before``."""
        check_states(states)
        for called, each in {"arm": arm, "text": text}.items():
            if each is not None and "\0" in each:
                raise ValueError(
                    f"{called} must be text without NUL, which no trial has, got {each!r}"
                )
        where: list[ColumnElement[bool]] = []
        if states:
            where.append(TRIALS.c.state.in_(states))
        if arm is not None:
            where.append(TRIALS.c.arm == arm)
        if text:
            written = json.dumps(text)[1:-1]  # as the database has it
            where.append(
                TRIALS.c.arm.icontains(written, autoescape=True)
                | TRIALS.c.context.icontains(written, autoescape=True)
                | TRIALS.c.why.icontains(text, autoescape=True)
            )
        if before is not None:
            where.append(TRIALS.c.id < min(before, LARGEST))
        with self.store.reading() as connection:
            rows = self.store.trials(connection, *where, newest_first=True, most=PAGE + 1)
        shown = [_shown(row) for row in rows[:PAGE]]
        return {"trials": shown, "next": rows[PAGE - 1]["id"] if len(rows) > PAGE else None}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    trial = read_trial(row)
    text = {"key": row["arm"], "text": str(trial.arm)}
    return {**trial_json(trial), **text, "told_by": row["told_by"]}


class Standings:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Standing] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> Standing:
        with self._lock:
            if name not in self._known:
                if name not in campaign_names(self._database):
                    raise NotFoundError(f"there is no campaign {name!r}")
                self._known[name] = Standing(find_store(self._database, name))
            return self._known[name]

    def all(self, visible: Callable[[str], bool]) -> list[dict[str, Any]]:
        found = [each for each in summaries(self._database) if visible(each["name"])]
        return sorted(found, key=lambda each: str(each["at"]), reverse=True)


@dataclass
class Belief:
    """A learner's rule as of an event, and the seconds spent on it."""

    event: int
    policy: Policy | None  # None before the first reward
    tuning: Tuning | None
    at: float
    seconds: float

    @property
    def good_until(self) -> float:
        return self.at + (self.seconds / _SHARE if self.seconds > _QUICK else 0.0)

    @property
    def rewards(self) -> int:
        return 0 if self.policy is None else len(self.policy.state.model.observed)

    @property
    def rule(self) -> Policy:
        if self.policy is None:
            raise ValueError("there is nothing to explain before the first reward")
        return self.policy

    def score(self) -> dict[str, Any]:
        start = time.monotonic()
        card = None
        if self.policy is not None and self.rewards > 1:
            card = self.policy.score(rows=QUICK)
        self.seconds += time.monotonic() - start
        tuned = None
        if self.tuning is not None:
            tuned = f"{self.tuning.chosen}, after {self.tuning.rewards} rewards"
        return {
            "event": self.event,
            "rewards": self.rewards,
            "rows": [] if card is None else card.rows(),
            "warnings": [] if card is None else list(card.warnings),
            "tuning": tuned,
        }

    def columns(self) -> dict[str, Any]:
        policy = self.policy
        if policy is None:
            return {"event": self.event, "columns": [], "typical": None, "named": False}
        typical = policy.state.schema.decode(read_context(policy, None)[None])[0]
        return {
            "event": self.event,
            "named": policy.columns is not None,
            "columns": [_column(policy, name) for name in policy.state.schema.parts()],
            "typical": typical,
        }

    def course(self, column: Any, at: Any) -> dict[str, Any]:
        found = believed_along(self.rule, column, at)
        return {
            **found.describe(),
            "event": self.event,
            "arms": [_label(arm) for arm in found.arms],
            "best": [_key(arm) for arm in found.best],
        }

    def why(self, context: Any, against: Any) -> dict[str, Any]:
        """Return the arms at a context, best first, and why."""
        policy = self.rule
        explained = None
        if len(policy.arms) > 1:
            found = policy.explain(context, against, most=_ARGUMENTS)
            explained = {
                **found.describe(),
                "arm": _label(found.arm),
                "against": _label(found.against),
                "trials": [{**asdict(each), "arm": _label(each.arm)} for each in found.trials],
                "columns": [[name, part] for name, part in found.columns.items()],
            }
        ranking = [{**vars(each), "arm": _label(each.arm)} for each in policy.rank(context)]
        return {"event": self.event, "ranking": ranking, "explanation": explained}


class Beliefs:
    """The last belief of each campaign's learner, used longer if it takes long."""

    def __init__(self, hosting: Hosting, standings: Standings) -> None:
        self._hosting, self._standings = hosting, standings
        self._last: OrderedDict[str, Belief] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def of(self, campaign: str) -> Belief:
        standing = await asyncio.to_thread(self._standings.of, campaign)
        async with self._locks.setdefault(campaign, asyncio.Lock()):
            event, known = await asyncio.to_thread(standing.last_event), self._last.get(campaign)
            if known is not None and (known.event == event or time.monotonic() < known.good_until):
                return known
            policy, tuning, seconds = await self._hosting.run(campaign, _frozen)
            self._last[campaign] = Belief(event, policy, tuning, time.monotonic(), seconds)
            self._last.move_to_end(campaign)
            while len(self._last) > _CAMPAIGNS:
                self._last.popitem(last=False)
            return self._last[campaign]


def _frozen(campaign: Campaign) -> tuple[Policy | None, Tuning | None, float]:
    _ = campaign.arms  # takes in what happened
    start = time.monotonic()
    learner = campaign.learner()
    policy = learner.freeze() if any(learner.counts.values()) else None
    return policy, learner.tuning, time.monotonic() - start


def _column(policy: Policy, name: str) -> dict[str, Any]:
    kind = Number() if policy.kinds is None else policy.kinds[name]
    found: dict[str, Any] = {"name": name, "kind": type(kind).__name__.lower()}
    found["gaps"] = kind.missing
    table = policy.state.schema.table
    if isinstance(kind, Category) and table is not None:
        levels = table.codings[table.columns.index(name)].levels
        return found | {"levels": [level for level in levels if level is not None]}
    try:
        low, high = values_of(policy, name, 2)
    except ValueError:  # nothing but gaps
        low = high = None
    return found | {"low": low, "high": high}


def _key(label: Any) -> str:
    return as_json(encode_label(label))


def _label(label: Any) -> dict[str, Any]:
    return {"key": _key(label), "text": str(label), "label": encode_label(label)}


def _json(values: Any) -> Response:
    """Answer with values; what is not finite is null."""
    return json_answer(_plain(values))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Along(Body):
    column: str = Field(description="The column's name.")
    at: OneContext = Field(None, description="All other columns; by default typical ones.")


class Why(Body):
    context: OneContext = Field(description="One context.")
    against: Label = Field(None, description="The other arm; by default the next best.")


@cache
def assets() -> dict[str, tuple[bytes, str]]:
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


@router.on("GET /", None)
async def page() -> Response:
    """The live page."""
    return _file("index.html")


@router.on("GET /page/assets/{name}", None)
async def asset(name: Annotated[str, Path(description="The file's name.")]) -> Response:
    """A file of the live page."""
    return _file(name)


@router.on("GET /page/campaigns", "read", {"campaigns": []})
async def campaigns(request: StrictRequest) -> Response:
    """How all campaigns stand, for the page."""
    found = await asyncio.to_thread(request.service.standings.all, request.caller.may_see)
    return json_answer({"campaigns": found})


async def _from_log(request: StrictRequest, make: Callable[[Standing], Any]) -> Response:
    standings, name = request.service.standings, request.campaign
    return _json(await asyncio.to_thread(lambda: make(standings.of(name))))


async def _from_belief(request: StrictRequest, make: Callable[[Belief], Any]) -> Response:
    return _json(await asyncio.to_thread(make, await request.service.beliefs.of(request.campaign)))


@own.on("GET /status", "read", _EXAMPLE, 404)
async def status(request: StrictRequest) -> Response:
    """Counts and progress as last recorded, for the page.

    Unlike the service's own status it waits for nothing.
    """
    return await _from_log(request, Standing.status)


@own.on("GET /series", "read", _EXAMPLE, 404)
async def series(request: StrictRequest) -> Response:
    """Picks, rewards and progress over time, for the page."""
    return await _from_log(request, Standing.series)


@own.on("GET /trials", "read", {"trials": [], "next": None}, 404, 422)
async def trials(
    request: StrictRequest,
    state: Annotated[list[str] | None, Query(description="Only those in these states.")] = None,
    arm: Annotated[str | None, Query(description="Only those of this arm, as JSON.")] = None,
    text: Annotated[str, Query(description="Only those with this text.", max_length=200)] = "",
    before: Annotated[
        int | None, Query(description="Only those with smaller numbers.", ge=0, le=LARGEST)
    ] = None,
) -> Response:
    """Trials, the newest first, for the page.

    ``next`` is what to give as ``before`` for the next page.
    """
    how: Any = {"states": state or (), "arm": arm, "text": text, "before": before}
    return await _from_log(request, lambda standing: standing.find_trials(**how))


@own.on("GET /score", "read", _EXAMPLE, 404)
async def score(request: StrictRequest) -> Response:
    """The score card in words, for the page.

    As of an event, which may not be the last.
    """
    return await _from_belief(request, Belief.score)


@own.on("GET /columns", "read", _EXAMPLE, 404)
async def columns(request: StrictRequest) -> Response:
    """What contexts look like, for the page."""
    return await _from_belief(request, Belief.columns)


@own.on("POST /along", "read", _EXAMPLE, 400, 404, 422)
async def along(request: StrictRequest, body: Along) -> Response:
    """What is believed along a column, for the page."""
    check_size(request, body.at)
    at = read_json(body.at, "at")
    return await _from_belief(request, lambda belief: belief.course(body.column, at))


@own.on("POST /why", "read", _EXAMPLE, 400, 404, 422)
async def why(request: StrictRequest, body: Why) -> Response:
    """Why an arm is answered, for the page.

    The arms at a context, best first, and what makes the difference.
    """
    check_size(request, body.context)
    belief = await request.service.beliefs.of(request.campaign)
    context = read_json(body.context, "context")
    against = None if body.against is None else read_label(body.against, "against")

    def find(standing: Standing) -> dict[str, Any]:
        found = belief.why(context, against)
        if found["explanation"] is not None:
            arguments, counted = found["explanation"]["trials"], standing.trials()
            numbers = counted.told_order([each["place"] for each in arguments])
            for each, number in zip(arguments, numbers, strict=True):
                same = counted.is_trial(number, each["arm"]["key"], each["reward"])
                each["trial"] = number if same else None
        return found

    return await _from_log(request, find)


@own.on(
    "GET /events",
    "read",
    'event: log\ndata: {"event": 26}',
    404,
)
async def events(request: StrictRequest) -> Response:
    """Server-sent events: the number of the last event, whenever it changes.

    The stream ends when the service stops or the token is revoked.
    """
    service, caller, campaign = request.service, request.caller, request.campaign

    async def check() -> None:
        caller.token = service.guard.known(caller)
        await service.guard.check(caller, "read", campaign)

    request.allow_time(None)
    stream = await service.listening.listen(campaign, check)
    at_once = {"X-Accel-Buffering": "no"}  # for nginx
    return StreamingResponse(stream, media_type="text/event-stream", headers=at_once)


class Listening:
    """Sends listeners the number of the last event; they share reads of a log."""

    def __init__(self, standings: Standings, stopping: Callable[[], bool]) -> None:
        self._standings = standings
        self._stopping = stopping
        self._listeners = 0
        self._reading = asyncio.Lock()
        self._known: dict[str, tuple[float, int]] = {}

    async def listen(
        self, campaign: str, check: Callable[[], Awaitable[Any]]
    ) -> AsyncGenerator[str, None]:
        standing = await asyncio.to_thread(self._standings.of, campaign)
        if self._listeners >= LISTENERS:
            raise busy(f"{LISTENERS} pages listen already")
        return self._stream(campaign, standing, check)

    async def _stream(
        self, campaign: str, standing: Standing, check: Callable[[], Awaitable[Any]]
    ) -> AsyncGenerator[str, None]:
        self._listeners += 1
        try:
            said, at = 0, time.monotonic()
            yield "retry: 3000\n\n"
            while not self._stopping():
                event = await self._last_event(campaign, standing)
                if event != said or time.monotonic() >= at + HEARTBEAT:
                    try:
                        await check()
                    except Exception:  # the token was revoked
                        return
                    new = f'event: log\ndata: {{"event": {event}}}\n\n'
                    yield ": nothing new\n\n" if event == said else new
                    said, at = event, time.monotonic()
                await asyncio.sleep(READ_EVERY)
        finally:
            self._listeners -= 1

    async def _last_event(self, campaign: str, standing: Standing) -> int:
        async with self._reading:
            at, event = self._known.get(campaign, (-math.inf, 0))
            if time.monotonic() - at > READ_EVERY / 2:
                try:
                    event = await asyncio.to_thread(standing.last_event)
                except Exception as error:  # it may come back
                    logger.warning("cannot read a log", extra={"fields": {"why": str(error)}})
                self._known[campaign] = time.monotonic(), event
            return event
