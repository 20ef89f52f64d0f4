"""What the live page shows: counts of a campaign's log, and what its learner believes.

Counting 100,000 trials in the database takes a fifth of a second, and a page asks every second.
What the page counts is kept here in 21 bytes a trial; of the database, only what is new is read.
Drawings have at most so many bins and points, however many trials there are. What the learner
believes is computed beside the campaign's thread.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, select

from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.labels import decode_label, encode_label
from contextgap.insight.courses import along, read_context, values_of
from contextgap.learner import StoppingRule
from contextgap.models.tuning import Tuning
from contextgap.policy.policy import Policy
from contextgap.policy.scoring import QUICK
from contextgap.tables.columns import Category, Number
from contextgap.team.campaign import Campaign, NotFoundError
from contextgap.team.campaign.codec import as_json, read_trial, trial_json
from contextgap.team.campaign.database import Database
from contextgap.team.campaign.progress import decode_goal, recorded, summary
from contextgap.team.campaign.schema import EVENTS, LARGEST, TRIALS
from contextgap.team.campaign.store import Store, campaign_names, find_store, summaries
from contextgap.team.campaign.values import STATES
from contextgap.team.service.hosting import Hosting

BINS, POINTS, SHOWN = 120, 500, 8
"""The most bins along time, the most single rewards, and the most arms with a colour of their own.

Where there are more arms, the ones picked least are drawn as one.
"""

PAGE = 50
"""Trials in one answer."""

_FINE = 2.0  # bins per square root of the number of trials, so that shares mean something
_COLUMNS = (TRIALS.c.id, TRIALS.c.state, TRIALS.c.arm, TRIALS.c.reward, TRIALS.c.told_by)
_CHANGES = ("tell", "cancel", "expire", "retract", "correct")
_AT_ONCE = 500  # trials in one query
_BEHIND = 20_000  # changes, from which on reading everything anew is quicker
_STEPS = 240  # records of progress in one answer
_SHARE = 0.1  # of the time may be spent on freezing a campaign whose log grows
_QUICK = 0.1  # seconds, up to which that does not matter
_CAMPAIGNS = 32  # whose last belief is kept
_ARGUMENTS = 6  # named in an explanation


class Counted(NamedTuple):
    """All trials up to an event: entry ``i`` of an array is about trial ``i + 1``."""

    event: int
    arms: tuple[str, ...]  # JSON texts, in the order in which they were first tried
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
        """Return of each arm how often it was picked, how many rewards count, and their mean."""
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
        """Return picks and rewards by bins, from a first to a last trial, for the arms shown."""
        shown = self._shown()
        series = np.full(len(self.arms), len(shown), dtype=np.intp)
        series[shown] = np.arange(len(shown))
        arms: list[dict[str, Any]] = [_arm(self.arms[place]) for place in shown]
        if len(shown) < len(self.arms):
            arms.append({"key": None, "text": "all others"})
        own, edges = series[self.arm], _edges(len(self.arm))
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
        """Return the numbers of trials by their places among the rewards that count, as told."""
        (told,) = np.nonzero(self.are("told"))
        order = told[np.lexsort((told, self.told_by[told]))] + 1
        return [int(order[place]) if place < len(order) else None for place in places]

    def is_trial(self, number: int | None, arm: str, reward: float) -> bool:
        """Return whether a trial is of an arm and has a reward; the log may have grown since."""
        if number is None:
            return False
        same_arm = self.arms[self.arm[number - 1]] == arm
        return bool(same_arm and self.reward[number - 1] == reward)


_NOTHING = Counted(
    0, (), np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0), np.empty(0, np.intp)
)


def _arm(key: str) -> dict[str, Any]:
    """Return an arm as programs and as people read it."""
    return {"key": key, "text": str(decode_label(json.loads(key)))}


def _edges(count: int) -> IntArray:
    bins = min(BINS, count, round(_FINE * math.sqrt(count)))
    return np.linspace(0, count, bins + 1).round().astype(np.intp)


def _sums(
    own: IntArray, numbers: IntArray, edges: IntArray, arms: int, weights: FloatArray | None = None
) -> FloatArray:
    """Return the weights of some trials, 1 by default, summed by bins and series."""
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
    """How one campaign stands, for all threads; what an event led to is kept until the next."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._counted = _NOTHING
        self._log = ""  # its hash
        self._goal: tuple[StoppingRule | None] | None = None
        self._kept: dict[str, tuple[Counted, Any]] = {}

    def last_event(self) -> int:
        with self.store.reading() as connection:
            return self.store.last_event(connection)[0]

    def trials(self) -> Counted:
        """Return what is kept of all trials, after taking in what is new."""
        with self.store.reading() as connection:
            return self._count(connection)

    def status(self) -> dict[str, Any]:
        """Return counts, the settled share and the last event."""
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
        """Return counts, and how far the exploration was when that was last recorded."""
        if self._goal is None:  # it never changes
            (first,) = self.store.events(connection, 0, 1)
            self._goal = (decode_goal(first.request["goal"]),)
        (goal,), steps = self._goal, recorded(self.store, connection)
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
        """Return picks and rewards over time, and progress as it was recorded."""
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
        """Return the trials that events after one are about, new ones aside."""
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
        """Return trials before a number, the newest first; ``next`` is the next ``before``."""
        for state in states:
            if state not in STATES:
                raise ValueError(f"state must be one of {STATES}, got {state!r}")
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
    """How all campaigns of a database stand."""

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
        """Return in a few words how every campaign stands that may be seen, the last used first."""
        found = [each for each in summaries(self._database) if visible(each["name"])]
        return sorted(found, key=lambda each: str(each["at"]), reverse=True)


