"""Single cells: what is missing, a number, a truth value, a date or a level, and what is a slip.

Cells of tables in memory are values; cells of files may also be text that stands for one.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
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
    """Return days since 1970 as a date and time, to the second."""
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
