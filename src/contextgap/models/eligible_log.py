"""Which arms were eligible at each observation, where that was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import IntArray, Rows
from contextgap.tables.eligible import Mask

# Indices of arms, ascending; None where nothing was said and every arm counts as eligible.
Eligible: TypeAlias = tuple[int, ...] | None


class EligibleLog:
    """The eligible arms of every observation; each different set is kept once.

    ``sequence`` holds the number of a set for each observation, −1 for none. It may be shorter than
    the observations: nothing was said about those behind it.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}  # of the sets, in order
        self._sequence = Rows(dtype=np.intp)

    def __bool__(self) -> bool:
        return len(self._sequence) > 0

    def note(self, first: int, sets: Sequence[Eligible]) -> None:
        """Remember the sets of observations number ``first``, ``first`` + 1, ..."""
        known = self._numbers
        found = [-1 if each is None else known.setdefault(each, len(known)) for each in sets]
        self._sequence.extend(np.full(first - len(self._sequence), -1, dtype=np.intp))
        self._sequence.extend(np.array(found, dtype=np.intp))

    def truncate(self, size: int) -> None:
        """Forget the sets of all observations from number ``size`` on."""
        self._sequence.truncate(min(size, len(self._sequence)))

    def mask(self, places: IntArray, n_arms: int) -> Mask:
        """Return which arms were eligible at some observations, shape (places, arms)."""
        # The last row, which −1 stands for, is that of observations without a set.
        table = np.vstack([self._table(n_arms), np.ones(n_arms, dtype=bool)])
        sequence = np.full(max(len(self._sequence), int(places.max(initial=-1)) + 1), -1)
        sequence[: len(self._sequence)] = self._sequence.view
        return np.asarray(table[sequence[places]])

    def snapshot(self) -> Self:
        """Return a copy that later observations do not show in."""
        copy = type(self)()
        copy._numbers, copy._sequence = dict(self._numbers), Rows.of(self._sequence.view)
        return copy

    def arrays(self, n_arms: int) -> dict[str, NDArray[Any]]:
        """Return the log as arrays, for a file; none if nothing was said."""
        if not self:
            return {}
        return {"eligible": self._table(n_arms), "eligible_sequence": self._sequence.view}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], arms: IntArray, n_arms: int) -> Self:
        """Return the log that ``arrays`` was called on; ``arms`` are those that were observed.

        Raises ``ValueError`` if it is invalid.
        """
        log = cls()
        there = {"eligible", "eligible_sequence"} & set(arrays)
        if not there:
            return log
        if len(there) == 1:
            raise ValueError("the sets of eligible arms are not complete")
        table, sequence = arrays["eligible"], arrays["eligible_sequence"]
        if table.dtype != np.bool_ or table.ndim != 2 or table.shape[1] != n_arms:
            raise ValueError("the sets of eligible arms do not match the arms")
        if sequence.ndim != 1 or sequence.dtype.kind != "i" or len(sequence) > len(arms):
            raise ValueError("the sequence of eligible arms does not match the observations")
        if len(sequence) and not (sequence.min() >= -1 and sequence.max() < len(table)):
            raise ValueError("the sequence of eligible arms names a set that does not exist")
        log._numbers = {
            tuple(np.flatnonzero(row).tolist()): number for number, row in enumerate(table)
        }
        if len(log._numbers) != len(table):
            raise ValueError("a set of eligible arms is there twice")
        log._sequence = Rows.of(sequence.astype(np.intp))
        places = np.arange(len(sequence))
        if not log.mask(places, n_arms)[places, arms[: len(sequence)]].all():
            raise ValueError("an arm was observed where it was not eligible")
        return log

    def _table(self, n_arms: int) -> Mask:
        table = np.zeros((len(self._numbers), n_arms), dtype=bool)
        for row, each in zip(table, self._numbers, strict=True):
            row[list(each)] = True
        return table
