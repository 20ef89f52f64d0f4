"""The paper's two studies: sinusoids, and magnetometers on a spacecraft."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextgap.experiments.compare import (
    PAPER_METHODS,
    PAPER_SCALES,
    Comparison,
    Entry,
    Results,
    conduct,
    read_methods,
    scaled_entries,
    tune_and_compare,
)
from contextgap.experiments.flights import fly_all
from contextgap.experiments.study import Study
from contextgap.experiments.tasks import Progress, Store
from contextgap.experiments.tune import PAPER_BANDWIDTHS, PAPER_RIDGES, Grid, Tuning
from contextgap.explorers import ContextualGap
from contextgap.methods import Method
from contextgap.problems import Problem, Sinusoids, Spacecraft
from contextgap.recommenders import SmallestGapInHistory

if TYPE_CHECKING:
    from pandas import DataFrame

HISTORIES = {"last step": 1, "last 25 steps": 25, "all steps": None}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One of the paper's studies: its data, and every method, tuned, at all scales.

    ``history`` is Contextual-Gap deployed by the last step, the last 25 and all steps. ``wider`` is
    tuned again on a wider grid and compared at scale 1; None where one grid is enough. ``flights``
    are whole problems flown in alternating phases, with regret by method, seed and orbit; None
    where phases do not alternate.
    """

    study: Study
    main: Comparison
    history: Results
    wider: Comparison | None = None
    flights: tuple[tuple[Problem, ...], DataFrame] | None = None


@dataclass(frozen=True)
class Workshop:
    """How and where the work of a reproduction is done.

    ``folder`` keeps results as they finish; a call with the same folder continues from there.
    ``progress`` takes the name of a phase and returns what is called with the numbers of finished
    and of all its tasks. A ``grid_size`` below 10 thins the grids out.
    """

    executor: Executor | None = None
    folder: str | os.PathLike[str] | None = None
    progress: Callable[[str], Progress] | None = None
    grid_size: int = 10

    def how(self, phase: str) -> dict[str, Any]:
        """Return the keywords for ``execute``."""
        watch = None if self.progress is None else self.progress(phase)
        return {"executor": self.executor, "store": self._store(), "progress": watch}

    def compared(
        self, study: Study, grid: Grid, scales: tuple[float, ...], where: str
    ) -> Comparison:
        """Tune the paper's methods on a grid, then compare them."""
        watch = self.progress
        return tune_and_compare(
            study,
            read_methods(PAPER_METHODS),
            thinned(grid, self.grid_size),
            scales=scales,
            begin=lambda phase: None if watch is None else watch(f"{phase}, {where}"),
            executor=self.executor,
            store=self._store(),
        )

    def _store(self) -> Store:
        return Store(None if self.folder is None else Path(self.folder) / "parts")

    def looked_back(self, study: Study, tuning: Tuning) -> Results:
        """Compare lengths of the look-back."""
        entries = [
            Entry(
                label,
                Method(explorer=ContextualGap(), recommender=SmallestGapInHistory(last)),
                1.0,
                tuning.kernel,
                tuning.ridge,
            )
            for label, last in HISTORIES.items()
        ]
        return conduct(study, entries, 50, **self.how("looking back"))


def reproduce_sinusoids(
    workshop: Workshop,
    *,
    explore: int = 2000,
    evaluate: int = 1000,
    repetitions: int = 10,
    seed: int = 0,
) -> Reproduction:
    """Run the paper's synthetic study, by default at its size.

    The same numbers of rows are held out and compared on; every repetition shuffles the latter
    anew.
    """
    study = Study.of(
        Sinusoids().sample(2 * (explore + evaluate), seed=seed),
        hold_out=(explore, evaluate),
        evaluate=(explore, evaluate),
        repetitions=repetitions,
    )
    contexts = study.hold_out[0].contexts
    published = Grid.of(contexts, PAPER_BANDWIDTHS, PAPER_RIDGES)
    main = workshop.compared(study, published, PAPER_SCALES, "the paper's grid")
    history = workshop.looked_back(study, main.tunings["contextual-gap"])
    wider = workshop.compared(study, Grid.of(contexts), (1.0,), "a wider grid")
    return Reproduction(study, main, history, wider=wider)


def reproduce_spacecraft(
    workshop: Workshop,
    *,
    hold_out: tuple[int, int] = (1000, 1000),
    evaluate: tuple[int, int] = (3000, 950),
    repetitions: int = 10,
    seed: int = 0,
) -> Reproduction:
    """Run the paper's spacecraft study on simulated missions, and fly them in alternating phases.

    Both pairs are rows to explore and to exploit, in time order, by default as many as in the
    paper. Every repetition is a mission with a seed of its own, from ``seed`` on.
    """
    rows = sum(hold_out) + sum(evaluate)
    missions = [Spacecraft().sample(rows, seed=seed + i) for i in range(repetitions)]
    study = Study.of_each(missions, hold_out=hold_out, evaluate=evaluate)
    grid = Grid.of(study.hold_out[0].contexts)
    main = workshop.compared(study, grid, PAPER_SCALES, "four scales")
    history = workshop.looked_back(study, main.tunings["contextual-gap"])
    entries = scaled_entries(read_methods(PAPER_METHODS), main.tunings, (1.0,))
    flights = fly_all(missions, entries, **workshop.how("flying"))
    return Reproduction(study, main, history, flights=(tuple(missions), flights))


def thinned(grid: Grid, size: int) -> Grid:
    """Return a grid of at most ``size`` × ``size``, both ends kept."""

    def places(count: int) -> list[int]:
        chosen = min(size, count)
        return [round(i * (count - 1) / max(1, chosen - 1)) for i in range(chosen)]

    rows, columns = places(len(grid.kernels)), places(len(grid.ridges))
    return Grid(
        tuple(grid.kernels[i] for i in rows),
        tuple(grid.bandwidths[i] for i in rows),
        tuple(grid.ridges[i] for i in columns),
        grid.unit,
    )
