"""Contexts as users pass them: as numbers that kernels take, and what is doubtful about them."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label
from contextgap.tables.columns import (
    Category,
    Columns,
    Layout,
    Number,
    Refilling,
    Renaming,
    TableSchema,
    all_numbers,
    guess_kind,
)
from contextgap.tables.table import (
    Table,
    are_mappings,
    check_distinct,
    is_blank,
    is_date,
    is_missing,
    is_number,
)


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
            first = table.learnt(cells) if learning else table
            rows, after = first.encode(cells, learning)
        schema = self if after is table else ContextSchema.of(after)
        return Intake(rows, given.single, schema)

    def picked(self, table: Table) -> Sequence[Any]:
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
            for name, value in zip(wanted or (), cells, strict=True):
                if np.ndim(value):
                    raise TypeError(
                        f"by name must hold one number each, got {value!r} for {name!r}; "
                        "use a DataFrame for a table"
                    )
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


_FEWEST = 30  # rows, below which nothing is concluded
_NEARLY = 0.9  # of the rows
_NUMBER = re.compile(r"[-+]?\d*[.,]?\d+")
_OTHER_DATE = re.compile(r"\s*\d{1,4}([/.])\d{1,2}\1\d{1,4}\b")
_LEAVE = "leave it out if it is not context"
_RARE = 10  # times as many rows that an arm has whose label another one may have meant
_MOST = 4096  # contexts by which it is judged what is usual
# Names of propensities, and names that other probabilities have too.
_PROPENSITY = re.compile(r"propensit(y|ies)|p_?scores?|(action|arm|logging)_?prob\w*")
_PERHAPS = re.compile(r"p|probs?|probabilit(y|ies)|chances?|scores?|weights?")
_LIKE_INVERSES = 0.15  # relative difference between the number of arms and the average of 1/p
# Interquartile ranges beyond which a value is no usual one. So far out are placeholders and lost
# decimal points; tails of log-normal columns with deviation 2 are not.
_REACH = 50.0
_PERFECT = 1 - 1e-12
_IN_ORDER = 0.995  # of the pairs of rows, by a category or flag
_IN_ORDER_NUMBERS = 0.999  # by a number: arms that hardly differ come close to that
_COMPARED = 600  # rows
_OTHERS = 5  # rows that must differ from the most frequent value: fewer may do so by chance


def warn_of_doubts(
    contexts: Any,
    wanted: Sequence[str] | None,
    rewards: FloatArray,
    arms: Sequence[int] | IntArray,
    *,
    guessed: bool = True,
    numbers: FloatArray | None = None,
) -> None:
    """Warn of columns that look like ids, never change, copy the arm, or give the reward away.

    And of propensities, of placeholders and, if it was ``guessed`` what columns hold, of numbers
    that are text. Of columns without names, given as ``numbers``, values far away alone are named.
    """
    if len(rewards) < _FEWEST or isinstance(contexts, Encoded):
        return
    if wanted is None:
        if numbers is not None and (limits := far_beyond(numbers)) is not None:
            _warn_of_far(numbers, limits, ContextSchema(numbers.shape[1]))
        return
    table = Table.of(contexts)
    if table.single or table.names is None:
        return
    for name, column in zip(wanted, table.picked(wanted), strict=True):
        if _is_propensity(name, column, np.asarray(arms)):
            doubts: Iterable[str] = [_AS_PROPENSITY]
        else:
            found = _doubts(column, rewards, np.asarray(arms))
            doubts = (f"{doubt}; {_LEAVE}" for doubt in found)
        for doubt in (*doubts, *_misread(column, guessed)):
            _warn(f"the column {name!r} {doubt}")


def warn_of_arms(labels: Sequence[Label], counts: IntArray) -> None:
    """Warn of a log with one arm only, and of labels that differ by case or spaces alone."""
    rows = int(counts.sum())
    tried = [place for place, count in enumerate(counts.tolist()) if count]
    if len(tried) == 1 and len(labels) > 1 and rows >= _FEWEST:
        _warn(
            f"all {rows} rows tried the arm {labels[tried[0]]!r}: nothing is known of other arms; "
            "tell rows of these too, or check which arms the rows name"
        )
    by_text: dict[str, list[int]] = {}
    for place in tried:
        if isinstance(text := labels[place], str):
            by_text.setdefault("".join(text.casefold().split()), []).append(place)
    for alike in by_text.values():
        often = max(alike, key=lambda place: counts[place])
        for place in alike:
            if counts[place] * _RARE <= counts[often]:
                times = "once" if counts[place] == 1 else f"{counts[place]} times"
                _warn(
                    f"the arm {labels[place]!r} was tried {times}, and {labels[often]!r} "
                    f"{counts[often]} times: write both the same if they are one arm, since they "
                    "differ by case or spaces alone"
                )


class Usual:
    """The range of usual contexts, computed anew when they have doubled, to check new ones by."""

    def __init__(self) -> None:
        self._after = 0
        self._limits: tuple[FloatArray, FloatArray] | None = None

    def check(self, rows: FloatArray, seen: FloatArray, schema: ContextSchema) -> None:
        if len(seen) < _FEWEST:
            return
        if len(seen) >= 2 * self._after:
            # The first contexts, told one by one, were too few to be judged when they came.
            rows = np.vstack([seen, rows]) if len(seen) == _FEWEST else rows
            every = -(-len(seen) // _MOST)
            self._limits = _usual_range(seen[::every], len(seen))
            self._after = len(seen)
        if self._limits is not None:
            low, high = self._limits
            if ((rows < low) | (rows > high)).any():
                _warn_of_far(rows, self._limits, schema)


def _warn_of_far(
    rows: FloatArray, limits: tuple[FloatArray, FloatArray], schema: ContextSchema
) -> None:
    """Name the numbers of contexts that lie outside limits; codes and dates are no numbers."""
    kinds = schema.kinds
    for name, places in schema.parts().items():
        if kinds is not None and not isinstance(kinds[name], Number):
            continue
        column = rows[:, places[0]]
        far = column[(column < limits[0][places[0]]) | (column > limits[1][places[0]])]
        if len(far):
            named = name if schema.columns is None else f"the column {name!r}"
            _warn(f"{named} {_beyond(far, missing=schema.columns is not None)}")


def _beyond(far: FloatArray, *, missing: bool) -> str:
    what = "make them missing (NaN)" if missing else "leave out their rows"
    return (
        f"has values far beyond all others, {len(far)} of them, such as {far[0]:g}; {what} if they "
        "stand for missing ones"
    )


_AS_PROPENSITY = (
    "seems to hold the probabilities with which arms were chosen, which are not known beforehand; "
    "leave it out of contexts, and give it as propensities (score(propensities=...), --propensity)"
)


def _is_propensity(name: str, column: Sequence[Any], arms: IntArray) -> bool:
    """Whether a column is a propensity, by its name and as 1/p averages the number of arms."""
    text = name.strip().casefold().replace(" ", "_").replace("-", "_")
    surely = _PROPENSITY.search(text) is not None
    if not surely and _PERHAPS.fullmatch(text) is None:
        return False
    if not all_numbers(column):
        return False
    numbers = np.asarray(column, dtype=np.float64)
    if not ((numbers > 0) & (numbers <= 1)).all() or np.ptp(numbers) == 0:
        return False
    tried = len(np.unique(arms))
    return surely or abs(float((1 / numbers).mean()) / tried - 1) <= _LIKE_INVERSES


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=level_of_user())


def _misread(column: Sequence[Any], guessed: bool) -> Iterator[str]:
    """Say what a column probably holds that it is not taken for, and what to do."""
    if all(isinstance(each, str) for each in column):
        numbers_as_text = [each for each in column if _NUMBER.fullmatch(each.strip())]
        if guessed and len(numbers_as_text) > _NEARLY * len(column):
            yield (
                "holds numbers as text, and every one counts as a level of its own; "
                "make them numbers, or categories by columns=Columns(...)"
            )
        elif guessed and (found := _other_than_dates(column)) is not None:
            yield (
                f"holds dates as text, but also {found!r}, so that every date counts as a level of "
                "its own; write all as 2024-05-31, and None for a missing value"
            )
    elif all_numbers(column):
        numbers = np.asarray(column, dtype=np.float64)
        limits = far_beyond(numbers[:, None])
        if limits is not None:
            yield _beyond(numbers[(numbers < limits[0]) | (numbers > limits[1])], missing=True)


def _other_than_dates(column: Sequence[str]) -> str | None:
    """Return the first text of a column that is no date as ISO writes it, if most look like one."""
    dates = [is_date(each) or _OTHER_DATE.match(each) is not None for each in column]
    if sum(dates) <= _NEARLY * len(column):
        return None
    return next((each for each in column if not (is_date(each) or is_blank(each))), None)


def level_of_user() -> int:
    """Return how far up the stack the user's own code is, for a warning to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("contextgap."):
        frame, level = frame.f_back, level + 1
    return level


