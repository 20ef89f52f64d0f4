"""How a column's cells become numbers that kernels understand."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.lazy import lazy
from contextgap.tables.columns import cells
from contextgap.tables.columns.cells import Level
from contextgap.tables.columns.kinds import CYCLES, Category, Cyclic, Date, Kind, Number

MOST_LEVELS = 300
"""Levels of a category that are told apart; all others of its column are one level, "rare"."""


_TRUTHS: dict[Level, Level] = {"1": "true", "0": "false"}
_USUAL = 1e300  # numbers are smaller; comparing takes an int of any size


class Read(NamedTuple):
    """A column as one number per cell, and the coding that knows all levels in it."""

    values: FloatArray
    coding: Coding


@dataclass(frozen=True)
class Coding:
    """A column's name and kind, and what was learnt about it from the first table.

    ``levels`` are a category's, in the order of their codes: first those that rewards were told
    of, ``told`` many, then those that were only asked about. Of each, the frequent ones of the
    first table come first, then others as they come. ``filling`` is the number that stands in place
    of a gap; None before the first number. ``zoned`` says whether times have a zone; None before
    the first.
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    filling: float | None = None
    told: int = 0
    zoned: bool | None = None

    @classmethod
    def of(cls, name: str, kind: Kind, column: Sequence[Any]) -> Coding:
        """Return the coding of a column from the first cells of it."""
        found = cls(name, kind)
        if isinstance(kind, Category):
            counts = Counter(found._read(cells.level, column))  # as they come, where they tie
            return replace(found, levels=tuple(each for each, _ in counts.most_common(MOST_LEVELS)))
        return found.read(column, learning=True).coding

    @lazy
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return len(self.tied)

    @lazy
    def tied(self) -> tuple[int, ...]:
        """Which of the numbers a cell becomes have a bandwidth in common, counted from 0."""
        if isinstance(self.kind, Category):
            return (0,)
        tied = [0, 0] if isinstance(self.kind, Cyclic) else [0]
        if isinstance(self.kind, Date):
            for cycle in range(1, len(self.kind.cycles) + 1):
                tied += [cycle, cycle]
        return (*tied, tied[-1] + 1) if self.kind.gaps else tuple(tied)

    @lazy
    def _codes(self) -> dict[Level, int]:
        return {each: code for code, each in enumerate(self.levels)}

    @lazy
    def _truths(self) -> bool:
        """Whether there are truth values, which tables also write as 1 and 0, and not as these.

        Levels that come later do not change that, so that a cell is always read alike.
        """
        known = set(self.levels)
        return not known.isdisjoint(_TRUTHS.values()) and known.isdisjoint(_TRUTHS)

    @lazy
    def _takes_numbers(self) -> bool:
        """Whether nothing is left to learn from a number."""
        return type(self.kind) is Number and (self.filling is not None or not self.kind.gaps)

    def read_cell(self, value: Any, learning: bool) -> tuple[float, Coding]:
        """Do as ``read`` for one cell, fast for usual ones."""
        if type(value) is str and isinstance(self.kind, Category):
            code = self._codes.get(value)
            if code is not None:
                return float(code), self
        elif self._takes_numbers and type(value) in (float, int) and abs(value) < _USUAL:
            return float(value), self
        values, coding = self.read([value], learning)
        return float(values[0]), coding

    def read(self, column: Sequence[Any], learning: bool) -> Read:
        """Return one number per cell: a number, days since 1970 or a code; NaN for a gap.

        A gap in a category has a code. Unless it is learning, a level that was never met is −1,
        like no other.
        """
        if isinstance(self.kind, Category):
            found = self._read(cells.level, column)
            if self._truths:
                found = [_TRUTHS.get(each, each) for each in found]
            grown = self._grown(found) if learning else self
            unknown = MOST_LEVELS if len(grown.levels) == MOST_LEVELS else -1
            codes = [grown._codes.get(each, unknown) for each in found]
            return Read(np.array(codes, dtype=np.float64), grown)
        if isinstance(self.kind, Date):
            values, zoned = self._times(column)
        else:
            values, zoned = self._numbers(column), None
        if not learning:
            return Read(values, self)
        return Read(values, self._filled_by(values)._with_zones(zoned))

    def telling(self, codes: FloatArray) -> tuple[Coding, IntArray | None]:
        """Return the coding after rewards were told at these codes, and every level's new code.

        Levels that are told of go before those that were only asked about. There are no new codes
        if all stay where they are.
        """
        known = codes < self.told
        if known.all():
            return self, None
        new = np.unique(codes[~known]).astype(np.intp)
        new = new[new < len(self.levels)]  # not those that are pooled
        order = [*range(self.told), *new.tolist()]
        order += sorted(set(range(len(self.levels))) - set(order))
        told = self.told + len(new)
        if order == list(range(len(order))):
            return replace(self, told=told), None
        levels = tuple(self.levels[code] for code in order)
        return replace(self, levels=levels, told=told), np.argsort(order)

    def told_only(self) -> Coding:
        """Return the coding without levels that were only asked about."""
        if self.told == len(self.levels):
            return self
        return replace(self, levels=self.levels[: self.told])

    def spread_cell(self, value: float) -> Sequence[float]:
        """Do as ``spread`` for one number, fast for usual ones."""
        if isinstance(self.kind, Category) or not (self.kind.gaps or self.width > 1):
            return (value,)
        if type(self.kind) is Number and value == value:  # not a gap
            return (value, 0.0)
        row: list[float] = self.spread(np.array([value]))[0].tolist()
        return row

    def spread(self, values: FloatArray) -> FloatArray:
        """Return what ``read`` returned as kernels see it, shape (rows, width).

        Circles are two numbers; where there may be gaps, a number says whether there is one.
        """
        if isinstance(self.kind, Category):
            return values[:, None]
        gap = np.isnan(values)
        if isinstance(self.kind, Cyclic):
            columns = [*_circle(values, self.kind.period)]
        else:
            columns = [np.where(gap, self.filling or 0.0, values) if self.kind.gaps else values]
        if isinstance(self.kind, Date):
            for cycle in self.kind.cycles:
                columns += _circle(values, CYCLES[cycle])
        return np.column_stack([*columns, gap] if self.kind.gaps else columns)

    def _filled_by(self, values: FloatArray) -> Coding:
        """Return the coding with a filling, if it needs one and has none yet: the median."""
        if self.filling is not None or not self.kind.gaps or isinstance(self.kind, Cyclic):
            return self
        known = values[~np.isnan(values)]
        return replace(self, filling=float(np.median(known))) if len(known) else self

    def _with_zones(self, zoned: bool | None) -> Coding:
        return self if self.zoned is not None or zoned is None else replace(self, zoned=zoned)

    def _grown(self, found: Iterable[Level]) -> Coding:
        new = [each for each in dict.fromkeys(found) if each not in self._codes]
        room = MOST_LEVELS - len(self.levels)
        return replace(self, levels=(*self.levels, *new[:room])) if new and room > 0 else self

    def _numbers(self, column: Sequence[Any]) -> FloatArray:
        """Return a column of numbers as floats, NaN for gaps."""
        if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
            values = column.astype(np.float64)
            self._check_gaps(np.isnan(values))
        else:
            values = np.array(self._read(cells.number, column), dtype=np.float64)
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise ValueError(f"must be finite, got {values[row]}{self._place(row, len(values))}")
        return values

    def _times(self, column: Sequence[Any]) -> tuple[FloatArray, bool | None]:
        """Return a column of dates as days, NaN for gaps, and whether they have zones."""
        found = self._read(cells.time, column)
        days = np.array([day for day, _ in found], dtype=np.float64)
        self._check_gaps(np.isnan(days))
        zoned = self.zoned
        for row, (_, has_zone) in enumerate(found):
            if has_zone is None or has_zone == zoned:
                continue
            if zoned is not None:
                words = ("without", "have") if zoned else ("with", "have none")
                raise ValueError(
                    f"must not mix times with and without a time zone{self._place(row, len(found))}"
                    f", got {column[row]!r} {words[0]} a zone where others {words[1]}; give all "
                    "times the same"
                )
            zoned = has_zone
        return days, zoned

    def _read(self, reader: Any, column: Sequence[Any]) -> list[Any]:
        found = []
        for row, value in enumerate(column):
            try:
                found.append(reader(value))
            except TypeError:
                raise TypeError(
                    f"must have {self.kind.noun}{self._place(row, len(column))}, got {value!r}"
                ) from None
        if not self.kind.gaps:
            self._check_gaps(np.array([cells.is_gap(each) for each in column], dtype=bool))
        return found

    def _check_gaps(self, gaps: Any) -> None:
        if self.kind.gaps or not gaps.any():
            return
        kind = type(self.kind).__name__
        start = f"{kind}({self.kind.period:g}, " if isinstance(self.kind, Cyclic) else f"{kind}("
        raise ValueError(
            f"must have no gap{self._place(int(np.flatnonzero(gaps)[0]), len(gaps))}; to allow "
            f"gaps, give columns with Columns({{{self.name!r}: {start}gaps=True), ...}}), or "
            f"--gaps {shlex.quote(self.name)} on the command line"
        )

    def _place(self, row: int, count: int) -> str:
        return f" in column {self.name!r}" + (f", row {row}" if count > 1 else "")


def _circle(values: FloatArray, period: float) -> tuple[FloatArray, FloatArray]:
    angle = 2 * np.pi * (values / period)
    return np.nan_to_num(np.cos(angle)), np.nan_to_num(np.sin(angle))
