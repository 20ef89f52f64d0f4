"""Comparisons: settings tuned on held-out data, then methods × scales × repetitions, as records.

The paper's studies tune settings on held-out data. A user has none, so ``evaluate_defaults`` gives
the learner nothing. Its yardsticks are *full information*, the same learner with the rewards of all
arms at every context, and the *best single arm*, chosen by the rewards it is evaluated on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import study_import
from contextgap.beliefs import PosteriorWidth, RidgeWidth, Width
from contextgap.kernels import Gaussian, Kernel, read_kernel
from contextgap.learner import Learner
from contextgap.methods.explorers import Explorer
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.run import (
    Gram,
    Progress,
    Result,
    Store,
    Task,
    execute,
    explored,
    rows_reached,
    run,
)
from contextgap.studies.problems import Problem

if TYPE_CHECKING:
    from pandas import DataFrame

# The paper's grid in this library's bandwidths: 1/√(2γ), γ = 1e-3..1e2; ridge 1e-4..1e2.
PAPER_BANDWIDTHS = tuple(float(b) for b in 1 / np.sqrt(2 * np.logspace(2, -3, 10)))
PAPER_RIDGES = tuple(float(r) for r in np.logspace(-4, 2, 10))
# The library's own reaches further where the paper's best settings lie on its edge. Spreads are
# bandwidths in units of √d · (standard deviation of each context column).
SPREADS = tuple(float(s) for s in np.logspace(-2, 0.5, 10))
OWN_UNIT, RELATIVE_UNIT = "the contexts' own units", "√d standard deviations of each column"
GIVEN = "units of the kernel given"  # whose bandwidths, if it has any, are not tuned
RIDGES = tuple(float(r) for r in np.logspace(-8, 1, 10))


@dataclass(frozen=True)
class Grid:
    """Settings to try."""

    kernels: tuple[Kernel, ...]  # Gaussian, one per bandwidth, or the one kernel given
    bandwidths: tuple[float, ...]  # theirs, in the unit
    ridges: tuple[float, ...]  # all are tried with every kernel
    unit: str  # what bandwidths are counted in: OWN_UNIT, RELATIVE_UNIT or GIVEN

    @classmethod
    def of(
        cls,
        contexts: Any,
        bandwidths: Sequence[float] | None = None,
        ridges: Sequence[float] | None = None,
        kernel: str | Kernel | None = None,
    ) -> Grid:
        """Return the grid of these bandwidths and ridges, or the default one for these contexts.

        With a kernel, or the name of one, only ridges are left to try.
        """
        chosen_ridges = tuple(
            checks.positive("ridges", ridge, "such as 0.01")
            for ridge in (RIDGES if ridges is None else ridges)
        )
        if kernel is not None:
            if bandwidths is not None:
                raise ValueError(
                    f"bandwidths are a Gaussian kernel's, got {bandwidths!r} and the kernel "
                    f"{kernel!r}; leave one of the two out"
                )
            return cls((read_kernel(kernel),), (1.0,), chosen_ridges, GIVEN)
        if bandwidths is None:
            kernels: tuple[Kernel, ...] = tuple(
                Gaussian.from_contexts(contexts, spread) for spread in SPREADS
            )
            return cls(kernels, SPREADS, chosen_ridges, RELATIVE_UNIT)
        chosen = tuple(float(bandwidth) for bandwidth in bandwidths)
        if not chosen or not chosen_ridges:
            raise ValueError("bandwidths and ridges must not be empty")
        usual = Gaussian.from_contexts(contexts)
        kernels = tuple(replace(usual, bandwidth=bandwidth) for bandwidth in chosen)
        return cls(kernels, chosen, chosen_ridges, OWN_UNIT)


@dataclass(frozen=True)
class GridSearch:
    """What a grid search found for one method.

    .. versionadded:: 0.3

    Parameters
    ----------
    kernel
        The best kernel.
    ridge
        The best ridge.
    regret
        Average simple regret of every setting, shape (bandwidths, ridges).
    grid
        The settings tried.

    See Also
    --------
    experiments.tune : Returns one.

    Examples
    --------
    >>> best = cg.experiments.tune(explore, exploit, bandwidths=[0.5], ridges=[0.01, 0.1])
    >>> best.kernel, best.ridge in (0.01, 0.1)
    (Gaussian(bandwidth=0.5), True)
    """

    kernel: Kernel
    ridge: float
    regret: FloatArray
    grid: Grid

    @property
    def on_edge(self) -> bool:
        """Whether the best setting lies on the grid's edge, so that a wider one may be better."""
        return any(
            place in (0, size - 1) and size > 1
            for place, size in zip(self.best, self.regret.shape, strict=True)
        )

    @property
    def bandwidth(self) -> float | str:
        """The best bandwidth in the grid's unit; of a kernel that was given, the kernel."""
        return str(self.kernel) if self.grid.unit == GIVEN else self.grid.bandwidths[self.best[0]]

    @property
    def best(self) -> tuple[int, int]:
        """The places of the best setting among the grid's bandwidths and ridges."""
        return divmod(int(self.regret.argmin()), int(self.regret.shape[1]))


