"""Turns what users pass as contexts (arrays, lists, DataFrames, mappings) into checked arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.tables.cells import is_number
from contextgap.tables.columns import Columns, Number
from contextgap.tables.schema import Layout, Refilling, Renaming, TableSchema
from contextgap.tables.table import Table, are_mappings, check_distinct


class Intake(NamedTuple):
    """Contexts as an array, whether the user passed only one, and the schema known after them."""

    rows: FloatArray
    single: bool
    schema: ContextSchema


class Encoded:
    """Contexts, one (1-D) or several, that were read before, with the schema they were read by."""

    def __init__(self, rows: FloatArray, schema: ContextSchema) -> None:
        self.rows, self.schema = rows, schema

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Encoded:
        return Encoded(self.rows[index], self.schema)

    def __iter__(self) -> Iterator[Encoded]:
        return (self[row] for row in range(len(self)))

    @property
    def intake(self) -> Intake:
        return Intake(np.atleast_2d(self.rows), self.rows.ndim == 1, self.schema)


@dataclass(frozen=True)
class ContextSchema:
    """How many numbers contexts have (None before the first), their names, and their kinds."""

    dimension: int | None = None
    columns: tuple[str, ...] | None = None
    table: TableSchema | None = None

    @classmethod
    def of(cls, table: TableSchema) -> ContextSchema:
        return cls(table.dimension, table.columns, table)

    @property
    def kinds(self) -> Columns | None:
        if self.table is not None:
            return self.table.kinds
        if self.columns is None or self.dimension is None:
            return None
        return Columns(dict.fromkeys(self.columns, Number()))

    @property
    def layout(self) -> Layout | None:
        """How the numbers of a context belong together; None if each stands for itself."""
        return None if self.table is None else self.table.layout

    def parts(self) -> dict[str, list[int]]:
        """Return which numbers of contexts that were seen make up each column."""
        if self.table is not None:
            return {name: self.table.numbers_of(name) for name in self.table.columns}
        names = self.columns or [f"column {place}" for place in range(self.dimension or 0)]
        return {name: [place] for place, name in enumerate(names)}

    def decode(self, rows: FloatArray) -> list[Any]:
        """Return contexts as users write them: mappings if columns have names, and else lists."""
        if self.table is not None:
            return self.table.decode(rows)
        if self.columns is not None:
            return [dict(zip(self.columns, row, strict=True)) for row in rows.tolist()]
        listed: list[Any] = rows.tolist()
        return listed

    def telling(self, rows: FloatArray) -> tuple[ContextSchema, Renaming | None]:
        if self.table is None:
            return self, None
        table, renaming = self.table.telling(rows)
        return self if table is self.table else ContextSchema.of(table), renaming

    def refilling(self, before: ContextSchema) -> Refilling | None:
        if self.table is None or before.table is None or self.table is before.table:
            return None
        return self.table.refilling(before.table)

    def told_only(self) -> ContextSchema:
        table = None if self.table is None else self.table.told_only()
        return self if table is None or table is self.table else ContextSchema.of(table)

    def read(self, contexts: Any, called: str = "contexts", *, learning: bool = False) -> Intake:
        """Return ``contexts`` as a float array, or raise an error that names what is wrong.

        One context is 1-D, a mapping or a pandas Series; a table is 2-D, a DataFrame, or a list of
        mappings. Columns are matched by name; surplus ones are ignored. Errors call the argument
        ``called``. Only if ``learning``, a first table may have columns that are no numbers; the
        schema after it knows all levels of categories.
        """
        if isinstance(contexts, Encoded):
            return contexts.intake
        try:
            if self.table is not None:
                return self._read_table(contexts, self.table, learning)
            if learning and self.dimension is None and _may_have_names(contexts):
                given, contexts = contexts, Table.of(contexts)
                if are_mappings(given) and self.columns is None:
                    _check_alike(given)
                found = _inferred(contexts, self.columns)
                if found is not None:
                    return ContextSchema.of(found)._read_table(contexts, found, learning)
            return self._read(contexts)
        except (TypeError, ValueError) as error:
            early = isinstance(error, TypeError) and self.dimension is None and not learning
            hint = "; tell rewards first: without any, only numbers can be read" if early else ""
            raise type(error)(f"{called} {error}{hint}") from None

    def _read(self, contexts: Any) -> Intake:
        names, values = self.in_order(contexts)
        array = _as_floats(values, names or self.columns)
        if array.ndim > 2:
            raise ValueError(f"must be 1-D or 2-D, got shape {array.shape}")
        single = array.ndim < 2
        rows = array.reshape(1, -1) if single else array
        self._check_dimension(rows.shape[1], single)
        _check_finite(rows, names or self.columns, single)
        known = self.dimension is not None and (names is None or self.columns is not None)
        schema = self if known else ContextSchema(rows.shape[1], self.columns or names)
        return Intake(rows, single, schema)

    def named(self, names: Any) -> ContextSchema:
        """Return the schema of the same numbers with names of columns, which had none."""
        if self.columns is not None:
            raise ValueError(f"columns have names already: {list(self.columns)}")
        names = read_names(names)
        if self.dimension is not None and len(names) != self.dimension:
            raise ValueError(
                f"columns must be {self.dimension} names, one for each number of a context, "
                f"got {len(names)}: {list(names)}"
            )
        return ContextSchema(self.dimension, names)

    def _read_table(self, contexts: Any, table: TableSchema, learning: bool) -> Intake:
        given = Table.of(contexts)
        if given.doubtful and not set(table.columns) <= set(given.names or ()):
            given = replace(given, names=None)
        cells = self.picked(given)
        if given.single:
            rows, after = table.encode_row(cells, learning)
        else:
            first = table.learnt(cells) if learning and table.is_new else table
            rows, after = first.encode(cells, learning)
        schema = self if after is table else ContextSchema.of(after)
        return Intake(rows, given.single, schema)

    def picked(self, table: Table) -> Sequence[Any]:
        """Return the cells of a table or row in the order of the columns; raise if one lacks."""
        return table.picked(() if table.names is None else self._wanted(table.names))

    def in_order(self, contexts: Any) -> tuple[tuple[str, ...] | None, Any]:
        """Return values in the order of columns, and names; numbers are some only if met before."""
        # An array is the usual case in a live loop, and recognised first.
        if type(contexts) is np.ndarray or not _may_have_names(contexts):
            return None, contexts
        labels = getattr(contexts, "columns", ())
        unnamed = self.columns is None and self.dimension is not None
        if unnamed and len(labels) and not any(isinstance(name, str) for name in labels):
            numbers = list(range(len(labels)))
            ordered = contexts[numbers] if {*labels} == {*numbers} else contexts
            return None, ordered.to_numpy()
        table = Table.of(contexts)
        names = table.names
        if table.doubtful and not (self.columns and {*self.columns} <= {*(names or ())}):
            names = None
        wanted = None if names is None else self._wanted(names)
        cells = table.cells if wanted is None else table.picked(wanted)
        if isinstance(contexts, Mapping):
            _check_one_each(wanted or (), cells)
        return wanted, cells if table.single else _by_row(cells)

    def _wanted(self, given: Sequence[str]) -> tuple[str, ...]:
        check_distinct(given)
        if given and self.columns is None and self.dimension is not None:
            raise ValueError(
                f"have columns by name, {list(given)}, but what was learnt has no names to match "
                "them with; pass an array with the columns in the order learnt, or name them: "
                "Learner(..., columns=[...]) before learning, policy.with_columns([...]) after"
            )
        if self.columns is None:
            return tuple(given)
        missing = [name for name in self.columns if name not in given]
        if missing:
            raise ValueError(f"lack the column {missing[0]!r}; they have {list(given)}")
        return self.columns

    def _check_dimension(self, dimension: int, single: bool) -> None:
        if dimension == 0:
            raise ValueError("must have at least one number each, got none")
        if self.dimension is None and self.columns is not None and dimension != len(self.columns):
            raise ValueError(
                f"must have {len(self.columns)} numbers each, one for each of the columns "
                f"{list(self.columns)}, got {dimension}"
            )
        if self.dimension is None or dimension == self.dimension:
            return
        hint = ""
        if single and self.dimension == 1:
            hint = f"; for {dimension} contexts pass an array of shape ({dimension}, 1)"
        raise ValueError(
            f"must have {self.dimension} numbers each, as before, got {dimension}{hint}"
        )


def read_columns(columns: Any) -> ContextSchema:
    if columns is None:
        return ContextSchema()
    if isinstance(columns, Mapping):
        return ContextSchema.of(TableSchema.of(Columns(columns)))
    return ContextSchema(columns=read_names(columns))


def read_names(names: Any) -> tuple[str, ...]:
    listed = names if isinstance(names, list | tuple) else ()
    if not listed or not all(isinstance(name, str) for name in listed):
        raise TypeError(
            "columns must be Columns(...), a mapping, or a list of names such as ['x', 'y'], "
            f"got {names!r}"
        )
    if len(set(listed)) < len(listed):
        raise ValueError(f"columns must have different names, got {names!r}")
    return tuple(listed)


def _may_have_names(contexts: Any) -> bool:
    """Whether contexts are mappings, a ``Table``, or a DataFrame or Series of another library."""
    if hasattr(contexts, "to_numpy"):
        return hasattr(contexts, "columns") or hasattr(getattr(contexts, "index", None), "tolist")
    return isinstance(contexts, Mapping | Table) or are_mappings(contexts)


def _check_one_each(names: Iterable[str], cells: Iterable[Any]) -> None:
    for name, value in zip(names, cells, strict=True):
        if np.ndim(value):
            raise TypeError(
                f"by name must hold one number each, got {value!r} for {name!r}; "
                "use a DataFrame for a table"
            )


def _by_row(columns: Sequence[Any]) -> Any:
    """Return columns as an array of rows: of numbers, or of objects if one of them has others."""
    if not columns:
        return np.empty((0, 0))
    if all(map(_holds_numbers, columns)):
        return np.column_stack(columns)
    objects = [np.fromiter(column, dtype=object, count=len(column)) for column in columns]
    return np.column_stack(objects)


def _holds_numbers(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "fiub"
    return set(map(type, column)) <= {float, int}


def _inferred(table: Table, wanted: tuple[str, ...] | None) -> TableSchema | None:
    """Return the schema of a first table with names; None if it is numbers throughout."""
    if table.names is None or table.doubtful:
        return None
    check_distinct(table.names)
    names = table.names if wanted is None else wanted
    if not set(names) <= set(table.names):
        return None  # what is missing is said later
    columns = table.by_column
    return TableSchema.inferred(names, [columns[table.names.index(each)] for each in names])


def _check_alike(rows: Sequence[Mapping[Any, Any]]) -> None:
    names = {str(name) for name in rows[0]}
    for place, row in enumerate(rows):
        for name in row:
            if str(name) not in names:
                raise ValueError(
                    f"have the column {str(name)!r} in row {place} but not in row 0; write None "
                    "for a missing value"
                )


def read_table(contexts: Any, called: str) -> Intake | None:
    """Read a table before columns are known; None if it is not numbers throughout."""
    try:
        intake = ContextSchema().read(contexts, called=called)
        single, count = intake.single, len(intake.rows)
    except (TypeError, ValueError) as error:
        try:
            table = Table.of(contexts)
        except (TypeError, ValueError):
            raise error from None
        numbers = all(isinstance(cell, Real) for column in table.by_column for cell in column)
        if table.names is None and numbers:
            raise
        intake, single, count = None, table.single, len(table)
    if single or not count:
        raise ValueError(f"{called} must be a table of contexts (2-D) with at least one row")
    return intake


def row_of(table: Any, row: int) -> Any:
    """Return one row of a table of contexts, as the user would write it."""
    if hasattr(table, "iloc"):  # pandas
        return table.iloc[row]
    if hasattr(table, "row"):  # polars
        return table.row(row, named=True)
    return table[row]


def _as_floats(values: Any, names: tuple[str, ...] | None) -> FloatArray:
    if type(values) is np.ndarray and values.dtype == np.float64:  # the usual case, handled first
        return values.copy()
    if np.ma.is_masked(values):
        raise ValueError("must have no missing values, got masked entries")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError("must have rows of equal length, got different lengths") from None
    if array.dtype.kind in "mM":  # as objects, times would be numbers of nanoseconds
        array = np.fromiter(array.flat, dtype=object, count=array.size).reshape(array.shape)
    elif array.dtype.kind in "cSUV":
        array = np.asarray(values, dtype=object)  # the values as they were given
    if array.dtype == object and (bad := _first_bad(array, names)):
        raise TypeError(f"must be numbers, got {bad}")
    try:
        return np.array(array, dtype=np.float64, order="C")  # a copy: users reuse their arrays
    except OverflowError:
        raise ValueError("must be finite, got a number too large for a float") from None
    except (TypeError, ValueError):
        raise TypeError(f"must be numbers, got {values!r}") from None


def _first_bad(array: Any, names: tuple[str, ...] | None) -> str:
    """Describe the first entry that is not a number; a None in a table becomes NaN, found later."""
    for place, value in np.ndenumerate(array):
        missing = value is None and place
        if not missing and not is_number(value) and not isinstance(value, bool | np.bool_):
            return f"{value!r}{_place(place, names)}"
    return ""


def _check_finite(rows: FloatArray, names: tuple[str, ...] | None, single: bool) -> None:
    if math.isfinite(np.vdot(rows, rows)):  # the usual case, handled first
        return
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        where = _place((column,) if single else (row, column), names)
        hint = ""
        if names and np.isnan(rows[row, column]):
            allowed = f"{names[column]!r}: Number(missing=True)"
            hint = f"; to allow missing values, give columns with {allowed}"
        raise ValueError(f"must be finite, got {rows[row, column]}{where}{hint}")


def _place(place: tuple[int, ...], names: tuple[str, ...] | None) -> str:
    if not place:
        return ""
    column = f"column {names[place[-1]]!r}" if names else f"column {place[-1]}"
    return f" in {column}" if len(place) == 1 else f" in row {place[0]}, {column}"
