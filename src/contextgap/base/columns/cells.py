"""Single cells of a table: what is missing, which level, which date."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

Level: TypeAlias = str | bool | int | float | None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_DAY = 86400.0


def is_gap(value: Any) -> bool:
    """Whether a cell is missing: None, not a number, not a time, or pandas' NA."""
    if value is None:
        return True
    if type(value) is str:
        return False
    try:
        return bool(value != value)  # true of NaN and NaT alone
    except TypeError:
        return type(value).__name__ == "NAType"


def number(value: Any) -> float:
    """Return a cell as a float, NaN if it is missing; raises TypeError if it is no number."""
    if type(value) is float:
        return value
    if is_gap(value):
        return math.nan
    if not isinstance(value, Real | Decimal | np.bool_):
        raise TypeError
    return float(value)


def level(value: Any) -> Level:
    """Return a cell as a level, None if it is missing; raises TypeError if it is none."""
    if type(value) is str:
        return value
    if is_gap(value):
        return None
    if isinstance(value, Enum):
        return level(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        # Tables with gaps hold whole numbers as floats.
        exact = float(value)
        return int(exact) if exact.is_integer() else exact
    raise TypeError


def day(value: Any) -> float:
    """Return a date or time as days since 1970, NaN if it is missing; raises TypeError if none."""
    if is_gap(value):
        return math.nan
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise TypeError from None
    if isinstance(value, np.datetime64):
        microseconds = int(value.astype("datetime64[us]").astype(np.int64))
        return float(microseconds / (1e6 * _A_DAY))
    if not isinstance(value, date):
        raise TypeError
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    # Times without a zone are taken as they stand.
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    return float((moment - _EPOCH).total_seconds() / _A_DAY)
