"""Values of campaigns, what can go wrong, who makes a call until when; all of that as JSON.

In logs, one context is ``{"row": [...]}`` or, by name, ``{"row": {...}}``; a table is ``{"table":
{"rows": [[...], ...]}}``, with ``"columns"`` if they have names, and ``"levels"`` of categories.
Learners only get what was read back, so that a replay gives them the same. Over HTTP contexts are
as ``tables.table.read_json`` reads them. Arms are labels as files keep them.
"""

from __future__ import annotations

import getpass
import hashlib
import io
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np

from contextgap.base.arrays import evenly
from contextgap.base.checks import Label, Mask, decode_label, encode_label
from contextgap.base.components import lazy
from contextgap.learner import Learner, StoppingRule
from contextgap.learner.state import LearnerState
from contextgap.models.tuning import Tuning
from contextgap.policy.policy import Policy
from contextgap.policy.state import Card, PolicyState
from contextgap.tables.contexts import Encoded
from contextgap.tables.table import Table


class ConflictError(ValueError):
    """A request that contradicts what happened before, such as a key used for something else.

    .. versionadded:: 0.2

    Examples
    --------
    >>> try:
    ...     campaign = cg.Campaign.create("bench.db", "bench", ["up"])
    ... except cg.campaign.ConflictError as error:
    ...     print(error)
    there is a campaign 'bench' already; open it, or choose another name
    """


class NotFoundError(ValueError):
    """A campaign, a trial or a policy that does not exist.

    .. versionadded:: 0.2

    Examples
    --------
    >>> try:
    ...     campaign.trial(17)
    ... except cg.campaign.NotFoundError as error:
    ...     print(error)
    there is no trial 17
    """


class AlteredError(ValueError):
    """A row of the database is not what was written; ``contextgap database verify`` says more.

    .. versionadded:: 0.3

    Examples
    --------
    >>> issubclass(cg.campaign.AlteredError, ValueError)
    True
    """


class UnavailableError(OSError):
    """The database cannot be used now. Nothing was changed, and trying again later may help.

    .. versionadded:: 0.3

    Examples
    --------
    >>> issubclass(cg.campaign.UnavailableError, OSError)
    True
    """


class DeadlineError(TimeoutError):
    """A call took longer than it may, or nobody waits for it any more. Nothing was changed.

    .. versionadded:: 0.3

    See Also
    --------
    campaign.calling : Sets the deadline.

    Examples
    --------
    >>> try:
    ...     with cg.campaign.calling(deadline=0.0):
    ...         trials = campaign.ask(contexts)
    ... except cg.campaign.DeadlineError:
    ...     print("too late")
    too late
    """


STATES = ("open", "told", "cancelled", "expired", "retracted")  # what can have become of a trial


@dataclass(frozen=True)
class Trial:
    """An arm to try at a context, with its state and reward.

    .. versionadded:: 0.2

    Parameters
    ----------
    id
        Its number in the campaign, from 1.
    arm
        The arm to try.
    context
        Where to try it: a list of cells, or a mapping from columns to cells.
    state
        "open", "told", "cancelled", "expired" (its lease ran out) or "retracted".
    reward
        What was told, after all corrections; None before.
    eligible
        The arms among which it was picked; None for all.
    asked
        When it was asked for; None for outside data.
    until
        When its lease runs out; None for never.
    told
        When its reward was first told.
    why
        The reason given when it was last retracted or corrected.
    by
        Who asked for it, told, cancelled, retracted or corrected it last; None if unknown.

    Examples
    --------
    >>> trial = campaign.ask([0.2, 0.1])
    >>> trial.id, trial.state
    (3, 'open')
    """

    id: int
    arm: Label
    context: Any
    state: str
    reward: float | None = None
    eligible: tuple[Label, ...] | None = None
    asked: datetime | None = None
    until: datetime | None = None
    told: datetime | None = None
    why: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class FrozenPolicy:
    """A frozen policy of a campaign: its name, its time, its hashes.

    .. versionadded:: 0.2

    Parameters
    ----------
    name
        Its name.
    at
        When it was frozen, in UTC.
    event
        The number of the last event that it rests on.
    log
        The hash of the log up to that event.
    sha256
        The hash of its ``.cgap`` file.
    recalled
        The trials it rests on that were retracted or corrected since.

    See Also
    --------
    Campaign.policies : Returns them.

    Examples
    --------
    >>> policy = campaign.freeze("v1")
    >>> frozen = campaign.policies()[0]
    >>> frozen.name, frozen.recalled
    ('v1', ())
    """

    name: str
    at: str
    event: int
    log: str
    sha256: str
    recalled: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recalled:
    """A frozen policy that was learnt from a retracted or corrected trial.

    .. versionadded:: 0.2

    Parameters
    ----------
    policy
        The policy's name.
    contexts
        How many contexts were compared.
    changed
        At how many of them the policy would decide otherwise.

    Examples
    --------
    >>> policy = campaign.freeze("v1")
    >>> recalled = campaign.retract(trial, why="sensor was unplugged").policies[0]
    >>> recalled.policy, recalled.contexts
    ('v1', 2)
    """

    policy: str
    contexts: int
    changed: int


