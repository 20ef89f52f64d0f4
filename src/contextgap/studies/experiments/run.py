"""One exploration, whose deployment is evaluated at checkpoints; a flight; and many of them.

A flight explores where the truth is known and deploys elsewhere, alternating along the orbit. This
is the setting of the paper's section 2, which its experiments left out.

TASKS
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from contextgap import __version__
from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import Component, lazy, study_import
from contextgap.beliefs import Belief, PosteriorWidth, Width
from contextgap.kernels import Gaussian, Kernel, read_kernel
from contextgap.learner import Learner
from contextgap.learner.state import random_sources, seed_after
from contextgap.methods.explorers import (
    Explorer,
    LookAhead,
    Moment,
    ReferenceReader,
    check_reference,
)
from contextgap.methods.explorers import explore as pick_arm
from contextgap.methods.method import Method, read_method
from contextgap.methods.recommenders import SmallestGapInHistory
from contextgap.methods.recommenders.history import Choice, LookBack
from contextgap.models import TrackedModel
from contextgap.policy import Policy
from contextgap.studies.problems import Problem
from contextgap.studies.problems.problem import indices
from contextgap.tables.contexts import ContextSchema

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
    with one_thread():
        start = time.perf_counter()
        result = function(**arguments)
    return {**result, "seconds": time.perf_counter() - start}


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread: runs are small, and do not then depend on a machine's cores."""
    limits: AbstractContextManager[Any] = study_import("threadpoolctl").threadpool_limits(1)
    return limits


@dataclass(frozen=True)
class Trace:
    """The regret curve and the picks of one run.

    Parameters
    ----------
    checkpoints
        Numbers of exploration steps after which deployment was evaluated.
    average_regret
        Average simple regret over all rows to exploit, at each checkpoint.
    worst_regret
        Highest simple regret over all rows to exploit, at each checkpoint.
    arms
        The arm tried at each step, as an index 0..A-1.
    ranks
        Its rank among all arms at that step, 1 for the best.

    Examples
    --------
    >>> trace = cg.experiments.run(explore, exploit, kernel=cg.Gaussian(0.5), checkpoints=20)
    >>> trace.average_regret.shape, trace.arms.shape
    ((2,), (40,))
    """

    checkpoints: IntArray
    average_regret: FloatArray
    worst_regret: FloatArray
    arms: IntArray
    ranks: IntArray

    def rows(self) -> list[dict[str, Any]]:
        """Return the curve as records of plain numbers, one per checkpoint."""
        columns = self.checkpoints, self.average_regret, self.worst_regret
        return [
            {"checkpoint": step, "average_regret": average, "worst_regret": worst}
            for step, average, worst in zip(*(each.tolist() for each in columns), strict=True)
        ]


@dataclass(frozen=True)
class Gram:
    """Kernel values that every run on the same contexts can share."""

    values: FloatArray  # between the contexts to explore and all, shape (steps, steps + evaluated)
    diagonal: FloatArray  # k(x, x) at all contexts

    @classmethod
    def of(cls, kernel: Kernel, explore: Problem, exploit: Problem) -> Gram:
        """Return the kernel values for exploring one problem and evaluating on another."""
        kernel.check_dimension(explore.dimension)
        points = np.vstack([explore.contexts, exploit.contexts])
        return cls(kernel(explore.contexts, points), kernel.diagonal(points))


class _TrackedEvidence:
    def __init__(
        self, model: TrackedModel, exploit: Problem, first: int, width: Width, policy_seed: int
    ) -> None:
        self.contexts = exploit.contexts
        self.n_arms = exploit.n_arms
        self.columns: Sequence[int] = range(exploit.n_arms)
        self.seed = seed_after(policy_seed, model.steps)
        self.look_back: LookBack | None = None
        self._model, self._first, self._width = model, first, width

    @lazy
    def belief(self) -> Belief:
        return Belief(self._model.posterior_from(self._first), self._width)

    def smallest_gap_in_history(self, last: int | None) -> Choice:
        del last  # the look-back was kept for this rule alone
        if self.look_back is None:
            raise RuntimeError(
                "no look-back was kept: runs keep one for SmallestGapInHistory and its subclasses"
            )
        return self.look_back.choice()


