"""What happens to trials: each action adds events and changes the table of trials alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from contextgap.campaign import requests
from contextgap.campaign.errors import ConflictError
from contextgap.campaign.goal import progress, steps
from contextgap.campaign.payloads import rows_of
from contextgap.campaign.replay import Replay
from contextgap.campaign.session import Session
from contextgap.campaign.trial import Trial, read_trial
from contextgap.learner import StoppingRule
from contextgap.learner.recorded import observations


def ask(
    session: Session,
    connection: Connection,
    request: dict[str, Any],
    pool: Any,
    lease: float | None,
    key: str | None,
) -> list[Trial]:
    """Have the learner pick arms; return a trial for each. ``lease`` is what holds by default."""
    known = session.known(connection, key, "ask", request)
    if known is not None:
        return _trials(session, connection, known.came_of_it["trials"])
    result = _pick(session.replay, request, pool)
    result["trials"] = _new_numbers(session, connection, len(result["arms"]))
    result["until"] = requests.until(request["lease"] or lease)
    event = session.append(connection, "ask", request, result, key)
    rows = requests.asked_rows(event)
    session.store.add_trials(connection, rows)
    return [read_trial(row) for row in rows]


def _pick(replay: Replay, request: dict[str, Any], pool: Any) -> dict[str, Any]:
    """Have the learner pick; until the event is in the log, the learner is ahead of it."""
    start, replay.sound = time.thread_time(), False
    try:
        result = requests.pick(replay.learner, request, pool)
    except (TypeError, ValueError):
        replay.sound = True  # the learner refused, and is as it was
        raise
    # A tell uses what was computed for its arm; a replay of that tell has to compute it.
    replay.seconds += (time.thread_time() - start) / len(replay.learner.arms)
    return result


def check_own(session: Session, connection: Connection, given: Any) -> None:
    """Raise if a trial that is given, and not its number alone, is of another campaign."""
    for trial in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(trial, Trial):
            continue
        known = read_trial(session.store.trial(connection, trial.id))
        if (known.arm, known.asked) != (trial.arm, trial.asked):
            raise ValueError(
                f"trial {trial.id} of this campaign is of {known.arm!r}, asked for at "
                f"{known.asked}; the one given, of {trial.arm!r} at {trial.asked}, is of another"
            )


def tell(
    session: Session,
    connection: Connection,
    numbers: Sequence[int],
    rewards: Sequence[float],
    key: str | None,
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
    if session.known(connection, key, "tell", first) is not None:
        return [read_trial(session.store.trial(connection, number)) for number in numbers]
    keys = [key, *[None] * (len(told) - 1)]
    return [
        _tell_one(session, connection, request, own)
        for request, own in zip([first, *told[1:]], keys, strict=True)
    ]


def _tell_one(
    session: Session, connection: Connection, request: dict[str, Any], key: str | None
) -> Trial:
    number, reward = request["trial"], request["reward"]
    row = session.store.trial(connection, number)
    if row["told_by"] is not None:
        raise ConflictError(
            f"trial {number} is {row['state']}: {row['reward']!r} was told at {row['told']}; "
            "correct(trial, reward, why) changes it"
        )
    late = {"late": row["state"] != "open"}
    event = session.append(connection, "tell", request, late, key)
    told = {"state": "told", "reward": reward, "told": event.at, "told_by": event.number}
    session.store.change_trial(connection, number, **told)
    return read_trial({**row, **told})


@contextmanager
def noting_progress(
    session: Session, connection: Connection, goal: StoppingRule | None
) -> Iterator[None]:
    """Record how far the exploration is after the block, if the rewards it told make that due."""
    before = observations(session.replay.learner)
    yield
    learner = session.replay.learner
    if steps(observations(learner)) > steps(before):
        session.append(connection, "progress", {}, progress(learner, goal))


def record(
    session: Session, connection: Connection, request: dict[str, Any], key: str | None
) -> list[Trial]:
    """Tell the rewards of outside data; return a trial for each."""
    known = session.known(connection, key, "record", request)
    if known is not None:
        return _trials(session, connection, known.came_of_it["trials"])
    numbers = _new_numbers(session, connection, len(rows_of(request["contexts"])))
    event = session.append(connection, "record", request, {"trials": numbers}, key)
    rows = requests.recorded_rows(event)
    session.store.add_trials(connection, rows)
    return [read_trial(row) for row in rows]


def cancel(session: Session, connection: Connection, number: int, key: str | None) -> Trial:
    """Cancel an open trial; return it as it is then."""
    row, request = session.store.trial(connection, number), {"trial": number}
    if session.known(connection, key, "cancel", request) is not None:
        return read_trial(row)
    if row["state"] != "open":
        raise ConflictError(f"trial {number} is {row['state']}, and no longer open")
    session.append(connection, "cancel", request, {}, key)
    session.store.change_trial(connection, number, state="cancelled")
    return read_trial({**row, "state": "cancelled"})


def change(session: Session, number: int, reward: float | None, why: str, key: str | None) -> int:
    """Correct a reward, or retract it if the new one is None; return the event that told it."""
    kind = "retract" if reward is None else "correct"
    request: dict[str, Any] = {"trial": number, "why": why}
    if reward is not None:
        request["reward"] = reward
    changes = {number: reward}
    with session.reading() as connection:
        told_by = _told_by(session, connection, number, kind)
        if session.known(connection, key, kind, request) is not None:
            return told_by
        # The part that takes long is done while others may go on.
        upto = session.replay.number
        replay = session.rebuilt(connection, upto, changes, told_by)
    with session.turn() as connection:
        if session.known(connection, key, kind, request) is not None:
            return told_by
        _check_changeable(session, connection, number, kind)
        replay = session.brought_up(connection, replay, changes, told_by)
        sets = {number: each for number, each in replay.learnt.items() if int(number) >= told_by}
        result = {"learnt": {"from": told_by, "sets": sets}}
        event = session.append(connection, kind, request, result, key)
        replay.apply(event)
        session.adopt(connection, replay, told_by)
        became = {"state": "retracted"} if reward is None else {"state": "told", "reward": reward}
        session.store.change_trial(connection, number, why=why, **became)
    return told_by


def _told_by(session: Session, connection: Connection, number: int, kind: str) -> int:
    """Return the event that told a trial's reward; raise if there is none to change."""
    row = session.store.trial(connection, number)
    if row["told_by"] is None:
        hint = "cancel it, if it will not be tried" if kind == "retract" else "tell its reward"
        raise ConflictError(f"trial {number} is {row['state']}, without a reward; {hint}")
    return int(row["told_by"])


def _check_changeable(session: Session, connection: Connection, number: int, kind: str) -> None:
    row = session.store.trial(connection, number)
    if kind == "retract" and row["state"] == "retracted":
        raise ConflictError(f"trial {number} is retracted already")


def _new_numbers(session: Session, connection: Connection, count: int) -> list[int]:
    last = session.store.last_trial(connection)
    return [last + place + 1 for place in range(count)]


def _trials(session: Session, connection: Connection, numbers: Sequence[int]) -> list[Trial]:
    """Return trials that were made at once, and so have numbers that follow each other."""
    rows = session.store.trials(connection, between=(numbers[0], numbers[-1]))
    return [read_trial(row) for row in rows]
