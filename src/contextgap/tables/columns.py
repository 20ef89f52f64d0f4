"""The columns of tables: kinds that users give or a first table suggests, and their codes."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import Enum
from numbers import Real
from operator import is_
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from contextgap.base import checks, components
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import Component, lazy, renamed
from contextgap.tables.table import (
    Level,
    Levels,
    Table,
    date_of,
    is_blank,
    is_date,
    is_missing,
    is_number,
    is_truth,
    level,
    number,
    time,
)

CYCLES = {"day": 1.0, "week": 7.0, "year": 365.2425}
"""Lengths in days of the cycles that dates may have."""


@dataclass(frozen=True, kw_only=True)
class Kind(Component):
    """What a column holds, and whether cells may be missing."""

    missing: bool = False
    noun: ClassVar[str]

    def __post_init__(self) -> None:
        checks.truth("missing", self.missing)

    @property
    def gaps(self) -> bool:
        """The old name of ``missing``."""
        warnings.warn("gaps is now called missing", DeprecationWarning, stacklevel=2)
        return self.missing

    def describe(self) -> dict[str, Any]:
        """Return the kind as plain values; files of all releases say ``gaps``."""
        described = super().describe()
        return {"gaps" if name == "missing" else name: each for name, each in described.items()}

    @classmethod
    def _build(cls, values: Mapping[str, Any]) -> Self:
        return super()._build({"missing" if n == "gaps" else n: each for n, each in values.items()})


@renamed(gaps="missing")
@dataclass(frozen=True, kw_only=True)
class Number(Kind):
    """A column of numbers.

    .. versionadded:: 0.2

    Parameters
    ----------
    missing
        Whether cells may be missing. A missing value counts as the median, beside a column that
        says where values are missing, with a bandwidth of its own: that a number is missing may
        mean something.

    Examples
    --------
    >>> cg.Columns(age=cg.Number(missing=True))["age"]
    Number(missing=True)
    """

    noun: ClassVar[str] = "a number"


@renamed(gaps="missing")
@dataclass(frozen=True, kw_only=True)
class Category(Kind):
    """A column of labels without order: two are the same, or they are not.

    .. versionadded:: 0.2

    Parameters
    ----------
    missing
        Whether cells may be missing. A missing value is a level of its own.

    Examples
    --------
    >>> learner = cg.Learner(["left", "right"], columns={"shop": cg.Category(missing=True)})
    >>> learner.ask({"shop": None})
    'left'
    """

    noun: ClassVar[str] = "text, a truth value or a number"


@renamed(gaps="missing")
@dataclass(frozen=True)
class Cyclic(Kind):
    """A column of numbers that come back to where they began, such as the hour of a day.

    .. versionadded:: 0.2

    Parameters
    ----------
    period
        After how much the same comes again: 24 for hours.
    missing
        Whether cells may be missing. A missing value is as far from all points of the cycle.

    Examples
    --------
    >>> learner = cg.Learner(["left", "right"], columns={"hour": cg.Cyclic(24)})
    >>> learner.ask({"hour": 23.5})
    'left'
    """

    period: float
    noun: ClassVar[str] = "a number"

    def __post_init__(self) -> None:
        super().__post_init__()
        period = checks.positive("period", self.period, "24 for the hours of a day")
        checks.settle(self, period=period)


@renamed(gaps="missing")
@dataclass(frozen=True)
class Date(Kind):
    """A column of dates or times, as a trend and, where asked for, with cycles.

    .. versionadded:: 0.2

    Parameters
    ----------
    cycles
        Any of "day", "week" and "year".
    missing
        Whether cells may be missing, as for ``Number``.

    Examples
    --------
    >>> learner = cg.Learner(["left", "right"], columns={"day": cg.Date(cycles=["week"])})
    >>> learner.ask({"day": "2026-03-01"})
    'left'
    """

    cycles: Sequence[str] = ()
    noun: ClassVar[str] = "a date"

    def __post_init__(self) -> None:
        super().__post_init__()
        given = (self.cycles,) if isinstance(self.cycles, str) else tuple(self.cycles)
        for cycle in given:
            if cycle not in CYCLES:
                raise ValueError(f"cycles must be among {list(CYCLES)}, got {cycle!r}")
        checks.settle(self, cycles=given)


_BY_NAME = {"number": Number, "category": Category, "date": Date}


def read_kind(column: str, kind: Any) -> Kind:
    if isinstance(kind, Kind):
        return kind
    if isinstance(kind, str) and kind in _BY_NAME:
        return _BY_NAME[kind]()
    raise ValueError(
        f"column {column!r} must be one of {list(_BY_NAME)}, or a kind such as Cyclic(24), "
        f"got {kind!r}"
    )


class Columns(Mapping[str, Kind]):
    """What the columns of a table hold.

    .. versionadded:: 0.2

    Parameters
    ----------
    columns
        Kinds by name, for names that are no Python words.
    kinds
        Kinds by name: "number", "category", "date", or ``Number``, ``Category``, ``Cyclic`` and
        ``Date`` with their settings.

    Examples
    --------
    >>> from contextgap import Cyclic
    >>> columns = Columns(country="category", hour=Cyclic(24))
    >>> list(columns)
    ['country', 'hour']
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **kinds: Any) -> None:
        given = {**(columns or {}), **kinds}
        if not given:
            raise ValueError("columns must name at least one column, got none")
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"columns must have names that are text, got {name!r}")
        self._kinds = {name: read_kind(name, kind) for name, kind in given.items()}

    @classmethod
    def from_table(cls, table: Any, /, **given: Any) -> Columns:
        """Return what the columns of a table seem to hold, but for those given.

        Parameters
        ----------
        table
            A DataFrame. Values may be missing from the columns that lack some here.
        given
            Kinds by name, for columns that are not what they seem.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"hour": [3, 14], "shop": ["a", "b"]})
        >>> dict(cg.Columns.from_table(table, hour=cg.Cyclic(24)))
        {'hour': Cyclic(missing=False, period=24.0), 'shop': Category(missing=False)}
        """
        read = Table.of(table)
        if read.names is None or read.single:
            raise TypeError(f"table must be a DataFrame, got {table!r}")
        unknown = [name for name in given if name not in read.names]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r} in the table; it has {read.names}")
        found = {}
        for name, column in zip(read.names, read.cells, strict=True):
            if name not in given:
                found[name] = guess_kind(name, column)
                continue
            found[name] = read_kind(name, given[name])
            if any(map(is_missing, column)):
                found[name] = replace(found[name], missing=True)
        return cls(found)

    def with_missing(self, names: Iterable[str]) -> Columns:
        """Return the same columns, some of which may lack values from now on.

        .. versionadded:: 0.3

        Examples
        --------
        >>> cg.Columns(age="number").with_missing(["age"])["age"]
        Number(missing=True)
        """
        unknown = [name for name in names if name not in self._kinds]
        if unknown:
            raise ValueError(f"there is no context column {unknown[0]!r}; there are {list(self)}")
        return Columns({**self, **{name: replace(self[name], missing=True) for name in names}})

    def with_gaps(self, names: Iterable[str]) -> Columns:
        """The old name of ``with_missing``."""
        warnings.warn("with_gaps is now called with_missing", DeprecationWarning, stacklevel=2)
        return self.with_missing(names)

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {kind}" for name, kind in self._kinds.items())
        return f"Columns({{{inside}}})"