@dataclass(frozen=True)
class Recall:
    """Which frozen policies a retraction or correction affects.

    .. versionadded:: 0.2

    Parameters
    ----------
    trial
        The trial that was retracted or corrected.
    policies
        The frozen policies that rest on it.

    See Also
    --------
    Campaign.retract, Campaign.correct : Return one.

    Examples
    --------
    >>> policy = campaign.freeze("v1")
    >>> recall = campaign.retract(trial, why="sensor was unplugged")
    >>> recall.trial, len(recall.policies)
    (2, 1)
    """

    trial: int
    policies: tuple[Recalled, ...]


@dataclass(frozen=True)
class CampaignStatus:
    """The state of a campaign; print it.

    .. versionadded:: 0.2

    Parameters
    ----------
    name
        Its name.
    trials
        How many trials there are in each state.
    rewards
        How many rewards of each arm were told and not retracted.
    settled
        The share of contexts with a certificate within the goal's tolerance or, without a goal,
        with the regret bound 0; None before the first reward.
    wanted
        The share at which exploring may end.
    asks_left
        About how many more rewards that takes; None where that cannot be estimated.
    tuning
        The report of the last tuning; None before the first.
    score
        What deploying now would earn; None before there are two rewards.
    events
        How many events the log has.
    log
        The hash of the log.
    looked_after
        The event after which ``settled`` and ``score`` were computed.

    See Also
    --------
    Campaign.status : Returns it.

    Examples
    --------
    >>> status = campaign.status()
    >>> status.rewards, status.events
    ({'left': 2, 'right': 0}, 5)
    """

    name: str
    trials: Mapping[str, int]
    rewards: Mapping[Label, int]
    settled: float | None
    wanted: float
    asks_left: int | None
    tuning: Tuning | None
    score: Card | None
    events: int
    log: str
    looked_after: int

    def rows(self) -> list[tuple[str, str]]:
        """Return the status for people: pairs of a name and a text.

        Examples
        --------
        >>> campaign.status().rows()[0]
        ('trials', '0 open, 2 told, 0 cancelled, 0 expired, 0 retracted')
        """
        settled = "unknown" if self.settled is None else f"{100 * self.settled:.1f} %"
        left = "unknown" if self.asks_left is None else f"about {self.asks_left}"
        tuned = "never"
        if self.tuning is not None:
            tuned = f"{self.tuning.chosen}, after {self.tuning.rewards} rewards"
        value = "unknown" if self.score is None else f"{self.score.value}"
        gain = "unknown" if self.score is None else f"{self.score.gain}"
        age = ("settled and value as of", f"event {self.looked_after}")
        return [
            ("trials", ", ".join(f"{count} {state}" for state, count in self.trials.items())),
            ("rewards", ", ".join(f"{arm}: {count}" for arm, count in self.rewards.items())),
            ("settled", f"{settled} of {100 * self.wanted:g} % wanted"),
            ("asks left", left),
            ("last tuning", tuned),
            ("value if deployed now", value),
            ("gain over the best arm", gain),
            *([] if self.score is None else self.score.spending()),
            ("events", str(self.events)),
            *([] if self.looked_after == self.events else [age]),
            ("log", self.log),
        ]

    def describe(self) -> dict[str, Any]:
        """Return the status as plain values, for machines.

        Examples
        --------
        >>> campaign.status().describe()["name"]
        'bench'
        """
        return {
            **vars(self),
            "trials": dict(self.trials),
            "rewards": {str(arm): count for arm, count in self.rewards.items()},
            "tuning": None if self.tuning is None else self.tuning.describe(),
            "score": None if self.score is None else self.score.describe(),
        }

    def __str__(self) -> str:
        size = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:{size}}  {text}" for name, text in self.rows()]
        return "\n".join([f"campaign {self.name}", *lines])


