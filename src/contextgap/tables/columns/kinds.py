"""What a column of a table holds: numbers, categories, points on a cycle, or dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from contextgap.base import checks
from contextgap.base.components import Component

CYCLES = {"day": 1.0, "week": 7.0, "year": 365.2425}
"""Lengths in days of the cycles that dates may have."""


@dataclass(frozen=True, kw_only=True)
class Kind(Component):
    """What a column holds, and whether cells may be missing."""

    gaps: bool = False
    noun: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.gaps, bool):
            raise TypeError(f"gaps must be True or False, got {self.gaps!r}")


@dataclass(frozen=True, kw_only=True)
class Number(Kind):
    """A column of numbers.

    Parameters
    ----------
    gaps
        Whether cells may be missing. A gap counts as the median, beside a column that says where
        gaps are, with a bandwidth of its own: that a number is missing may mean something.
    """

    noun: ClassVar[str] = "a number"


@dataclass(frozen=True, kw_only=True)
class Category(Kind):
    """A column of labels without order: two are the same, or they are not.

    Parameters
    ----------
    gaps
        Whether cells may be missing. A gap is a level of its own.
    """

    noun: ClassVar[str] = "text, a truth value or a number"


@dataclass(frozen=True)
class Cyclic(Kind):
    """A column of numbers that come back to where they began, such as the hour of a day.

    Parameters
    ----------
    period
        After how much the same comes again: 24 for hours.
    gaps
        Whether cells may be missing. A gap is as far from all points of the cycle.
    """

    period: float
    noun: ClassVar[str] = "a number"

    def __post_init__(self) -> None:
        super().__post_init__()
        period = checks.positive("period", self.period, "24 for the hours of a day")
        object.__setattr__(self, "period", period)


@dataclass(frozen=True)
class Date(Kind):
    """A column of dates or times, as a trend and, where asked for, with cycles.

    Parameters
    ----------
    cycles
        Any of "day", "week" and "year".
    gaps
        Whether cells may be missing, as for ``Number``.
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
