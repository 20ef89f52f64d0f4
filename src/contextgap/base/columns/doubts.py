"""Columns of a first table that are probably not meant to be context."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.columns.cells import is_blank, is_gap
from contextgap.base.columns.far import far_beyond
from contextgap.base.columns.inference import all_numbers, guess_kind, is_date
from contextgap.base.columns.kinds import Category
from contextgap.base.columns.leaks import copies_arm, filling_reveals, reveals
from contextgap.base.columns.raw import raw_cells
from contextgap.base.contexts import Encoded

_FEWEST = 30  # rows, below which nothing is concluded
_NEARLY = 0.9  # of the rows
_NUMBER = re.compile(r"[-+]?\d*[.,]?\d+")
_OTHER_DATE = re.compile(r"\s*\d{1,4}([/.])\d{1,2}\1\d{1,4}\b")
_LEAVE = "leave it out if it is not context"


def warn_of_doubts(
    contexts: Any,
    wanted: Sequence[str] | None,
    rewards: FloatArray,
    arms: Sequence[int] | IntArray,
    *,
    guessed: bool = True,
) -> None:
    """Warn of columns that look like ids, never change, copy the arm, or give the reward away.

    And, if it was ``guessed`` what they hold, of numbers that are text; and of placeholders.
    """
    if wanted is None or len(rewards) < _FEWEST or isinstance(contexts, Encoded):
        return
    raw = raw_cells(contexts)
    if raw.single or raw.names is None:
        return
    for name, column in zip(wanted, raw.picked(wanted), strict=True):
        doubts = (f"{doubt}; {_LEAVE}" for doubt in _doubts(column, rewards, np.asarray(arms)))
        for doubt in (*doubts, *_misread(column, guessed)):
            warnings.warn(f"the column {name!r} {doubt}", stacklevel=level_of_user())


def _misread(column: Sequence[Any], guessed: bool) -> Iterator[str]:
    """Say what a column probably holds that it is not taken for, and what to do."""
    if all(isinstance(each, str) for each in column):
        if guessed and sum(map(_reads_as_number, column)) > _NEARLY * len(column):
            yield (
                "holds numbers as text, and every one counts as a level of its own; "
                "make them numbers, or categories by columns=Columns(...)"
            )
        elif guessed and (found := _other_than_dates(column)) is not None:
            yield (
                f"holds dates as text, but also {found!r}, so that every date counts as a level of "
                "its own; write all as 2024-05-31, and None for a gap"
            )
    elif all_numbers(column):
        numbers = np.asarray(column, dtype=np.float64)
        limits = far_beyond(numbers[:, None])
        if limits is not None:
            far = numbers[(numbers < limits[0]) | (numbers > limits[1])]
            yield (
                f"has values far beyond all others, {len(far)} of them, such as {far[0]:g}; "
                "make them gaps (NaN) if they stand for missing ones"
            )


def _other_than_dates(column: Sequence[str]) -> str | None:
    """Return the first text of a column that is no date as ISO writes it, if most look like one."""
    dates = [is_date(each) or _OTHER_DATE.match(each) is not None for each in column]
    if sum(dates) <= _NEARLY * len(column):
        return None
    return next((each for each in column if not (is_date(each) or is_blank(each))), None)


def _reads_as_number(text: str) -> bool:
    return _NUMBER.fullmatch(text.strip()) is not None


def level_of_user() -> int:
    """Return how far up the stack the user's own code is, for a warning to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str | None) -> bool:
    return module is not None and module.startswith("contextgap.")


def _doubts(column: Sequence[Any], rewards: FloatArray, arms: IntArray) -> Iterator[str]:
    _, levels = np.unique([repr(each) for each in column], return_inverse=True)
    count = int(levels.max()) + 1
    numbers = np.asarray(column, dtype=np.float64) if all_numbers(column) else None
    if count == 1 or (numbers is not None and np.ptp(numbers) == 0):
        yield "has the same value in every row"
        return
    many = count > _NEARLY * len(column)
    if many and numbers is None and isinstance(guess_kind("", column), Category):
        yield "has another value in nearly every row, as an id has"
    elif numbers is not None and np.array_equal(np.diff(numbers), np.ones(len(numbers) - 1)):
        yield "numbers the rows"
    if copies_arm(levels, arms):
        yield "is the same wherever an arm was tried, as a copy of the arm is"
        return
    revealed = reveals(levels, count, numbers, rewards, arms)
    if revealed is None and numbers is None:
        missing = np.array([is_gap(each) for each in column], dtype=np.intp)
        revealed = filling_reveals(missing, rewards, arms)
        revealed = revealed and f"has gaps, and where they are {revealed}"
    if revealed is not None:
        yield f"{revealed}, as an outcome does that is not known beforehand"
