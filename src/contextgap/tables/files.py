"""Tables and logs of trials in files, read block by block, so that memory stays small.

Every error names file, row and column.

Vowpal Wabbit's logs say which action was taken, with which probability and at what cost, in text
(``cb``, and ``cb_adf`` with the features of every action) or in JSON (``dsjson``). Their records
have ``arm``, ``reward``, which is minus the cost, ``propensity`` and, where actions are listed,
``eligible``, such as ``a|b``; all else is context.
"""

from __future__ import annotations

import csv
import glob
import gzip
import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.checks import NUMBER, Written, no_name_twice
from contextgap.base.components import study_import
from contextgap.tables.columns import Category, Date, Kind
from contextgap.tables.table import (
    COMMA,
    NO_WORDS,
    TRUTHS,
    Holds,
    Table,
    floats,
    is_empty,
    is_missing_number,
    no_number,
    slip,
    to_number,
)

Record: TypeAlias = dict[str, Any]
OUTCOME = ("arm", "reward", "propensity", "eligible")
"""What records of Vowpal Wabbit's logs hold beside the context."""

JSON_LINES = (".jsonl", ".ndjson")
VOWPAL = (".vw", ".dsjson")
_LABEL = re.compile(r"(\d+)(?::([^:\s]*):([^:\s]*))?")


class Line(NamedTuple):
    number: int
    record: Record


class _Action(NamedTuple):
    """A line of an event in Vowpal Wabbit's text."""

    name: str  # what its features say, in one word if there is one
    cost: float | None = None
    chance: float | None = None


def suffix_of(path: Path) -> str:
    """Return the suffix of a file, that before .gz if it is compressed, in lower case."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def opened(path: Path, *, text: bool = True) -> IO[Any]:
    how: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""} if text else {}
    found: Any = gzip.open if path.suffix.lower() == ".gz" else open
    file: IO[Any] = found(path, "rt" if text else "rb", **how)
    return file


def read_lines(path: Path) -> Iterator[Line]:
    readers = {".vw": _vw, ".dsjson": _dsjson}
    with opened(path) as file:
        number = 0
        try:
            for line in readers.get(suffix_of(path), _json_lines)(file):
                number = line.number
                yield line
        except (KeyError, IndexError, TypeError, ValueError, EOFError, OSError) as error:
            said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            after = f"after line {number}" if number else "at the beginning"
            raise ValueError(
                f"{path}, {after}: not what {suffix_of(path)} holds ({said})"
            ) from None


def columns_in(lines: Iterable[Line], *, sparse: bool) -> dict[str, Any]:
    """Return the names of columns, and what an absent value is: 0 if sparse numbers are left out.

    In a column with text, it is missing.
    """
    found: dict[str, Any] = {}
    for line in lines:
        for name, value in line.record.items():
            if not sparse or name in OUTCOME or isinstance(value, str):
                found[name] = None
            else:
                found.setdefault(name, 0.0)
    return found


def _json_lines(lines: Iterable[str]) -> Iterator[Line]:
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield Line(number, dict(_flat(_loads(text, number))))


def _loads(text: str, number: int) -> Mapping[str, Any]:
    found = json.loads(text, object_pairs_hook=no_name_twice)
    if not isinstance(found, dict):
        raise ValueError(f"line {number} is no object in braces")
    return found


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells of nested objects and lists, by names such as ``user.age``."""
    for name, value in values.items():
        if isinstance(value, list):
            value = {str(place): each for place, each in enumerate(value)}
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{before}{name}", None
        else:
            yield f"{before}{name}", value


def _dsjson(lines: Iterable[str]) -> Iterator[Line]:
    kept = None
    for number, text in enumerate(lines, start=1):
        if not text.startswith("{"):  # such as the service's checkpoints; Vowpal Wabbit skips them
            continue
        event = _loads(text, number)
        if "_outcomes" in event or "_label_ca" in event or "_slots" in event.get("c", ()):
            raise ValueError(f"line {number} has slots or a continuous action, not one choice")
        if "_label_cost" not in event or event.get("_skipLearn"):
            continue  # an observation that came late, or an event that was not to be learnt from
        kept = event.get("pdrop", 0.0) if kept is None else kept
        if event.get("pdrop", 0.0) != kept:
            raise ValueError(
                f"line {number} has pdrop {event.get('pdrop', 0.0)} after {kept}: events that were "
                "dropped at different rates would need weights"
            )
        context = event["c"]
        actions = [_tagged(each) for each in context["_multi"]]
        taken = int(event["_label_Action"]) - 1
        if not 0 <= taken < len(actions):
            raise ValueError(f"line {number} takes action {taken + 1} of {len(actions)}")
        if event.get("_labelIndex", taken) != taken:
            raise ValueError(
                f"line {number} has _labelIndex {event['_labelIndex']} for action {taken + 1}"
            )
        shown = dict(_flat(_public(context)))
        outcome = _outcome(
            actions[taken], event["_label_cost"], event["_label_probability"], actions
        )
        yield Line(number, {**_renamed(shown), **outcome})


