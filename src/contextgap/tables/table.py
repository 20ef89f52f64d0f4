"""The one form in which contexts and features are read: cells by column, from whatever comes.

As JSON, one context is an object of cells by name, or a list of cells. A missing value is null, a
date ``{"date": "2024-05-01"}`` and a time ``{"time": "2024-05-01T12:30:00"}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np

from contextgap.tables.cells import is_missing, level


class Levels(list[Any]):
    """The cells of a column that is a category whatever they look like."""


@dataclass(frozen=True, eq=False)
class Table:
    """Cells by column, or the cells of one row, and the names of the columns if there are any.

    ``doubtful`` names are row numbers if they are not those that were met before.
    """

    names: Sequence[str] | None
    cells: Sequence[Any]
    single: bool = False
    doubtful: bool = False

    @classmethod
    def of(cls, contexts: Any) -> Table:
        """Return a DataFrame, rows by name or not, a Series or an array as cells by column."""
        if isinstance(contexts, Table):
            return contexts
        if are_mappings(contexts):
            columns = _by_name(contexts)
            return cls(list(columns), list(columns.values()))
        if isinstance(contexts, Mapping):
            return cls([str(name) for name in contexts], list(contexts.values()), single=True)
        if hasattr(contexts, "columns") and hasattr(contexts, "to_numpy"):
            names = [str(name) for name in contexts.columns]
            check_distinct(names)
            return cls(names, [_column(contexts[name]) for name in contexts.columns])
        index = getattr(contexts, "index", None)
        if index is not None and hasattr(index, "tolist") and hasattr(contexts, "to_numpy"):
            labels = index.tolist()
            doubtful = not all(isinstance(label, str) for label in labels)
            return cls([str(label) for label in labels], contexts.tolist(), True, doubtful)
        if isinstance(contexts, np.ndarray) and contexts.ndim == 2:
            return cls(None, list(contexts.T))
        if isinstance(contexts, str) or not isinstance(contexts, Sequence | np.ndarray):
            raise TypeError(f"must be a table, a row or a mapping, got {contexts!r}")
        listed = [row for row in contexts if isinstance(row, Sequence | np.ndarray)]
        rows = [row for row in listed if not isinstance(row, str) and np.ndim(row)]
        if not rows:
            return cls(None, list(contexts), single=True)
        if len(rows) < len(contexts) or len({len(row) for row in rows}) > 1:
            raise ValueError("must have rows of equal length, got different lengths")
        return cls(None, [list(column) for column in zip(*rows, strict=True)])

    def __len__(self) -> int:
        if self.single:
            return 1
        return len(self.cells[0]) if self.cells else 0

    def __getitem__(self, key: str | int | slice | Sequence[int]) -> Any:
        """Return a column by its name, a row as users write it, or a table of some rows."""
        if isinstance(key, str):
            return self.picked([key])[0]
        if isinstance(key, int | np.integer):
            return self._row([column[key] for column in self.by_column])
        places = range(len(self))[key] if isinstance(key, slice) else key
        return Table(self.names, [_some(column, places) for column in self.cells])

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, zip(*self.by_column, strict=True))

    def _row(self, cells: Iterable[Any]) -> Any:
        return list(cells) if self.names is None else dict(zip(self.names, cells, strict=True))

    @property
    def given(self) -> Any:
        """One context as users write it, a mapping or a list; a table as it is."""
        return self._row(self.cells) if self.single else self

    def picked(self, wanted: Sequence[str]) -> Sequence[Any]:
        """Return the cells of these columns, in this order; without names, of all of them."""
        if self.names is None:
            return self.cells
        return [self.cells[self.names.index(name)] for name in wanted]

    @property
    def by_column(self) -> list[Sequence[Any]]:
        """The columns of a table, or of a table of one row."""
        return [[cell] for cell in self.cells] if self.single else list(self.cells)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, {"row": ...} or {"table": ...}; ``from_json`` reads the same."""
        names = None if self.doubtful else self.names
        if self.single:
            row = [_encode_cell(cell) for cell in self.cells]
            return {"row": row if names is None else dict(zip(names, row, strict=True))}
        columns = [[_encode_cell(cell) for cell in column] for column in self.cells]
        table: dict[str, Any] = {"rows": [list(row) for row in zip(*columns, strict=True)]}
        if names is not None:
            table["columns"] = list(names)
            pairs = zip(names, self.cells, strict=True)
            levels = [name for name, column in pairs if isinstance(column, Levels)]
            table |= {"levels": levels} if levels else {}
        return {"table": table}

    @classmethod
    def from_json(cls, encoded: Mapping[str, Any]) -> Table:
        """Reverse ``to_json``; what it wrote is not checked again."""
        if "row" in encoded:
            row = encoded["row"]
            named = isinstance(row, dict)
            cells = _decode_cells(row.values() if named else row)
            return cls(list(row) if named else None, cells, single=True)
        table = encoded["table"]
        names, levels = table.get("columns"), table.get("levels", ())
        rows = zip(*table["rows"], strict=True)
        columns = [_decode_cells(column) for column in rows]
        if names is not None:
            columns = columns or [[] for _ in names]
            pairs = zip(names, columns, strict=True)
            columns = [Levels(own) if name in levels else own for name, own in pairs]
        return cls(names, columns)


