"""Reads tables with categories, dates, cycles and missing values as arrays of numbers.

A context as a kernel sees it has the numbers of all columns first and then one code for each
category. Users never see it: they pass and get raw tables.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks, components
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.descriptors import lazy
from contextgap.tables import cells
from contextgap.tables.cells import Level, date_of
from contextgap.tables.columns import (
    CYCLES,
    Category,
    Columns,
    Cyclic,
    Date,
    Kind,
    Number,
    all_numbers,
    guess_kind,
)

MOST_LEVELS = 300
"""Levels of a category that have codes; all others of its column are one level, "rare"."""

RARE, UNKNOWN = "(rare)", "(never met)"
"""What stands for levels that are pooled, and for those that were never met."""

_TRUTHS: dict[Level, Level] = {"1": "true", "0": "false"}
_USUAL = 1e300  # numbers are smaller; comparing takes an int of any size
_DIGITS = 12  # of a point on a circle; the last ones are rounding


@dataclass(frozen=True)
class Coding:
    """A column's name and kind, and what was learnt about it from the first table."""

    name: str
    kind: Kind
    # A category's, by code: first those that rewards were told of, then those only asked about. Of
    # each, the frequent ones of the first table come first, then others in order of arrival.
    levels: tuple[Level, ...] = ()
    filling: float | None = None  # in place of missing numbers; None before the first number
    told: int = 0  # levels that rewards were told of
    zoned: bool | None = None  # whether times have a zone; None before the first

    @classmethod
    def of(cls, name: str, kind: Kind, column: Sequence[Any]) -> Coding:
        found = cls(name, kind)
        if isinstance(kind, Category):
            counts = Counter(found._read(cells.level, column))  # ties in order of arrival
            return replace(found, levels=tuple(each for each, _ in counts.most_common(MOST_LEVELS)))
        return found.read(column, learning=True)[1]

    @lazy
    def width(self) -> int:
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
        return (*tied, tied[-1] + 1) if self.kind.missing else tuple(tied)

    @lazy
    def _codes(self) -> dict[Level, int]:
        return {each: code for code, each in enumerate(self.levels)}

    @lazy
    def _truths(self) -> bool:
        """Whether there are truth values, which tables also write as 1 and 0, and not as these."""
        # Levels that come later do not change that, so that a cell is always read alike.
        known = set(self.levels)
        return not known.isdisjoint(_TRUTHS.values()) and known.isdisjoint(_TRUTHS)

    @lazy
    def _takes_numbers(self) -> bool:
        """Whether nothing is left to learn from a number."""
        return type(self.kind) is Number and (self.filling is not None or not self.kind.missing)

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

    def read(self, column: Sequence[Any], learning: bool) -> tuple[FloatArray, Coding]:
        """Return one number per cell: a number, days since 1970 or a code; NaN if missing.

        A missing category has a code; unless it is learning, a level never met is −1.
        """
        if isinstance(self.kind, Category):
            found = self._read(cells.level, column)
            if self._truths:
                found = [_TRUTHS.get(each, each) for each in found]
            grown = self._grown(found) if learning else self
            unknown = MOST_LEVELS if len(grown.levels) == MOST_LEVELS else -1
            codes = [grown._codes.get(each, unknown) for each in found]
            return np.array(codes, dtype=np.float64), grown
        if isinstance(self.kind, Date):
            values, zoned = self._times(column)
        else:
            values, zoned = self._numbers(column), None
        if not learning:
            return values, self
        filled = self._filled_by(values)
        if self.zoned is not None or zoned is None:
            return values, filled
        return values, replace(filled, zoned=zoned)

    def telling(self, codes: FloatArray) -> tuple[Coding, IntArray | None]:
        """Return the coding after rewards at these codes, and all new codes, told levels first."""
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
        if self.told == len(self.levels):
            return self
        return replace(self, levels=self.levels[: self.told])

    def spread_cell(self, value: float) -> Sequence[float]:
        if isinstance(self.kind, Category) or not (self.kind.missing or self.width > 1):
            return (value,)
        if type(self.kind) is Number and value == value:  # not missing
            return (value, 0.0)
        row: list[float] = self.spread(np.array([value]))[0].tolist()
        return row

    def spread(self, values: FloatArray) -> FloatArray:
        """Return what ``read`` returned as kernels see it, shape (rows, width)."""
        # Circles are two numbers; where values may be missing, a number says whether one is.
        if isinstance(self.kind, Category):
            return values[:, None]
        gone = np.isnan(values)
        if isinstance(self.kind, Cyclic):
            columns = [*_circle(values, self.kind.period)]
        else:
            columns = [np.where(gone, self.filling or 0.0, values) if self.kind.missing else values]
        if isinstance(self.kind, Date):
            for cycle in self.kind.cycles:
                columns += _circle(values, CYCLES[cycle])
        return np.column_stack([*columns, gone] if self.kind.missing else columns)

    def decode(self, numbers: FloatArray) -> list[Any]:
        """Return cells from numbers, shape (rows, width): numbers, text, ISO dates or None."""
        if isinstance(self.kind, Category):
            return [self._level(int(code)) for code in numbers[:, 0]]
        if isinstance(self.kind, Cyclic):
            angle = np.arctan2(numbers[:, 1], numbers[:, 0]) / (2 * np.pi)
            values: list[Any] = [_rounded(each) for each in (angle % 1.0) * self.kind.period]
        else:
            values = numbers[:, 0].tolist()
        if isinstance(self.kind, Date):
            zone = "+00:00" if self.zoned else ""
            values = [date_of(day) + zone for day in values]
        if not self.kind.missing:
            return values
        return [None if gone else value for gone, value in zip(numbers[:, -1], values, strict=True)]

    def _level(self, code: int) -> Level:
        if 0 <= code < len(self.levels):
            return self.levels[code]
        return RARE if code == MOST_LEVELS else UNKNOWN

    def _filled_by(self, values: FloatArray) -> Coding:
        """Return the coding with a filling, if it needs one and has none yet: the median."""
        if self.filling is not None or not self.kind.missing or isinstance(self.kind, Cyclic):
            return self
        known = values[~np.isnan(values)]
        return replace(self, filling=float(np.median(known))) if len(known) else self

    def _grown(self, found: Iterable[Level]) -> Coding:
        new = [each for each in dict.fromkeys(found) if each not in self._codes]
        room = MOST_LEVELS - len(self.levels)
        return replace(self, levels=(*self.levels, *new[:room])) if new and room > 0 else self

    def _numbers(self, column: Sequence[Any]) -> FloatArray:
        """Return a column of numbers as floats, NaN where missing."""
        if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
            values = column.astype(np.float64)
            self._check_missing(np.isnan(values))
        else:
            values = np.array(self._read(cells.number, column), dtype=np.float64)
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise ValueError(f"must be finite, got {values[row]}{self._place(row, len(values))}")
        return values

    def _times(self, column: Sequence[Any]) -> tuple[FloatArray, bool | None]:
        """Return a column of dates as days, NaN where missing, and whether they have zones."""
        found = self._read(cells.time, column)
        days = np.array([day for day, _ in found], dtype=np.float64)
        self._check_missing(np.isnan(days))
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
        if not self.kind.missing:
            self._check_missing(np.array([cells.is_missing(each) for each in column], dtype=bool))
        return found

    def _check_missing(self, missing: Any) -> None:
        if self.kind.missing or not missing.any():
            return
        kind = type(self.kind).__name__
        start = f"{kind}({self.kind.period:g}, " if isinstance(self.kind, Cyclic) else f"{kind}("
        raise ValueError(
            f"must have no missing value{self._place(int(np.argmax(missing)), len(missing))}; to "
            f"allow them, give columns with Columns({{{self.name!r}: {start}missing=True), ...}}), "
            f"or --missing {shlex.quote(self.name)} on the command line"
        )

    def _place(self, row: int, count: int) -> str:
        return f" in column {self.name!r}" + (f", row {row}" if count > 1 else "")


