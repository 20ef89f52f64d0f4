"""Reads tables with categories, dates, cycles and gaps as arrays of numbers.

A context as a kernel sees it has the numbers of all columns first and then one code for each
category. Users never see it: they pass and get tables as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks, components
from contextgap.base.arrays import FloatArray
from contextgap.base.columns.coding import MOST_LEVELS, Coding
from contextgap.base.columns.columns import Columns
from contextgap.base.columns.inference import all_numbers, guess_kind
from contextgap.base.columns.kinds import Category, Kind


class Layout(NamedTuple):
    """Which numbers of a context have a bandwidth in common, and how many are codes at its end.

    ``tied`` has one entry per number: numbers with the same entry share their bandwidth.
    """

    tied: tuple[int, ...]
    categories: int


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

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(coding.name for coding in self.codings)

    @cached_property
    def kinds(self) -> Columns:
        """What the columns hold."""
        return Columns({coding.name: coding.kind for coding in self.codings})

    @cached_property
    def dimension(self) -> int:
        """How many numbers a context becomes."""
        return sum(coding.width for coding in self.codings)

    @cached_property
    def layout(self) -> Layout:
        """How the numbers of a context belong together."""
        tied: list[int] = []
        for place in self._in_order:
            first = tied[-1] + 1 if tied else 0
            tied += [first + each for each in self.codings[place].tied]
        return Layout(tuple(tied), sum(self._is_category))

    @cached_property
    def _is_category(self) -> tuple[bool, ...]:
        return tuple(isinstance(coding.kind, Category) for coding in self.codings)

    @cached_property
    def _in_order(self) -> tuple[int, ...]:
        """The places of the columns in the order in which their numbers come: categories last."""
        places = range(len(self.codings))
        return tuple(sorted(places, key=lambda place: self._is_category[place]))

    def column_of(self, number: int) -> str:
        """Return the name of the column that a number of a context comes from."""
        names = [
            self.columns[place]
            for place in self._in_order
            for _ in range(self.codings[place].width)
        ]
        return names[number]

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

    def learnt(self, cells: Sequence[Sequence[Any]]) -> TableSchema:
        """Return the schema with levels and medians of a first table."""
        pairs = zip(self.codings, cells, strict=True)
        return TableSchema(tuple(Coding.of(own.name, own.kind, each) for own, each in pairs))

    @property
    def is_new(self) -> bool:
        """Whether no context was read yet, so that levels and medians are unknown."""
        return not any(own.levels or own.filling is not None for own in self.codings)

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
            codings.append(Coding(each["name"], kind, tuple(levels), filling))
        schema = cls(tuple(codings))
        if not codings or len(set(schema.columns)) < len(codings):
            raise ValueError("columns have no names, or a name twice")
        return schema


def _is(left: object, right: object) -> bool:
    return left is right