def _tagged(action: Mapping[str, Any]) -> str:
    return str(action["_tag"]) if "_tag" in action else _named(dict(_flat(_public(action))))


def _public(values: Any) -> Any:
    """Return what are features: names with an underscore are none; one object in a list is bare."""
    if isinstance(values, list):
        found = [_public(each) for each in values]
        return found[0] if len(found) == 1 and isinstance(found[0], dict) else found
    if isinstance(values, dict):
        return {name: _public(each) for name, each in values.items() if name[:1] != "_"}
    return values


def _vw(lines: Iterable[str]) -> Iterator[Line]:
    """Yield events: of one line each or, if the first line is no labelled one, up to a blank."""
    event, first, alone = list[str](), 0, None
    for number, text in enumerate(lines, start=1):
        if text.strip():
            alone = _is_cb(text) if alone is None else alone
            first = first if event else number
            event.append(text.strip())
        if event and (alone or not text.strip()):
            yield from _event(event, first, alone)
            event = []
    if event:
        yield from _event(event, first, alone)


def _is_cb(text: str) -> bool:
    """Whether a first line is a whole event, and not the first of several actions."""
    label = text.partition("|")[0].split()
    return bool(label) and label[0] != "shared" and not label[0].startswith("0:")


def _event(lines: Sequence[str], number: int, alone: bool | None) -> Iterator[Line]:
    if alone:
        label = lines[0].partition("|")[0]
        found = [match for match in map(_LABEL.fullmatch, label.split()) if match]
        taken = [match for match in found if match[2]]
        if len(taken) == 1:
            context = _features(lines[0])
            listed = [match[1] for match in found] if len(found) > 1 else None
            arm, cost, chance = taken[0].groups()
            yield Line(number, {**_renamed(context), **_outcome(arm, cost, chance, listed)})
        return
    shared = _features(lines[0]) if lines[0].startswith("shared") else {}
    actions = [_action(text) for text in lines if not text.startswith("shared")]
    taken_ones = [each for each in actions if each.cost is not None]
    if len(taken_ones) == 1:
        own = taken_ones[0]
        names = [each.name for each in actions]
        yield Line(number, {**_renamed(shared), **_outcome(own.name, own.cost, own.chance, names)})


def _action(text: str) -> _Action:
    label = text.partition("|")[0].split()
    found = _LABEL.fullmatch(label[0]) if label else None
    name = _named({each.rpartition(".")[2]: value for each, value in _features(text).items()})
    if found is None or not found[2]:
        return _Action(name)
    return _Action(name, float(found[2]), float(found[3]))


def _features(text: str) -> Record:
    """Return the features of a line: numbers, or text for what is written ``name=text``."""
    found: Record = {}
    for part in text.split("|")[1:]:
        words = part.split()
        space, scale = "", 1.0
        if words and not part[0].isspace():
            space, _, factor = words.pop(0).partition(":")
            scale = float(factor) if factor else 1.0
        for place, word in enumerate(words):
            name, _, value = word.partition(":")
            name, equals, level = (name or str(place)).partition("=")
            column = f"{space}.{name}" if space else name
            found[column] = level if equals else scale * (float(value) if value else 1.0)
    return found


def _named(features: Mapping[str, Any]) -> str:
    """Return an action in one word, or all that its features say."""
    if len(features) == 1:
        ((name, value),) = features.items()
        return str(value) if isinstance(value, str) else _feature(name, value)
    if not features:
        raise ValueError("an action has no features, so that it cannot be named")
    return " ".join(_feature(name, value) for name, value in features.items())


