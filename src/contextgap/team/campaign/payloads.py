"""Contexts, labels and times as JSON that reads back as the same values.

One context is ``{"row": [...]}`` or, by name, ``{"row": {...}}``; a table is ``{"table": {"rows":
[[...], ...]}}``, with ``"columns"`` if they have names, and ``"levels"`` for those that are
categories whatever their cells look like. Learners of a campaign are only ever given what was
read back, so that a replay gives them the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np

from contextgap.tables.columns.cells import is_gap, level
from contextgap.tables.columns.raw import Levels, raw_cells

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
        raw = raw_cells(contexts)
        if len(raw.cells) > MOST_COLUMNS:
            raise ValueError(f"must have at most {MOST_COLUMNS} columns, got {len(raw.cells)}")
        names = None if raw.doubtful else raw.names
        if raw.single:
            cells = [_encode_cell(cell) for cell in raw.cells]
            return {"row": cells if names is None else dict(zip(names, cells, strict=True))}
        columns = [[_encode_cell(cell) for cell in column] for column in raw.cells]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{called} {error}") from None
    table: dict[str, Any] = {"rows": [list(row) for row in zip(*columns, strict=True)]}
    if names is not None:
        table["columns"] = names
        levels = [n for n, cells in zip(names, raw.cells, strict=True) if isinstance(cells, Levels)]
        table |= {"levels": levels} if levels else {}
    return {"table": table}


def encode_given(contexts: Any, called: str = "contexts") -> dict[str, Any]:
    """Return contexts as ``encode_contexts`` does, if all their text can be kept and shown again.

    Logs of earlier releases may have other text, so that it is refused only where it comes in.
    """
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
    """Return contexts as a learner takes them: a mapping, a list, rows or a DataFrame."""
    if "row" in encoded:
        row = encoded["row"]
        if isinstance(row, Mapping):
            return {name: _decode_cell(cell) for name, cell in row.items()}
        return [_decode_cell(cell) for cell in row]
    table = encoded["table"]
    rows = [[_decode_cell(cell) for cell in row] for row in table["rows"]]
    if "columns" not in table:
        return rows
    import pandas as pd

    frame = pd.DataFrame(rows, columns=table["columns"], dtype=object)
    for name in table.get("levels", ()):
        frame[name] = frame[name].astype("category")
    return frame


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


def _encode_cell(cell: Any) -> Any:
    """A cell as a JSON value: a gap is null, a time ``{"time": ...}``, a date ``{"date": ...}``."""
    if type(cell) in (str, int, bool):
        return cell
    if is_gap(cell):
        return None
    if isinstance(cell, Enum):
        return level(cell)
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, int | np.integer):
        return int(cell)
    if isinstance(cell, Real | Decimal):
        number = float(cell)
        if not math.isfinite(number):
            raise ValueError(f"must be finite, got {number}")
        return number
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, datetime):
        return {"time": datetime.isoformat(cell)}
    if isinstance(cell, date):
        return {"date": cell.isoformat()}
    if isinstance(cell, str):
        return str(cell)
    raise TypeError(f"must be numbers, text, truth values or dates, got {cell!r}")


def _decode_cell(cell: Any) -> Any:
    if cell is None:
        return math.nan
    if isinstance(cell, Mapping):
        if "time" in cell:
            return datetime.fromisoformat(cell["time"])
        return date.fromisoformat(cell["date"])
    return cell
