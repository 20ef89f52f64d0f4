"""The coverage experiment: how often intervals and certificates hold, against what is promised.

Every run draws a problem that meets Theorem 4.1's assumptions exactly: arms from the kernel's space
with a known norm, noise with a known sub-Gaussian scale. Arms are picked adaptively by the method
under the width on trial. After every step the truth at all contexts still to come, and at contexts
set aside for evaluation, is compared with its interval; one that is ever outside spoils the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base import checks
from contextgap.base.components import study_import
from contextgap.beliefs import Belief, Width
from contextgap.methods.explorers import Moment, explore
from contextgap.methods.method import METHODS
from contextgap.models import TrackedModel
from contextgap.studies.experiments.run import Progress, Result, Store, Task, execute
from coverage_trial.cells import (
    CoverageCell,
    coverage_cells,
    draw_contexts,
    draw_functions,
    draw_noise,
    random_source,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_CELL = ("kernel", "noise_kind", "order", "width")
_REPORTED = ("step", "outside", "understated", "certificate", "regret", "worst_regret")
_ROUNDING = 1e-9


def coverage(
    cells: Sequence[CoverageCell] | None = None,
    *,
    runs: int = 200,
    seed: int = 0,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Run every cell ``runs`` times; cells that differ in width only see the same problems.

    The table has one row per cell, run and checkpoint: ``outside`` and ``understated`` say whether,
    up to this step, a true value was ever outside its interval and a certificate ever below the
    true regret; ``certificate`` and ``regret`` are medians over the evaluated contexts, and
    ``worst_regret`` is the highest there.
    """
    cells = coverage_cells() if cells is None else cells
    if not cells:
        raise ValueError("cells must hold at least one CoverageCell, got none")
    numbers = range(seed, seed + checks.whole("runs", runs, least=1))
    places = list(product(cells, numbers))
    tasks = [Task(coverage_run, {"cell": cell, "seed": seed}) for cell, seed in places]
    results = execute(tasks, executor=executor, store=store, progress=progress)
    pandas = study_import("pandas")
    tables = [
        pandas.DataFrame(
            {
                "kernel": str(cell.kernel),
                "noise_kind": cell.noise_kind,
                "order": cell.order,
                "width": str(cell.width),
                "failure_probability": _allowed(cell.width),
                "seed": seed,
                **{name: values for name, values in result.items() if name != "seconds"},
            }
        )
        for (cell, seed), result in zip(places, results, strict=True)
    ]
    return pandas.concat(tables, ignore_index=True)


def coverage_table(records: DataFrame, *, by: Sequence[str] = _CELL) -> DataFrame:
    """Summarise the runs after their last step, with 95 % Clopper–Pearson limits of shares.

    Runs of cells alike in the columns ``by`` are pooled. Keep ``width`` among them: widths see the
    same problems, so pooling them would count a problem twice.
    """
    pandas = study_import("pandas")
    rows = []
    last = records[records["step"] == records["step"].max()]
    for label, group in last.groupby(list(by), sort=False):
        row = dict(zip(by, label, strict=True))
        row |= {"failure_probability": group["failure_probability"].max(), "runs": len(group)}
        for event in ("outside", "understated"):
            low, high = binomial_limits(int(group[event].sum()), len(group))
            row |= {event: group[event].mean(), f"{event}_low": low, f"{event}_high": high}
        row |= {name: group[name].median() for name in _REPORTED[3:]}
        rows.append(row)
    return pandas.DataFrame(rows)


def binomial_limits(count: int, of: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95 % limits for a probability."""
    from scipy.stats import binomtest  # slow to load

    limits = binomtest(count, of).proportion_ci(0.95, method="exact")
    return float(limits.low), float(limits.high)


def coverage_run(cell: CoverageCell, seed: int) -> Result:
    """Explore once; see after every step whether intervals and certificates hold.

    The seed fixes the problem whatever the width.
    """
    rng = random_source(cell, seed)
    points = draw_contexts(cell, rng)
    truth = draw_functions(cell.kernel, points, cell.n_arms, cell.norm, rng)
    observed = truth[: cell.steps] + draw_noise(cell, rng)
    model = TrackedModel(
        cell.kernel(points[: cell.steps], points),
        cell.kernel.diagonal(points),
        cell.ridge,
        cell.n_arms,
    )
    outside = understated = False
    reports = []
    for step in range(cell.steps + 1):
        belief = Belief(model.posterior_from(step), cell.width)
        ahead = truth[step:]
        error = np.abs(ahead - belief.mean)
        outside |= bool((error > belief.half_width + _ROUNDING).any())
        certificate = np.maximum(belief.gap.min(axis=-1), 0.0)
        regret = ahead.max(axis=-1) - ahead[np.arange(len(ahead)), belief.leader]
        understated |= bool((regret > certificate + _ROUNDING).any())
        if step == cell.steps or (step and step % cell.checkpoints == 0):
            bound, missed = certificate[-cell.evaluated :], regret[-cell.evaluated :]
            numbers = (np.median(bound), np.median(missed), missed.max())
            reports.append((step, outside, understated, *map(float, numbers)))
        if step < cell.steps:
            arm = _pick(model, cell.width, rng)
            model.observe(arm, float(observed[step, arm]))
    columns = zip(*reports, strict=True)
    return {name: list(values) for name, values in zip(_REPORTED, columns, strict=True)}


def _pick(model: TrackedModel, width: Width, rng: np.random.Generator) -> int:
    pulls = model.pulls.tolist()
    moment = Moment(lambda: Belief(model.posterior_now(), width), pulls, model.steps + 1, rng)
    return explore(moment, METHODS["contextual-gap"].explorer, burn_in=1)[0]


def _allowed(width: Width) -> float:
    return float("nan") if width.probability is None else 1.0 - width.probability
