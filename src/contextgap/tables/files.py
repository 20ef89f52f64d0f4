"""Tables in files, read block by block, so that memory does not grow with a table's length.

Every error names file, row and column.
"""

from __future__ import annotations

import csv
import glob
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.names import study_import
from contextgap.tables.cells import (
    NO_WORDS,
    TRUTHS,
    Holds,
    floats,
    is_empty,
    is_missing_number,
    no_number,
    slip,
    to_number,
)
from contextgap.tables.columns import Category, Date, Kind
from contextgap.tables.logs import (
    JSON_LINES,
    VOWPAL,
    columns_in,
    opened,
    read_lines,
    suffix_of,
)
from contextgap.tables.table import Table

T = TypeVar("T")
PARQUET = (".parquet", ".pq")
RECORDS = (*JSON_LINES, *VOWPAL)
SUFFIXES = (".csv", ".tsv", *PARQUET, *RECORDS)
BLOCK = 65_536  # rows of a block
SEPARATORS = {".csv": ",", ".tsv": "\t"}  # of text files
_OTHERS = ";\t|"  # that separate cells where the usual one is not in the header
_BEGINNING = 2**24  # bytes
_PART = 2**20  # rows of a part of a Parquet file, at least
_WORDS = " or ".join(
    ", ".join(word for word, value in TRUTHS.items() if value == wanted) for wanted in (1.0, 0.0)
)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as it stands in a file, before its cells are read as numbers."""

    path: Path
    columns: tuple[str, ...]
    cells: tuple[list[Any], ...]  # by column: text from a CSV file, values or None from Parquet
    places: Sequence[str]  # what errors call each row: "line 2" or "row 1"
    separator: str | None = None  # of the cells of a text file; None for a Parquet file

    def __len__(self) -> int:
        return len(self.places)

    @property
    def decimal_comma(self) -> bool:
        """Whether 1,5 is a number."""
        return self.separator == ";"

    def take(self, rows: Iterable[int]) -> Sheet:
        chosen = list(rows)
        cells = tuple([column[row] for row in chosen] for column in self.cells)
        return replace(self, cells=cells, places=[self.places[row] for row in chosen])

    def drop(self, rows: Iterable[int]) -> Sheet:
        dropped = set(rows)
        return self.take(row for row in range(len(self)) if row not in dropped)

    def numbers(self, names: Sequence[str]) -> FloatArray:
        return np.column_stack([self._numbers(name) for name in names])

    def rewards(self, name: str, truths: bool | None = None) -> FloatArray:
        """Return a column of rewards: numbers, or words for truth values, which are 1 and 0."""
        if self.are_truths(name) if truths is None else truths:
            words = [str(cell).strip().lower() for cell in self.cells_of(name)]
            return np.array([TRUTHS[word] for word in words])
        return self._numbers(name, f"; words must be {_WORDS} in every row")

    def without(self, names: Sequence[str]) -> list[int]:
        """Return the rows in which a number or word is missing from one of the named columns."""
        columns = [column for column in map(self.cells_of, names) if floats(column) is None]
        rows = enumerate(zip(*columns, strict=True))
        return [row for row, cells in rows if any(map(is_missing_number, cells))]

    def are_truths(self, name: str) -> bool:
        """Whether a column holds truth values throughout."""
        cells = self.cells_of(name)
        return floats(cells) is None and {str(cell).strip().lower() for cell in cells} <= {*TRUTHS}

    def others(self, names: Sequence[str], quiet: bool = False) -> tuple[str, ...]:
        """Return all columns but the named ones; warns of one that is left out, unless quiet."""
        rest = tuple(column for column in self.columns if column not in names)
        if "" in rest:
            first = np.array([to_number(cell) for cell in self.cells[0]], dtype=np.float64)
            if self.columns[0] != "" or not (np.diff(first) == 1).all():
                raise ValueError(
                    f"{self.path}: column {self.columns.index('') + 1} has no name; "
                    "name it, or list the columns you want"
                )
            rest = rest[1:]
            if not quiet:
                self.warn_of_index()
        return rest

    def warn_of_index(self) -> None:
        warnings.warn(
            f"{self.path}: the first column has no name and numbers the rows, as a saved index "
            "does; it is left out",
            stacklevel=3,
        )

    def located(self, error: Exception) -> str:
        """Return an error about rows of this table, counted from 0, with the file and its lines."""
        said = re.sub(r"\brow (\d+)", lambda found: self.places[int(found[1])], str(error))
        return f"{self.path}: {said}"

    def holds(self, name: str) -> Holds:
        return Holds.of(self.cells_of(name), decimal_comma=self.decimal_comma)

    def table(
        self,
        names: Sequence[str],
        kinds: Mapping[str, Kind] | None = None,
        holds: Mapping[str, Holds] | None = None,
    ) -> Table:
        """Return the named columns, with numbers, text and missing values.

        A column is numbers if it holds any; anything else in it but missing values is an error. So
        is text that looks like numbers or dates in another format, unless ``kinds`` says that the
        column is text. ``holds`` is what columns hold, if this is a part of a longer table.
        """
        known, given = holds or {}, kinds or {}
        columns = [self._typed(name, given.get(name), known.get(name)) for name in names]
        return Table(list(names), columns)

    def _typed(self, name: str, kind: Kind | None, holds: Holds | None) -> Any:
        holds = self.holds(name) if holds is None and kind is None else holds
        text = kind is None and holds is not None and not holds.number
        if text or isinstance(kind, Category | Date):
            return self._text(name, kind, holds)
        hint = "; is it a category (--category)?" if kind is None else ""
        return self._numbers(name, hint, missing=True)

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
        filled = [cell for cell in self.cells_of(name) if not is_empty(cell)]
        return bool(filled) and all(to_number(cell) is None for cell in filled)

    def cells_of(self, name: str) -> list[Any]:
        """Return a column as it stands in the file."""
        if name not in self.columns:
            raise ValueError(
                f"{self.path}: there is no column {name!r}; the columns are {list(self.columns)}"
            )
        return self.cells[self.columns.index(name)]

    def _numbers(self, name: str, hint: str = "", *, missing: bool = False) -> FloatArray:
        cells, values = self.cells_of(name), list[float]()
        if (plain := floats(cells)) is not None:
            return plain
        for place, cell in zip(self.places, cells, strict=True):
            value = to_number(cell, decimal_comma=self.decimal_comma)
            if missing and is_missing_number(cell):
                value = math.nan
            if value is None or math.isinf(value) or (math.isnan(value) and not missing):
                hint = hint if value is None and not is_empty(cell) else ""
                raise ValueError(f"{self.path}, {place}, column {name!r}: {no_number(cell)}{hint}")
            values.append(value)
        return np.array(values)


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


def read_sheet(path: Path, separator: str | None = None) -> Sheet:
    """Return the table in a text or Parquet file.

    Cells are separated by a comma, in a .tsv file by a tab, unless a ``separator`` is given or only
    a semicolon, a tab or a bar is in the header. With semicolons, numbers may have decimal commas.
    """
    return joined(read_blocks(path, separator))


def read_blocks(path: Path, separator: str | None = None, rows: int = BLOCK) -> Iterator[Sheet]:
    """Yield the table in a text or Parquet file, so many rows at a time."""
    yield from Part(path, separator).blocks(rows)


def joined(blocks: Iterable[Sheet]) -> Sheet:
    """Return tables with the same columns as one; its places name the file if there are several."""
    listed = list(blocks)
    first = listed[0]
    for each in listed[1:]:
        check_alike(first, each)
    cells = tuple(
        [cell for each in listed for cell in each.cells_of(name)] for name in first.columns
    )
    if len({each.path for each in listed}) == 1:
        places = [place for each in listed for place in each.places]
        return replace(first, cells=cells, places=places)
    folder = os.path.commonpath([each.path.parent for each in listed])
    own = [os.path.relpath(each.path, folder or ".") for each in listed]
    pairs = zip(own, listed, strict=True)
    places = [f"{name}, {place}" for name, each in pairs for place in each.places]
    return replace(first, path=Path(folder or Path.cwd()), cells=cells, places=places)


@dataclass(frozen=True)
class Part:
    """A file with a table, or some of the row groups of a Parquet file."""

    path: Path
    separator: str | None = None  # of cells of a text file; None for that of its header
    groups: tuple[int, ...] | None = None  # of a Parquet file; None for all
    first: int = 0  # rows of the file that come before

    def blocks(self, rows: int = BLOCK) -> Iterator[Sheet]:
        """Yield the rows as tables of at most so many."""
        path, separator = self.path, self.separator
        check_file(path, SUFFIXES)
        suffix = suffix_of(path)
        usual = SEPARATORS.get(suffix)
        if usual is None and separator is not None:
            kind = "a Parquet" if suffix in PARQUET else f"a {suffix}"
            raise ValueError(f"{path}: {kind} file has no separator, got {separator!r}")
        if separator is not None and (len(separator) != 1 or separator in '\r\n"'):
            raise ValueError(f"separator must be one character, such as ; or |, got {separator!r}")
        if suffix in RECORDS:
            found = _records(path, rows)
        else:
            found = self._parquet(rows) if usual is None else _text(path, separator, usual, rows)
        columns: tuple[str, ...] | None = None
        for sheet in found:
            if sheet.columns[-1:] == ("",) and all(map(is_empty, sheet.cells[-1])):
                sheet = replace(sheet, columns=sheet.columns[:-1], cells=sheet.cells[:-1])
            if columns is None:
                _check_header(sheet)
                columns = sheet.columns
            if sheet.columns != columns:
                raise ValueError(
                    f"{path}, {sheet.places[0]}: the last column has no name, but cells from here "
                    "on; name it"
                )
            yield sheet

    def _parquet(self, rows: int) -> Iterator[Sheet]:
        arrow = study_import("pyarrow")
        with _opened(self.path) as file:
            before = self.first
            try:
                for batch in file.iter_batches(rows, row_groups=self.groups and list(self.groups)):
                    frame = arrow.Table.from_batches([batch]).to_pandas()
                    yield sheet_of(frame, self.path, before)
                    before += len(frame)
            except (OSError, ValueError) as error:
                raise ValueError(f"{self.path}: not a readable Parquet file ({error})") from error
            if before == self.first:
                yield sheet_of(file.schema_arrow.empty_table().to_pandas(), self.path)


def parts_of(path: Path, separator: str | None = None) -> list[Part]:
    """Return a file in parts that can be read apart: a Parquet file may be several."""
    check_file(path, SUFFIXES)
    if suffix_of(path) not in PARQUET:
        return [Part(path, separator)]
    parts, groups, first, count = [], list[int](), 0, 0
    with _opened(path) as file:
        for group in range(file.num_row_groups):
            groups.append(group)
            count += file.metadata.row_group(group).num_rows
            if count >= _PART:
                parts.append(Part(path, separator, tuple(groups), first))
                groups, first, count = [], first + count, 0
    return [*parts, Part(path, separator, tuple(groups), first)] if groups or not parts else parts


def count_rows(path: Path) -> int:
    """Return how many rows a file has; of text, about how many, judging from its beginning."""
    check_file(path, SUFFIXES)
    if suffix_of(path) in PARQUET:
        with _opened(path) as file:
            return int(file.metadata.num_rows)
    with opened(path, text=False) as text:
        beginning: bytes = text.read(_BEGINNING)
        read = int(getattr(text, "fileobj", text).tell())  # bytes of the file, compressed or not
    share = max(1.0, path.stat().st_size / max(read, 1))
    return max(1, round(beginning.count(b"\n") * share) - 1)  # without the header


def files_named(names: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that names and patterns such as ``logs/*.parquet`` stand for, in order."""
    found: list[Path] = []
    for given in names:
        name = os.fspath(given)
        matching = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
        if glob.has_magic(name) and not matching and not os.path.exists(name):
            raise FileNotFoundError(f"{name}: no file is called like that")
        found += [Path(each) for each in (matching or [name])]
    twice = [path for path in found if found.count(path) > 1]
    if twice:
        raise ValueError(f"{twice[0]}: the file is named twice")
    return found


