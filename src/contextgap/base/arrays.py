"""Array types, an append-only array, and evenly spread samples."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]


class Rows:
    """An append-only array; ``row_shape`` is the shape of one row, nothing for a plain vector.

    Appending leaves earlier views unchanged for ever, so a frozen policy needs no copies.
    """

    def __init__(self, *row_shape: int, dtype: Any = np.float64) -> None:
        # np.empty touches no memory, so unused capacity is not resident.
        self._buffer = np.empty((16, *row_shape), dtype=dtype)
        self.view: NDArray[Any] = self._buffer[:0]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Rows:
        rows = cls(*values.shape[1:], dtype=values.dtype)
        rows.extend(values)
        return rows

    def __len__(self) -> int:
        return len(self.view)

    def append(self, row: ArrayLike) -> None:
        size = len(self.view)
        self._reserve(size + 1)
        self._buffer[size] = row
        self.view = self._buffer[: size + 1]

    def extend(self, rows: NDArray[Any]) -> None:
        size = len(self.view)
        self._reserve(size + len(rows))
        self._buffer[size : size + len(rows)] = rows
        self.view = self._buffer[: size + len(rows)]

    def truncate(self, size: int) -> None:
        self.view = self._buffer[:size]

    def _reserve(self, size: int) -> None:
        if size > len(self._buffer):
            grown = np.empty(
                (max(size, 2 * len(self._buffer)), *self._buffer.shape[1:]), self._buffer.dtype
            )
            grown[: len(self.view)] = self.view
            self._buffer = grown


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def evenly(places: IntArray, most: int) -> IntArray:
    if len(places) <= most:
        return places
    return np.asarray(places[np.linspace(0, len(places) - 1, most).round().astype(np.intp)])
