"""Cells of a file: which are numbers, gaps or truth values, and what is probably a slip."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray

NO_WORDS = ("", "n/a", "nan", "none", "null")  # NA may be Namibia
TRUTHS = {"true": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "n": 0.0}
_GAPS = (*NO_WORDS, "na")
COMMA = re.compile(r"[-+]?\d+,\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+")
_GROUPED = re.compile(r"[-+]?\d{1,3}(([.,'_ \u00a0\u202f])\d{3})(\2\d{3})*([.,]\d+)?")
_OTHER_MINUS = re.compile(r"[\u2012\u2013\u2212]\s*\d+([.,]\d+)?")
_PER_CENT = re.compile(r"[-+]?\d+([.,]\d+)?\s*%")
_DATE = re.compile(r"\d{1,4}([./])\d{1,2}\1\d{2,4}(\D.*)?", re.DOTALL)


def to_number(cell: Any, *, decimal_comma: bool = False) -> float | None:
    """Return a cell as a float; None if it is no number.

    Money may have a sign of its currency, and thousands set off by commas if there is a decimal
    point. With ``decimal_comma``, a comma is the decimal point.
    """
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
    """Return cells as floats, if all of them are plainly finite numbers; ``to_number`` takes more.

    This is the fast way, which most columns of numbers go.
    """
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


def is_number(cell: Any, *, decimal_comma: bool = False) -> bool:
    """Whether a cell is a number and not a truth value or a gap."""
    number = None if isinstance(cell, bool) else to_number(cell, decimal_comma=decimal_comma)
    return number is not None and not math.isnan(number)


def is_gap(cell: Any) -> bool:
    """Whether a cell in a column of numbers says that there is none."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _GAPS)


def is_empty(cell: Any) -> bool:
    """Whether nothing stands in a cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def is_date(cell: Any) -> bool:
    """Whether a cell is text that begins with a year, a month and a day, as in 2024-05-01."""
    try:
        return "-" in cell and datetime.fromisoformat(cell) is not None
    except (TypeError, ValueError):
        return False


def no_number(cell: Any) -> str:
    """Say what is wrong with a cell that is to be a finite number."""
    if is_empty(cell):
        return "the cell is empty; a number is needed"
    if isinstance(cell, str) and COMMA.fullmatch(cell.strip()):
        return f"numbers have a decimal point, got {cell!r}; write such as 1.5, or 1500"
    if to_number(cell) is None:
        return f"a number is needed, got {cell!r}"
    return f"a finite number is needed, got {cell!r}"


@dataclass(frozen=True)
class Holds:
    """What some cells of a column hold; with ``|``, what they hold together with others.

    Parameters
    ----------
    number
        Whether there is a number that is no truth value.
    word
        Whether there is anything else that says something.
    date
        Whether there is text that is a date.
    blank
        Whether there is a cell that says nothing.
    na
        Whether there is an "NA", which is a gap among numbers and a word among words.
    """

    number: bool = False
    word: bool = False
    date: bool = False
    blank: bool = False
    na: bool = False

    @classmethod
    def of(cls, cells: Sequence[Any], *, decimal_comma: bool = False) -> Holds:
        """Return what cells hold."""
        if len(cells) and floats(cells) is not None:
            return cls(number=True)
        number = date = blank = na = word = False
        for cell in _distinct(cells):
            text = str(cell).strip()
            if is_empty(cell) or text.lower() in NO_WORDS:
                blank = True
                continue
            if is_number(cell, decimal_comma=decimal_comma):
                number = True
                continue
            word = True
            if isinstance(cell, str):
                date, na = date or is_date(text), na or text.lower() == "na"
        return cls(number, word, date, blank, na)

    def __or__(self, other: Holds) -> Holds:
        return Holds(
            self.number or other.number,
            self.word or other.word,
            self.date or other.date,
            self.blank or other.blank,
            self.na or other.na,
        )


def _distinct(cells: Sequence[Any]) -> Iterable[Any]:
    try:
        return [cell for _, cell in {(type(cell), cell) for cell in cells}]  # 1 is not True
    except TypeError:  # a list in a cell cannot be looked up
        return cells


def slip(cells: Sequence[Any], some_dates: bool) -> tuple[int, str] | None:
    """Return the first cell of a column of text that is probably none, and what is wrong.

    ``some_dates`` says whether there are dates in the column.
    """
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
