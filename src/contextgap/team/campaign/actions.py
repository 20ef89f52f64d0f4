"""What happens to trials: each action adds events and changes the table of trials alike."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from contextgap.base.labels import decode_label
from contextgap.learner import StoppingRule
from contextgap.team.campaign import requests
from contextgap.team.campaign.errors import ConflictError
from contextgap.team.campaign.payloads import rows_of
from contextgap.team.campaign.progress import is_due, progress, summary
from contextgap.team.campaign.replay import Replay
from contextgap.team.campaign.session import Draft, Session
from contextgap.team.campaign.trial import Trial, read_time, read_trial


def ask(
    draft: Draft, request: dict[str, Any], pool: Any, lease: float | None, key: str | None
) -> list[Trial]:
    """Have the learner pick arms; return a trial for each. ``lease`` is what holds by default."""
    known = draft.known(key, "ask", request)
    if known is not None:
        return [read_trial(row) for row in draft.trials(known.came_of_it["trials"])]
    result = _pick(draft.session.replay, request, pool)
    result["trials"] = draft.new_numbers(len(result["arms"]))
    result["until"] = requests.until(request["lease"] or lease, draft.now())
    rows = requests.asked_rows(draft.append("ask", request, result, key))
    draft.add_trials(rows)
    return [read_trial(row) for row in rows]


def _pick(replay: Replay, request: dict[str, Any], pool: Any) -> dict[str, Any]:
    """Have the learner pick; until the event is in the log, the learner is ahead of it."""
    start = time.thread_time()
    result = requests.pick(replay.learner, request, pool)
    # A tell uses what was computed for its arm; a replay of that tell has to compute it.
    replay.seconds += (time.thread_time() - start) / len(replay.learner.arms)
    return result


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
    draft: Draft, numbers: Sequence[int], rewards: Sequence[float], key: str | None
) -> list[Trial]:
    """Tell the rewards of trials; return them as they are then."""
    told = [
        {"trial": number, "reward": reward} for number, reward in zip(numbers, rewards, strict=True)
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
        past = [event.came_of_it for event in draft.events_of("progress")]
        now = progress(learner, goal)
        draft.append("progress", {}, now)
        draft.note(**summary(now, past, goal))


def record(draft: Draft, request: dict[str, Any], key: str | None) -> list[Trial]:
    """Tell the rewards of outside data; return a trial for each."""
    known = draft.known(key, "record", request)
    if known is not None:
        return [read_trial(row) for row in draft.trials(known.came_of_it["trials"])]
    numbers = draft.new_numbers(len(rows_of(request["contexts"])))
    rows = requests.recorded_rows(draft.append("record", request, {"trials": numbers}, key))
    draft.add_trials(rows)
    return [read_trial(row) for row in rows]


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
