"""A trial: an arm to try at a context, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contextgap.base.labels import Label, decode_label
from contextgap.team.campaign.payloads import decode_contexts

STATES = ("open", "told", "cancelled", "expired", "retracted")
"""What can have become of a trial."""


@dataclass(frozen=True)
class Trial:
    """An arm to try at a context, and what became of it.

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
        What was told, after all corrections; None before. A retracted trial keeps what it was told.
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
class Pick:
    """What the learner is given of a trial; it never changes."""

    context: Mapping[str, Any]
    arm: Label
    eligible: tuple[Label, ...] | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Pick:
        """Return the pick in a row of the table of trials."""
        return cls(json.loads(row["context"]), decode_label(json.loads(row["arm"])), _among(row))


def read_trial(row: Mapping[str, Any]) -> Trial:
    """Return the trial in a row of the table of trials."""
    times = {name: read_time(row[name]) for name in ("asked", "until", "told")}
    pick = Pick.of(row)
    return Trial(
        id=row["id"],
        arm=pick.arm,
        context=decode_contexts(pick.context),
        state=row["state"],
        reward=row["reward"],
        eligible=pick.eligible,
        why=row["why"],
        by=row["by"],
        **times,
    )


def _among(row: Mapping[str, Any]) -> tuple[Label, ...] | None:
    if row["eligible"] is None:
        return None
    return tuple(decode_label(label) for label in json.loads(row["eligible"]))


def read_time(text: str | None) -> datetime | None:
    """Return a time in a row of the table of trials."""
    return None if text is None else datetime.fromisoformat(text)
