"""Guesses what the columns of a first table hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np

from contextgap.tables.columns import cells
from contextgap.tables.columns.kinds import Category, Date, Kind, Number
from contextgap.tables.columns.raw import Levels


def all_numbers(column: Sequence[Any]) -> bool:
    """Whether a column holds numbers alone, none of them missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
        return not np.isnan(column).any()
    return not isinstance(column, Levels) and all(
        _is_number(each) and not cells.is_gap(each) for each in column
    )


def guess_kind(name: str, column: Sequence[Any]) -> Kind:
    """Return what a column seems to hold; text that reads as dates throughout is dates."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":  # the usual case, fast
        missing = np.isnan(column)
        if not missing.all():
            return Number(gaps=bool(missing.any()))
    known = [each for each in column if not cells.is_gap(each)]
    gaps = len(known) < len(column)
    if not known:
        raise ValueError(
            f"have nothing but gaps in the column {name!r}, so that its kind cannot be told; "
            "leave it out, or give columns with Columns(...)"
        )
    if isinstance(column, Levels):
        return Category(gaps=gaps)
    if any(isinstance(each, timedelta | np.timedelta64) for each in known):
        raise TypeError(
            f"must be numbers, text, truth values or dates, got durations in column {name!r}; "
            "make them numbers, such as seconds"
        )
    if all(map(_is_number, known)):
        return Number(gaps=gaps)
    if all(isinstance(each, date | np.datetime64) for each in known):
        return Date(gaps=gaps)
    filled = [each for each in known if not cells.is_blank(each)]
    if filled and all(map(is_date, filled)):
        return Date(gaps=gaps or len(filled) < len(known))
    for each in known:
        if not isinstance(each, str | bool | np.bool_ | Real | Enum):
            raise TypeError(
                f"must be numbers, text, truth values or dates, got {each!r} in column {name!r}"
            )
    first, is_text = known[0], isinstance(known[0], str | Enum)
    other = next((each for each in known if isinstance(each, str | Enum) != is_text), first)
    if other is not first and not all(map(_is_truth, known)):
        raise TypeError(
            f"must be all numbers or all text in column {name!r}, got {first!r} and {other!r}; "
            "if it is a category all the same, give columns that say so"
        )
    return Category(gaps=gaps)


def _is_truth(value: Any) -> bool:
    """Whether a cell is a truth value; files may write it as text."""
    return isinstance(value, bool | np.bool_ | str) and cells.level(value) in ("true", "false")


def _is_number(value: Any) -> bool:
    no_number = bool | np.bool_ | Enum | np.timedelta64
    return isinstance(value, Real | Decimal) and not isinstance(value, no_number)


def is_date(value: Any) -> bool:
    """Whether a cell is text with a year, a month and a day."""
    try:
        return isinstance(value, str) and "-" in value and not np.isnan(cells.time(value).day)
    except TypeError:
        return False
