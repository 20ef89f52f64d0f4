"""Single cells of a table: what is missing, which level, which date."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Level: TypeAlias = str | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_DAY = 86_400_000_000  # in microseconds
_WHOLE = re.compile(r"-?\d+\.0+")


def is_gap(value: Any) -> bool:
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
    """Whether a cell is text that says nothing; among dates it is a gap."""
    return isinstance(value, str) and not value.strip()


def number(value: Any) -> float:
    """Return a cell as a float, NaN if it is missing; raises TypeError if it is no number."""
    if type(value) is float:
        return value
    if is_gap(value):
        return math.nan
    if not isinstance(value, Real | Decimal | np.bool_):
        raise TypeError
    try:
        return float(value)
    except OverflowError:  # an int that no float can hold
        return math.inf


def level(value: Any) -> Level:
    """Return a cell as the text of its level, None for a gap; raises TypeError if it is neither.

    What files and tables write in different ways is one level: 2, 2.0, "2" and "2.0"; True, "True"
    and "TRUE". "02" is another.
    """
    if is_gap(value):
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


def date_of(day: float) -> str:
    """Return days since 1970 as a date and time, to the second."""
    return (_EPOCH + timedelta(seconds=round(day * 86_400))).replace(tzinfo=None).isoformat()


def plain(value: Any) -> str | bool | float | None:
    """Return a cell as a plain value that is read as the same; None for a gap."""
    if is_gap(value):
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


class Time(NamedTuple):
    """Days since 1970, NaN for a gap, and whether there was a time zone; None for a gap."""

    day: float
    zoned: bool | None


def time(value: Any) -> Time:
    """Return a date or time as days since 1970; raises TypeError if it is none.

    With a time zone, days are those of UTC; without one, times are taken as they stand.
    """
    if is_gap(value) or is_blank(value):
        return Time(math.nan, None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise TypeError from None
    if isinstance(value, np.datetime64):
        return Time(int(value.astype("datetime64[us]").astype(np.int64)) / _A_DAY, False)
    if not isinstance(value, date):
        raise TypeError
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    zoned = value.utcoffset() is not None
    since = (value if zoned else value.replace(tzinfo=UTC)) - _EPOCH
    # Whole microseconds, so that every way to write a time gives the same number.
    micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
    return Time(float(micros / _A_DAY), zoned)
