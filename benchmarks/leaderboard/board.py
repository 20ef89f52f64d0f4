"""The leaderboard: all methods on all bundled problems, by one protocol.

Every problem is met at several levels of noise. For each of these cells all methods are tuned
alike, on rows that nothing is measured on, and then explore; one exploration gives the regret at
every budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.experiments.compare import read_methods, run_once
from contextgap.experiments.reproduce import Workshop, thinned
from contextgap.experiments.tasks import Task, execute
from contextgap.experiments.tune import Grid, Tuning, grid_tasks
from contextgap.methods import Method
from contextgap.problems.extras import study_import
from contextgap.widths import PosteriorWidth
from leaderboard.contest import Cell, Contest, cells_of

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """What was asked, what was found, and the data.

    ``records`` has one row per problem, noise, budget, method and seed; ``settings``, which says
    what tuning chose, one per problem, noise and method.
    """

    contest: Contest
    records: DataFrame
    settings: DataFrame
    cells: tuple[Cell, ...]


def leaderboard(contest: Contest, workshop: Workshop) -> Leaderboard:
    """Tune and compare all methods everywhere; the workshop says how and where."""
    pandas = study_import("pandas")
    cells = tuple(
        cell for name in contest.problems for cell in cells_of(name, contest.noise, contest)
    )
    methods = read_methods(contest.methods)
    tunings = tune_cells(cells, methods, contest, workshop, "tuning on held-out rows")
    places = [
        (i, label, seed)
        for i in range(len(cells))
        for label in methods
        for seed in range(contest.seeds)
    ]
    tasks = [
        round_task(cells[i], methods[label], tunings[i][label], contest.budgets, seed)
        for i, label, seed in places
    ]
    results = execute(tasks, **workshop.how("comparing"))
    records = [
        {
            "problem": cells[i].problem,
            "noise": cells[i].noise,
            "budget": budget,
            "method": label,
            "seed": seed,
            "average_regret": result["average_regret"][place],
            "worst_regret": result["worst_regret"][place],
            "seconds": result["seconds"],
        }
        for (i, label, seed), result in zip(places, results, strict=True)
        for place, budget in enumerate(contest.budgets)
    ]
    chosen = [
        _setting(cell, label, tuning)
        for cell, found in zip(cells, tunings, strict=True)
        for label, tuning in found.items()
    ]
    return Leaderboard(contest, pandas.DataFrame(records), pandas.DataFrame(chosen), cells)


def tune_cells(
    cells: tuple[Cell, ...],
    methods: Mapping[str, Method],
    contest: Contest,
    workshop: Workshop,
    phase: str,
) -> list[dict[str, Tuning]]:
    """Return every method's settings for every cell, by the mean regret over its hold-outs."""
    width = PosteriorWidth(1.0)
    grids = [thinned(Grid.of(cell.hold_outs[0][0].contexts), contest.grid) for cell in cells]
    tasks = [
        task
        for cell, grid in zip(cells, grids, strict=True)
        for seed, pair in enumerate(cell.hold_outs)
        for task in grid_tasks(pair, methods, grid, width, seed)
    ]
    regret = np.array([result["regret"] for result in execute(tasks, **workshop.how(phase))])
    sizes = (len(cells), contest.hold_outs, len(grids[0].kernels), len(methods))
    means = regret.reshape(*sizes, -1).mean(axis=1)  # cell, kernel, method, ridge
    return [
        {label: best_setting(grid, table[:, i]) for i, label in enumerate(methods)}
        for grid, table in zip(grids, means, strict=True)
    ]


def best_setting(grid: Grid, regret: FloatArray) -> Tuning:
    """Return the setting with the lowest regret; of equals, the one with the best neighbours.

    On a few dozen rows many settings make no mistake. The first of them would lie at the corner of
    the grid, where the kernel is narrowest and the ridge least.
    """
    from scipy.ndimage import uniform_filter

    around = uniform_filter(regret, size=3, mode="nearest")
    equal = np.isclose(regret, regret.min(), rtol=1e-9, atol=1e-12)
    row, column = np.unravel_index(np.where(equal, around, np.inf).argmin(), regret.shape)
    return Tuning(grid.kernels[row], grid.ridges[column], regret, grid)


def round_task(
    cell: Cell, method: Method, tuning: Tuning, budgets: tuple[int, ...], seed: int
) -> Task:
    """Return the work of one run, evaluated at every budget."""
    explore, exploit = cell.rounds[seed]
    arguments: dict[str, Any] = {
        "explore": explore,
        "exploit": exploit,
        "method": method,
        "kernel": tuning.kernel,
        "ridge": tuning.ridge,
        "scale": 1.0,
        "checkpoints": list(budgets),
        "seed": seed,
    }
    return Task(run_once, arguments)


def _setting(cell: Cell, label: str, tuning: Tuning) -> dict[str, Any]:
    row = tuning.grid.kernels.index(tuning.kernel)
    column = tuning.grid.ridges.index(tuning.ridge)
    return {
        "problem": cell.problem,
        "noise": cell.noise,
        "method": label,
        "spread": tuning.grid.bandwidths[row],
        "ridge": tuning.ridge,
        "held_out_regret": float(tuning.regret[row, column]),
        "on_edge": any(
            size > 1 and place in (0, size - 1)
            for place, size in zip((row, column), tuning.regret.shape, strict=True)
        ),
    }
