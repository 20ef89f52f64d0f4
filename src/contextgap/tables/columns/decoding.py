"""Contexts as users write them, from the numbers that kernels see."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.tables.columns.cells import date_of
from contextgap.tables.columns.coding import MOST_LEVELS, Coding
from contextgap.tables.columns.kinds import Category, Cyclic, Date

RARE, UNKNOWN = "(rare)", "(never met)"
"""What stands for levels that are pooled, and for those that were never met."""

_DIGITS = 12  # of a point on a circle; the last ones are rounding


def decode(coding: Coding, numbers: FloatArray) -> list[Any]:
    """Return the cells of a column from its numbers, shape (rows, width); a gap is None.

    Cells are numbers, text, truth values as text, and dates in ISO's format.
    """
    if isinstance(coding.kind, Category):
        return [_level(coding, int(code)) for code in numbers[:, 0]]
    if isinstance(coding.kind, Cyclic):
        angle = np.arctan2(numbers[:, 1], numbers[:, 0]) / (2 * np.pi)
        values: list[Any] = [_rounded(each) for each in (angle % 1.0) * coding.kind.period]
    else:
        values = numbers[:, 0].tolist()
    if isinstance(coding.kind, Date):
        zone = "+00:00" if coding.zoned else ""
        values = [date_of(day) + zone for day in values]
    if not coding.kind.gaps:
        return values
    return [None if gap else value for gap, value in zip(numbers[:, -1], values, strict=True)]


def _level(coding: Coding, code: int) -> str | None:
    if 0 <= code < len(coding.levels):
        return coding.levels[code]
    return RARE if code == MOST_LEVELS else UNKNOWN


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else value
