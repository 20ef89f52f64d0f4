"""The paper's synthetic study, as it was published and with this library's wider grid."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from contextgap.experiments.compare import (
    PAPER_METHODS,
    PAPER_SCALES,
    Entry,
    Results,
    conduct,
    read_methods,
    scaled_entries,
)
from contextgap.experiments.study import Study
from contextgap.experiments.tasks import Progress, Store
from contextgap.experiments.tune import PAPER_BANDWIDTHS, PAPER_RIDGES, Grid, Tuning, tune_all
from contextgap.explorers import ContextualGap
from contextgap.methods import Method
from contextgap.problems import Sinusoids
from contextgap.recommenders import SmallestGapInHistory
from contextgap.widths import PosteriorWidth

HISTORIES = {"last step": 1, "last 25 steps": 25, "all steps": None}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Tuned settings and what came of them.

    Parameters
    ----------
    tunings
        By method.
    results
        Records, picks and timings.
    """

    tunings: dict[str, Tuning]
    results: Results


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All of the paper's synthetic study.

    Parameters
    ----------
    study
        The data.
    paper
        Tuned on the paper's grid, compared at all its scales.
    wider
        Tuned on the library's own grid, compared at scale 1.
    history
        Contextual-Gap deployed by the last step, the last 25 and all steps.
    """

    study: Study
    paper: Comparison
    wider: Comparison
    history: Results


def reproduce_sinusoids(
    *,
    explore: int = 2000,
    evaluate: int = 1000,
    repetitions: int = 10,
    grid_size: int = 10,
    seed: int = 0,
    executor: Executor | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[str], Progress] | None = None,
) -> Reproduction:
    """Run the paper's synthetic study.

    Parameters
    ----------
    explore, evaluate
        Rows to explore and to evaluate on, held out and compared alike; the paper's are 2000 and
        1000.
    repetitions
        Shufflings of the evaluation data.
    grid_size
        Bandwidths and ridges per grid; fewer than 10 thin the grids out.
    seed
        Of the data.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    folder
        Keeps results as they finish; called again with the same folder, goes on from there.
    progress
        Given the name of a phase, returns what is called with the numbers of finished and of all
        its pieces of work.
    """
    study = Study.of(
        Sinusoids().sample(2 * (explore + evaluate), seed=seed),
        hold_out=(explore, evaluate),
        evaluate=(explore, evaluate),
        repetitions=repetitions,
    )
    store = Store(None if folder is None else Path(folder) / "parts")
    methods = read_methods(PAPER_METHODS)

    def how(phase: str) -> dict[str, object]:
        watch = None if progress is None else progress(phase)
        return {"executor": executor, "store": store, "progress": watch}

    def tuned(grid: Grid, phase: str) -> dict[str, Tuning]:
        return tune_all(study.hold_out, methods, grid, PosteriorWidth(1.0), 0, **how(phase))

    contexts = study.hold_out[0].contexts
    paper_grid = thinned(Grid.of(contexts, PAPER_BANDWIDTHS, PAPER_RIDGES), grid_size)
    paper = tuned(paper_grid, "tuning on the paper's grid")
    entries = scaled_entries(methods, paper, PAPER_SCALES)
    compared = conduct(study, entries, 50, **how("comparing at four scales"))
    looking_back = [
        Entry(
            label,
            Method(explorer=ContextualGap(), recommender=SmallestGapInHistory(last)),
            1.0,
            paper["contextual-gap"].kernel,
            paper["contextual-gap"].ridge,
        )
        for label, last in HISTORIES.items()
    ]
    history = conduct(study, looking_back, 50, **how("looking back"))
    wider = tuned(thinned(Grid.of(contexts), grid_size), "tuning on the wider grid")
    entries = scaled_entries(methods, wider, (1.0,))
    again = conduct(study, entries, 50, **how("comparing again"))
    return Reproduction(study, Comparison(paper, compared), Comparison(wider, again), history)


def thinned(grid: Grid, size: int) -> Grid:
    """A grid of at most ``size`` × ``size``, both ends kept."""

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