_ABOUT = ("state", "arm", "reward", "asked", "until", "told", "why", "by")


def context_cells(trial: Trial) -> dict[str, Any]:
    """Return a trial's context by column; names of something else get "context." in front."""
    if isinstance(trial.context, Mapping):
        named = dict(trial.context)
    else:
        named = {f"x{place}": cell for place, cell in enumerate(trial.context)}
    cells = {}
    for name, cell in named.items():
        written = name
        while written in ("trial", *_ABOUT) or (written != name and written in named):
            written = f"context.{written}"
        cells[written] = cell
    return cells


def trials_frame(trials: Sequence[Trial]) -> Any:
    import pandas as pd

    about = {name: [getattr(trial, name) for trial in trials] for name in _ABOUT}
    index = pd.Index([trial.id for trial in trials], name="trial", dtype="int64")
    frame = pd.DataFrame(about, index=index)
    frame["reward"] = frame["reward"].astype("float64")
    for name in ("asked", "until", "told"):
        frame[name] = pd.to_datetime(frame[name], utc=True)
    contexts = pd.DataFrame([context_cells(trial) for trial in trials], index=index)
    return frame.join(contexts)


@dataclass(frozen=True)
class _Call:
    by: str | None = None
    deadline: float | None = None
    cancelled: Callable[[], bool] | None = None


_NOBODY = _Call()
_CALL = ContextVar("contextgap_call", default=_NOBODY)


