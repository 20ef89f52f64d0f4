"""What users ask of trials: checked, done, and as the log keeps it.

Each action adds events and changes the table of trials alike.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base import checks
from contextgap.base.labels import Label, decode_label, encode_label
from contextgap.learner import StoppingRule
from contextgap.learner.arguments import read_censored, read_noise
from contextgap.learner.costs import read_told_costs
from contextgap.learner.replayed import ReplayedLearner
from contextgap.tables.eligible import read_eligible
from contextgap.team.campaign import calls
from contextgap.team.campaign.calls import this_user
from contextgap.team.campaign.codec import (
    Event,
    as_json,
    check_cells,
    decode_contexts,
    decode_eligible,
    encode_contexts,
    encode_given,
    is_plain_text,
    is_table,
    read_time,
    read_trial,
    rows_of,
    to_bytes,
)
from contextgap.team.campaign.progress import is_due, progress, summary
from contextgap.team.campaign.values import ConflictError, Trial

if TYPE_CHECKING:  # clients have no database
    from contextgap.team.campaign.replay import Replay
    from contextgap.team.campaign.session import Draft, Session

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
    """Return the request of an ask, but for the eligible arms; a pool is known by its hash."""
    check_key(key)
    length = None if lease is None else seconds("lease", lease)
    # For ever differs from none given.
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


def read_about(
    noise: Any, censored: Any, cost: Any, count: int, single: bool
) -> dict[str, list[Any]]:
    """Return rewards' standard errors, which are censored, and costs, where that was said."""
    cut = read_censored(censored, count, single=single)
    errors = read_noise(noise, cut, count, single=single)
    said = {"noise": errors, "censored": cut}
    about = {name: values.tolist() for name, values in said.items() if values.any()}
    if cost is not None:
        about["cost"] = read_told_costs(cost, count, single=single).tolist()
    return about


def check_told(trial: Any, *outside: Any) -> None:
    """Raise if there is a trial and what is for outside data."""
    if trial is not None and any(each is not None for each in outside):
        raise TypeError("contexts, arms and eligible are for outside data, without a trial")


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


def ask(
    draft: Draft, request: dict[str, Any], pool: Any, lease: float | None, key: str | None
) -> list[Trial]:
    """Have the learner pick arms; return a trial for each. ``lease`` is what holds by default."""
    known = draft.known(key, "ask", request)
    if known is not None:
        return [read_trial(row) for row in draft.trials(known.result["trials"])]
    result = pick(draft.session.replay, request, pool)
    result["trials"] = draft.new_numbers(len(result["arms"]))
    lasting = request["lease"] or lease
    result["until"] = None
    if lasting is not None and lasting != "ever":
        result["until"] = calls.after(lasting, draft.now())
    return _add(draft, draft.append("ask", request, result, key))


def pick(replay: Replay, request: Mapping[str, Any], pool: Any) -> dict[str, Any]:
    """Ask the learner, which is ahead of the log from then on; return the result for the log."""
    start, learner = time.perf_counter(), replay.learner
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
    if (after := learner.state.random) != before:
        found["random"] = after
    # A tell uses what was computed for its arm; a replay of that tell has to compute it.
    replay.seconds += (time.perf_counter() - start) / len(learner.arms)
    return found


def check_own(draft: Draft, given: Any) -> None:
    """Raise if a trial that is given, and not its number alone, is of another campaign."""
    for trial in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(trial, Trial):
            continue
        row = draft.trial(trial.id)
        arm, asked = decode_label(json.loads(row["arm"])), read_time(row["asked"])
        if (arm, asked) != (trial.arm, trial.asked):
            raise ValueError(
                f"trial {trial.id} of this campaign is of {arm!r}, asked for at "
                f"{asked}; the one given, of {trial.arm!r} at {trial.asked}, is of another"
            )


def tell(
    draft: Draft,
    numbers: Sequence[int],
    rewards: Sequence[float],
    about: Mapping[str, Sequence[Any]],
    key: str | None,
) -> list[Trial]:
    """Record the rewards of trials; return the changed trials."""
    told = [
        {"trial": number, "reward": reward, **{name: about[name][row] for name in about}}
        for row, (number, reward) in enumerate(zip(numbers, rewards, strict=True))
    ]
    if not told:
        return []
    first: dict[str, Any] = dict(told[0])
    if key is not None and len(told) > 1:
        first["with"] = told[1:]  # so that the key stands for all of them
    if draft.known(key, "tell", first) is not None:
        return [read_trial(draft.trial(number)) for number in numbers]
    keys = [key, *[None] * (len(told) - 1)]
    return [
        _tell_one(draft, request, own)
        for request, own in zip([first, *told[1:]], keys, strict=True)
    ]


