"""Reads tables from files; every error names file, row and column."""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.columns import Category, Date, Kind
from contextgap.problems.cells import (
    NO_WORDS,
    TRUTHS,
    is_empty,
    is_gap,
    is_number,
    no_number,
    slip,
    to_number,
)
from contextgap.problems.extras import study_import


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as it stands in a file, before its cells are read as numbers.

    There is one list of cells per column: text from a CSV file, values or None from a Parquet file.
    ``places`` is what errors call each row: "line 2" or "row 1". ``decimal_comma`` says that 1,5 is
    a number.
    """

    path: Path
    columns: tuple[str, ...]
    cells: tuple[list[Any], ...]
    places: Sequence[str]
    decimal_comma: bool = False

    def numbers(self, names: Sequence[str]) -> FloatArray:
        """Return the named columns as an array of finite floats."""
        return np.column_stack([self._column(name) for name in names])

    def rewards(self, name: str) -> FloatArray:
        """Return a column of rewards: numbers, or truth values, which are 1 and 0."""
        words = [str(cell).strip().lower() for cell in self.cells_of(name)]
        if set(words) <= set(TRUTHS):
            return np.array([TRUTHS[word] for word in words])
        return np.asarray(self.numbers([name])[:, 0])

    def others(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return all columns but the named ones."""
        rest = tuple(column for column in self.columns if column not in names)
        if "" in rest:
            if self.columns[0] != "" or not self._numbers_rows(self.cells[0]):
                raise ValueError(
                    f"{self.path}: column {self.columns.index('') + 1} has no name; "
                    "name it, or list the columns you want"
                )
            rest = rest[1:]
            warnings.warn(
                f"{self.path}: the first column has no name and numbers the rows, as a saved index "
                "does; it is left out",
                stacklevel=2,
            )
        return rest

    def _numbers_rows(self, cells: Sequence[Any]) -> bool:
        numbers = np.array([to_number(cell) for cell in cells], dtype=np.float64)
        return bool((np.diff(numbers) == 1).all())

    def located(self, error: Exception) -> str:
        """Return an error about rows of this table, counted from 0, with the file and its lines."""
        said = re.sub(r"\brow (\d+)", lambda found: self.places[int(found[1])], str(error))
        return f"{self.path}: {said}"

    def table(self, names: Sequence[str], kinds: Mapping[str, Kind] | None = None) -> Any:
        """Return the named columns as a DataFrame of numbers, text and gaps.

        A column is numbers if it holds any; what is neither a number nor a gap in it is an error.
        So is text that is probably none: numbers and dates that are written in other ways. Columns
        of the categories and dates among ``kinds`` are text, whatever they hold.
        """
        columns = {name: self._typed(name, (kinds or {}).get(name)) for name in names}
        return study_import("pandas").DataFrame(columns)

    def _typed(self, name: str, kind: Kind | None) -> list[Any]:
        cells = [None if is_empty(cell) else cell for cell in self.cells_of(name)]
        comma = self.decimal_comma
        text = kind is None and not any(is_number(cell, decimal_comma=comma) for cell in cells)
        if text or isinstance(kind, Category | Date):
            return self._text(name, cells, kind)
        values: list[float] = []
        for place, cell in zip(self.places, cells, strict=True):
            value = math.nan if is_gap(cell) else to_number(cell, decimal_comma=comma)
            if value is None or math.isinf(value):
                hint = "; is it a category (--category)?" if value is None and kind is None else ""
                raise ValueError(f"{self.path}, {place}, column {name!r}: {no_number(cell)}{hint}")
            values.append(value)
        return values

    def _text(self, name: str, cells: list[Any], kind: Kind | None) -> list[Any]:
        words = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
        words = [None if str(word).lower() in NO_WORDS else word for word in words]
        if kind is not None:
            return words
        if all(word is None for word in words):
            raise ValueError(
                f"{self.path}, column {name!r}: every cell is empty; leave it out (--exclude)"
            )
        if (found := slip(words)) is not None:
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

    def _column(self, name: str) -> list[float]:
        cells = self.cells_of(name)
        values = []
        for place, cell in zip(self.places, cells, strict=True):
            value = to_number(cell, decimal_comma=self.decimal_comma)
            if value is None or not math.isfinite(value):
                raise ValueError(f"{self.path}, {place}, column {name!r}: {no_number(cell)}")
            values.append(value)
        return values


SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OTHERS = ";\t|"  # that separate cells where the usual one is not in the header


def read_sheet(path: Path, separator: str | None = None) -> Sheet:
    """Return the table in a text or Parquet file.

    Unless a ``separator`` is given, a comma separates cells, in a .tsv file a tab; or a semicolon,
    a tab or a bar, if the header has one of them and not the usual one. Where it is a semicolon,
    numbers may have decimal commas. A last column without name and cells is left out.
    """
    check_file(path, SUFFIXES)
    usual = _SEPARATORS.get(path.suffix.lower())
    if usual is None and separator is not None:
        raise ValueError(f"{path}: a Parquet file has no separator, got {separator!r}")
    if separator is not None and (len(separator) != 1 or separator in '\r\n"'):
        raise ValueError(f"separator must be one character, such as ; or |, got {separator!r}")
    sheet = _read_parquet(path) if usual is None else _read_text(path, separator, usual)
    if sheet.columns[-1:] == ("",) and all(map(is_empty, sheet.cells[-1])):
        sheet = replace(sheet, columns=sheet.columns[:-1], cells=sheet.cells[:-1])
    if not sheet.columns:
        raise ValueError(f"{path}: the file is empty; a header and at least one row are needed")
    if not sheet.places:
        raise ValueError(f"{path}: the table has no rows, only the columns {list(sheet.columns)}")
    doubles = [name for name in sheet.columns if sheet.columns.count(name) > 1]
    if doubles:
        raise ValueError(f"{path}: two columns are called {doubles[0]!r}; names must be distinct")
    return sheet


def check_file(path: Path, suffixes: Iterable[str]) -> None:
    """Raise unless ``path`` is a file with one of these suffixes."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(
            f"{path}: the suffix {path.suffix!r} is unknown; known are {', '.join(suffixes)}"
        )
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():
        raise ValueError(f"{path}: a file is needed, this is a directory")


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


def _read_text(path: Path, separator: str | None, usual: str) -> Sheet:
    # Not pandas: it skips blank lines and pads short ones without saying where.
    rows, places = [], []
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            before, found = _separator(file, usual)
            separator = separator or found
            reader = csv.reader(file, strict=True, delimiter=separator)
            header = tuple(name.strip() for name in next(filter(None, reader), []))
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise ValueError(
                        f"{path}, line {before + reader.line_num}: the header has {len(header)} "
                        f"cells, this line {len(row)}; nothing may stand above the header"
                    )
                rows.append(row)
                places.append(f"line {before + reader.line_num}")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {_undecodable(path)}: not UTF-8 text ({error.reason}); save it as "
                "CSV in UTF-8"
            ) from None
        except csv.Error as error:
            line = before + reader.line_num
            raise ValueError(f"{path}, line {line}: not CSV ({error})") from None
    cells = tuple([row[place] for row in rows] for place in range(len(header)))
    return Sheet(path, header, cells, places, decimal_comma=separator == ";")


def _separator(file: IO[str], usual: str) -> tuple[int, str]:
    """Return how many lines stand before the header, and what separates its cells.

    The file is then read from there on.
    """
    header = file.readline()
    said = re.fullmatch(r"sep=(.)\s*", header, re.IGNORECASE)  # as spreadsheets write it
    if said is not None:
        return 1, said[1]
    while header and not header.strip():
        header = file.readline()
    file.seek(0)
    others = [each for each in _OTHERS if each in header]
    return 0, others[0] if usual not in header and len(others) == 1 else usual


def _undecodable(path: Path) -> int:
    """Return the first line of a file that is not UTF-8."""
    data = path.read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return 1


def _read_parquet(path: Path) -> Sheet:
    study_import("pyarrow")
    pandas = study_import("pandas")
    try:
        frame = pandas.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from error
    cells = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        gaps = column.isna().tolist()
        cells.append(
            [None if gap else cell for cell, gap in zip(column.tolist(), gaps, strict=True)]
        )
    places = [f"row {row}" for row in range(1, len(frame) + 1)]
    return Sheet(path, tuple(str(name) for name in frame.columns), tuple(cells), places)
