"""The paper's grid search for hyper-parameters on held-out data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.beliefs.widths import PosteriorWidth, Width
from contextgap.kernels import Gaussian, Kernel, read_kernel
from contextgap.methods.explorers import Explorer
from contextgap.methods.method import Method, read_method
from contextgap.studies.experiments.run import Gram, run
from contextgap.studies.experiments.tasks import Progress, Result, Task, execute
from contextgap.studies.problems import Problem

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
    """Tune several methods at once; ``how`` is for ``execute``."""
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
    """Return the final average regret for every ridge with one kernel; ``how`` is for ``run``."""
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
