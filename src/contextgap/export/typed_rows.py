"""Rows of a table as exports take them, and what kernels see of them.

A row has one number per column, as ``TableSchema.read`` gives it: a number, days since 1970, a code
of a category, NaN if missing. An export makes of it what ``TableSchema.spread`` makes, number by
number, so that both need know no more than ``SpreadNumber``.

A code that is no level's is like no level. Where kernels see NaN or an infinity there is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from contextgap.base.arrays import FloatArray
from contextgap.export.rule import DecisionRule
from contextgap.policy.fallback import Fallback
from contextgap.tables.columns import CYCLES, Category, Cyclic, Date
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.schema import MOST_LEVELS, Coding, TableSchema
from contextgap.tables.table import Table

# Sines and cosines of two libraries differ by less than so many roundings of 1.
_ROUNDINGS = 16
_MISSING = 0.15  # share of cells of random rows that are missing, where some may be


class How(Enum):
    """What becomes of a column's number."""

    VALUE = 0
    COSINE = 1
    SINE = 2
    IS_MISSING = 3
    CODE = 4


@dataclass(frozen=True)
class SpreadNumber:
    """How one of the numbers that kernels see comes from a row."""

    how: How
    source: int  # which column
    missing: float = math.nan  # in place of a missing value; NaN if there must be none
    by: float = 1.0  # the period of a circle, or how many levels a category has

    @property
    def unknown(self) -> float:
        """The code that stands for all levels that are not known."""
        return -1.0 if self.by < MOST_LEVELS else self.by


def spread_numbers(table: TableSchema) -> list[SpreadNumber]:
    """Return how all numbers that kernels see come from a row, in the kernels' order."""
    numbers = [each for place, own in enumerate(table.codings) for each in _numbers(place, own)]
    return sorted(numbers, key=lambda each: each.how is How.CODE)


def _numbers(place: int, coding: Coding) -> Iterator[SpreadNumber]:
    kind = coding.kind
    if isinstance(kind, Category):
        yield _code(place, coding)
        return
    if not isinstance(kind, Cyclic):
        filling = (coding.filling or 0.0) if kind.missing else math.nan
        yield SpreadNumber(How.VALUE, place, filling)
    periods = [kind.period] if isinstance(kind, Cyclic) else []
    if isinstance(kind, Date):
        periods = [CYCLES[cycle] for cycle in kind.cycles]
    for period in periods:
        for how in (How.COSINE, How.SINE):
            yield SpreadNumber(how, place, 0.0 if kind.missing else math.nan, period)
    if kind.missing:
        yield SpreadNumber(How.IS_MISSING, place)


def _code(place: int, coding: Coding) -> SpreadNumber:
    found = SpreadNumber(How.CODE, place, by=float(len(coding.levels)))
    if not coding.kind.missing:
        return found
    own = [code for code, level in enumerate(coding.levels) if level is None]
    return SpreadNumber(How.CODE, place, own[0] if own else found.unknown, found.by)


def seen_by_kernels(table: TableSchema | None, rows: FloatArray) -> FloatArray:
    """Return what kernels see of rows, shape (n, columns); rows themselves if they are plain."""
    if table is None:
        return rows
    known = rows.copy()
    for each in spread_numbers(table):
        if each.how is How.CODE:
            codes = rows[:, each.source]
            known[:, each.source] = np.where(is_level(each, codes), codes, each.unknown)
            known[np.isnan(codes), each.source] = each.missing
    return table.spread(known)


def is_level(number: SpreadNumber, codes: FloatArray) -> Any:
    """Say which codes are those of levels that are known."""
    return (codes >= 0) & (codes < number.by) & (codes == np.floor(codes))


def has_unknown_level(table: TableSchema | None, rows: FloatArray) -> Any:
    """Say which rows have a level that is not known, or lack one where none was missing before."""
    found = np.zeros(len(rows), dtype=bool)
    for each in [] if table is None else spread_numbers(table):
        if each.how is How.CODE:
            codes = rows[:, each.source]
            codes = np.where(np.isnan(codes), each.missing, codes)
            found |= ~is_level(each, codes)
    return found


def read_rows(table: TableSchema, contexts: Any) -> FloatArray:
    """Return raw cells, in a DataFrame, a mapping or rows of cells, as rows of numbers."""
    given = Table.of(contexts)
    cells = ContextSchema.of(table).picked(given)
    return table.read([[cell] for cell in cells] if given.single else cells)[0]


def rows_of(table: TableSchema, seen: FloatArray) -> FloatArray:
    """Return rows of which kernels see these contexts; points of a cycle within its first turn."""
    rows = np.empty((len(seen), len(table.codings)))
    circle = np.zeros(len(seen))
    whole = {place: isinstance(own.kind, Cyclic) for place, own in enumerate(table.codings)}
    for each, values in zip(spread_numbers(table), seen.T, strict=True):
        if each.how in (How.VALUE, How.CODE):
            rows[:, each.source] = values
        elif each.how is How.COSINE:
            circle = values
        elif each.how is How.SINE and whole[each.source]:
            turns = np.arctan2(values, circle) / (2 * np.pi)
            rows[:, each.source] = each.by * (turns % 1.0)
        elif each.how is How.IS_MISSING:
            rows[values > 0, each.source] = np.nan
    return rows


def random_rows(
    table: TableSchema, observed: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return rows like those observed, but for each column by itself."""
    # Numbers lie between and, for a third of the rows, around those observed; codes are those of
    # all levels and of none; and values are missing where they may be.
    rows = np.empty((count, len(table.codings)))
    around = 0.25 * (rng.random(count) < 1 / 3)
    for place, coding in enumerate(table.codings):
        known = observed[~np.isnan(observed[:, place]), place]
        if isinstance(coding.kind, Category):
            rows[:, place] = rng.integers(-1, max(1, len(coding.levels)), count)
        else:
            low, high = (known.min(), known.max()) if len(known) else (-1.0, 1.0)
            beyond = around * (high - low if high > low else 1.0)
            rows[:, place] = rng.uniform(low - beyond, high + beyond)
        if coding.kind.missing:
            rows[rng.random(count) < _MISSING, place] = np.nan
    return rows


def seen_ranges(
    fallback: Fallback, rule: DecisionRule, dtype: DTypeLike
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest of each number that kernels see and that counts as seen."""
    # A column of a cycle that never changed has a range of no length, which the target's own sine
    # may be off by a rounding error. So ranges of sines and cosines are longer by as much as that.
    if not fallback.low:  # every number is below 1 or above 0, and so outside
        return np.ones(rule.dimension), np.zeros(rule.dimension)
    low, high = np.array(fallback.low), np.array(fallback.high)
    if rule.table is not None:
        circles = [each.how in (How.COSINE, How.SINE) for each in spread_numbers(rule.table)]
        slack = _ROUNDINGS * float(np.finfo(dtype).eps) * np.array(circles)
        low, high = low - slack, high + slack
    return low, high