def tune(
    explore: Problem,
    exploit: Problem,
    *,
    method: str | Method | Explorer = "contextual-gap",
    bandwidths: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    width: Width = PosteriorWidth(1.0),  # noqa: B008  # immutable
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> GridSearch:
    """Find the bandwidth and ridge with the lowest average simple regret on held-out data.

    Parameters
    ----------
    explore
        Rows to explore.
    exploit
        Rows whose average simple regret, after exploring, decides.
    method
        A name from ``METHODS``, a ``Method``, an explorer, or "package.module:name" of one.
    bandwidths
        Bandwidths of a Gaussian kernel; by default ten multiples of what
        ``Gaussian.from_contexts`` chooses.
    ridges
        Ridges; ten from 1e-8 to 10 by default.
    width
        How standard deviations become intervals.
    seed
        Makes random methods repeatable.
    executor, progress
        As of ``compare``.

    Examples
    --------
    >>> best = cg.experiments.tune(explore, exploit, bandwidths=[0.3, 1.0], ridges=[0.01, 0.1])
    >>> best.regret.shape
    (2, 2)
    """
    grid = Grid.of(explore.inputs, bandwidths, ridges)
    chosen = {"method": read_method(method)}
    found = tune_all(
        (explore, exploit), chosen, grid, width, seed, executor=executor, progress=progress
    )
    return found["method"]


def tune_all(
    hold_out: tuple[Problem, Problem],
    methods: Mapping[str, Method],
    grid: Grid,
    width: Width,
    seed: int,
    **how: Any,
) -> dict[str, GridSearch]:
    common = {"explore": hold_out[0], "exploit": hold_out[1], "ridges": list(grid.ridges)}
    common |= {"width": width, "seed": seed}
    # Kernels outermost: a worker computes the values of each once.
    tasks = [
        Task(try_ridges, {**common, "method": method, "kernel": kernel})
        for kernel in grid.kernels
        for method in methods.values()
    ]
    results = execute(tasks, **how)
    found = {}
    for place, label in enumerate(methods):
        regret = np.array([row["regret"] for row in results[place :: len(methods)]])
        row, column = divmod(int(regret.argmin()), regret.shape[1])
        found[label] = GridSearch(grid.kernels[row], grid.ridges[column], regret, grid)
    return found


_LATEST: list[Any] = []  # the kernel values computed last, and what for


def try_ridges(
    explore: Problem, exploit: Problem, *, kernel: Kernel, ridges: list[float], **how: Any
) -> Result:
    # Kernel values are computed once for consecutive tasks with the same contexts: by their bytes,
    # as copies sent to a worker are equal but not the same.
    asked = (kernel, explore.contexts.tobytes(), exploit.contexts.tobytes())
    if not _LATEST or _LATEST[0] != asked:
        _LATEST[:] = asked, Gram.of(kernel, explore, exploit)
    how |= {"kernel": kernel, "gram": _LATEST[1]}
    traces = [
        run(explore, exploit, ridge=ridge, checkpoints=[len(explore)], **how) for ridge in ridges
    ]
    return {"regret": [float(trace.average_regret[-1]) for trace in traces]}


Pair: TypeAlias = tuple[Problem, Problem]
ScaledWidth: TypeAlias = PosteriorWidth | RidgeWidth  # the code's half width, and the text's


@dataclass(frozen=True, eq=False)
class Study:
    """Pairs of rows to explore and rows to exploit.

    Parameters
    ----------
    name
        What results are labelled with.
    hold_out
        The pair that hyper-parameters are tuned on.
    rounds
        The pairs that methods are compared on, one per repetition.

    Examples
    --------
    >>> study.name, len(study.rounds)
    ('sinusoids-3', 2)
    """

    name: str
    hold_out: Pair
    rounds: tuple[Pair, ...]

    @classmethod
    def of(
        cls,
        problem: Problem,
        *,
        hold_out: Sequence[Any] | None = None,
        evaluate: Sequence[Any] | None = None,
        repetitions: int = 10,
    ) -> Study:
        """Return the paper's protocol for one problem.

        The first rows are held out. The rest is shuffled anew for every repetition; where time
        order matters, nothing is shuffled and repetitions differ in the methods' randomness only.

        Parameters
        ----------
        problem
            All the data.
        hold_out
            Rows to explore and to exploit when tuning; a third and a sixth by default.
        evaluate
            Rows to explore and to exploit when comparing; the same by default.
        repetitions
            How many times to compare.

        Examples
        --------
        >>> [len(part) for part in study.hold_out]
        [27, 13]
        """
        tune_on = tuple(hold_out or (1 / 3, 1 / 6))
        compare_on = tuple(evaluate or tune_on)
        for name, sizes in (("hold_out", tune_on), ("evaluate", compare_on)):
            if len(sizes) != 2:
                raise ValueError(f"{name} must be (rows to explore, rows to exploit), got {sizes}")
        repetitions = checks.whole("repetitions", repetitions, least=1)
        *held, first, second = problem.split(*tune_on, *compare_on)
        pool = problem.take(slice(len(held[0]) + len(held[1]), None))
        sizes = (len(first), len(second))
        rounds = [
            (first, second) if problem.ordered else pool.split(*sizes, seed=seed)
            for seed in range(repetitions)
        ]
        return cls(problem.name, (held[0], held[1]), tuple((a, b) for a, b in rounds))

    @classmethod
    def of_each(
        cls, problems: Sequence[Problem], *, hold_out: Sequence[Any], evaluate: Sequence[Any]
    ) -> Study:
        """Return the protocol for several samples of one problem, one per repetition.

        Settings are tuned on the first rows of the first sample. Every sample is compared on the
        rows behind as many. Both are rows to explore and rows to exploit.
        """
        parts = [problem.split(*hold_out, *evaluate) for problem in problems]
        first = parts[0]
        rounds = tuple((part[2], part[3]) for part in parts)
        return cls(problems[0].name, (first[0], first[1]), rounds)


PAPER_METHODS = (
    "contextual-gap",
    "kernel-ucb-mod",
    "kernel-ucb",
    "uniform",
    "kernel-ts",
    "epsilon-greedy",
)
PAPER_SCALES = (0.1, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Entry:
    label: str  # of its records
    method: Method
    scale: float  # of its half width
    kernel: Kernel
    ridge: float
    width: ScaledWidth = PosteriorWidth()  # noqa: RUF009  # immutable; at any scale

    @property
    def settings(self) -> dict[str, Any]:
        names = ("method", "kernel", "ridge", "scale", "width")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Results:
    """The tables that a comparison gives.

    Parameters
    ----------
    records
        One row per method, scale, repetition and checkpoint.
    picks
        How often the best, second best, ... arm was tried: a row per method, scale, repetition
        and rank.
    timings
        Seconds per run.
    """

    records: DataFrame
    picks: DataFrame
    timings: DataFrame

    def write(self, folder: Path) -> None:
        for name in ("records", "picks", "timings"):
            getattr(self, name).to_parquet(folder / f"{name}.parquet", index=False)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Tuned settings and results of a comparison.

    Parameters
    ----------
    tunings
        Settings by method, tuned on the held-out part.
    entries
        The methods compared.
    results
        Their regret, picks and timings.

    See Also
    --------
    experiments.tune_and_compare : Returns one.

    Examples
    --------
    >>> from contextgap.experiments.tune import Grid
    >>> grid = Grid.of(problem.contexts, bandwidths=[0.5], ridges=[0.1])
    >>> methods = {"uniform": cg.METHODS["uniform"]}
    >>> comparison = cg.experiments.tune_and_compare(study, methods, grid, checkpoints=10)
    >>> list(comparison.tunings)
    ['uniform']
    """

    tunings: dict[str, GridSearch]
    entries: list[Entry]
    results: Results


def compare(
    study: Study,
    *,
    methods: Iterable[str | Method | Explorer] | Mapping[str, Any] = PAPER_METHODS,
    scales: Sequence[float] = (1.0,),
    kernel: str | Kernel | None = None,
    bandwidths: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    checkpoints: int = 50,
    executor: Executor | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Tune each method on the held-out part at scale 1, then compare all at every scale.

    Parameters
    ----------
    study
        The data, held out and to compare on.
    methods
        Names from ``METHODS``, methods, explorers, or "package.module:name" of your own; a mapping
        gives them labels.
    scales
        Scales of ``PosteriorWidth``; settings tuned at scale 1 are kept, as in the paper.
    kernel
        A kernel, or "package.module:name" of one, in place of Gaussian kernels of several
        bandwidths; only the ridge is then tuned.
    bandwidths, ridges
        The grid; see ``tune``.
    checkpoints
        Steps from one evaluation to the next, not how many there are: 50 is after 50, 100, ...
        steps, and 1 after every step, which is slow.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    folder
        Keeps results as they finish; a call with the same folder continues from there.
    progress
        Called with the numbers of finished and of all tasks, such as
        ``cg.ProgressBar("comparing")``.

    Returns
    -------
    table
        One row per method, scale, repetition and checkpoint.

    See Also
    --------
    experiments.tune_and_compare : Keeps the tuned settings, too.

    Examples
    --------
    >>> table = cg.experiments.compare(
    ...     study, methods=["uniform"], bandwidths=[0.5], ridges=[0.1], checkpoints=10
    ... )
    >>> sorted(table["method"].unique()), len(table)
    (['uniform'], 6)
    """
    found = tune_and_compare(
        study,
        read_methods(methods),
        Grid.of(study.hold_out[0].inputs, bandwidths, ridges, kernel),
        scales=scales,
        checkpoints=checkpoints,
        begin=lambda _: progress,
        executor=executor,
        store=Store(None if folder is None else Path(folder) / "parts"),
    )
    if folder is not None:
        found.results.write(Path(folder))
    return found.results.records


def tune_and_compare(
    study: Study,
    methods: Mapping[str, Method],
    grid: Grid,
    *,
    scales: Sequence[float] = (1.0,),
    tuning_scale: float = 1.0,
    width: ScaledWidth = PosteriorWidth(),  # noqa: B008  # immutable
    checkpoints: int | list[int] = 50,
    seed: int = 0,
    begin: Callable[[str], Progress | None] = lambda _: None,
    **how: Any,
) -> Comparison:
    """Tune methods on the held-out part, then compare them; keep both.

    .. versionadded:: 0.2

    Parameters
    ----------
    study
        The data.
    methods
        By label.
    grid
        Settings to try.
    scales
        Scales to compare at.
    tuning_scale
        The scale to tune at.
    width
        The half width, at any scale.
    checkpoints
        As of ``compare``; or the step numbers themselves.
    seed
        For the methods while they are tuned; when compared, they use the repetition's number.
    begin
        Called with the name of each phase; returns what reports its progress.
    **how
        For ``execute``: where the work is done, and where results are kept.

    Examples
    --------
    >>> from contextgap.experiments.tune import Grid
    >>> grid = Grid.of(problem.contexts, bandwidths=[0.5], ridges=[0.1])
    >>> methods = {"uniform": cg.METHODS["uniform"]}
    >>> comparison = cg.experiments.tune_and_compare(study, methods, grid, checkpoints=10)
    >>> comparison.tunings["uniform"].ridge
    0.1
    """
    tuned = replace(width, scale=tuning_scale)
    scales = [checks.positive("scales", scale, "such as 1") for scale in scales]
    progress = begin("tuning on held-out rows")
    tunings = tune_all(study.hold_out, methods, grid, tuned, seed, progress=progress, **how)
    entries = scaled_entries(methods, tunings, scales, width)
    results = conduct(study, entries, checkpoints, progress=begin("exploring"), **how)
    return Comparison(tunings, entries, results)


def read_methods(
    methods: Iterable[str | Method | Explorer] | Mapping[str, Any],
) -> dict[str, Method]:
    if isinstance(methods, Mapping):
        return {str(label): read_method(method) for label, method in methods.items()}
    if isinstance(methods, str):
        raise TypeError(f"methods must be a list of names, got {methods!r}")
    chosen: dict[str, Method] = {}
    for given in methods:
        method = read_method(given)
        label = given if isinstance(given, str) else method.name
        if chosen.setdefault(label, method) != method:
            raise ValueError(
                f"two different methods are called {label!r}; give them labels in a dictionary"
            )
    if not chosen:
        raise ValueError("methods must name at least one method, got none")
    return chosen


def scaled_entries(
    methods: Mapping[str, Method],
    tunings: Mapping[str, GridSearch],
    scales: Sequence[float],
    width: ScaledWidth,
) -> list[Entry]:
    return [
        Entry(label, method, scale, tunings[label].kernel, tunings[label].ridge, width)
        for scale in scales
        for label, method in methods.items()
    ]


def conduct(
    study: Study, entries: Sequence[Entry], checkpoints: int | list[int], **how: Any
) -> Results:
    common = {"checkpoints": checkpoints}
    tasks = [
        Task(
            run_once,
            {**entry.settings, **common, "seed": seed, "explore": explore, "exploit": exploit},
            {"study": study.name, "method": entry.label, "scale": entry.scale, "seed": seed},
        )
        for entry in entries
        for seed, (explore, exploit) in enumerate(study.rounds)
    ]
    return tabulate(tasks, "ridge", **how)


def run_once(
    explore: Problem,
    exploit: Problem,
    *,
    scale: float,
    ridge: float,
    width: ScaledWidth = PosteriorWidth(),  # noqa: B008  # immutable
    **how: Any,
) -> Result:
    trace = run(explore, exploit, width=replace(width, scale=scale), ridge=ridge, **how)
    return {"reached": trace.rows(), "picks": _counts(explore, trace.arms), "ridge": ridge}


def _counts(explore: Problem, arms: Sequence[int] | IntArray) -> list[int]:
    ranks = explore.ranks[np.arange(len(arms)), arms]
    return [int(count) for count in np.bincount(ranks, minlength=explore.n_arms + 1)[1:]]


def tabulate(tasks: Sequence[Task], extra: str, **how: Any) -> Results:
    """Execute tasks; return their tables, of which records have one more number of the result."""
    frame, results = study_import("pandas").DataFrame, execute(tasks, **how)
    explored = [
        (task.label, result)
        for task, result in zip(tasks, results, strict=True)
        if "picks" in result
    ]
    picks = [
        {**label, "rank": rank, "count": count}
        for label, result in explored
        for rank, count in enumerate(result["picks"], 1)
    ]
    timings = [{**label, "seconds": result["seconds"]} for label, result in explored]
    return Results(frame(rows_reached(tasks, results, extra)), frame(picks), frame(timings))


def final_regret(records: DataFrame) -> DataFrame:
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    grouped = last.groupby(["method", "scale"], sort=False)
    means: DataFrame = grouped[["average_regret", "worst_regret"]].mean().reset_index()
    return means.sort_values("average_regret", ignore_index=True)


FULL, SINGLE = "full information", "best single arm"
YARDSTICKS = (FULL, SINGLE)


def evaluate_defaults(
    rounds: Sequence[Pair],
    *,
    methods: Iterable[Any] | Mapping[str, Any],
    checkpoints: Sequence[int],
    yardsticks: Sequence[str] = YARDSTICKS,
    full_checkpoints: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    **how: Any,
) -> Results:
    """Explore and deploy with every method, without settings, on pairs of rows.

    Full information is fitted anew after each of ``full_checkpoints``, to the rewards of all arms,
    which takes long. ``settings`` are given to every learner; ``how`` is for ``execute``.
    """
    given = {} if settings is None else {"settings": dict(settings)}
    at = {"checkpoints": list(checkpoints)}
    # What is compared: a label, a function and the arguments that only it has.
    entries: list[tuple[str, Callable[..., Result], dict[str, Any]]] = [
        (label, explore_once, {"method": method, **at, **given})
        for label, method in read_methods(methods).items()
    ]
    unknown = [name for name in yardsticks if name not in YARDSTICKS]
    if unknown:
        raise ValueError(f"yardsticks must be among {YARDSTICKS}, got {unknown[0]!r}")
    if FULL in yardsticks:
        # One task per fit, so that workers share the longest part of the work evenly.
        each = checkpoints if full_checkpoints is None else full_checkpoints
        entries += [(FULL, full_information, {"checkpoints": [step], **given}) for step in each]
    if SINGLE in yardsticks:
        entries.append((SINGLE, best_single_arm, at))
    numbers = list(range(len(rounds)) if seeds is None else seeds)
    pairs = [
        {"explore": explore, "exploit": exploit, "seed": seed}
        for (explore, exploit), seed in zip(rounds, numbers, strict=True)
    ]
    tasks = [
        Task(function, {**pair, **own}, {"method": label, "repetition": repetition})
        for label, function, own in entries
        for repetition, pair in enumerate(pairs)
    ]
    return tabulate(tasks, "seconds", **how)


def summarise_defaults(records: DataFrame) -> DataFrame:
    """Return each method's mean regret after the last step, with standard errors, best first."""
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    by_method = last.groupby("method", sort=False)
    table: DataFrame = by_method[["average_regret", "worst_regret"]].mean()
    table.insert(1, "error", by_method["average_regret"].sem())
    uniform = table["average_regret"].get("uniform", np.nan)
    table["ratio_to_uniform"] = table["average_regret"] / (uniform or np.nan)
    return table.sort_values("average_regret", kind="stable").reset_index()


def marked(label: str) -> str:
    """Return a method's label, with a mark behind it if it is what "auto" stands for."""
    return f"{label} (default)" if label == read_method("auto").name else label


def same_rows(rounds: Sequence[Pair]) -> bool:
    first, *others = (explore.contexts for explore, _ in rounds)
    return bool(others) and all(np.array_equal(first, other) for other in others)


def explore_once(
    explore: Problem,
    exploit: Problem,
    method: str | Method,
    checkpoints: Sequence[int],
    seed: int,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    learner = Learner(explore.n_arms, method=method, seed=seed, **(settings or {}))
    reached, arms = list[Result](), list[int]()
    for arm in explored(learner, explore.inputs, explore.observations):
        arms.append(arm)
        if len(arms) in checkpoints:
            reached.append(_reached(len(arms), exploit, learner.freeze().recommend(exploit.inputs)))
    return {"reached": reached, "picks": _counts(explore, arms)}


def full_information(
    explore: Problem,
    exploit: Problem,
    checkpoints: Sequence[int],
    seed: int,
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """Return the regret of deploying after all arms were observed at every context so far."""
    reached = []
    for step in checkpoints:
        learner = Learner(explore.n_arms, method="uniform", seed=seed, **(settings or {}))
        contexts = explore.inputs[np.repeat(np.arange(min(step, len(explore))), explore.n_arms)]
        arms = np.tile(np.arange(explore.n_arms), min(step, len(explore)))
        learner.fit(contexts, arms, explore.observations[:step].ravel())
        reached.append(_reached(step, exploit, learner.freeze().recommend(exploit.inputs)))
    return {"reached": reached}


def best_single_arm(
    explore: Problem, exploit: Problem, checkpoints: Sequence[int], seed: int
) -> Result:
    del explore, seed
    arm = int(exploit.regret_table.mean(axis=0).argmin())
    picks = np.full(len(exploit), arm)
    return {"reached": [_reached(step, exploit, picks) for step in checkpoints]}


def _reached(step: int, exploit: Problem, picks: IntArray) -> Result:
    regret = exploit.regret(np.asarray(picks, dtype=np.intp))
    return {
        "checkpoint": step,
        "average_regret": float(regret.mean()),
        "worst_regret": float(regret.max()),
    }
