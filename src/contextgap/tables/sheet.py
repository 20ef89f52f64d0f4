"""Tables as they stand in files; every error names file, row and column."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.extras import study_import
from contextgap.tables.cells import (
    NO_WORDS,
    TRUTHS,
    Holds,
    floats,
    is_empty,
    is_gap,
    no_number,
    slip,
    to_number,
)
from contextgap.tables.columns import Category, Date, Kind

_WORDS = " or ".join(
    ", ".join(word for word, value in TRUTHS.items() if value == wanted) for wanted in (1.0, 0.0)
)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as it stands in a file, before its cells are read as numbers.

    There is one list of cells per column: text from a CSV file, values or None from a Parquet file.
    ``places`` is what errors call each row: "line 2" or "row 1". ``separator`` is what stands
    between the cells of a text file; None for a Parquet file.
    """

    path: Path
    columns: tuple[str, ...]
    cells: tuple[list[Any], ...]
    places: Sequence[str]
    separator: str | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def decimal_comma(self) -> bool:
        """Whether 1,5 is a number."""
        return self.separator == ";"

    def take(self, rows: Iterable[int]) -> Sheet:
        """Return some of the rows, in the order given."""
        chosen = list(rows)
        cells = tuple([column[row] for row in chosen] for column in self.cells)
        return replace(self, cells=cells, places=[self.places[row] for row in chosen])

    def drop(self, rows: Iterable[int]) -> Sheet:
        """Return the table without some of its rows."""
        dropped = set(rows)
        return self.take(row for row in range(len(self)) if row not in dropped)

    def numbers(self, names: Sequence[str]) -> FloatArray:
        """Return the named columns as an array of finite floats."""
        return np.column_stack([self._column(name) for name in names])

    def rewards(self, name: str, truths: bool | None = None) -> FloatArray:
        """Return a column of rewards: numbers, or truth values, which are 1 and 0.

        ``truths`` says which, where this is a part of a longer table.
        """
        if self.are_truths(name) if truths is None else truths:
            words = [str(cell).strip().lower() for cell in self.cells_of(name)]
            return np.array([TRUTHS[word] for word in words])
        return np.array(self._column(name, f"; words must be {_WORDS} in every row"))

    def without(self, names: Sequence[str]) -> list[int]:
        """Return the rows in which one of the named columns has a gap."""
        columns = [column for column in map(self.cells_of, names) if floats(column) is None]
        rows = enumerate(zip(*columns, strict=True))
        return [row for row, cells in rows if any(map(is_gap, cells))]

    def are_truths(self, name: str) -> bool:
        """Whether a column holds truth values throughout."""
        cells = self.cells_of(name)
        return floats(cells) is None and {str(cell).strip().lower() for cell in cells} <= set(
            TRUTHS
        )

    def others(self, names: Sequence[str], quiet: bool = False) -> tuple[str, ...]:
        """Return all columns but the named ones; warns of one that is left out, unless quiet."""
        rest = tuple(column for column in self.columns if column not in names)
        if "" in rest:
            if self.columns[0] != "" or not self._numbers_rows(self.cells[0]):
                raise ValueError(
                    f"{self.path}: column {self.columns.index('') + 1} has no name; "
                    "name it, or list the columns you want"
                )
            rest = rest[1:]
            if not quiet:
                self.warn_of_index()
        return rest

    def warn_of_index(self) -> None:
        """Warn that the first column is left out."""
        warnings.warn(
            f"{self.path}: the first column has no name and numbers the rows, as a saved index "
            "does; it is left out",
            stacklevel=3,
        )

    def _numbers_rows(self, cells: Sequence[Any]) -> bool:
        numbers = np.array([to_number(cell) for cell in cells], dtype=np.float64)
        return bool((np.diff(numbers) == 1).all())

    def located(self, error: Exception) -> str:
        """Return an error about rows of this table, counted from 0, with the file and its lines."""
        said = re.sub(r"\brow (\d+)", lambda found: self.places[int(found[1])], str(error))
        return f"{self.path}: {said}"

    def holds(self, name: str) -> Holds:
        """Return what a column holds."""
        return Holds.of(self.cells_of(name), decimal_comma=self.decimal_comma)

    def table(
        self,
        names: Sequence[str],
        kinds: Mapping[str, Kind] | None = None,
        holds: Mapping[str, Holds] | None = None,
    ) -> Any:
        """Return the named columns as a DataFrame of numbers, text and gaps.

        A column is numbers if it holds any; what is neither a number nor a gap in it is an error.
        So is text that is probably none: numbers and dates that are written in other ways. Columns
        of the categories and dates among ``kinds`` are text, whatever they hold. ``holds`` is what
        columns hold, where this is a part of a longer table.
        """
        known, given = holds or {}, kinds or {}
        columns = {name: self._typed(name, given.get(name), known.get(name)) for name in names}
        return study_import("pandas").DataFrame(columns)

    def _typed(self, name: str, kind: Kind | None, holds: Holds | None) -> Any:
        holds = self.holds(name) if holds is None and kind is None else holds
        text = kind is None and holds is not None and not holds.number
        if text or isinstance(kind, Category | Date):
            return self._text(name, kind, holds)
        if (plain := floats(self.cells_of(name))) is not None:
            return plain
        cells = [None if is_empty(cell) else cell for cell in self.cells_of(name)]
        comma, values = self.decimal_comma, list[float]()
        for place, cell in zip(self.places, cells, strict=True):
            value = math.nan if is_gap(cell) else to_number(cell, decimal_comma=comma)
            if value is None or math.isinf(value):
                hint = "; is it a category (--category)?" if value is None and kind is None else ""
                raise ValueError(f"{self.path}, {place}, column {name!r}: {no_number(cell)}{hint}")
            values.append(value)
        return values

    def words(self, name: str) -> list[Any]:
        """Return a column of text without spaces around it, None where it says nothing."""
        words = [cell.strip() if isinstance(cell, str) else cell for cell in self.cells_of(name)]
        return [None if str(word).lower() in NO_WORDS else word for word in words]

    def _text(self, name: str, kind: Kind | None, holds: Holds | None) -> list[Any]:
        words = self.words(name)
        if kind is not None or holds is None:
            return words
        if not holds.word:
            raise ValueError(
                f"{self.path}, column {name!r}: every cell is empty; leave it out (--exclude)"
            )
        if (found := slip(words, holds.date)) is not None:
            place, wrong = found
            raise ValueError(
                f"{self.path}, {self.places[place]}, column {name!r}: {wrong}; or is it a category "
                "(--category)?"
            )
        return words

    def is_text(self, name: str) -> bool:
        """Whether a column, such as a time stamp, holds text throughout and not one number."""
        cells = self.cells_of(name)
        filled = [cell for cell in cells if not is_empty(cell)]
        return bool(filled) and all(to_number(cell) is None for cell in filled)

    def cells_of(self, name: str) -> list[Any]:
        """Return a column as it stands in the file."""
        if name not in self.columns:
            raise ValueError(
                f"{self.path}: there is no column {name!r}; the columns are {list(self.columns)}"
            )
        return self.cells[self.columns.index(name)]

    def _column(self, name: str, hint: str = "") -> Any:
        cells = self.cells_of(name)
        if (plain := floats(cells)) is not None:
            return plain
        values = []
        for place, cell in zip(self.places, cells, strict=True):
            value = to_number(cell, decimal_comma=self.decimal_comma)
            if value is None or not math.isfinite(value):
                hint = hint if value is None and not is_empty(cell) else ""
                raise ValueError(f"{self.path}, {place}, column {name!r}: {no_number(cell)}{hint}")
            values.append(value)
        return values


def check_missing(first: str, missing: int, rows: int, skip: bool) -> None:
    """Raise, or warn if they are to be skipped, that rewards are missing from ``first`` on."""
    if not missing:
        return
    said = f"{missing} of {rows} rows have no reward"
    if missing == rows:
        raise ValueError(f"{first}: {said}; there is nothing to learn from")
    if not skip:
        raise ValueError(
            f"{first}: {said}, of which this is the first; skip_missing=True skips them"
        )
    warnings.warn(f"{said} and are skipped", stacklevel=3)


def read_path(path: Any) -> Path:
    """Return ``path`` as a Path."""
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"path must be the path of a file, got {path!r}") from None


def read_names(argument: str, names: Any) -> tuple[str, ...]:
    """Return distinct column names from a list of them."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be a list of column names, got {names!r}")
    listed = tuple(names)
    if not listed:
        raise ValueError(f"{argument} must name at least one column, got none")
    for place, name in enumerate(listed):
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be a list of column names, got {name!r} in it")
        if name in listed[:place]:
            raise ValueError(f"{argument} must name each column once, got {name!r} twice")
    return listed
