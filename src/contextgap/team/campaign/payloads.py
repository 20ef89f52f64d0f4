"""Contexts, labels and times as JSON that reads back as the same values.

One context is ``{"row": [...]}`` or, by name, ``{"row": {...}}``; a table is ``{"table": {"rows":
[[...], ...]}}``, with ``"columns"`` if they have names, and ``"levels"`` for those that are
categories whatever their cells look like. Learners of a campaign are only ever given what was
read back, so that a replay gives them the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from contextgap.tables.table import Table

MOST_COLUMNS = 4096
"""The most columns of a context in a campaign."""

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
    """Return whether contexts are a table; else they are one context."""
    return "table" in encoded


def rows_of(encoded: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the contexts of a table, or the one context, each as one context."""
    if not is_table(encoded):
        return [dict(encoded)]
    table = encoded["table"]
    names = table.get("columns")
    return [
        {"row": r if names is None else dict(zip(names, r, strict=True))} for r in table["rows"]
    ]


def some_rows(encoded: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """Return a table of some of the rows of a table."""
    table = encoded["table"]
    return {"table": {**table, "rows": [table["rows"][place] for place in places]}}
