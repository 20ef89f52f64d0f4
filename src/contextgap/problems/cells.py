"""Cells of a file: which are numbers, gaps or truth values, and what is probably a slip."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

NO_WORDS = ("", "n/a", "nan", "none", "null")  # NA may be Namibia
TRUTHS = {"true": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "n": 0.0}
_GAPS = (*NO_WORDS, "na")
_COMMA = re.compile(r"[-+]?\d+,\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+")
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
        if decimal_comma and _COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
        elif _THOUSANDS.fullmatch(cell):
            cell = cell.replace(",", "")
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


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
    if isinstance(cell, str) and _COMMA.fullmatch(cell.strip()):
        return f"numbers have a decimal point, got {cell!r}; write such as 1.5, or 1500"
    if to_number(cell) is None:
        return f"a number is needed, got {cell!r}"
    return f"a finite number is needed, got {cell!r}"


def slip(cells: Sequence[Any]) -> tuple[int, str] | None:
    """Return the first cell of a column of text that is probably none, and what is wrong."""
    some_dates = any(map(is_date, cells))
    for place, cell in enumerate(cells):
        if not isinstance(cell, str):
            continue
        if _COMMA.fullmatch(cell):
            return place, no_number(cell)
        if _PER_CENT.fullmatch(cell):
            return place, f"numbers are written without a per cent sign, got {cell!r}"
        if _DATE.fullmatch(cell):
            return place, f"dates are written as 2024-05-31, got {cell!r}"
        if some_dates and not is_date(cell):
            return place, f"a date such as 2024-05-31 is needed, as in other rows, got {cell!r}"
    return None