def _feature(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f"{name}={value}"
    return name if value == 1.0 else f"{name}:{value:g}"


def _renamed(context: Record) -> Record:
    """Return a context none of whose columns is called as an outcome is."""
    return {f"{name}_" if name in OUTCOME else name: value for name, value in context.items()}


def _outcome(arm: str, cost: Any, chance: Any, eligible: Sequence[str] | None) -> Record:
    found: Record = {"arm": arm, "reward": -float(cost) + 0.0, "propensity": float(chance)}
    if eligible is not None:
        found["eligible"] = "|".join(each.replace("|", "/") for each in eligible)
    return found


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
        filled = [cell for cell in self.cells_of(name) if not is_empty(cell)]
        return bool(filled) and all(to_number(cell) is None for cell in filled)

    def cells_of(self, name: str) -> list[Any]:
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


_NONE = object()


@dataclass(frozen=True)
class Trials:
    arm: str  # that was tried
    reward: str  # that it gave
    context: tuple[str, ...] | None = None  # what was known before; all other columns if None
    exclude: tuple[str, ...] = ()  # from the context
    propensity: str | None = None  # the probability with which the arm was chosen
    eligible: tuple[str, ...] = ()  # the arms that could have been chosen, such as a|b
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # where they are not what they seem
    missing: tuple[str, ...] = ()  # which may lack values later, though the log has them all
    censored: str | None = None  # whether the reward is at most, a cost at least, what is logged
    cost: str | None = None  # what the trial cost

    def columns(self, sheet: Sheet) -> list[str]:
        """Return the columns that are context; says nothing of a saved index that is left out."""
        named = self.arm, self.reward, self.propensity, self.censored, self.cost
        outcome = [name for name in named if name is not None]
        left_out = [*self.exclude, *self.eligible]
        for name in left_out:
            sheet.cells_of(name)  # a name that is mistyped excludes nothing
        columns = [
            name
            for name in self.context or sheet.others(outcome, quiet=True)
            if name not in left_out
        ]
        both = [name for name in columns if name in outcome]
        if both:
            raise ValueError(f"column {both[0]!r} cannot be context and outcome at once")
        if not columns:
            raise ValueError(
                f"{sheet.path}: no column is left as context beside {', '.join(map(repr, outcome))}"
            )
        check_columns([*self.kinds, *self.missing], columns)
        return columns

    def rewarded(self, sheet: Sheet) -> Sheet:
        missing = sheet.without([self.reward])
        return sheet.drop(missing) if missing else sheet

    def arms(self, sheet: Sheet) -> list[str]:
        """Return the text of the arm tried in every row."""
        arms = [str(cell).strip() for cell in sheet.cells_of(self.arm)]
        if not {"", "None", "NaN", "nan"}.isdisjoint(arms):
            row = next(i for i, arm in enumerate(arms) if arm in ("", "None", "NaN", "nan"))
            place = f"{sheet.path}, {sheet.places[row]}, column {self.arm!r}"
            raise ValueError(f"{place}: the arm tried is missing")
        return arms


def labels_of(arms: Iterable[str], *, decimal_comma: bool = False) -> dict[str, Any]:
    """Return labels of arms by their texts, in order: ints or floats if all are, else texts."""
    texts = {arm: _with_point(arm) if decimal_comma else arm for arm in sorted(set(arms))}
    if not all(map(NUMBER.fullmatch, texts.values())):
        return {text: text for text in texts}
    exact = {arm: Decimal(text) for arm, text in texts.items()}
    whole = all(text.lstrip("-").isdecimal() for text in texts.values())
    labels: dict[str, Any] = {
        arm: int(number) if whole else float(number)
        for arm, number in sorted(exact.items(), key=itemgetter(1))
    }
    precise = len(set(labels.values())) == len(set(exact.values()))
    if precise and all(map(isfinite, labels.values())):
        return labels
    return {text: text for text in texts}


def _with_point(text: str) -> str:
    return text.replace(",", ".") if COMMA.fullmatch(text) else text


def check_columns(named: Iterable[str], columns: Iterable[str]) -> None:
    for name in named:
        if name not in columns:
            raise ValueError(f"there is no context column {name!r}; there are {list(columns)}")


def eligible_arms(
    sheet: Sheet, columns: Sequence[str], arms: Sequence[Any], unknown: set[str] | None = None
) -> list[list[Any]]:
    """Return the arms in the cells, such as a|b, of each row; others go into ``unknown``."""
    written, found = Written(arms), list[list[Any]]()
    point = _with_point if sheet.decimal_comma else str
    rows = zip(*map(sheet.cells_of, columns), strict=True)
    for place, cells in zip(sheet.places, rows, strict=True):
        texts = [str(cell) for cell in cells if cell is not None]
        listed = list(dict.fromkeys(each.strip() for text in texts for each in text.split("|")))
        read = {each: written.read(each, written.read(point(each), _NONE)) for each in listed}
        if unknown is not None:
            unknown.update(each for each, label in read.items() if label is _NONE)
        found.append([label for label in dict.fromkeys(read.values()) if label is not _NONE])
        if not found[-1]:
            raise ValueError(
                f"{sheet.path}, {place}, column {', '.join(map(repr, columns))}: none of the arms "
                f"{list(written)} is eligible, got {'|'.join(texts)!r}"
            )
    return found