def _doubts(column: Sequence[Any], rewards: FloatArray, arms: IntArray) -> Iterator[str]:
    numbers = np.asarray(column, dtype=np.float64) if all_numbers(column) else None
    cells = [repr(each) for each in column] if numbers is None else numbers
    _, levels = np.unique(cells, return_inverse=True)
    count = int(levels.max()) + 1
    if count == 1 or (numbers is not None and np.ptp(numbers) == 0):
        yield "has the same value in every row"
        return
    many = count > _NEARLY * len(column)
    if many and numbers is None and isinstance(guess_kind("", column), Category):
        yield "has another value in nearly every row, as an id has"
    elif numbers is not None and np.array_equal(np.diff(numbers), np.ones(len(numbers) - 1)):
        yield "numbers the rows"
    if _copies_arm(levels, arms):
        yield "is the same wherever an arm was tried, as a copy of the arm is"
        return
    revealed = _reveals(levels, count, numbers, rewards, arms)
    if revealed is None and numbers is None:
        missing = np.array([is_missing(each) for each in column], dtype=np.intp)
        revealed = None if _all_alike(missing) else _reveals(missing, 2, None, rewards, arms)
        revealed = revealed and f"has missing values, and where they are {revealed}"
    if revealed is not None:
        yield f"{revealed}, as an outcome does that is not known beforehand"


