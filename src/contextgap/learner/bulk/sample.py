"""A sample of a log's rows that covers all contexts, wherever they stand, and all arms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.tables.files import Sheet, joined

SAMPLE = 2**17
"""Rows of a log that are looked at one by one; a log of no more is learnt from as a whole."""

# Rows that were simulated with the seed of a small number must not go with our random numbers.
_UNLIKE = 0x5EED_0F_5A3B1E


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows with the lowest of random numbers: of all rows, and of every arm.

    Which rows these are depends on their places in the files alone, so samples of partitions can be
    added in any grouping.

    Parameters
    ----------
    sheets
        The rows, in the order of the log.
    draws
        A random number for each row.
    arms
        The text of the arm of each row.
    most
        So many rows are kept of all.
    of_an_arm
        So many rows are kept of every arm, if there are so many; None for all.
    """

    sheets: tuple[Sheet, ...]
    draws: FloatArray
    arms: tuple[str, ...]
    most: int
    of_an_arm: int | None

    def __len__(self) -> int:
        return len(self.draws)

    def __add__(self, other: Sample) -> Sample:
        both = self.sheets + other.sheets
        draws = np.concatenate([self.draws, other.draws])
        together = Sample(both, draws, self.arms + other.arms, self.most, self.of_an_arm)
        return together.thinned() if len(together) > 2 * self.most else together

    def thinned(self) -> Sample:
        """Return the rows that are kept for good."""
        if self.of_an_arm is None or len(self) <= self.most:
            return self
        codes = np.unique(self.arms, return_inverse=True)[1]
        order = np.lexsort((self.draws, codes))  # by arm, then by draw
        first = np.searchsorted(codes[order], codes[order])
        rank = np.empty(len(self), dtype=np.intp)
        rank[order] = np.arange(len(self)) - first
        kept = rank < self.of_an_arm
        kept[self.uniform()] = True
        places, before, sheets = np.flatnonzero(kept), 0, list[Sheet]()
        for sheet in self.sheets:
            own = places[(places >= before) & (places < before + len(sheet))] - before
            before += len(sheet)
            if len(own):
                sheets.append(sheet.take(own.tolist()))
        arms = tuple(self.arms[place] for place in places.tolist())
        return Sample(tuple(sheets), self.draws[places], arms, self.most, self.of_an_arm)

    def uniform(self) -> IntArray:
        """Return the places of a uniform sample of all rows, in order."""
        return np.sort(np.argsort(self.draws, kind="stable")[: self.most])

    def sheet(self) -> Sheet:
        """Return the rows as one table."""
        return joined(self.sheets)


def draws_for(number: int, first: int, rows: int) -> FloatArray:
    """Return the random numbers of some rows of a file, the same however it is read."""
    source = np.random.PCG64(np.random.SeedSequence([number, _UNLIKE]))
    source.advance(first)
    return np.random.Generator(source).random(rows)
