"""The cells of what users pass as contexts, by column, before they are understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Levels(list[Any]):
    """The cells of a column that is a category whatever they look like."""


class Raw(NamedTuple):
    """Cells by column, or the cells of one row, and the names of the columns if there are any.

    ``doubtful`` names are row numbers if they are not those that were met before.
    """

    names: list[str] | None
    single: bool
    cells: Sequence[Any]
    doubtful: bool = False

    def picked(self, wanted: Sequence[str]) -> Sequence[Any]:
        """Return the cells of these columns, in this order; without names, all as they come."""
        if self.names is None:
            return self.cells
        return [self.cells[self.names.index(name)] for name in wanted]

    @property
    def by_column(self) -> list[Sequence[Any]]:
        """The columns of a table, or of a table of one row."""
        return [[cell] for cell in self.cells] if self.single else list(self.cells)


def are_mappings(contexts: Any) -> bool:
    """Whether contexts are a list of rows by name."""
    listed = isinstance(contexts, list | tuple) and len(contexts) > 0
    return listed and all(isinstance(row, Mapping) for row in contexts)


def by_name(rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    """Return the columns that all rows have; raise if one row lacks what the first one has."""
    names = [str(name) for name in rows[0]]
    cells: dict[str, list[Any]] = {name: [] for name in names}
    for place, row in enumerate(rows):
        given = {str(name): cell for name, cell in row.items()}
        for name in names:
            if name not in given:
                raise ValueError(f"lack the column {name!r} in row {place}; write None for a gap")
            cells[name].append(given[name])
    return cells


def raw_cells(contexts: Any) -> Raw:
    """Return the cells of a DataFrame, of rows by name or not, of a Series or of an array."""
    if are_mappings(contexts):
        columns = by_name(contexts)
        return Raw(list(columns), False, list(columns.values()))
    if isinstance(contexts, Mapping):
        return Raw([str(name) for name in contexts], True, list(contexts.values()))
    if hasattr(contexts, "columns") and hasattr(contexts, "to_numpy"):
        names = [str(name) for name in contexts.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"name the column {twice!r} twice")
        return Raw(names, False, [_column(contexts[name]) for name in contexts.columns])
    index = getattr(contexts, "index", None)
    if index is not None and hasattr(index, "tolist") and hasattr(contexts, "to_numpy"):
        labels = index.tolist()
        doubtful = not all(isinstance(label, str) for label in labels)
        return Raw([str(label) for label in labels], True, contexts.tolist(), doubtful)
    if isinstance(contexts, np.ndarray) and contexts.ndim == 2:
        return Raw(None, False, list(contexts.T))
    if isinstance(contexts, str) or not isinstance(contexts, Sequence | np.ndarray):
        raise TypeError(f"must be a table, a row or a mapping, got {contexts!r}")
    rows = [row for row in contexts if isinstance(row, Sequence | np.ndarray) and not _is_cell(row)]
    if not rows:
        return Raw(None, True, list(contexts))
    if len(rows) < len(contexts) or len({len(row) for row in rows}) > 1:
        raise ValueError("must have rows of equal length, got different lengths")
    return Raw(None, False, [list(column) for column in zip(*rows, strict=True)])


def _column(series: Any) -> Any:
    dtype = getattr(series, "dtype", None)
    if getattr(dtype, "time_zone", None) is not None:  # polars' array would lose the zone
        return series.to_list()
    values = np.asarray(series)
    # Of pandas, and of polars, which also writes what is in it.
    is_category = str(dtype).partition("(")[0] in ("category", "Categorical", "Enum")
    return Levels(values.tolist()) if is_category else values


def _is_cell(value: Any) -> bool:
    return isinstance(value, str) or np.ndim(value) == 0
