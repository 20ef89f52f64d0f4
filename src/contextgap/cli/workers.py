"""Where a study's work is done: here, in processes, or on a Dask cluster."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from contextgap.base.names import study_import
from contextgap.cli.terminal import err
from contextgap.studies.experiments.tasks import Store


def _leave_interrupts() -> None:
    """Ignore Ctrl-C in a worker: terminals send it to all processes, and the main one acts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def parts_of(folder: Path, fresh: bool = False) -> Store:
    """Return the store of a study's finished parts, and report parts of other versions."""
    store = Store(folder / "parts")
    if fresh:
        store.clear()
    for version, count in store.of_other_versions().items():
        err.print(
            f"{count} parts by contextgap {version} in {folder / 'parts'} are kept but not used",
            soft_wrap=True,
        )
    return store


@contextmanager
def cluster(dask: str) -> Iterator[Any]:
    """Give a client of the Dask cluster at an address."""
    with study_import("distributed", "dask").Client(dask) as client:
        yield client


@contextmanager
def workers(jobs: int, dask: str | None) -> Iterator[Executor | None]:
    """Give an executor for ``jobs`` processes, or for the Dask cluster at an address."""
    if dask is not None:
        with cluster(dask) as client:
            yield client.get_executor()
    elif jobs == 1:
        yield None
    else:
        # Not fork: BLAS threads of this process must not be copied into the workers.
        pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("forkserver"), initializer=_leave_interrupts
        )
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
