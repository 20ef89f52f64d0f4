"""Columns of a first table that are probably not meant to be context."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.columns.cells import is_gap
from contextgap.base.columns.inference import all_numbers, guess_kind
from contextgap.base.columns.kinds import Category
from contextgap.base.columns.leaks import copies_arm, filling_reveals, reveals
from contextgap.base.columns.raw import raw_cells
from contextgap.base.contexts import Encoded

_FEWEST = 30  # rows, below which nothing is concluded
_NEARLY = 0.9  # of the rows


def warn_of_doubts(
    contexts: Any,
    wanted: Sequence[str] | None,
    rewards: FloatArray,
    arms: Sequence[int] | IntArray,
) -> None:
    """Warn of columns that look like ids, never change, copy the arm, or give the reward away."""
    if wanted is None or len(rewards) < _FEWEST or isinstance(contexts, Encoded):
        return
    raw = raw_cells(contexts)
    if raw.single or raw.names is None:
        return
    for name, column in zip(wanted, raw.picked(wanted), strict=True):
        for doubt in _doubts(column, rewards, np.asarray(arms)):
            message = f"the column {name!r} {doubt}; leave it out if it is not context"
            warnings.warn(message, stacklevel=_level_of_user())


def _level_of_user() -> int:
    """Return how far up the stack the user's own code is, for a warning to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("contextgap."):
        frame, level = frame.f_back, level + 1
    return level


def _doubts(column: Sequence[Any], rewards: FloatArray, arms: IntArray) -> Iterator[str]:
    _, levels = np.unique([repr(each) for each in column], return_inverse=True)
    count = int(levels.max()) + 1
    numbers = np.asarray(column, dtype=np.float64) if all_numbers(column) else None
    if count == 1:
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