def read_json(value: Any, called: str = "contexts") -> Any:
    """Return contexts in a request: one as a mapping or list, several as a ``Table``."""
    if value is None:
        return None
    if isinstance(value, dict) and isinstance(value.get("table"), dict):
        _check_table(value, called)
        return Table.from_json(value)
    if isinstance(value, dict):
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
    if not any(
        isinstance(row, list) or (isinstance(row, dict) and not _is_moment(row)) for row in value
    ):
        return _read_row(value, called)
    rows = [_read_row(row, f"{called}[{place}]") for place, row in enumerate(value)]
    try:
        return Table.of(rows)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{called} {error}") from None


def are_mappings(contexts: Any) -> bool:
    """Whether contexts are a list of rows by name."""
    listed = isinstance(contexts, list | tuple) and len(contexts) > 0
    return listed and all(isinstance(row, Mapping) for row in contexts)


def check_distinct(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"name the column {name!r} twice")
        seen.add(name)


def _by_name(rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    """Return the columns that all rows have; raise if one row lacks what the first one has."""
    names = [str(name) for name in rows[0]]
    cells: dict[str, list[Any]] = {name: [] for name in names}
    for place, row in enumerate(rows):
        given = {str(name): cell for name, cell in row.items()}
        for name in names:
            if name not in given:
                raise ValueError(
                    f"lack the column {name!r} in row {place}; write None for a missing value"
                )
            cells[name].append(given[name])
    return cells


def _column(series: Any) -> Any:
    dtype = getattr(series, "dtype", None)
    if getattr(dtype, "time_zone", None) is not None:  # polars' array would lose the zone
        return series.to_list()
    values = np.asarray(series)
    if values.dtype.kind == "U":
        return values.tolist()
    # Of pandas, and of polars, which also writes what is in it.
    is_category = str(dtype).partition("(")[0] in ("category", "Categorical", "Enum")
    return Levels(values.tolist()) if is_category else values


def _some(column: Any, places: Sequence[int]) -> Any:
    return type(column)(column[i] for i in places) if isinstance(column, list) else column[places]


def _encode_cell(cell: Any) -> Any:
    if type(cell) in (str, int, bool):
        return cell
    if is_missing(cell):
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


def _decode_cells(cells: Iterable[Any]) -> list[Any]:
    return [_decode_cell(cell) if cell is None or type(cell) is dict else cell for cell in cells]


def _decode_cell(cell: Any) -> Any:
    if cell is None:
        return math.nan
    ((kind, text),) = cell.items()
    return (datetime if kind == "time" else date).fromisoformat(text)


def _is_moment(value: Any) -> bool:
    if not (isinstance(value, dict) and len(value) == 1 and set(value) <= {"time", "date"}):
        return False
    return all(isinstance(text, str) for text in value.values())  # time may be a column of numbers


def _read_row(row: Any, called: str) -> Any:
    if isinstance(row, dict):
        return {name: _read_cell(cell, f"{called}.{name}") for name, cell in row.items()}
    if isinstance(row, list):
        return [_read_cell(cell, f"{called}[{place}]") for place, cell in enumerate(row)]
    raise TypeError(f"{called} must be an object or a list of cells, as the others, got {row!r}")


def _read_cell(cell: Any, called: str) -> Any:
    if _is_moment(cell):
        ((kind, text),) = cell.items()
        try:
            return _decode_cell(cell)
        except (TypeError, ValueError):
            raise ValueError(f"{called} must be a {kind} in ISO format, got {text!r}") from None
    if isinstance(cell, dict | list):
        raise TypeError(f"{called} must be a number, text, true, false, null or a date")
    return cell


def _check_table(value: Mapping[str, Any], called: str) -> None:
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