def all_numbers(column: Sequence[Any]) -> bool:
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
        return not np.isnan(column).any()
    return not isinstance(column, Levels) and all(
        is_number(each) and not is_missing(each) for each in column
    )


def guess_kind(name: str, column: Sequence[Any]) -> Kind:
    """Return what a column seems to hold; text that reads as dates throughout is dates."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":  # the usual case, fast
        lacking = np.isnan(column)
        if not lacking.all():
            return Number(missing=bool(lacking.any()))
    known = [each for each in column if not is_missing(each)]
    missing = len(known) < len(column)
    if not known:
        raise ValueError(
            f"have nothing but missing values in the column {name!r}, so that its kind cannot be "
            "inferred; leave it out, or give columns with Columns(...)"
        )
    if isinstance(column, Levels):
        return Category(missing=missing)
    if any(isinstance(each, timedelta | np.timedelta64) for each in known):
        raise TypeError(
            f"must be numbers, text, truth values or dates, got durations in column {name!r}; "
            "make them numbers, such as seconds"
        )
    if all(map(is_number, known)):
        return Number(missing=missing)
    if all(isinstance(each, date | np.datetime64) for each in known):
        return Date(missing=missing)
    filled = [each for each in known if not is_blank(each)]
    if filled and all(map(is_date, filled)):
        return Date(missing=missing or len(filled) < len(known))
    _check_category(name, known)
    return Category(missing=missing)


def _check_category(name: str, known: Sequence[Any]) -> None:
    for each in known:
        if not isinstance(each, str | bool | np.bool_ | Real | Enum):
            raise TypeError(
                f"must be numbers, text, truth values or dates, got {each!r} in column {name!r}"
            )
    first, is_text = known[0], isinstance(known[0], str | Enum)
    other = next((each for each in known if isinstance(each, str | Enum) != is_text), first)
    if other is not first and not all(map(is_truth, known)):
        raise TypeError(
            f"must be all numbers or all text in column {name!r}, got {first!r} and {other!r}; "
            "if it is a category all the same, give columns that say so"
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
            counts = Counter(found._read(level, column))  # ties in order of arrival
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
            found = self._read(level, column)
            if self._truths:
                found = [_TRUTHS.get(each, each) for each in found]
            grown, room = self, MOST_LEVELS - len(self.levels)
            if learning and room > 0:
                new = [each for each in dict.fromkeys(found) if each not in self._codes]
                grown = replace(self, levels=(*self.levels, *new[:room])) if new else self
            unknown = MOST_LEVELS if len(grown.levels) == MOST_LEVELS else -1
            codes = [grown._codes.get(each, unknown) for each in found]
            return np.array(codes, dtype=np.float64), grown
        if isinstance(self.kind, Date):
            values, zoned = self._times(column)
        else:
            values, zoned = self._numbers(column), None
        if not learning:
            return values, self
        after, known = self, values[~np.isnan(values)]
        fills = self.kind.missing and not isinstance(self.kind, Cyclic)
        if fills and self.filling is None and len(known):
            after = replace(after, filling=float(np.median(known)))
        if self.zoned is None and zoned is not None:
            after = replace(after, zoned=zoned)
        return values, after

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
            values: list[Any] = [
                float(f"{each:.{_DIGITS}g}") for each in (angle % 1.0) * self.kind.period
            ]
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

    def _numbers(self, column: Sequence[Any]) -> FloatArray:
        if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
            values = column.astype(np.float64)
            self._check_missing(np.isnan(values))
        else:
            values = np.array(self._read(number, column), dtype=np.float64)
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise ValueError(f"must be finite, got {values[row]}{self._place(row, len(values))}")
        return values

    def _times(self, column: Sequence[Any]) -> tuple[FloatArray, bool | None]:
        found = self._read(time, column)
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
            self._check_missing(np.array([is_missing(each) for each in column], dtype=bool))
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
        for place, mark, filling in self.fillings:
            filled[..., place] = np.where(rows[..., mark] > 0, filling, rows[..., place])
        return filled


@dataclass(frozen=True)
class TableSchema:
    codings: tuple[Coding, ...]

    @classmethod
    def of(cls, columns: Columns) -> TableSchema:
        return cls(tuple(Coding(name, kind) for name, kind in columns.items()))

    @classmethod
    def inferred(cls, names: Sequence[str], cells: Sequence[Sequence[Any]]) -> TableSchema | None:
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
        """Return the schema with levels and medians of a first table; after that, the same."""
        if any(own != Coding(own.name, own.kind) for own in self.codings):
            return self
        pairs = zip(self.codings, cells, strict=True)
        return TableSchema(tuple(Coding.of(own.name, own.kind, each) for own, each in pairs))

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
