"""What campaigns take and answer as JSON, and back, for the service and its client.

One context is an object of cells by name, or a list of cells; several are a list of these, or
``{"table": {"columns": [...], "rows": [[...], ...]}}``, which is shorter. A gap is null, a date
``{"date": "2024-05-01"}`` and a time ``{"time": "2024-05-01T12:30:00"}``. Arms are labels as files
keep them: text, numbers, and tuples as ``{"tuple": [...]}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from contextgap.base.labels import Label, decode_label, encode_label
from contextgap.models.tuning import Tuning
from contextgap.policy.card import Card
from contextgap.team.campaign.payloads import decode_contexts, encode_contexts, is_table
from contextgap.team.campaign.progress import CampaignStatus
from contextgap.team.campaign.recalls import FrozenPolicy, Recall, Recalled
from contextgap.team.campaign.trial import Trial

_TIMES = ("asked", "until", "told")


def contexts_json(contexts: Any, called: str = "contexts") -> Any:
    """Return one context or several as JSON values."""
    encoded = encode_contexts(contexts, called)
    if not is_table(encoded):
        return encoded["row"]
    return encoded if "columns" in encoded["table"] else encoded["table"]["rows"]


def read_contexts(value: Any, called: str = "contexts") -> Any:
    """Return contexts as campaigns take them; reverses ``contexts_json``."""
    if value is None:
        return None
    if isinstance(value, Mapping) and isinstance(value.get("table"), Mapping):
        return _read_table(value, called)
    if isinstance(value, Mapping):
        return _read_row(value, called)
    if not isinstance(value, list):
        raise TypeError(f"{called} must be an object, a list of cells or a list of these")
    if value and all(map(_is_moment, value)):
        column = next(iter(value[0]))
        raise ValueError(
            f"{called} may be one context of dates and times, or several contexts with the one "
            f'column {column!r}; write one as {{"name": {{"date": "2024-05-01"}}}}, and several as '
            f'{{"table": {{"columns": [{json.dumps(column)}], "rows": [["2024-05-01"]]}}}}'
        )
    if any(isinstance(row, list) or _is_row(row) for row in value):
        return [_read_row(row, f"{called}[{place}]") for place, row in enumerate(value)]
    return _read_row(value, called)


def _is_row(value: Any) -> bool:
    return isinstance(value, Mapping) and not _is_moment(value)


def _is_moment(value: Any) -> bool:
    if not (isinstance(value, Mapping) and len(value) == 1 and set(value) <= {"time", "date"}):
        return False
    return all(isinstance(text, str) for text in value.values())  # time may be a column of numbers


def _read_row(row: Any, called: str) -> Any:
    if isinstance(row, Mapping):
        return {name: _read_cell(cell, f"{called}.{name}") for name, cell in row.items()}
    if isinstance(row, list):
        return [_read_cell(cell, f"{called}[{place}]") for place, cell in enumerate(row)]
    raise TypeError(f"{called} must be an object or a list of cells, as the others, got {row!r}")


def _read_cell(cell: Any, called: str) -> Any:
    if _is_moment(cell):
        ((kind, text),) = cell.items()
        try:
            return (datetime if kind == "time" else date).fromisoformat(text)
        except (TypeError, ValueError):
            raise ValueError(f"{called} must be a {kind} in ISO format, got {text!r}") from None
    if isinstance(cell, Mapping | list):
        raise TypeError(f"{called} must be a number, text, true, false, null or a date")
    return cell


def _read_table(value: Mapping[str, Any], called: str) -> Any:
    table = value["table"]
    columns, rows, levels = table.get("columns"), table.get("rows"), table.get("levels", [])
    known = len(value) == 1 and set(table) <= {"columns", "rows", "levels"}
    names = [name for name in columns or () if isinstance(name, str)]
    if not known or not isinstance(columns, list) or len(set(names)) < len(columns):
        raise ValueError(f'{called} must be {{"table": {{"columns": [names], "rows": [[cells]]}}}}')
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise TypeError(f"{called}.table.rows must be a list of lists of cells")
    for place, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(f"{called}.table.rows[{place}] must have {len(columns)} cells")
        _read_row(row, f"{called}.table.rows[{place}]")
    if not isinstance(levels, list) or not all(level in names for level in levels):
        raise ValueError(f"{called}.table.levels must be among its columns, got {levels!r}")
    return decode_contexts(value)


def read_label(value: Any, called: str = "arm") -> Label:
    """Return an arm's label from a JSON value."""
    try:
        return decode_label(value)
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{called} must be a label such as text or a number, got {value!r}") from (
            None
        )


def trial_json(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON values."""
    times = {name: getattr(trial, name) for name in _TIMES}
    return {
        "id": trial.id,
        "arm": encode_label(trial.arm),
        "context": contexts_json(trial.context),
        "state": trial.state,
        "reward": trial.reward,
        "eligible": None if trial.eligible is None else [*map(encode_label, trial.eligible)],
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
        "why": trial.why,
        "by": trial.by,
    }


def read_trial_json(value: Mapping[str, Any]) -> Trial:
    """Reverse ``trial_json``."""
    times = {name: value[name] for name in _TIMES}
    eligible = value["eligible"]
    return Trial(
        id=value["id"],
        arm=decode_label(value["arm"]),
        context=decode_contexts({"row": value["context"]}),
        state=value["state"],
        reward=value["reward"],
        eligible=None if eligible is None else tuple(map(decode_label, eligible)),
        why=value["why"],
        by=value.get("by"),  # services of release 0.2 do not say
        **{n: None if time is None else datetime.fromisoformat(time) for n, time in times.items()},
    )


def recall_json(recall: Recall) -> dict[str, Any]:
    """Return what a retraction means as JSON values."""
    return {"trial": recall.trial, "policies": [vars(policy) for policy in recall.policies]}


def read_recall_json(value: Mapping[str, Any]) -> Recall:
    """Reverse ``recall_json``."""
    return Recall(value["trial"], tuple(Recalled(**policy) for policy in value["policies"]))


def frozen_json(frozen: FrozenPolicy) -> dict[str, Any]:
    """Return what is known of a frozen policy as JSON values."""
    return {**vars(frozen), "recalled": list(frozen.recalled)}


def read_frozen_json(value: Mapping[str, Any]) -> FrozenPolicy:
    """Reverse ``frozen_json``."""
    return FrozenPolicy(**{**value, "recalled": tuple(value["recalled"])})


def status_json(status: CampaignStatus) -> dict[str, Any]:
    """Return how a campaign stands as JSON values; arms keep their types."""
    counts = [{"arm": encode_label(arm), "count": n} for arm, n in status.rewards.items()]
    return {**status.describe(), "rewards": counts}


def read_status_json(value: Mapping[str, Any]) -> CampaignStatus:
    """Reverse ``status_json``."""
    counts: Sequence[Mapping[str, Any]] = value["rewards"]
    rest = {
        "rewards": {decode_label(each["arm"]): each["count"] for each in counts},
        "tuning": None if value["tuning"] is None else Tuning.restored(value["tuning"]),
        "score": None if value["score"] is None else Card.restored(value["score"]),
    }
    return CampaignStatus(**{**value, **rest})