class _Scout:
    """Looks ahead with a tracked model, which knows kernel values but no kernel."""

    def __init__(self, model: TrackedModel, kernel: Kernel, explore: Problem) -> None:
        self._model, self._kernel, self._explore = model, kernel, explore
        plain = ContextSchema(explore.dimension, explore.columns)
        self._schema, self._references = explore.schema or plain, ReferenceReader()
        self._given: FloatArray | None = None
        self._values = np.empty((0, 0))

    def read(self, given: Any) -> FloatArray:
        return self._references(given, self._schema)

    def look_ahead(self, reference: IntArray | FloatArray) -> LookAhead:
        if reference.dtype.kind == "i":  # of the contexts seen, all of which are tracked
            return LookAhead(*self._model.look_ahead(reference))
        if reference is not self._given:
            check_reference(reference, self._explore.dimension)
            self._given = np.asarray(reference, dtype=np.float64)
            self._values = self._kernel(self._explore.contexts, self._given)
        return LookAhead(*self._model.look_ahead(self._values))

    def kernel_at(self, reference: IntArray | FloatArray) -> FloatArray:
        contexts = self._explore.contexts
        given = reference if reference.ndim == 2 else contexts[reference]
        check_reference(given, self._explore.dimension)
        points = np.vstack([given, contexts[self._model.steps]])
        return self._kernel(points, points)


def run(
    explore: Problem,
    exploit: Problem,
    *,
    method: str | Method | Explorer = "contextual-gap",
    kernel: str | Kernel = Gaussian(1.0),  # noqa: B008  # immutable
    ridge: float = 0.05,
    width: Width = PosteriorWidth(1.0),  # noqa: B008  # immutable
    burn_in: int = 1,
    prior_mean: float | str = 0.0,
    checkpoints: int | Iterable[int] = 50,
    seed: int | None = 0,
    gram: Gram | None = None,
) -> Trace:
    """Explore one problem and evaluate on another.

    Picks exactly the arms that a ``Learner`` with these settings picks when fed the same contexts.

    Parameters
    ----------
    explore
        Rows to explore, in order.
    exploit
        Rows to evaluate deployment on.
    method
        A name from ``METHODS``, a ``Method``, an explorer, or "package.module:name" of one.
    kernel
        Similarity of contexts: a kernel, or "package.module:name" of one.
    ridge
        Regularisation.
    width
        How standard deviations become intervals.
    burn_in
        Pulls of every arm before the method takes over.
    prior_mean
        A number, or ``"auto"``.
    checkpoints
        Number of steps between evaluations, with one after the last step; or the step numbers
        themselves.
    seed
        Makes everything random repeatable.
    gram
        Kernel values computed beforehand for this kernel and these problems.

    See Also
    --------
    experiments.compare : Several methods and repetitions.

    Examples
    --------
    >>> trace = cg.experiments.run(explore, exploit, kernel=cg.Gaussian(0.5), checkpoints=20)
    >>> trace.checkpoints
    array([20, 40])
    """
    if explore.arms != exploit.arms or explore.dimension != exploit.dimension:
        raise ValueError("explore and exploit must have the same arms and kind of contexts")
    method, kernel = read_method(method), read_kernel(kernel)
    width = width.suited(adaptive=method.adaptive)
    ridge = checks.positive("ridge", ridge, "0.01 to 1 suits rewards of unit spread")
    burn_in = checks.whole("burn_in", burn_in, least=0)
    stops = _read_checkpoints(checkpoints, len(explore))
    gram = Gram.of(kernel, explore, exploit) if gram is None else gram
    model = TrackedModel(gram.values, gram.diagonal, ridge, explore.n_arms, prior_mean)
    rng, policy_seed = random_sources(seed)
    scout, rule = _Scout(model, kernel, explore), method.recommender
    look_back = LookBack(rule.last) if isinstance(rule, SmallestGapInHistory) else None
    arms = np.empty(len(explore), dtype=np.intp)
    regrets: list[FloatArray] = []
    for step in range(len(explore) + 1):
        evidence = _TrackedEvidence(model, exploit, len(explore), width, policy_seed)
        burnt_in = step >= burn_in * explore.n_arms
        if look_back is not None and burnt_in:
            look_back.add(evidence.belief)
        if step in stops:
            evidence.look_back = look_back
            if not burnt_in:
                evidence.look_back = LookBack(1)
                evidence.look_back.add(evidence.belief)
            regrets.append(exploit.regret(method.recommender.choose(evidence).arm))
        if step < len(explore):
            moment = Moment(
                believe=lambda: Belief(model.posterior_now(), width),
                pulls=model.pulls.tolist(),
                step=step + 1,
                rng=rng,
                seen=step,
                look_ahead=scout.look_ahead,
                ridge=ridge,
                read=scout.read,
                kernel_at=scout.kernel_at,
            )
            arms[step] = pick_arm(moment, method.explorer, burn_in).arm
            model.observe(int(arms[step]), float(explore.observations[step, arms[step]]))
    return Trace(
        checkpoints=np.array(sorted(stops)),
        average_regret=np.array([regret.mean() for regret in regrets]),
        worst_regret=np.array([regret.max() for regret in regrets]),
        arms=arms,
        ranks=explore.ranks[np.arange(len(explore)), arms],
    )


