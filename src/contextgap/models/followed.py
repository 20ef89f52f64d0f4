"""Reference points that come and go, at which an arm's posterior is followed."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray


class Followed:
    """One arm's posterior at reference points that come and go, followed row by row.

    Keeps V = L⁻¹K(arm's contexts, points). An observation adds a row, from its row of L, at the
    price of one matrix–vector product; a point adds a column. The posterior covariances between
    the points and a context with v = L⁻¹k are then k(x, points) − v·V.
    """

    def __init__(self) -> None:
        self.size = 0  # rows, those of assumed observations included
        self.fit = np.empty(0)  # the mean for prior mean 0
        self.ones = np.empty(0)  # the fit to rewards that are all 1
        self._buffer = np.empty((16, 16))

    @property
    def rows(self) -> FloatArray:
        """V, shape (observations, points)."""
        return self._buffer[: self.size, : len(self.fit)]

    def observe(
        self, factor_row: FloatArray, values: FloatArray, error: float, ones_error: float
    ) -> None:
        """Add an observation: its row of L, its kernel values at the points, its entries of z, w.

        An assumed observation's entries are 0: it shrinks covariances and leaves the mean.
        """
        row = (values - factor_row[:-1] @ self.rows) / factor_row[-1]
        self._reserve(self.size + 1, len(row))
        self._buffer[self.size, : len(row)] = row
        self.size += 1
        self.fit += row * error
        self.ones += row * ones_error

    def add(self, columns: FloatArray, z: FloatArray, w: FloatArray) -> None:
        """Add points with these columns of V; z and w may be shorter, by assumed observations."""
        if not len(self.fit):
            self.size = len(columns)  # without points, rows are empty and need no catching up
        first, end = len(self.fit), len(self.fit) + columns.shape[1]
        self._reserve(self.size, end)
        self._buffer[: self.size, first:end] = columns
        self.fit = np.concatenate([self.fit, z @ columns[: len(z)]])
        self.ones = np.concatenate([self.ones, w @ columns[: len(w)]])

    def keep(self, which: IntArray) -> None:
        """Forget all points but some."""
        self._buffer[: self.size, : len(which)] = self.rows[:, which]
        self.fit, self.ones = self.fit[which], self.ones[which]

    def truncate(self, size: int) -> None:
        """Forget the rows of assumed observations, which are the last."""
        self.size = min(self.size, size)

    def mean(self, prior: float) -> FloatArray:
        """Return the posterior mean at the points."""
        return self.fit if prior == 0 else self.fit + prior * (1.0 - self.ones)

    def _reserve(self, rows: int, columns: int) -> None:
        shape = self._buffer.shape
        if rows > shape[0] or columns > shape[1]:
            longer = max(shape[0], 2 * rows if rows > shape[0] else 0)
            wider = max(shape[1], 2 * columns if columns > shape[1] else 0)
            grown = np.empty((longer, wider))
            grown[: shape[0], : shape[1]] = self._buffer
            self._buffer = grown


def carried_over(
    old: IntArray | FloatArray, new: IntArray | FloatArray
) -> tuple[IntArray, IntArray]:
    """Return which of the old reference points to keep, and which of the new to add after them.

    Points are places in a sequence, of which some usually stay, or an array of their own.
    """
    everything = np.arange(len(new))
    if old is new or (old.dtype == new.dtype and np.array_equal(old, new)):
        return everything, everything[:0]
    if old.dtype.kind == new.dtype.kind == "i":
        kept, added = np.flatnonzero(np.isin(old, new)), np.flatnonzero(~np.isin(new, old))
        if np.array_equal(np.concatenate([old[kept], new[added]]), new):
            return kept, added
    return everything[:0], everything
