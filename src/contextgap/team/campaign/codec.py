"""Contexts, labels, events and answers as JSON that reads back as the same values.

In logs, one context is ``{"row": [...]}`` or, by name, ``{"row": {...}}``; a table is ``{"table":
{"rows": [[...], ...]}}``, with ``"columns"`` if they have names, and ``"levels"`` for those that
are categories whatever their cells look like. Learners of a campaign are only ever given what was
read back, so that a replay gives them the same. Requests and answers over HTTP have contexts as
``tables.table.read_json`` reads them. Arms are labels as files keep them: text, numbers, and
tuples as ``{"tuple": [...]}``.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np

from contextgap.base.checks import Label, Mask, decode_label, encode_label
from contextgap.base.components import lazy
from contextgap.tables.table import Table
from contextgap.team.campaign.values import Trial

MOST_COLUMNS = 4096  # the most columns of a context in a campaign
_TIMES = ("asked", "until", "told")
_PICKED = ("campaign", "id", "state", "arm", "context", "eligible")
_hashed = itemgetter(*_PICKED, *_TIMES, "told_by", "why", "by")
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def as_json(value: Any) -> str:
    """Return a value as JSON that reads back as the same; the order of columns is kept."""
    return _ENCODER.encode(value)


def encode_contexts(contexts: Any, called: str = "contexts") -> dict[str, Any]:
    """Return one context or a table of them as plain values; errors call them ``called``."""
    if isinstance(contexts, Real) or (isinstance(contexts, np.ndarray) and contexts.ndim == 0):
        contexts = [contexts]  # a context of one number
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
    """Return new contexts by ``encode_contexts``; logs of old releases may have other text."""
    encoded = encode_contexts(contexts, called)
    check_cells(encoded, called)
    return encoded


def check_cells(encoded: Mapping[str, Any], called: str) -> None:
    """Raise if a cell or the name of a column has text that ``is_plain_text`` is false of."""
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
    """Whether text can be written as UTF-8 and kept by any database."""
    if "\x00" in text:
        return False
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def decode_contexts(encoded: Mapping[str, Any]) -> Any:
    """Return contexts as a learner takes them: a mapping, a list or a table."""
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


def some_rows(encoded: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    table = encoded["table"]
    return {"table": {**table, "rows": [table["rows"][place] for place in places]}}


NOTHING = ""  # the hash of a log without events
_BECAME = {
    "tell": "told",
    "cancel": "cancelled",
    "expire": "expired",
    "retract": "retracted",
    "correct": "told",
}
_Parts = tuple[int, str, str, str | None, str, str]  # the first fields of an event


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
    by: str | None = None  # who caused it
    before: str = NOTHING  # the hash of the event before it

    @classmethod
    def following(cls, before: str, parts: _Parts, by: str | None = None) -> Event:
        """Return the event, with its first fields, that comes after a log with some hash."""
        return cls(*parts, _hash(before, parts, by), by, before)

    def follows(self, before: str) -> bool:
        """Return whether the event's hash is right after a log with the hash ``before``."""
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
        """The rows of the table of trials that an ask or outside data make."""
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
        """What the event changes in the row of the trial that it is about."""
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
    """Return the labels of the eligible arms of each row."""
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
    """Return the hash of a file that was made when the log had a hash."""
    found = hashlib.sha256(log.encode())
    found.update(content)
    return found.hexdigest()


def to_bytes(thing: Any) -> bytes:
    file = io.BytesIO()
    thing.save(file)
    return file.getvalue()


def read_trial(row: Mapping[str, Any], pick: Pick | None = None) -> Trial:
    """Return the trial in a row of the table of trials; ``pick`` is what was picked, if known."""
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
