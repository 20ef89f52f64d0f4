"""Finds trials for the page's table, the newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, or_, select

from contextgap.team.campaign.store import LARGEST, Store
from contextgap.team.campaign.tables import TRIALS
from contextgap.team.campaign.trial import STATES, read_trial
from contextgap.team.campaign.wire import trial_json

PAGE = 50
"""Trials in one answer."""


def find_trials(
    store: Store,
    connection: Connection,
    *,
    states: Sequence[str] = (),
    arm: str | None = None,
    text: str = "",
    before: int | None = None,
) -> dict[str, Any]:
    """Return trials with smaller numbers than ``before``; ``next`` is what to give for more.

    ``arm`` is an arm's key, and ``text`` is looked for in arms, contexts and reasons.
    """
    for state in states:
        if state not in STATES:
            raise ValueError(f"state must be one of {STATES}, got {state!r}")
    for called, each in {"arm": arm, "text": text}.items():
        if each is not None and "\0" in each:
            raise ValueError(f"{called} must be text without NUL, which no trial has, got {each!r}")
    statement = select(TRIALS).where(TRIALS.c.campaign == store.campaign)
    if states:
        statement = statement.where(TRIALS.c.state.in_(states))
    if arm is not None:
        statement = statement.where(TRIALS.c.arm == arm)
    if text:
        written = json.dumps(text)[1:-1]  # as the database has it
        statement = statement.where(
            or_(
                TRIALS.c.arm.icontains(written, autoescape=True),
                TRIALS.c.context.icontains(written, autoescape=True),
                TRIALS.c.why.icontains(text, autoescape=True),
            )
        )
    if before is not None:
        statement = statement.where(TRIALS.c.id < min(before, LARGEST))
    statement = statement.order_by(TRIALS.c.id.desc()).limit(PAGE + 1)
    rows = [dict(row) for row in connection.execute(statement).mappings()]
    shown = [_shown(row) for row in rows[:PAGE]]
    return {"trials": shown, "next": rows[PAGE - 1]["id"] if len(rows) > PAGE else None}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    trial = read_trial(row)
    return {
        **trial_json(trial),
        "key": row["arm"],
        "text": str(trial.arm),
        "told_by": row["told_by"],
    }
