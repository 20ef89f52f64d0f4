"""Reads ARFF files; every error names file, line and attribute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.lazy import lazy
from contextgap.base.names import study_import
from contextgap.tables.cells import to_number

INSTANCE, REPETITION = "instance_id", "repetition"


@dataclass(frozen=True, eq=False)
class Relation:
    """A table with an instance in each row; an instance may have several rows.

    ``values`` holds the values that each attribute may take, None where any is allowed; ``cells``
    holds each attribute's values, None where one is missing; ``places`` is what errors call each
    row, such as "line 9".
    """

    path: Path
    names: tuple[str, ...]
    values: tuple[tuple[str, ...] | None, ...]
    cells: tuple[tuple[Any, ...], ...]
    places: tuple[str, ...]

    @lazy
    def instances(self) -> tuple[str, ...]:
        """Which instance each row is about."""
        return self.texts(INSTANCE)

    def column(self, name: str) -> tuple[Any, ...]:
        """Return an attribute's values as they are in the file."""
        if name not in self.names:
            raise ValueError(
                f"{self.path}: there is no attribute {name!r}; the attributes are "
                f"{list(self.names)}"
            )
        return self.cells[self.names.index(name)]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return an attribute whose values are names, none of them missing."""
        column = self.column(name)
        for row, cell in enumerate(column):
            if cell is None:
                raise ValueError(f"{self.place(row, name)}: a name is needed, the value is missing")
        return tuple(str(cell) for cell in column)

    def numbers(self, name: str) -> FloatArray:
        """Return an attribute as floats, NaN where it is missing or infinite.

        Values from a list of names become places in that list, unless the names are numbers.
        """
        column, choices = self.column(name), self.choices(name)
        known = {choice: float(place) for place, choice in enumerate(choices or ())}
        wanted = "a number" if choices is None else f"one of {list(choices)}"
        numbers = np.full(len(column), math.nan)
        for row, cell in enumerate(column):
            if cell is None:
                continue
            number = to_number(cell) if choices is None else known.get(cell)
            if number is None:
                raise ValueError(f"{self.place(row, name)}: {wanted} is needed, got {cell!r}")
            if math.isfinite(number):
                numbers[row] = number
        return numbers

    def choices(self, name: str) -> tuple[str, ...] | None:
        """Return the names that are an attribute's values; None where these are numbers."""
        listed = self.values[self.names.index(name)]
        if listed is None or all(to_number(choice) is not None for choice in listed):
            return None
        return listed

    def others(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of all attributes but these."""
        left_out = set(names)
        return tuple(name for name in self.names if name not in left_out)

    def place(self, row: int, name: str) -> str:
        """Return what to call a cell in an error."""
        return f"{self.path}, {self.places[row]}, attribute {name!r}"


def read_relation(path: Path) -> Relation:
    """Return the table in an ARFF file that has an attribute ``instance_id``."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file, which an ASlib scenario must have")
    lines = _read_lines(path)
    loaded = _parse(path, lines)
    attributes, rows = loaded["attributes"], loaded["data"]
    if not rows:
        raise ValueError(f"{path}: there is no row behind @data")
    relation = Relation(
        path,
        tuple(name for name, _ in attributes),
        tuple(tuple(kind) if isinstance(kind, list) else None for _, kind in attributes),
        tuple(zip(*rows, strict=True)),
        _places(lines),
    )
    relation.column(INSTANCE)
    return relation


def _read_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error.reason})") from None
    # liac-arff wants blanks, not tabs, behind @attribute.
    return [line.replace("\t", " ") if line.lstrip().startswith("@") else line for line in lines]


def _parse(path: Path, lines: Sequence[str]) -> Any:
    arff = study_import("arff", extra="aslib")
    try:
        return arff.load(iter(lines))
    except arff.ArffException as error:
        try:
            problem = str(error)
        except (TypeError, ValueError):  # liac-arff formats a message that has the file's % in it
            problem = type(error).__name__
        raise ValueError(f"{path}, line {error.line}: not ARFF ({problem})") from None
    except ValueError as error:
        raise ValueError(f"{path}: not ARFF ({error})") from None


def _places(lines: Sequence[str]) -> tuple[str, ...]:
    """Where the rows stand, by the parser's own rule of what a row is."""
    start = next(n for n, line in enumerate(lines) if line.strip().upper().startswith("@DATA"))
    behind = enumerate(lines[start + 1 :], start + 2)
    rows = (n for n, line in behind if line.strip() and not line.strip().startswith("%"))
    return tuple(f"line {n}" for n in rows)
