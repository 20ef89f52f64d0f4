"""Tables, whatever they came as, and their cells: what these hold, and what is a slip.

Cells of tables in memory are values; cells of files may also be text that stands for one.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from contextgap.base.arrays import FloatArray

Level: TypeAlias = str | None

NO_WORDS = ("", "n/a", "nan", "none", "null")
"""Texts of files that say nothing, in any case; NA may be Namibia, except among numbers."""
TRUTHS = {"true": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "n": 0.0}
"""Texts of files that are truth values, in any case."""

COMMA = re.compile(r"[-+]?\d+,\d+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_DAY = 86_400_000_000  # in microseconds
_WHOLE = re.compile(r"-?\d+\.0+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+")
_GROUPED = re.compile(r"[-+]?\d{1,3}(([.,'_ \u00a0\u202f])\d{3})(\2\d{3})*([.,]\d+)?")
_OTHER_MINUS = re.compile(r"[\u2012\u2013\u2212]\s*\d+([.,]\d+)?")
_PER_CENT = re.compile(r"[-+]?\d+([.,]\d+)?\s*%")
_DATE = re.compile(r"\d{1,4}([./])\d{1,2}\1\d{2,4}(\D.*)?", re.DOTALL)


def is_missing(value: Any) -> bool:
    """Whether a cell is missing: None, not a number, not a time, or pandas' NA."""
    if value is None:
        return True
    if type(value) is str:
        return False
    try:
        return bool(value != value)  # true of NaN and NaT alone
    except (TypeError, ValueError):  # of an array, it is many truths
        return type(value).__name__ == "NAType"


def is_blank(value: Any) -> bool:
    """Whether a cell is text that says nothing; among dates it is missing."""
    return isinstance(value, str) and not value.strip()


def is_empty(cell: Any) -> bool:
    return is_missing(cell) or is_blank(cell)


def is_missing_number(cell: Any) -> bool:
    """Whether a cell of a file, in a column of numbers, says that there is none."""
    if isinstance(cell, str):
        return cell.strip().lower() in (*NO_WORDS, "na")
    return is_missing(cell)


def number(value: Any) -> float:
    """Return a value as a float, NaN if it is missing; raises TypeError if it is no number."""
    if type(value) is float:
        return value
    if is_missing(value):
        return math.nan
    if not isinstance(value, Real | Decimal | np.bool_):
        raise TypeError
    try:
        return float(value)
    except OverflowError:  # an int that no float can hold
        return math.inf


def is_number(value: Any) -> bool:
    """Whether a value is a number and not a truth value or a duration; it may be NaN."""
    no_number = bool | np.bool_ | Enum | np.timedelta64
    return isinstance(value, Real | Decimal) and not isinstance(value, no_number)


def level(value: Any) -> Level:
    """Return a cell as the text of its level, None if missing; raises TypeError if it is neither.

    What files and tables write in different ways is one level: 2, 2.0, "2" and "2.0"; True, "True"
    and "TRUE". "02" is another.
    """
    if is_missing(value):
        return None
    if isinstance(value, Enum):
        return level(value.value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real | Decimal):
        exact = float(value)
        return str(int(exact)) if exact.is_integer() else repr(exact)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()  # as pandas' own times are written
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str) and type(value).__name__ != "Interval":  # pandas' bins
        raise TypeError
    text = str(value)
    if text.lower() in ("true", "false"):
        return text.lower()
    return text.partition(".")[0] if _WHOLE.fullmatch(text) else text


def is_truth(value: Any) -> bool:
    """Whether a cell is a truth value; files may write it as text."""
    return isinstance(value, bool | np.bool_ | str) and level(value) in ("true", "false")


