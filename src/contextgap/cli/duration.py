"""How long learning from a large log will take, said before it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from contextgap.cli.terminal import say_seconds
from contextgap.learner.bulk.sample import SAMPLE
from contextgap.learner.bulk.source import Partition
from contextgap.learner.bulk.summary import Summarise
from contextgap.tables.files import BLOCK
from contextgap.tables.trials import Trials

_TUNING = 20.0  # seconds that scales take, with any number of rows


class _OneBlock:
    """The first block of a partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition, self.number, self.first = partition, partition.number, partition.first

    def blocks(self) -> Any:
        yield next(self._partition.blocks())


def say_duration(
    partitions: Sequence[Partition], trials: Trials, points: int, client: Any = None
) -> None:
    """Say how long it takes to learn from a log that is longer than a sample, if that is long.

    A block is read, and a product of matrices computed, to see how fast that goes here.
    """
    rows = sum(each.size for each in partitions)
    if rows <= SAMPLE or not points:
        return
    start = time.perf_counter()
    found = Summarise(trials, SAMPLE, 2 * points)(_OneBlock(partitions[0]))
    reading = (time.perf_counter() - start) / (1 if found is None else max(1, found.rows))
    # Reading twice; k and φ, then φφᵀ: some 3·m² operations in each of which a number is added.
    square = np.ones((points, points))
    start = time.perf_counter()
    square @ np.ones((points, BLOCK // 32))
    adding = 1.5 * (time.perf_counter() - start) / (BLOCK // 32)
    workers = 1 if client is None else max(1, sum(client.nthreads().values()))
    say_seconds(rows, _TUNING + rows * (2 * reading + adding) / workers)
