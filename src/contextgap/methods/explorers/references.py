"""Reference contexts that an explorer was given: read as the contexts of whoever asks it."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.tables.cells import plain
from contextgap.tables.contexts import ContextSchema, read_table
from contextgap.tables.table import Table


def read_references(references: Any) -> tuple[tuple[str, ...] | None, tuple[Any, ...]]:
    """Return the names of a table's columns, and its rows as plain values."""
    intake = read_table(references, "references")
    if intake is not None:
        return intake.schema.columns, tuple(map(tuple, intake.rows.tolist()))
    table = Table.of(references)
    columns = [[plain(cell) for cell in column] for column in table.cells]
    names = None if table.names is None else tuple(table.names)
    return names, tuple(zip(*columns, strict=True))


def named(references: Any, columns: tuple[str, ...] | None) -> Any:
    """Return the rows that ``read_references`` returned as learners read them."""
    if references is None or columns is None:
        return references
    return [dict(zip(columns, row, strict=True)) for row in references]


class ReferenceReader:
    """Reads the contexts that an explorer was given, once for every schema."""

    def __init__(self) -> None:
        self._given: Any = None
        self._schema: ContextSchema | None = None
        self._rows = np.empty((0, 0))

    def __call__(self, given: Any, schema: ContextSchema) -> FloatArray:
        """Return contexts, always the same object, as numbers."""
        if given is not self._given or schema is not self._schema:
            self._rows = schema.read(given, called="references").rows
            self._given, self._schema = given, schema
        return self._rows


def check_reference(reference: IntArray | FloatArray, dimension: int) -> None:
    """Raise unless reference contexts, if given as contexts, have as many numbers as all others."""
    if reference.ndim == 2 and reference.shape[1] != dimension:
        raise ValueError(
            f"references must have {dimension} numbers per context, as the contexts do, "
            f"got {reference.shape[1]}"
        )


def as_numbers(contexts: Any) -> FloatArray:
    """Return contexts that are numbers as an array."""
    return np.array(contexts, dtype=np.float64)