def plain(value: Any) -> str | bool | float | None:
    """Return a cell as a plain value that is read as the same; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Real | Decimal):
        return number(value)
    if isinstance(value, date):
        return value.isoformat()
    return str(value)  # of numpy's times, this is ISO's format too


def time(value: Any) -> tuple[float, bool | None]:
    """Return a time as days since 1970, UTC if it has a zone, and whether; TypeError if none."""
    if is_empty(value):
        return math.nan, None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise TypeError from None
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64)) / _A_DAY, False
    if not isinstance(value, date):
        raise TypeError
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    zoned = value.utcoffset() is not None
    since = (value if zoned else value.replace(tzinfo=UTC)) - _EPOCH
    # Whole microseconds, so that every way to write a time gives the same number.
    micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
    return float(micros / _A_DAY), zoned


def is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and "-" in value and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def date_of(day: float) -> str:
    return (_EPOCH + timedelta(seconds=round(day * 86_400))).replace(tzinfo=None).isoformat()


def to_number(cell: Any, *, decimal_comma: bool = False) -> float | None:
    """Return a cell of a file, perhaps money, as a float; None if it is no number."""
    if isinstance(cell, str):
        if "_" in cell:
            return None  # Python reads 1_000 as a number; in a table it is more likely a slip
        cell = _without_currency(cell.strip())
        if decimal_comma and COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
        elif _THOUSANDS.fullmatch(cell):
            cell = cell.replace(",", "")
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def floats(cells: Sequence[Any]) -> FloatArray | None:
    """Return cells as floats if all are plainly finite numbers, fast; ``to_number`` takes more."""
    kinds = set(map(type, cells))
    if not kinds <= {float, int, str} or (str in kinds and "_" in "".join(map(str, cells))):
        return None
    try:
        values = np.array(list(map(float, cells)))
    except (ValueError, OverflowError):
        return None
    return values if np.isfinite(values).all() else None


def _without_currency(text: str) -> str:
    """Return "-5" for "-$5", "$-5" and "-5 $"."""
    signs = [letter for letter in text if unicodedata.category(letter) == "Sc"]
    if len(signs) != 1:
        return text
    before, _, after = text.partition(signs[0])
    outside = before.strip() in ("", "-") or not after.strip()
    return before.strip() + after.strip() if outside else text


def no_number(cell: Any) -> str:
    """Say what is wrong with a cell of a file that is to be a finite number."""
    if is_empty(cell):
        return "the cell is empty; a number is needed"
    if isinstance(cell, str) and COMMA.fullmatch(cell.strip()):
        return f"numbers have a decimal point, got {cell!r}; write such as 1.5, or 1500"
    if to_number(cell) is None:
        return f"a number is needed, got {cell!r}"
    return f"a finite number is needed, got {cell!r}"


@dataclass(frozen=True)
class Holds:
    """What some cells of a column of a file hold; with ``|``, what they hold with others."""

    number: bool = False  # one that is no truth value
    word: bool = False  # anything else that says something
    date: bool = False
    blank: bool = False  # a cell that says nothing
    na: bool = False  # an "NA", which is missing among numbers and a word among words

    @classmethod
    def of(cls, cells: Sequence[Any], *, decimal_comma: bool = False) -> Holds:
        if len(cells) and floats(cells) is not None:
            return cls(number=True)
        number = date = blank = na = word = False
        for cell in _distinct(cells):
            text = str(cell).strip()
            if is_empty(cell) or text.lower() in NO_WORDS:
                blank = True
                continue
            value = None if isinstance(cell, bool) else to_number(cell, decimal_comma=decimal_comma)
            if value is not None and not math.isnan(value):
                number = True
                continue
            word = True
            if isinstance(cell, str):
                date, na = date or is_date(text), na or text.lower() == "na"
        return cls(number, word, date, blank, na)

    def __or__(self, other: Holds) -> Holds:
        return Holds(*(vars(self)[name] or vars(other)[name] for name in vars(self)))


def _distinct(cells: Sequence[Any]) -> Iterable[Any]:
    try:
        return [cell for _, cell in {(type(cell), cell) for cell in cells}]  # 1 is not True
    except TypeError:  # a list in a cell cannot be looked up
        return cells


def slip(cells: Sequence[Any], some_dates: bool) -> tuple[int, str] | None:
    """Return the first cell of a column of text, or of dates, that is probably a slip, and why."""
    for place, cell in enumerate(cells):
        if not isinstance(cell, str):
            continue
        if COMMA.fullmatch(cell):
            return place, no_number(cell)
        if _GROUPED.fullmatch(cell):
            return place, f"numbers are written without marks between thousands, got {cell!r}"
        if _OTHER_MINUS.fullmatch(cell):
            return place, f"minus is written as -, got {cell!r}"
        if _PER_CENT.fullmatch(cell):
            return place, f"numbers are written without a per cent sign, got {cell!r}"
        if _DATE.fullmatch(cell):
            return place, f"dates are written as 2024-05-31, got {cell!r}"
        if some_dates and not is_date(cell):
            return place, f"a date such as 2024-05-31 is needed, as in other rows, got {cell!r}"
    return None


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
    listed = isinstance(contexts, list | tuple) and len(contexts) > 0
    return listed and all(isinstance(row, Mapping) for row in contexts)


def check_distinct(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"name the column {name!r} twice")
        seen.add(name)


def _by_name(rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
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