def _circle(values: FloatArray, period: float) -> tuple[FloatArray, FloatArray]:
    angle = 2 * np.pi * (values / period)
    return np.nan_to_num(np.cos(angle)), np.nan_to_num(np.sin(angle))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else value


class Layout(NamedTuple):
    """Which numbers of a context share a bandwidth, and how many are codes, at its end."""

    tied: tuple[int, ...]
    categories: int


@dataclass(frozen=True)
class Renaming:
    """New codes of the levels of every category, None where they stay."""

    codes: tuple[IntArray | None, ...]

    def __call__(self, rows: FloatArray) -> FloatArray:
        renamed = rows.copy()
        for place, new in enumerate(self.codes):
            if new is not None:
                column = renamed[..., rows.shape[-1] - len(self.codes) + place]  # a view
                known = (column >= 0) & (column < len(new))
                column[known] = new[column[known].astype(np.intp)]
        return renamed


@dataclass(frozen=True)
class Refilling:
    """What stands for missing values, by column: its number, what marks them, the filling."""

    fillings: tuple[tuple[int, int, float], ...]

    def __call__(self, rows: FloatArray) -> FloatArray:
        filled = rows.copy()
        for number, mark, filling in self.fillings:
            filled[..., number] = np.where(rows[..., mark] > 0, filling, rows[..., number])
        return filled