def check_alike(sheet: Sheet, other: Sheet) -> None:
    """Raise unless two tables, of the same file or not, have the same columns."""
    if set(sheet.columns) != set(other.columns):
        raise ValueError(
            f"{other.path} has the columns {list(other.columns)}, but {sheet.path} "
            f"{list(sheet.columns)}; files that belong together have the same"
        )
    if sheet.decimal_comma != other.decimal_comma:
        raise ValueError(
            f"of {sheet.path} and {other.path}, one has decimal commas and the other has none; "
            "files that belong together are written in the same way"
        )


def check_file(path: Path, suffixes: Iterable[str]) -> None:
    if path.suffix.lower() == ".gz" and suffix_of(path) in (*PARQUET, ".mat"):
        raise ValueError(f"{path}: decompress it; such files are compressed inside")
    if suffix_of(path) not in suffixes:
        raise ValueError(
            f"{path}: the suffix {path.suffix!r} is unknown; known are {', '.join(suffixes)}"
        )
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():
        raise ValueError(f"{path}: a file is needed, this is a directory")


def _check_header(sheet: Sheet) -> None:
    path, columns = sheet.path, sheet.columns
    if not columns:
        raise ValueError(f"{path}: the file is empty; a header and at least one row are needed")
    if not sheet.places:
        raise ValueError(f"{path}: the table has no rows, only the columns {list(columns)}")
    doubles = [name for name in columns if columns.count(name) > 1]
    if doubles:
        raise ValueError(f"{path}: two columns are called {doubles[0]!r}; names must be distinct")


