"""Independent tasks, run anywhere, whose results are kept as they finish.

A task is a module-level function and plain arguments, so it runs in this process, in a pool or on a
cluster alike. Its key is a hash of all its arguments; a store keeps finished results under their
keys, so a study that was interrupted continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from contextgap import __version__
from contextgap.base.components import Component
from contextgap.base.names import study_import
from contextgap.studies.problems import Problem

Result: TypeAlias = dict[str, Any]
Progress: TypeAlias = Callable[[int, int], None]

_CACHE_VERSION = 2  # raised when a task's result changes or has another form


@dataclass(frozen=True, eq=False)
class Task:
    """A module-level function that returns plain values, its arguments, and what to call them."""

    function: Callable[..., Result]
    arguments: Mapping[str, Any]
    label: Mapping[str, Any] = field(default_factory=dict)  # the first columns of its rows

    def key(self) -> str:
        """Return a name that only the same work on the same data has."""
        plain = {name: _fingerprint(value) for name, value in self.arguments.items()}
        text = json.dumps([self.function.__name__, _CACHE_VERSION, plain], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


_PROCESS = uuid.uuid4().hex
_DIGESTS: WeakKeyDictionary[Problem, str] = WeakKeyDictionary()  # many tasks share a problem


def _digest(problem: Problem) -> str:
    digest = hashlib.sha256()
    for array in (problem.contexts, problem.rewards, problem.observations):
        digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    if problem.schema is not None:
        digest.update(repr(problem.schema).encode())
    return digest.hexdigest()


def _fingerprint(value: Any) -> Any:
    if isinstance(value, Problem):
        if value not in _DIGESTS:
            _DIGESTS[value] = _digest(value)
        return _DIGESTS[value]
    if isinstance(value, Component):
        names = getattr(value, "__dataclass_fields__", ())
        inner = [_fingerprint(getattr(value, name)) for name in names]
        return [value.describe(), _own_code(type(value)), inner]
    if isinstance(value, tuple | list):
        return [_fingerprint(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _fingerprint(item) for name, item in value.items()}
    return value


def _own_code(kind: type) -> str | None:
    """Digest the files that define a user's class; the package's own code counts by version."""
    own = [each for each in kind.__mro__ if each.__module__.partition(".")[0] != "contextgap"]
    own = [each for each in own if each.__module__ not in sys.stdlib_module_names]
    files = [getattr(sys.modules.get(each.__module__), "__file__", None) for each in own]
    if None in files:  # typed at a prompt, so that its code is not to be had
        return f"{_PROCESS} {id(kind)}"
    digest = hashlib.sha256(b"".join(Path(str(file)).read_bytes() for file in files))
    return digest.hexdigest() if files else None


class Store:
    """Results by key, in a folder or, without one, in memory.

    Every version of the package has a folder of its own below the given one, so that results of
    different versions are never mixed. Folders that do not exist are made.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder) / __version__
        self._memory: dict[str, Result] = {}
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Forget all results of this version."""
        self._memory.clear()
        for path in () if self._folder is None else self._folder.glob("*.json"):
            path.unlink()

    def of_other_versions(self) -> dict[str, int]:
        """Return how many results other versions of the package left, by version."""
        if self._folder is None:
            return {}
        counts = {"0.1.0": len(list(self._folder.parent.glob("*.json")))}  # it had no folder
        for other in self._folder.parent.iterdir():
            if other.is_dir() and other != self._folder:
                counts[other.name] = len(list(other.glob("*.json")))
        return {version: count for version, count in sorted(counts.items()) if count}

    def get(self, key: str) -> Result | None:
        """Return a result, or None if it is not there."""
        if self._folder is None:
            return self._memory.get(key)
        try:
            return dict(json.loads((self._folder / f"{key}.json").read_text()))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def put(self, key: str, result: Result) -> None:
        """Keep a result; a kill in the middle leaves nothing half-written under the key."""
        if self._folder is None:
            self._memory[key] = result
            return
        temporary = self._folder / f".{key}.{os.getpid()}"
        temporary.write_text(json.dumps(result))
        os.replace(temporary, self._folder / f"{key}.json")


def execute(
    tasks: Sequence[Task],
    *,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Do all tasks that the store lacks, here or by the executor; return all results in order."""
    store = Store() if store is None else store
    keys = [task.key() for task in tasks]
    open_ = {key: task for key, task in zip(keys, tasks, strict=True) if store.get(key) is None}
    done = len(tasks) - len(open_)
    if progress is not None:
        progress(done, len(tasks))
    for key, result in _results(open_, executor):
        store.put(key, result)
        done += 1
        if progress is not None:
            progress(done, len(tasks))
    return [store.get(key) or {} for key in keys]


def rows_reached(tasks: Sequence[Task], results: Sequence[Result], *also: str) -> list[Result]:
    """Return what each task reached, a row each, with its label and more of its results."""
    return [
        {**task.label, **reached, **{name: result[name] for name in also}}
        for task, result in zip(tasks, results, strict=True)
        for reached in result["reached"]
    ]


def _results(tasks: Mapping[str, Task], executor: Executor | None) -> Iterator[tuple[str, Result]]:
    if executor is None:
        for key, task in tasks.items():
            yield key, perform(task.function, dict(task.arguments))
        return
    futures: dict[Future[Result], str] = {
        executor.submit(perform, task.function, dict(task.arguments)): key
        for key, task in tasks.items()
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def perform(function: Callable[..., Result], arguments: dict[str, Any]) -> Result:
    """Call a task's function on one BLAS thread, and time it."""
    with one_thread():
        start = time.perf_counter()
        result = function(**arguments)
    return {**result, "seconds": time.perf_counter() - start}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread: runs are small, and do not then depend on a machine's cores."""
    with study_import("threadpoolctl").threadpool_limits(1):
        yield