def _tell_one(draft: Draft, request: dict[str, Any], key: str | None) -> Trial:
    number, reward = request["trial"], request["reward"]
    row = draft.trial(number)
    if row["told_by"] is not None:
        raise ConflictError(
            f"trial {number} is {row['state']}: {row['reward']!r} was told at {row['told']}; "
            "correct(trial, reward, why) changes it"
        )
    late = {"late": row["state"] != "open"}
    event = draft.append("tell", request, late, key)
    told = {"state": "told", "reward": reward, "told": event.at, "told_by": event.number}
    return read_trial(draft.change_trial(row, **told))


@contextmanager
def noting_progress(draft: Draft, goal: StoppingRule | None) -> Iterator[None]:
    """Record how far the exploration is after the block, if the rewards it told make that due."""
    learner = draft.session.replay.learner
    before = len(learner.state.model)
    yield
    if is_due(before, len(learner.state.model)):
        past = [event.result for event in draft.events_of("progress")]
        now = progress(learner, goal)
        draft.append("progress", {}, now)
        draft.note(**summary(now, past, goal))


def record(draft: Draft, request: dict[str, Any], key: str | None) -> list[Trial]:
    """Tell the rewards of outside data; return a trial for each."""
    known = draft.known(key, "record", request)
    if known is not None:
        return [read_trial(row) for row in draft.trials(known.result["trials"])]
    numbers = draft.new_numbers(len(rows_of(request["contexts"])))
    return _add(draft, draft.append("record", request, {"trials": numbers}, key))


def _add(draft: Draft, event: Event) -> list[Trial]:
    """Add the trials of an ask or of outside data; return them."""
    rows = event.trial_rows
    draft.add_trials(rows)
    return [read_trial(row, pick) for row, pick in zip(rows, event.picks, strict=True)]


def cancel(draft: Draft, number: int, key: str | None) -> Trial:
    """Cancel an open trial; return it as it is then."""
    row, request = draft.trial(number), {"trial": number}
    if draft.known(key, "cancel", request) is not None:
        return read_trial(row)
    if row["state"] != "open":
        raise ConflictError(f"trial {number} is {row['state']}, and no longer open")
    draft.append("cancel", request, {}, key)
    return read_trial(draft.change_trial(row, state="cancelled"))


def change(session: Session, number: int, reward: float | None, why: str, key: str | None) -> int:
    """Correct a reward, or retract it if the new one is None; return the event that told it."""
    kind = "retract" if reward is None else "correct"
    request: dict[str, Any] = {"trial": number, "why": why}
    if reward is not None:
        request["reward"] = reward
    changes = {number: reward}
    with session.reading() as connection:
        told_by = _told_by(session.store.trial(connection, number), kind)
        if session.known(connection, key, kind, request) is not None:
            return told_by
        # The part that takes long is done once, while others may go on.
        replay = session.rebuilt(connection, session.replay.number, changes, told_by)
    at = replay.number, replay.hash

    def work(draft: Draft) -> int:
        nonlocal replay, at
        if draft.known(key, kind, request) is not None:
            return told_by
        row = draft.trial(number)
        if kind == "retract" and row["state"] == "retracted":
            raise ConflictError(f"trial {number} is retracted already")
        replay.number, replay.hash = at  # where it was before this failed to be written
        replay = session.brought_up(draft.connection, replay, changes, told_by)
        at = replay.number, replay.hash
        sets = {event: each for event, each in replay.learnt.items() if int(event) >= told_by}
        result = {"learnt": {"from": told_by, "sets": sets}}
        replay.apply(draft.append(kind, request, result, key))
        draft.adopt(replay, told_by)
        became = {"state": "retracted"} if reward is None else {"state": "told", "reward": reward}
        draft.change_trial(row, why=why, **became)
        return told_by

    return session.run(work)


def _told_by(row: dict[str, Any], kind: str) -> int:
    """Return the event that told a trial's reward; raise if there is none to change."""
    if row["told_by"] is None:
        hint = "cancel it, if it will not be tried" if kind == "retract" else "tell its reward"
        raise ConflictError(f"trial {row['id']} is {row['state']}, without a reward; {hint}")
    return int(row["told_by"])
