"""The columns of tables: kinds that users give, or that a first table suggests."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import Enum
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.components import Component
from contextgap.base.names import renamed
from contextgap.tables.cells import is_blank, is_date, is_missing, is_number, is_truth
from contextgap.tables.table import Levels, Table

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
        object.__setattr__(self, "period", period)


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
        object.__setattr__(self, "cycles", given)


_BY_NAME = {"number": Number, "category": Category, "date": Date}


def read_kind(column: str, kind: Any) -> Kind:
    """Return a kind of column from itself or its name."""
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
    """Whether a column holds numbers alone, none of them missing."""
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
    """Raise unless cells are all text, or all numbers and truth values."""
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