def _read_checkpoints(checkpoints: Any, steps: int) -> frozenset[int]:
    if isinstance(checkpoints, Iterable):
        numbers = [checks.whole("checkpoints", stop, least=0) for stop in checkpoints]
        if not numbers or max(numbers) > steps:
            raise ValueError(f"checkpoints must be step numbers up to {steps}, got {numbers}")
        return frozenset(numbers)
    every = checks.whole("checkpoints", checkpoints, least=1)
    return frozenset([*range(every, steps + 1, every), steps])


class PhasedProblem(Protocol):
    """A problem in time order that says at which rows feedback is available."""

    contexts: FloatArray
    rewards: FloatArray
    observations: FloatArray
    arms: tuple[Any, ...]
    known: Any
    orbit_number: IntArray

    @property
    def regret_table(self) -> FloatArray:
        """Simple regret of every arm at every row."""


@dataclass(frozen=True)
class FlightTrace:
    """What happened on a flight.

    Parameters
    ----------
    arms
        The arm used at every step, as an index: tried where the truth is known, deployed elsewhere.
    deployed
        Whether the step was one without feedback.
    regret
        Simple regret at every step; only deployed steps count.
    orbits
        Numbers of the orbits with deployed steps.
    average_regret
        Average regret over the deployed steps of each of those orbits.
    best_single
        The same for always using the one arm that is best over all deployed steps.
    random
        The same for a random arm at every step.
    policy
        What the learner would deploy after the flight.
    """

    arms: IntArray
    deployed: Any
    regret: FloatArray
    orbits: IntArray
    average_regret: FloatArray
    best_single: FloatArray
    random: FloatArray
    policy: Policy


def fly(
    problem: PhasedProblem,
    method: str | Method | Explorer = "auto",
    *,
    seed: int | None = 0,
    **settings: Any,
) -> FlightTrace:
    """Fly through windows with and without feedback, in time order.

    Before the first window with feedback, the first arm is deployed.

    Parameters
    ----------
    problem
        A problem whose ``known`` says where the truth is known, such as ``problems.Flight``.
    method
        A name from ``METHODS``, a ``Method``, or an explorer.
    seed
        Makes everything random repeatable.
    settings
        For the ``Learner``, such as ``kernel`` and ``ridge``; it learns what is left out.

    Examples
    --------
    >>> flight = cg.problems.Spacecraft(telemetry="currents").sample(400, seed=0)
    >>> trace = cg.experiments.fly(flight, kernel=cg.Gaussian(1.0))
    >>> trace.policy.arms
    ('top deck', 'bottom deck', 'boom')
    """
    if not hasattr(problem, "known"):
        raise TypeError(
            "problem must say by known where the truth is known, as problems.Flight does, "
            f"got {problem!r}"
        )
    learner = Learner(problem.arms, method=method, seed=seed, **settings)
    known = np.asarray(problem.known, dtype=bool)
    deployed, table = ~known, problem.regret_table
    if not deployed.any():
        raise ValueError("the truth is known at every row, so that nothing is ever deployed")
    arms = np.empty(len(known), dtype=np.intp)
    edges = [0, *(np.flatnonzero(np.diff(known)) + 1).tolist(), len(known)]
    for first, end in pairwise(edges):  # windows, over which ``known`` does not change
        contexts = problem.contexts[first:end]
        if known[first]:
            arms[first:end] = list(explored(learner, contexts, problem.observations[first:end]))
        elif any(learner.counts.values()):  # nothing is learnt on the way: a window at once
            arms[first:end] = indices(learner.recommend(contexts), problem.arms)
        else:
            arms[first:end] = 0
    regret = table[np.arange(len(arms)), arms]
    single = table[:, table[deployed].mean(axis=0).argmin()]
    orbits = np.unique(problem.orbit_number[deployed])

    def by_orbit(values: FloatArray) -> FloatArray:
        rows = [deployed & (problem.orbit_number == orbit) for orbit in orbits]
        return np.array([values[each].mean() for each in rows])

    return FlightTrace(
        arms=arms,
        deployed=deployed,
        regret=regret,
        orbits=orbits,
        average_regret=by_orbit(regret),
        best_single=by_orbit(single),
        random=by_orbit(table.mean(axis=1)),
        policy=learner.freeze(),
    )


def explored(learner: Learner, contexts: Iterable[Any], observations: FloatArray) -> Iterator[int]:
    """Ask, observe and tell at one context after the other; yield the index of each arm tried."""
    for context, rewards in zip(contexts, observations, strict=True):
        arm = learner.ask(context)
        place = learner.arms.index(arm)
        learner.tell(context, arm, rewards[place])
        yield place
