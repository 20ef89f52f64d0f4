"""Reads tables with categories, dates, cycles and gaps as arrays of numbers.

A context as a kernel sees it has the numbers of all columns first and then one code for each
category. Users never see it: they pass and get tables as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks, components
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.lazy import lazy
from contextgap.tables.columns.cells import date_of
from contextgap.tables.columns.coding import MOST_LEVELS, Coding
from contextgap.tables.columns.columns import Columns
from contextgap.tables.columns.decoding import decode
from contextgap.tables.columns.inference import all_numbers, guess_kind
from contextgap.tables.columns.kinds import Category, Cyclic, Date, Kind


class Layout(NamedTuple):
    """Which numbers of a context have a bandwidth in common, and how many are codes at its end.

    ``tied`` has one entry per number: numbers with the same entry share their bandwidth.
    """

    tied: tuple[int, ...]
    categories: int


@dataclass(frozen=True)
class Renaming:
    """New codes of the levels of every category, None where they stay."""

    codes: tuple[IntArray | None, ...]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return rows of contexts, or one of them, with the new codes."""
        renamed = rows.copy()
        for place, new in enumerate(self.codes):
            if new is not None:
                column = renamed[..., rows.shape[-1] - len(self.codes) + place]  # a view
                known = (column >= 0) & (column < len(new))
                column[known] = new[column[known].astype(np.intp)]
        return renamed


@dataclass(frozen=True)
class Refilling:
    """What stands in place of gaps, by column: its number, the one that marks gaps, the filling."""

    fillings: tuple[tuple[int, int, float], ...]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return rows of contexts, or one of them, with the fillings."""
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
        """Return the schema of columns that users described."""
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
        """The names of the columns."""
        return tuple(coding.name for coding in self.codings)

    @lazy
    def kinds(self) -> Columns:
        """What the columns hold."""
        return Columns({coding.name: coding.kind for coding in self.codings})

    @lazy
    def dimension(self) -> int:
        """How many numbers a context becomes."""
        return sum(coding.width for coding in self.codings)

    @lazy
    def layout(self) -> Layout:
        """How the numbers of a context belong together."""
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
        """Return what belongs to the numbers of a context by the names of their columns.

        Numbers that have a bandwidth in common count as one.
        """
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
        """Return the name of the column that a number of a context comes from."""
        return self._names[number]

    def numbers_of(self, column: str) -> list[int]:
        """Return which numbers of a context come from a column."""
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
        """Return a table, given by columns, with one number per cell, and the schema after it.

        This is what exported policies take: numbers, days since 1970, codes, NaN for gaps.
        """
        self._check_count(len(cells))
        pairs = zip(self.codings, cells, strict=True)
        found = [coding.read(each, learning) for coding, each in pairs]
        after = self._with([each.coding for each in found])
        return np.column_stack([each.values for each in found]), after

    def spread(self, values: FloatArray) -> FloatArray:
        """Return what ``read`` returned as kernels see it."""
        parts = [self.codings[place].spread(values[:, place]) for place in self._in_order]
        return np.hstack(parts)

    def decode(self, rows: FloatArray) -> list[dict[str, Any]]:
        """Return contexts, as ``encode`` returned them, as users write them, by column."""
        cells = {}
        for name, coding in zip(self.columns, self.codings, strict=True):
            cells[name] = decode(coding, rows[:, self.numbers_of(name)])
        return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]

    def new_levels(self, rows: FloatArray) -> dict[str, NDArray[np.bool_]]:
        """Return, by category, in which rows its level was never met, if any level was met before.

        The rows are as ``encode`` returned them, without learning.
        """
        met = [own.name for own in self.codings if isinstance(own.kind, Category) and own.levels]
        return {name: rows[:, self.numbers_of(name)[0]] < 0 for name in met}

    def telling(self, rows: FloatArray) -> tuple[TableSchema, Renaming | None]:
        """Return the schema after rewards were told at rows, as ``encode`` returned them.

        Levels that rewards were told of have the first codes, so that codes may change; all rows
        that were encoded before must then be renamed.
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
        """Return the schema without levels that were only asked about."""
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
        same = all(map(_is, codings, self.codings))
        return self if same else replace(self, codings=tuple(codings))

    def _check_count(self, count: int) -> None:
        if count != len(self.codings):
            raise ValueError(
                f"must have {len(self.codings)} cells each, for the columns "
                f"{list(self.columns)}, got {count}"
            )

    def describe(self) -> list[dict[str, Any]]:
        """Return the schema as plain values for a file's header."""
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
                raise ValueError(f"the column {each['name']!r} was told of {told!r} levels")
            if zoned not in (True, False, None):
                raise ValueError(f"the column {each['name']!r} has times of no known kind")
            codings.append(Coding(each["name"], kind, tuple(levels), filling, told, zoned))
        schema = cls(tuple(codings))
        if not codings or len(set(schema.columns)) < len(codings):
            raise ValueError("columns have no names, or a name twice")
        return schema


def _is(left: object, right: object) -> bool:
    return left is right
