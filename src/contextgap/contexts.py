"""Contexts as users have them (arrays, lists, DataFrames, rows by name) as checked arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.arrays import FloatArray


@dataclass(frozen=True)
class Intake:
    """Contexts that have been read.

    Parameters
    ----------
    rows
        One context per row.
    single
        Whether the user passed one context rather than a table of them.
    schema
        What is known about contexts after these.
    """

    rows: FloatArray
    single: bool
    schema: ContextSchema


@dataclass(frozen=True)
class ContextSchema:
    """How many numbers a context has and, if they came in a DataFrame, what they are called.

    Parameters
    ----------
    dimension
        Numbers per context; None until the first context is seen.
    columns
        Names in order, for contexts that came with names.
    """

    dimension: int | None = None
    columns: tuple[str, ...] | None = None

    def read(self, contexts: Any) -> Intake:
        """Return ``contexts`` as a float array, or raise an error that names what is wrong.

        Parameters
        ----------
        contexts
            One context (1-D, a mapping or a pandas Series by name) or a table of them (2-D, a
            pandas or polars DataFrame). Names are matched, reordered and, if surplus, ignored.
        """
        names, values = self._by_name(contexts)
        array = _as_floats(values, names)
        if array.ndim > 2:
            raise ValueError(f"contexts must be 1-D or 2-D, got shape {array.shape}")
        single = array.ndim < 2
        rows = array.reshape(1, -1) if single else array
        self._check_dimension(rows.shape[1], single)
        _check_finite(rows, names or self.columns, single)
        schema = ContextSchema(rows.shape[1], self.columns or names)
        return Intake(rows, single, schema)

    def _by_name(self, contexts: Any) -> tuple[tuple[str, ...] | None, Any]:
        if isinstance(contexts, Mapping):
            given = [str(name) for name in contexts]
            wanted = self._wanted(given)
            return wanted, [contexts[name] for name in wanted]
        if hasattr(contexts, "columns") and hasattr(contexts, "to_numpy"):
            wanted = self._wanted([str(name) for name in contexts.columns])
            positions = [[str(name) for name in contexts.columns].index(name) for name in wanted]
            picked = contexts[[contexts.columns[position] for position in positions]]
            return wanted, picked.to_numpy()
        index = getattr(contexts, "index", None)
        if index is not None and hasattr(index, "tolist") and hasattr(contexts, "to_numpy"):
            given = [str(name) for name in index.tolist()]
            if self.columns is not None:
                wanted = self._wanted(given)
                return wanted, contexts.to_numpy()[[given.index(name) for name in wanted]]
            return tuple(given), contexts.to_numpy()
        return None, contexts

    def _wanted(self, given: list[str]) -> tuple[str, ...]:
        if self.columns is None:
            return tuple(given)
        missing = [name for name in self.columns if name not in given]
        if missing:
            raise ValueError(f"contexts lack the column {missing[0]!r}; they have {given}")
        return self.columns

    def _check_dimension(self, dimension: int, single: bool) -> None:
        if dimension == 0:
            raise ValueError("contexts must have at least one number each, got none")
        if self.dimension is None or dimension == self.dimension:
            return
        hint = ""
        if single and self.dimension == 1:
            hint = f"; for {dimension} contexts pass an array of shape ({dimension}, 1)"
        raise ValueError(
            f"contexts must have {self.dimension} numbers each, as before, got {dimension}{hint}"
        )


def _as_floats(values: Any, names: tuple[str, ...] | None) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind in "cmMSUV":
        raise TypeError(f"contexts must be numbers, got {array.ravel()[:1].tolist()!r}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError):
        raise TypeError(f"contexts must be numbers, got {_first_bad(array, names)}") from None


def _first_bad(array: Any, names: tuple[str, ...] | None) -> str:
    for place, value in np.ndenumerate(array):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"{value!r}{_place(place, names)}"
    return "rows of different lengths"


def _check_finite(rows: FloatArray, names: tuple[str, ...] | None, single: bool) -> None:
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        where = _place((column,) if single else (row, column), names)
        raise ValueError(f"contexts must be finite, got {rows[row, column]}{where}")


def _place(place: tuple[int, ...], names: tuple[str, ...] | None) -> str:
    if not place:
        return ""
    column = f"column {names[place[-1]]!r}" if names else f"column {place[-1]}"
    return f" in {column}" if len(place) == 1 else f" in row {place[0]}, {column}"
