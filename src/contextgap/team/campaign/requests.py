"""What users ask of a campaign, checked, and as the log keeps it."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.labels import Label, encode_label
from contextgap.learner.replayed import ReplayedLearner
from contextgap.tables.eligible import read_eligible
from contextgap.team.campaign import clock
from contextgap.team.campaign.calls import this_user
from contextgap.team.campaign.events import Event
from contextgap.team.campaign.payloads import (
    as_json,
    check_cells,
    decode_contexts,
    encode_contexts,
    encode_given,
    is_plain_text,
    is_table,
    rows_of,
)
from contextgap.team.campaign.replay import decode_eligible, picks_of, to_bytes
from contextgap.team.campaign.trial import Trial

_LONGEST = 200  # letters of a name or a key
_MOST_ARMS = 10_000


def check_name(called: str, name: Any) -> None:
    """Raise unless a name is text of a reasonable length."""
    if not isinstance(name, str):
        raise TypeError(f"{called} must be text, got {name!r}")
    if not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise ValueError(f"{called} must be 1 to {_LONGEST} printable letters, got {name!r}")
    if name in (".", ".."):
        raise ValueError(f"{called} must be a name, which {name!r} is not in an address")


def check_arms(arms: Any) -> None:
    """Raise if there are more arms than anybody can try."""
    count = arms if isinstance(arms, int) else len(arms) if hasattr(arms, "__len__") else 0
    if count > _MOST_ARMS:
        raise ValueError(f"arms must be at most {_MOST_ARMS}, got {count}")


def read_caller(by: Any) -> str | None:
    """Return who makes calls: by default the user of this process."""
    if by is None:
        return this_user()
    check_name("by", by)
    return str(by)


def check_key(key: Any) -> None:
    """Raise unless a key is None or a name."""
    if key is not None:
        check_name("key", key)


def check_why(why: Any) -> None:
    """Raise unless a reason is text."""
    if not isinstance(why, str) or not why.strip() or not is_plain_text(why):
        raise ValueError(f"why must say the reason in words, got {why!r}")


def encode_new_label(label: Label) -> Any:
    """Return the label of a new arm as JSON; raise if its text could not be shown again."""
    for part in label if isinstance(label, tuple) else (label,):
        if isinstance(part, tuple):
            encode_new_label(part)
        elif isinstance(part, str) and not is_plain_text(part):
            raise ValueError(f"arms must be text without NUL and lone surrogates, got {label!r}")
    return encode_label(label)


def read_trial_number(trial: Any) -> int:
    """Return the number of a trial."""
    return trial.id if isinstance(trial, Trial) else checks.whole("trial", trial, least=1)


def seconds(called: str, lease: float | timedelta) -> float | None:
    """Return a lease in seconds; None for ever."""
    length = lease.total_seconds() if isinstance(lease, timedelta) else lease
    if length == math.inf:
        return None
    return checks.positive(called, length, "seconds, a timedelta, or math.inf for ever")


def until(lease: float | str | None, now: str) -> str | None:
    """Return when a lease that begins now runs out; None for never."""
    if lease is None or isinstance(lease, str):
        return None
    return clock.after(lease, now)


def read_create(
    learner: ReplayedLearner, goal: dict[str, Any] | None, lease: float | timedelta
) -> dict[str, Any]:
    """Return the request of a campaign's first event; the goal says what the columns are."""
    if goal is not None:
        check_cells(goal["reference"], "reference")
        learner.learn_columns(decode_contexts(goal["reference"]))
    return {
        "arms": [encode_new_label(label) for label in learner.arms],
        "learner": base64.b64encode(to_bytes(learner)).decode(),
        "goal": goal,
        "lease": seconds("lease", lease),
    }


def read_ask(contexts: Any, pool: Any, key: Any, lease: Any, once: bool = False) -> dict[str, Any]:
    """Return the request of an ask, but for the eligible arms.

    A lease for ever is "ever", so that it differs from none given. A pool is known by its hash.
    """
    check_key(key)
    length = None if lease is None else seconds("lease", lease)
    kept = "ever" if lease is not None and length is None else length
    if pool is None:
        if once:
            raise TypeError("once= is about a pool; give pool= too, or leave it out")
        if contexts is None:
            raise TypeError("contexts must be given, or pool= to choose one from, got None")
        encoded = encode_given(contexts)
        if not rows_of(encoded):
            raise ValueError("contexts must have at least one row, got none")
        return {"contexts": encoded, "lease": kept}
    if contexts is not None:
        raise TypeError("contexts must be left out where pool= gives those to choose from")
    text = as_json(encode_given(pool, called="pool"))
    request = {"pool": hashlib.sha256(text.encode()).hexdigest(), "lease": kept}
    return {**request, "once": True} if once else request