def far_beyond(columns: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the limits of usual values, if a column has others that are far beyond them.

    Usual is what is not too far from the middle half of a column's different values.
    """
    limits = np.full((2, columns.shape[1]), [[-np.inf], [np.inf]])
    deviations, (lower, upper) = columns.std(axis=0), np.quantile(columns, (0.25, 0.75), axis=0)
    for place in np.flatnonzero(deviations > _REACH * (upper - lower)):
        # Where a missing value was filled, or a flag is rare, one value may be most of the column.
        low, high = np.quantile(np.unique(columns[:, place]), (0.25, 0.75))
        reach = _REACH * (high - low)
        if deviations[place] > reach > 0:
            limits[:, place] = low - reach, high + reach
    return (limits[0], limits[1]) if np.isfinite(limits).any() else None


def _usual_range(columns: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    # A single value beyond them makes the deviation exceed what ``far_beyond`` allows.
    limits = np.full((2, columns.shape[1]), [[-np.inf], [np.inf]])
    for place, column in enumerate(columns.T):
        low, high = np.quantile(np.unique(column), (0.25, 0.75))
        reach = _REACH * (high - low) * np.sqrt(count)
        if reach > 0:
            limits[:, place] = low - reach, high + reach
    return limits[0], limits[1]


def _reveals(
    levels: IntArray, count: int, numbers: FloatArray | None, rewards: FloatArray, arms: IntArray
) -> str | None:
    """Return how far a column reveals the reward, in words; None where that is not suspicious."""
    if rewards.min() == rewards.max():
        return None
    few = count <= len(rewards) / 10
    high, low = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(high, levels, rewards)
    np.minimum.at(low, levels, rewards)
    linear = numbers is not None and abs(np.corrcoef(numbers, rewards)[0, 1]) > _PERFECT
    if linear or (few and (high == low).all()):
        return "predicts the reward perfectly"
    if len(np.unique(arms)) < 2 or _all_alike(levels) or _all_alike(rewards):
        return None
    if numbers is None and not few:
        return None
    means = np.bincount(levels, rewards) / np.bincount(levels)
    order = means[levels] if numbers is None else numbers
    rows = np.unique(np.linspace(0, len(rewards) - 1, _COMPARED).astype(np.intp))
    share = _concordance(order[rows], rewards[rows])
    if share < (_IN_ORDER if few else _IN_ORDER_NUMBERS):
        return None
    # Contexts that matter have levels whose rewards are far from those of all others. A verdict
    # cuts rewards in two wherever its threshold is, without a space between them.
    usual = max(20 * rewards.std() / len(rewards), 1.01 * np.median(np.diff(np.unique(rewards))))
    ranked = np.argsort(means)
    if few and np.median(low[ranked[1:]] - high[ranked[:-1]]) > usual:
        return None
    return f"orders {100 * share:.4g} % of pairs of rows as the reward of all arms does"


def _copies_arm(levels: IntArray, arms: IntArray) -> bool:
    tried, counts = np.unique(arms, return_counts=True)
    if len(tried) < 2 or counts.min() < _OTHERS:
        return False
    return len(np.unique(arms * (levels.max() + 1) + levels)) == len(tried)


def _all_alike(values: Any) -> bool:
    return bool(len(values) - np.unique(values, return_counts=True)[1].max() < _OTHERS)


def _concordance(first: FloatArray, second: FloatArray) -> float:
    """Return the share of pairs that differ in one of both and that the other orders, either way.

    Of the two, it is the one in which fewer pairs differ. Pairs equal in the other count half.
    """
    one, other = (np.sign(each[:, None] - each) for each in (first, second))
    fewer = min(np.count_nonzero(one), np.count_nonzero(other))
    return float(0.5 + 0.5 * abs((one * other).sum()) / fewer) if fewer else 0.0
