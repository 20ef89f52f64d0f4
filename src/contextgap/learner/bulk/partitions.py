"""Partitions of a log, and one map and one sum over them: here, in processes, or on a Dask cluster.

Sums are made in the order of the partitions, eight at a time and those again eight at a time, so
that the result does not depend on who finishes first, nor on where the work is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from contextgap.base.names import study_import
from contextgap.tables.files import BLOCK, Part, Sheet, count_rows, files_named, parts_of, sheet_of

T = TypeVar("T")
Work: TypeAlias = Callable[[Any], T | None]  # None where there is nothing to add
Progress: TypeAlias = Callable[[int, int], None]

_AT_ONCE = 8  # summands of a sum


@dataclass(frozen=True)
class Partition:
    """Rows that are read in one place."""

    rows: Any  # part of a file, or partition of a Dask DataFrame, perhaps still to be computed
    number: int  # the number of its file, or of the partition, among all
    first: int = 0  # how many rows of the file come before
    size: int = 1  # about how many rows there are; unknown for a Dask DataFrame

    def blocks(self) -> Iterator[Sheet]:
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


def map_and_sum(
    work: Work[T],
    partitions: Sequence[Partition],
    executor: Any = None,
    progress: Progress | None = None,
) -> T:
    """Return the sum of what ``work`` makes of each partition; the workers of a Dask client sum."""
    ticks = _Ticks(sum(each.size for each in partitions), progress)
    if executor is None:
        total = _summed(work(_Watched(each, ticks)) for each in partitions)
    elif hasattr(executor, "get_executor"):  # a Dask client
        total = _on_cluster(work, partitions, executor, ticks)
    elif isinstance(executor, Executor):
        total = _summed(_in_order(work, partitions, executor, ticks))
    else:
        raise TypeError(f"executor must be a Dask client or an Executor, got {executor!r}")
    if total is None:
        raise ValueError("the log has no rows")
    return total


class _Ticks:
    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def __call__(self, rows: int) -> None:
        self._done += rows
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done))


class _Watched:
    """A partition whose rows are counted while they are read."""

    def __init__(self, partition: Partition, ticks: _Ticks) -> None:
        self._ticks, self.number, self.first = ticks, partition.number, partition.first
        if hasattr(partition.rows, "compute"):
            partition = replace(partition, rows=partition.rows.compute(scheduler="synchronous"))
        self._partition = partition

    def blocks(self) -> Iterator[Sheet]:
        for sheet in self._partition.blocks():
            yield sheet
            self._ticks(len(sheet))


def _in_order(
    work: Work[T], partitions: Sequence[Partition], executor: Executor, ticks: _Ticks
) -> Iterator[T | None]:
    for partition in partitions:
        if hasattr(partition.rows, "compute"):
            raise TypeError("a Dask DataFrame needs a Dask client as executor, or none")
    results = executor.map(work, partitions)
    for partition, result in zip(partitions, results, strict=True):
        ticks(partition.size)
        yield result


def _summed(results: Iterable[T | None]) -> T | None:
    """Return the sum of results in order, keeping one for each level of sums."""
    levels: list[T | None] = []
    for number, result in enumerate(results, start=1):
        level, total = 0, result
        while True:
            if level == len(levels):
                levels.append(None)
            total = _sum([levels[level], total])
            if number % _AT_ONCE ** (level + 1):
                levels[level] = total
                break
            levels[level] = None  # eight are together, and one summand of the next level
            level += 1
    left: T | None = None
    for waiting in levels:
        left = _sum([waiting, left])
    return left


def _on_cluster(
    work: Work[T], partitions: Sequence[Partition], client: Any, ticks: _Ticks
) -> T | None:
    # Submitted, not scattered: what a killed worker held can then be made again.
    shared = client.submit(_same, work, pure=False)
    leaves, sizes = [], {}
    for partition in partitions:
        rows = partition.rows
        rows = client.compute(rows) if hasattr(rows, "compute") else rows
        future = client.submit(_work_on, shared, replace(partition, rows=None), rows, pure=False)
        leaves.append(future)
        sizes[future.key] = partition.size
    level = leaves
    while len(level) > 1:
        groups = [level[first : first + _AT_ONCE] for first in range(0, len(level), _AT_ONCE)]
        level = [client.submit(_sum, group, pure=False) for group in groups]
    finished = study_import("distributed", "dask").as_completed(leaves)
    (total,) = level
    del leaves, level, rows, future  # what is summed need not be kept
    for each in finished:
        if each.status == "error":
            each.result()  # raises what went wrong there
        ticks(sizes[each.key])
        del each
    result: T | None = total.result()
    return result


def _same(value: T) -> T:
    return value


def _work_on(work: Work[T], partition: Partition, rows: Any) -> T | None:
    return work(replace(partition, rows=rows))


def _sum(results: Sequence[T | None]) -> T | None:
    something = [result for result in results if result is not None]
    return reduce(add, something) if something else None