def encode_eligible(arms: Any, labels: Sequence[Label], request: Mapping[str, Any]) -> Any:
    """Return eligible arms as labels: None for all, one list, or one list for each context."""
    single = not is_table(request.get("contexts", {}))
    rows = 1 if single else len(rows_of(request["contexts"]))
    mask = read_eligible(arms, labels, rows, single=single)
    if mask is None:
        return None
    named = [[encode_label(labels[i]) for i in np.flatnonzero(row).tolist()] for row in mask]
    return named[0] if single or mask.strides[0] == 0 else named


def pick(learner: ReplayedLearner, request: Mapping[str, Any], pool: Any) -> dict[str, Any]:
    """Ask the learner; return what came of it, as the log keeps it."""
    before, arms = learner.state.random, decode_eligible(request["arms"])
    learner.forget_followed()
    found: dict[str, Any] = {}
    if pool is None:
        asked = learner.ask(decode_contexts(request["contexts"]), arms=arms)
        labels = asked.tolist() if is_table(request["contexts"]) else [asked]
    else:
        whole = encode_contexts(pool, called="pool")
        if not learner.knows_columns(decode_contexts(whole)):
            found["pool"] = whole
        once = request.get("once", False)
        row, label = learner.ask(pool=decode_contexts(whole), arms=arms, once=once)
        found["context"], labels = encode_contexts(row), [label]
    found["arms"] = [encode_label(label) for label in labels]
    if (chances := learner.last_propensities(labels)) is not None:
        found["propensities"] = chances
    if learner.state.random != before:
        found["random"] = learner.state.random
    return found


def read_told(trial: Any, reward: Any) -> tuple[list[int], list[float], bool]:
    """Return the numbers of the trials told about, their rewards, and whether it is only one."""
    if isinstance(trial, Trial) or np.ndim(trial) == 0:
        return [read_trial_number(trial)], [checks.reward("reward", reward)], True
    numbers = [read_trial_number(each) for each in trial]
    if len(set(numbers)) < len(numbers):
        raise ValueError("trial must name every trial once, got one twice")
    rewards = checks.finite_vector("reward", reward, checks.reward).tolist()
    checks.same_length(trial=len(numbers), reward=len(rewards))
    return numbers, rewards, False


def read_record(contexts: Any, arms: Any, rewards: Any) -> tuple[dict[str, Any], bool]:
    """Return the request of outside data, but for the eligible arms, and whether it is one row."""
    if contexts is None or arms is None or rewards is None:
        raise TypeError("tell needs a trial, or contexts=, arms= and reward= for outside data")
    encoded = encode_given(contexts)
    if not is_table(encoded):
        value = checks.reward("reward", rewards)
        return {"contexts": encoded, "arms": [encode_label(arms)], "rewards": [value]}, True
    count = len(rows_of(encoded))
    values = checks.finite_vector("reward", rewards, checks.reward).tolist()
    labels = arms.to_list() if hasattr(arms, "to_list") else list(arms)
    if not count:
        raise ValueError("contexts must have at least one row, got none")
    checks.same_length(contexts=count, arms=len(labels), reward=len(values))
    named = [encode_label(label) for label in labels]
    return {"contexts": encoded, "arms": named, "rewards": values}, False


def encode_told_eligible(
    eligible: Any, learner: ReplayedLearner, request: Mapping[str, Any]
) -> Any:
    """Return the eligible arms of outside data; arms that were removed may be named too."""
    known = [*learner.arms, *(label for label in learner.state.labels if label not in learner.arms)]
    return encode_eligible(eligible, known, request)


def encode_asked_eligible(
    arms: Any, learner: ReplayedLearner, request: Mapping[str, Any], key: str | None
) -> Any:
    """Return the eligible arms of a pick; those of a repeated request may have been removed."""
    try:
        return encode_eligible(arms, learner.arms, request)
    except ValueError:
        if key is None:
            raise
        return encode_eligible(arms, learner.state.labels, request)


def asked_rows(event: Event) -> list[dict[str, Any]]:
    """Return the rows of the table of trials that an ask makes."""
    common = {"state": "open", "asked": event.at, "until": event.came_of_it["until"]}
    return [{**row, **common} for row in _rows(event)]


def recorded_rows(event: Event) -> list[dict[str, Any]]:
    """Return the rows of the table of trials that outside data make."""
    common = {"state": "told", "told": event.at, "told_by": event.number}
    told = zip(_rows(event), event.requested["rewards"], strict=True)
    return [{**row, **common, "reward": reward} for row, reward in told]


def _rows(event: Event) -> list[dict[str, Any]]:
    return [
        {
            **dict.fromkeys(("reward", "asked", "until", "told", "told_by", "why")),
            "id": trial,
            "by": event.by,
            "arm": as_json(encode_label(pick.arm)),
            "context": as_json(pick.context),
            "eligible": None
            if pick.eligible is None
            else as_json([*map(encode_label, pick.eligible)]),
        }
        for trial, pick in zip(event.came_of_it["trials"], picks_of(event), strict=True)
    ]