@dataclass
class Belief:
    """A learner's rule as of an event, and the seconds that were spent on it."""

    event: int
    policy: Policy | None  # None before the first reward
    tuning: Tuning | None
    at: float
    seconds: float

    @property
    def good_until(self) -> float:
        """When it may be computed anew, if the log grew."""
        return self.at + (self.seconds / _SHARE if self.seconds > _QUICK else 0.0)

    @property
    def rewards(self) -> int:
        return 0 if self.policy is None else len(self.policy.state.model.observed)


class Beliefs:
    """The last belief of each campaign's learner; ones that take long are used for a while."""

    def __init__(self, hosting: Hosting, standings: Standings) -> None:
        self._hosting, self._standings = hosting, standings
        self._last: OrderedDict[str, Belief] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def of(self, campaign: str) -> Belief:
        """Return what is believed now, or was a moment ago."""
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
    _ = campaign.arms  # takes in what happened, which has to be done anyway
    start = time.monotonic()
    learner = campaign.learner()
    policy = learner.freeze() if any(learner.counts.values()) else None
    return policy, learner.tuning, time.monotonic() - start


def score(belief: Belief) -> dict[str, Any]:
    """Return the score card in words, and the last tuning."""
    start = time.monotonic()
    card = None
    if belief.policy is not None and belief.rewards > 1:
        card = belief.policy.score(rows=QUICK)
    belief.seconds += time.monotonic() - start
    tuning = belief.tuning
    return {
        "event": belief.event,
        "rewards": belief.rewards,
        "rows": [] if card is None else card.rows(),
        "warnings": [] if card is None else list(card.warnings),
        "tuning": None if tuning is None else f"{tuning.chosen}, after {tuning.rewards} rewards",
    }


def columns(belief: Belief) -> dict[str, Any]:
    """Return what contexts look like: columns, their values, and the most typical context."""
    policy = belief.policy
    if policy is None:
        return {"event": belief.event, "columns": [], "typical": None, "named": False}
    typical = policy.state.schema.decode(read_context(policy, None)[None])[0]
    return plain(
        {
            "event": belief.event,
            "named": policy.columns is not None,
            "columns": [_column(policy, name) for name in policy.state.schema.parts()],
            "typical": typical,
        }
    )


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


def _policy(belief: Belief) -> Policy:
    if belief.policy is None:
        raise ValueError("there is nothing to explain before the first reward")
    return belief.policy


def course(belief: Belief, column: Any, at: Any) -> dict[str, Any]:
    """Return what is believed along a column."""
    found = along(_policy(belief), column, at)
    return plain(
        {
            **found.describe(),
            "event": belief.event,
            "arms": [_label(arm) for arm in found.arms],
            "best": [_key(arm) for arm in found.best],
        }
    )


def why(belief: Belief, context: Any, against: Any) -> dict[str, Any]:
    """Return the arms at a context, best first, and why; trials by places among the rewards."""
    policy = _policy(belief)
    ranking = policy.rank(context)
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
    return plain(
        {
            "event": belief.event,
            "ranking": [{**vars(each), "arm": _label(each.arm)} for each in ranking],
            "explanation": explained,
        }
    )


def _key(label: Any) -> str:
    return as_json(encode_label(label))


def _label(label: Any) -> dict[str, Any]:
    return {"key": _key(label), "text": str(label), "label": encode_label(label)}


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them: null for what is not finite."""
    return {str(name): _plain(each) for name, each in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