@dataclass(frozen=True)
class TableSchema:
    """The columns of contexts, and how each becomes numbers."""

    codings: tuple[Coding, ...]

    @classmethod
    def of(cls, columns: Columns) -> TableSchema:
        return cls(tuple(Coding(name, kind) for name, kind in columns.items()))

    @classmethod
    def inferred(cls, names: Sequence[str], cells: Sequence[Sequence[Any]]) -> TableSchema | None:
        """Return the schema that a first table suggests; None if it is numbers throughout."""
        if all(map(all_numbers, cells)):
            return None
        pairs = zip(names, cells, strict=True)
        return cls(tuple(Coding.of(name, guess_kind(name, each), each) for name, each in pairs))

    @lazy
    def columns(self) -> tuple[str, ...]:
        return tuple(coding.name for coding in self.codings)

    @lazy
    def kinds(self) -> Columns:
        return Columns({coding.name: coding.kind for coding in self.codings})

    @lazy
    def dimension(self) -> int:
        return sum(coding.width for coding in self.codings)

    @lazy
    def layout(self) -> Layout:
        tied: list[int] = []
        for place in self._in_order:
            first = tied[-1] + 1 if tied else 0
            tied += [first + each for each in self.codings[place].tied]
        return Layout(tuple(tied), sum(self._is_category))

    @lazy
    def _is_category(self) -> tuple[bool, ...]:
        return tuple(isinstance(coding.kind, Category) for coding in self.codings)

    @lazy
    def _in_order(self) -> tuple[int, ...]:
        """The places of the columns in the order in which their numbers come: categories last."""
        places = range(len(self.codings))
        return tuple(sorted(places, key=lambda place: self._is_category[place]))

    def by_column(self, numbers: Sequence[float]) -> dict[str, list[float]]:
        """Return the numbers of a context by column; those that share a bandwidth count once."""
        found: dict[str, list[float]] = {name: [] for name in self.columns}
        tied = self.layout.tied
        for place, value in enumerate(numbers):
            if place == 0 or tied[place] != tied[place - 1]:
                found[self.column_of(place)].append(value)
        return found

    def seen(self, low: Sequence[float], high: Sequence[float]) -> dict[str, list[Any]]:
        """Return the lowest and highest numbers and dates of contexts, and levels, by column."""
        lows, highs = self.by_column(low), self.by_column(high)
        found: dict[str, list[Any]] = {}
        for coding in self.codings:
            ends = [lows[coding.name][0], highs[coding.name][0]]
            if isinstance(coding.kind, Category):
                found[coding.name] = list(coding.levels[: coding.told])
            elif isinstance(coding.kind, Date):
                found[coding.name] = [date_of(end) for end in ends]
            elif not isinstance(coding.kind, Cyclic):  # of a cycle, no point is the lowest
                found[coding.name] = ends
        return found

    def column_of(self, number: int) -> str:
        return self._names[number]

    def numbers_of(self, column: str) -> list[int]:
        return [place for place, name in enumerate(self._names) if name == column]

    @lazy
    def _names(self) -> tuple[str, ...]:
        """The name of the column that each number of a context comes from."""
        return tuple(
            self.columns[place]
            for place in self._in_order
            for _ in range(self.codings[place].width)
        )

    def encode_row(self, row: Sequence[Any], learning: bool) -> tuple[FloatArray, TableSchema]:
        """Return one context as numbers, shape (1, dimension), and the schema after it."""
        self._check_count(len(row))
        numbers: list[float] = []
        codings = list(self.codings)
        for place in self._in_order:
            value, codings[place] = codings[place].read_cell(row[place], learning)
            numbers.extend(codings[place].spread_cell(value))
        return np.array([numbers]), self._with(codings)

    def encode(
        self, cells: Sequence[Sequence[Any]], learning: bool
    ) -> tuple[FloatArray, TableSchema]:
        """Return a table, given by columns, as numbers, and the schema after it."""
        values, after = self.read(cells, learning)
        return after.spread(values), after

    def read(
        self, cells: Sequence[Sequence[Any]], learning: bool = False
    ) -> tuple[FloatArray, TableSchema]:
        """Return one number per cell, as exported policies take them, and the schema after."""
        self._check_count(len(cells))
        pairs = zip(self.codings, cells, strict=True)
        found = [coding.read(each, learning) for coding, each in pairs]
        after = self._with([coding for _, coding in found])
        return np.column_stack([values for values, _ in found]), after

    def spread(self, values: FloatArray) -> FloatArray:
        parts = [self.codings[place].spread(values[:, place]) for place in self._in_order]
        return np.hstack(parts)

    def decode(self, rows: FloatArray) -> list[dict[str, Any]]:
        """Return contexts, as ``encode`` returned them, as users write them, by column."""
        cells = {}
        for name, coding in zip(self.columns, self.codings, strict=True):
            cells[name] = coding.decode(rows[:, self.numbers_of(name)])
        return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]

    def new_levels(self, rows: FloatArray, cells_of: Callable[[str], Any]) -> dict[int, str]:
        """Return the rows, as encoded, with a level of a category never met, and which one."""
        found: dict[int, str] = {}
        for own in self.codings:
            if isinstance(own.kind, Category) and own.levels:
                for row in np.flatnonzero(rows[:, self.numbers_of(own.name)[0]] < 0).tolist():
                    found.setdefault(row, f"{cells_of(own.name)[row]!r} of {own.name}")
        return found

    def telling(self, rows: FloatArray) -> tuple[TableSchema, Renaming | None]:
        """Return the schema after rewards were told at rows, as ``encode`` returned them.

        Their levels get the first codes; rows that were encoded before must then be renamed.
        """
        codings, codes = list(self.codings), rows[:, rows.shape[1] - self.layout.categories :]
        categories = [place for place in self._in_order if self._is_category[place]]
        moved: list[IntArray | None] = []
        for place, column in zip(categories, codes.T, strict=True):
            codings[place], after = codings[place].telling(column)
            moved.append(after)
        renaming = None if all(each is None for each in moved) else Renaming(tuple(moved))
        return self._with(codings), renaming

    def refilling(self, before: TableSchema) -> Refilling | None:
        """Return how rows change that were encoded before columns had their first number."""
        found = []
        for coding, earlier in zip(self.codings, before.codings, strict=True):
            if earlier.filling is None and coding.filling is not None:
                numbers = self.numbers_of(coding.name)
                found.append((numbers[0], numbers[-1], coding.filling))
        return Refilling(tuple(found)) if found else None

    def told_only(self) -> TableSchema:
        return self._with([coding.told_only() for coding in self.codings])

    def all_told(self) -> TableSchema:
        """Return the schema as if rewards had been told of all levels."""
        return self._with(
            [
                each if each.told == len(each.levels) else replace(each, told=len(each.levels))
                for each in self.codings
            ]
        )

    def learnt(self, cells: Sequence[Sequence[Any]]) -> TableSchema:
        """Return the schema with levels and medians of a first table."""
        pairs = zip(self.codings, cells, strict=True)
        return TableSchema(tuple(Coding.of(own.name, own.kind, each) for own, each in pairs))

    @property
    def is_new(self) -> bool:
        """Whether no context was read yet, so that levels and medians are unknown."""
        return all(own == Coding(own.name, own.kind) for own in self.codings)

    def _with(self, codings: Sequence[Coding]) -> TableSchema:
        same = all(map(is_, codings, self.codings))
        return self if same else replace(self, codings=tuple(codings))

    def _check_count(self, count: int) -> None:
        if count != len(self.codings):
            raise ValueError(
                f"must have {len(self.codings)} cells each, for the columns "
                f"{list(self.columns)}, got {count}"
            )

    def describe(self) -> list[dict[str, Any]]:
        return [
            {
                "name": coding.name,
                "kind": coding.kind.describe(),
                "levels": list(coding.levels),
                "filling": coding.filling,
                **({} if coding.told == len(coding.levels) else {"told": coding.told}),
                **({} if coding.zoned is None else {"zoned": coding.zoned}),
            }
            for coding in self.codings
        ]

    @classmethod
    def restored(cls, described: Iterable[Mapping[str, Any]]) -> TableSchema:
        """Reverse ``describe``, checked as strictly as user input."""
        codings = []
        for each in described:
            kind, levels, filling = components.build(each["kind"]), each["levels"], each["filling"]
            if not isinstance(kind, Kind) or not isinstance(each["name"], str):
                raise ValueError("a column has no name, or no kind that is known")
            if not all(isinstance(level, str | None) for level in levels):
                raise ValueError(f"the levels of the column {each['name']!r} are not text")
            if len(levels) > MOST_LEVELS or len(set(levels)) < len(levels):
                raise ValueError(f"the column {each['name']!r} has levels twice, or too many")
            filling = None if filling is None else checks.real("filling", filling)
            told, zoned = each.get("told", len(levels)), each.get("zoned")
            if not isinstance(told, int) or not 0 <= told <= len(levels):
                raise ValueError(f"the column {each['name']!r} has rewards of {told!r} levels")
            if zoned not in (True, False, None):
                raise ValueError(f"the column {each['name']!r} has times of no known kind")
            codings.append(Coding(each["name"], kind, tuple(levels), filling, told, zoned))
        schema = cls(tuple(codings))
        if not codings or len(set(schema.columns)) < len(codings):
            raise ValueError("columns have no names, or a name twice")
        return schema