@contextmanager
def calling(
    by: str | None = None,
    *,
    deadline: float | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """Have calls of campaigns in the block, and in this thread, made for somebody.

    A call that is too late raises ``DeadlineError``, and nothing was changed.

    .. versionadded:: 0.3

    Parameters
    ----------
    by
        The caller, for the log; by default as around, or as ``Campaign.open`` was given.
    deadline
        The latest time to go on, as ``time.monotonic`` says it; by default as around.
    cancelled
        Returns whether nobody waits for the answer any more; by default as around.

    Examples
    --------
    >>> with cg.campaign.calling("Ada"):
    ...     trial = campaign.ask([0.2, 0.1])
    >>> trial.by
    'Ada'
    """
    around = _CALL.get()
    token = _CALL.set(
        _Call(
            by or around.by,
            around.deadline if deadline is None else deadline,
            cancelled or around.cancelled,
        )
    )
    try:
        yield
    finally:
        _CALL.reset(token)


def speak_for(by: str | None) -> None:
    """Have calls of campaigns in the rest of a task made for somebody; None for nobody."""
    _CALL.set(_NOBODY if by is None else _Call(by))


def check_time() -> None:
    call = _CALL.get()
    if call.deadline is not None and time.monotonic() > call.deadline:
        raise DeadlineError(
            "the call took longer than it may, and nothing was changed; send fewer contexts at once"
        )
    if call.cancelled is not None and call.cancelled():
        raise DeadlineError("the call was cancelled, and nothing was changed")


def seconds_left(most: float) -> float:
    deadline = _CALL.get().deadline
    return most if deadline is None else max(0.0, min(most, deadline - time.monotonic()))


def caller(otherwise: str | None) -> str | None:
    """Return who makes the call that runs: the one named in ``calling``, or else another."""
    return _CALL.get().by or otherwise


@cache
def this_user() -> str | None:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return None


MOST_COLUMNS = 4096
_TIMES = ("asked", "until", "told")
_PICKED = ("campaign", "id", "state", "arm", "context", "eligible")
_hashed = itemgetter(*_PICKED, *_TIMES, "told_by", "why", "by")
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def as_json(value: Any) -> str:
    return _ENCODER.encode(value)


def encode_contexts(contexts: Any, called: str = "contexts") -> dict[str, Any]:
    """Return one context or a table as plain values; errors call them ``called``."""
    if isinstance(contexts, Real) or (isinstance(contexts, np.ndarray) and contexts.ndim == 0):
        contexts = [contexts]
    try:
        if isinstance(contexts, np.ndarray) and contexts.ndim > 2:
            raise ValueError(f"must be 1-D or 2-D, got shape {contexts.shape}")
        table = Table.of(contexts)
        if len(table.cells) > MOST_COLUMNS:
            raise ValueError(f"must have at most {MOST_COLUMNS} columns, got {len(table.cells)}")
        return table.to_json()
    except (TypeError, ValueError) as error:
        raise type(error)(f"{called} {error}") from None


def encode_given(contexts: Any, called: str = "contexts") -> dict[str, Any]:
    """Encode new contexts; logs of old releases may have other text."""
    encoded = encode_contexts(contexts, called)
    check_cells(encoded, called)
    return encoded


def check_cells(encoded: Mapping[str, Any], called: str) -> None:
    """Raise if a cell or a name is not plain text."""
    for each in rows_of(encoded):
        row = each["row"]
        for name, cell in row.items() if isinstance(row, Mapping) else enumerate(row):
            for text in (name, cell):
                if isinstance(text, str) and not is_plain_text(text):
                    raise ValueError(
                        f"{called} must be text without NUL and lone surrogates in the column "
                        f"{name!r}, got {text!r}; read the table again with its right encoding"
                    )


def is_plain_text(text: str) -> bool:
    if "\x00" in text:
        return False
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def decode_contexts(encoded: Mapping[str, Any]) -> Any:
    return Table.from_json(encoded).given


def is_table(encoded: Mapping[str, Any]) -> bool:
    return "table" in encoded


def rows_of(encoded: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not is_table(encoded):
        return [dict(encoded)]
    table = encoded["table"]
    names = table.get("columns")
    return [
        {"row": r if names is None else dict(zip(names, r, strict=True))} for r in table["rows"]
    ]


NOTHING = ""  # the hash of a log without events
_BECAME = {
    "tell": "told",
    "cancel": "cancelled",
    "expire": "expired",
    "retract": "retracted",
    "correct": "told",
}
_Parts = tuple[int, str, str, str | None, str, str]


@dataclass(frozen=True)
class Pick:
    context: Mapping[str, Any]
    arm: Label
    eligible: tuple[Label, ...] | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Pick:
        among = None if row["eligible"] is None else json.loads(row["eligible"])
        eligible = None if among is None else tuple(map(decode_label, among))
        return cls(json.loads(row["context"]), decode_label(json.loads(row["arm"])), eligible)


@dataclass(frozen=True)
class Event:
    """What happened to a campaign; ``hash`` covers all events up to it."""

    number: int
    at: str
    kind: str
    key: str | None
    request_text: str
    result_text: str
    hash: str
    by: str | None = None
    before: str = NOTHING  # the hash of the event before it

    @classmethod
    def following(cls, before: str, parts: _Parts, by: str | None = None) -> Event:
        return cls(*parts, _hash(before, parts, by), by, before)

    def follows(self, before: str) -> bool:
        parts = (self.number, self.at, self.kind, self.key, self.request_text, self.result_text)
        return self.before == before and self.hash == _hash(before, parts, self.by)

    @lazy
    def request(self) -> dict[str, Any]:
        return dict(json.loads(self.request_text))

    @lazy
    def result(self) -> dict[str, Any]:
        return dict(json.loads(self.result_text))

    @lazy
    def picks(self) -> list[Pick]:
        asked = self.kind == "ask"
        rows = rows_of(self.result.get("context") or self.request["contexts"])
        labels = self.result["arms"] if asked else self.request["arms"]
        among = decode_eligible(self.request["arms" if asked else "eligible"])
        if among is None or not isinstance(among[0], list):
            among = [among] * len(rows)
        return [
            Pick(row, decode_label(label), None if own is None else tuple(own))
            for row, label, own in zip(rows, labels, among, strict=True)
        ]

    @property
    def trial_rows(self) -> list[dict[str, Any]]:
        never = dict.fromkeys(("reward", "asked", "until", "told", "told_by", "why"))
        if self.kind == "ask":
            own = {"state": "open", "asked": self.at, "until": self.result["until"]}
            rewards = [None] * len(self.picks)
        else:
            own = {"state": "told", "told": self.at, "told_by": self.number}
            rewards = self.request["rewards"]
        return [
            {
                **never,
                **own,
                "id": trial,
                "reward": reward,
                "by": self.by,
                "arm": as_json(encode_label(pick.arm)),
                "context": as_json(pick.context),
                "eligible": None
                if pick.eligible is None
                else as_json([*map(encode_label, pick.eligible)]),
            }
            for trial, reward, pick in zip(self.result["trials"], rewards, self.picks, strict=True)
        ]

    @property
    def trial_change(self) -> dict[str, Any]:
        if self.kind not in _BECAME:
            return {}
        change: dict[str, Any] = {"state": _BECAME[self.kind], "by": self.by}
        if self.kind in ("retract", "correct"):
            change["why"] = self.request["why"]
        if self.kind in ("tell", "correct"):
            change["reward"] = self.request["reward"]
        if self.kind == "tell":
            change |= {"told": self.at, "told_by": self.number}
        return change


def _hash(before: str, parts: _Parts, by: str | None) -> str:
    logged = parts if by is None else (*parts, by)  # releases before 0.3 did not log callers
    return hashlib.sha256(f"{before}\n{as_json(logged)}".encode()).hexdigest()


def named_arms(mask: Mask, labels: Sequence[Label]) -> list[list[Any]]:
    places = [np.flatnonzero(row).tolist() for row in np.atleast_2d(mask)]
    return [[encode_label(labels[place]) for place in row] for row in places]


def decode_eligible(encoded: Any) -> Any:
    if encoded is None:
        return None
    return [
        [decode_label(each) for each in entry] if isinstance(entry, list) else decode_label(entry)
        for entry in encoded
    ]


def row_hash(row: Mapping[str, Any]) -> str:
    reward = None if row["reward"] is None else row["reward"] + 0.0  # SQLite knows no -0.0
    values = as_json([*_hashed(row), reward])
    return hashlib.sha256(values.encode()).hexdigest()


def file_hash(log: str, content: bytes) -> str:
    found = hashlib.sha256(log.encode())
    found.update(content)
    return found.hexdigest()


def to_bytes(thing: Any) -> bytes:
    file = io.BytesIO()
    thing.save(file)
    return file.getvalue()


def read_trial(row: Mapping[str, Any], pick: Pick | None = None) -> Trial:
    pick = pick or Pick.of(row)
    return Trial(
        id=row["id"],
        arm=pick.arm,
        context=decode_contexts(pick.context),
        state=row["state"],
        reward=row["reward"],
        eligible=pick.eligible,
        why=row["why"],
        by=row["by"],
        **{name: read_time(row[name]) for name in _TIMES},
    )


def read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def request_contexts(encoded: Mapping[str, Any]) -> Any:
    if not is_table(encoded):
        return encoded["row"]
    return encoded if "columns" in encoded["table"] else encoded["table"]["rows"]


def read_label(value: Any, called: str = "arm") -> Label:
    try:
        return decode_label(value)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{called} must be a label such as text or a number, got {value!r}") from (
            None
        )


def trial_json(trial: Trial) -> dict[str, Any]:
    times = {name: getattr(trial, name) for name in _TIMES}
    return {
        "id": trial.id,
        "arm": encode_label(trial.arm),
        "context": request_contexts(encode_contexts(trial.context)),
        "state": trial.state,
        "reward": trial.reward,
        "eligible": None if trial.eligible is None else [*map(encode_label, trial.eligible)],
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
        "why": trial.why,
        "by": trial.by,
    }


def now() -> str:
    return as_text(datetime.now(UTC))


def after(seconds: float, start: str | None = None) -> str | None:
    """Return the time so many seconds after another, by default now; None if too far away."""
    try:
        return as_text(datetime.fromisoformat(start or now()) + timedelta(seconds=seconds))
    except OverflowError:
        return None


def as_text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds")


START: dict[str, Any] = {"rewards": 0, "settled": None}
_SAMPLE = 200  # contexts that stand for all
_GROWTH = 1.05  # in rewards, between two records of progress
_FEW = 20  # rewards, up to which every one is a step
_FIRST = math.floor(math.log(_FEW) / math.log(_GROWTH))
_QUANTILES = (0.1, 0.5, 0.9)
_SHARE = 0.95


def encode_goal(goal: StoppingRule | None) -> dict[str, Any] | None:
    if goal is None:
        return None
    if goal.arms is not None:
        raise ValueError("goal must be about all arms, which may come and go; leave out its arms")
    if goal.average:
        raise ValueError("goal must be about a share of contexts; leave out average=True")
    if goal.budget is not None:
        raise ValueError("goal must be about certificates; leave out budget=, status says spending")
    reference = encode_contexts(goal.given, called="reference")
    return {"tolerance": goal.tolerance, "share": goal.share, "reference": reference}


def decode_goal(encoded: Mapping[str, Any] | None) -> StoppingRule | None:
    if encoded is None:
        return None
    reference = decode_contexts(encoded["reference"])
    return StoppingRule(encoded["tolerance"], share=encoded["share"], reference=reference)


def seen_contexts(state: LearnerState | PolicyState) -> Encoded:
    contexts = state.model.observed.contexts
    return Encoded(contexts[evenly(np.arange(len(contexts)), _SAMPLE)], state.schema)


def _steps(rewards: int) -> int:
    if rewards <= _FEW:
        return rewards
    return _FEW + math.floor(math.log(rewards) / math.log(_GROWTH)) - _FIRST


def is_due(before: int, rewards: int) -> bool:
    return _steps(rewards) > _steps(before)


def progress(learner: Learner, goal: StoppingRule | None) -> dict[str, Any]:
    found: dict[str, Any] = {"rewards": len(learner.state.model), "settled": None}
    if goal is None and found["rewards"]:
        goal = StoppingRule(0.0, share=_SHARE, reference=seen_contexts(learner.state))
    if goal is not None:
        schema = learner.state.schema
        reference = Encoded(goal.contexts_for(schema), schema)
        bounds = Policy(learner.state.policy()).certificate(reference).bound
        quantiles = np.quantile(bounds, _QUANTILES).tolist()
        found["settled"] = goal.settled(bounds)
        found["bounds"] = [bound if math.isfinite(bound) else None for bound in quantiles]
    return found


def summary(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], goal: StoppingRule | None
) -> dict[str, Any]:
    wanted = _SHARE if goal is None else goal.share
    left = _asks_left(now, before, wanted)
    return {"settled": now["settled"], "wanted": wanted, "asks_left": left}


def _asks_left(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], share: float
) -> int | None:
    """Return about how many rewards are missing at the rate since half as many; None if unknown."""
    if now["settled"] is None:
        return None
    if now["settled"] >= share:
        return 0
    early = [each for each in before if each["rewards"] <= now["rewards"] / 2]
    if not early or early[-1]["settled"] is None:
        return None
    gained = now["settled"] - early[-1]["settled"]
    if gained <= 0:
        return None
    rate = gained / (now["rewards"] - early[-1]["rewards"])
    left: float = (share - now["settled"]) / rate
    return math.ceil(left)