def _text(path: Path, separator: str | None, usual: str, most: int) -> Iterator[Sheet]:
    # Not pandas: it skips blank lines and pads short ones without saying where.
    with opened(path) as file:
        before = 0
        try:
            before, found = _separator(file, usual)
            separator = separator or found
            reader = csv.reader(file, strict=True, delimiter=separator)
            header = tuple(name.strip() for name in next(filter(None, reader), []))

            def rows() -> Iterator[tuple[list[str], str]]:
                for row in filter(None, reader):
                    place = f"line {before + reader.line_num}"
                    if len(row) != len(header):
                        raise ValueError(
                            f"{path}, {place}: the header has {len(header)} cells, this line "
                            f"{len(row)}; nothing may stand above the header"
                        )
                    yield row, place

            for block in _in_blocks(rows(), most):
                cells = tuple([row[i] for row, _ in block] for i in range(len(header)))
                yield Sheet(path, header, cells, [place for _, place in block], separator)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {_undecodable(path)}: not UTF-8 text ({error.reason}); save it as "
                "CSV in UTF-8"
            ) from None
        except csv.Error as error:
            line = before + reader.line_num
            raise ValueError(f"{path}, line {line}: not CSV ({error})") from None


def _in_blocks(rows: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield lists of so many rows, the last one shorter; an empty one if there are none."""
    rest = iter(rows)
    block = list(islice(rest, most))
    yield block
    while block := list(islice(rest, most)):
        yield block


def _records(path: Path, most: int) -> Iterator[Sheet]:
    """Yield the records of a log, whose columns are known once all of it was read."""
    columns = columns_in(read_lines(path), sparse=suffix_of(path) in VOWPAL)
    for lines in _in_blocks(read_lines(path), most):
        cells = tuple(
            [line.record.get(name, absent) for line in lines] for name, absent in columns.items()
        )
        yield Sheet(path, tuple(columns), cells, [f"line {line.number}" for line in lines])


def _separator(file: IO[str], usual: str) -> tuple[int, str]:
    """Return how many lines stand before the header, and what separates cells; rewind to there."""
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
    with opened(path, text=False) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _opened(path: Path) -> Any:
    parquet = study_import("pyarrow.parquet")
    study_import("pandas")
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error})") from error


def sheet_of(frame: Any, path: Path, before: int = 0) -> Sheet:
    """Return a DataFrame as a table, with so many rows of the same file before it."""
    cells = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        listed = column.tolist()
        for row in column.isna().to_numpy().nonzero()[0].tolist():
            listed[row] = None
        cells.append(listed)
    places = [f"row {row}" for row in range(before + 1, before + len(frame) + 1)]
    return Sheet(path, tuple(str(name) for name in frame.columns), tuple(cells), places)
