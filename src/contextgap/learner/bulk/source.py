"""Where rows come from: files, or the partitions of a Dask DataFrame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextgap.tables.files import BLOCK, Part, Sheet, count_rows, files_named, parts_of, sheet_of


@dataclass(frozen=True)
class Partition:
    """Rows that are read in one place.

    Parameters
    ----------
    rows
        A part of a file, or a partition of a Dask DataFrame, which may still have to be computed.
    number
        The number of its file, or of the partition, among all.
    first
        How many rows of the file come before.
    size
        How many rows there are, about; 1 for a partition of a Dask DataFrame, where it is unknown.
    """

    rows: Any
    number: int
    first: int = 0
    size: int = 1

    def blocks(self) -> Iterator[Sheet]:
        """Yield the rows as tables."""
        if isinstance(self.rows, Part):
            yield from self.rows.blocks()
            return
        name = Path(f"partition {self.number}")
        for first in range(0, len(self.rows), BLOCK):
            yield sheet_of(self.rows.iloc[first : first + BLOCK], name, first)


def partitions_of(source: Any, separator: str | None = None) -> list[Partition]:
    """Return the partitions of files, given by names or patterns, or of a Dask DataFrame."""
    if hasattr(source, "to_delayed"):
        return [Partition(rows, number) for number, rows in enumerate(source.to_delayed())]
    if isinstance(source, str | os.PathLike):
        source = [source]
    if hasattr(source, "columns"):
        raise TypeError(
            "source must be files or a Dask DataFrame, got a table in memory; Learner(arms).fit "
            "learns from one"
        )
    if not isinstance(source, Iterable):
        raise TypeError(f"source must be files or a Dask DataFrame, got {source!r}")
    found = []
    for number, path in enumerate(files_named(source)):
        parts = parts_of(path, separator)
        ends = [*(part.first for part in parts[1:]), count_rows(path)]
        found += [
            Partition(part, number, part.first, end - part.first)
            for part, end in zip(parts, ends, strict=True)
        ]
    if not found:
        raise ValueError("source must name at least one file, got none")
    return found
