"""The coverage experiment: how often intervals and certificates hold, against what is promised.

Every run draws a problem that meets Theorem 4.1's assumptions exactly: arms from the kernel's space
with a known norm, noise with a known sub-Gaussian scale. Arms are picked adaptively by the method
under the width on trial. After every step the truth at all contexts still to come, and at contexts
set aside for evaluation, is compared with its interval; one that is ever outside spoils the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from contextgap import checks
from contextgap.arrays import FloatArray
from contextgap.belief import Belief
from contextgap.experiments.tasks import Progress, Result, Store, Task, execute
from contextgap.explorers import Moment, explore
from contextgap.kernels import Gaussian, Kernel, Matern, Periodic
from contextgap.methods import METHODS
from contextgap.models import TrackedModel
from contextgap.parts import Part
from contextgap.problems.extras import study_import
from contextgap.widths import TheoremWidth, Width

if TYPE_CHECKING:
    from pandas import DataFrame

NOISES = ("gaussian", "uniform")
ORDERS = ("iid", "drifting")
KERNELS: tuple[Kernel, ...] = (Gaussian(0.3), Matern(0.5, smoothness=1.5), Periodic(1.0, 2.0))

_CELL = ("kernel", "noise_kind", "order", "width")
_REPORTED = ("step", "outside", "understated", "certificate", "regret", "worst_regret")
_CENTRES = 12  # kernels that an arm's function is a sum of
_DIMENSION = 2
_WINDOW = 0.3  # share of the square that drifting contexts see at a time
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class CoverageCell(Part):
    """One kind of run.

    Parameters
    ----------
    kernel
        The arms' functions are in its space.
    width
        The width on trial.
    noise_kind
        ``"gaussian"``, or ``"uniform"`` with the same standard deviation; either is sub-Gaussian
        with that scale.
    order
        ``"iid"`` contexts, or ``"drifting"`` through the square.
    noise
        Standard deviation of the noise.
    norm
        Norm of every arm's function.
    ridge
        Regularisation; about where certificates are lowest for this noise and norm.
    n_arms
        Number of arms.
    steps
        Exploration steps.
    evaluated
        Contexts set aside, drawn from the whole square.
    checkpoints
        Report every so many steps.
    """

    kernel: Kernel
    width: Width
    noise_kind: str = "gaussian"
    order: str = "iid"
    noise: float = 0.1
    norm: float = 1.0
    ridge: float = 0.2
    n_arms: int = 3
    steps: int = 150
    evaluated: int = 60
    checkpoints: int = 25

    def __post_init__(self) -> None:
        checks.instance("kernel", self.kernel, Kernel, "Gaussian(0.3)")
        checks.instance("width", self.width, Width, "TheoremWidth(0.1, 1.0, 0.1)")
        for name, allowed in (("noise_kind", NOISES), ("order", ORDERS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        checks.at_least("noise", self.noise, 0, "a standard deviation")
        checks.positive("norm", self.norm, "1 gives rewards of up to about 1")
        checks.positive("ridge", self.ridge, "0.01 to 1 suits rewards of unit spread")
        for name in ("n_arms", "steps", "evaluated", "checkpoints"):
            checks.whole(name, getattr(self, name), least=1)


def theorem_widths(
    noise: float = 0.1, norm: float = 1.0, failure_probabilities: Sequence[float] = (0.1, 0.01)
) -> tuple[TheoremWidth, ...]:
    """Return the theorem's width and the tighter one, at every failure probability.

    Parameters
    ----------
    noise
        Sub-Gaussian scale of the noise.
    norm
        Bound on every arm's norm.
    failure_probabilities
        The promises to try.
    """
    return tuple(
        TheoremWidth(noise, norm, failure, tight)
        for failure, tight in product(failure_probabilities, (False, True))
    )


def coverage_cells(
    widths: Sequence[Width] | None = None,
    *,
    kernels: Sequence[Kernel] = KERNELS,
    noise_kinds: Sequence[str] = NOISES,
    orders: Sequence[str] = ORDERS,
    **settings: Any,
) -> list[CoverageCell]:
    """Return every combination of width, kernel, noise and order of contexts.

    Parameters
    ----------
    widths
        Widths on trial; by default ``theorem_widths``, told the true noise and norm.
    kernels
        Kernels.
    noise_kinds
        Kinds of noise.
    orders
        Orders of contexts.
    **settings
        Other settings of ``CoverageCell``, the same for all.
    """
    if widths is None:
        widths = theorem_widths(settings.get("noise", 0.1), settings.get("norm", 1.0))
    return [
        CoverageCell(kernel=kernel, width=width, noise_kind=noise_kind, order=order, **settings)
        for kernel, noise_kind, order, width in product(kernels, noise_kinds, orders, widths)
    ]


def coverage(
    cells: Sequence[CoverageCell] | None = None,
    *,
    runs: int = 200,
    seed: int = 0,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Run every cell ``runs`` times.

    Parameters
    ----------
    cells
        What to run; all of ``coverage_cells()`` by default.
    runs
        Runs per cell; cells that differ in width only see the same problems.
    seed
        Seed of the first run; the others' follow.
    executor
        Any ``concurrent.futures.Executor``; None does the work here.
    store
        Where results are kept as they finish.
    progress
        Called with the numbers of finished and of all runs.

    Returns
    -------
    records
        One row per cell, run and checkpoint: ``outside`` and ``understated`` say whether, up to
        this step, a true value was ever outside its interval and a certificate ever below the true
        regret; ``certificate`` and ``regret`` are medians over the evaluated contexts, and
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
    """Summarise the runs after their last step.

    Parameters
    ----------
    records
        What ``coverage`` returned.
    by
        Columns that tell cells apart; runs of cells alike in these are pooled. Keep ``width`` among
        them: widths see the same problems, so pooling them would count a problem twice.

    Returns
    -------
    table
        For each cell the number of runs and the promised failure probability; the share of runs
        with a value outside its interval, and with an understated certificate, each with its 95 %
        Clopper–Pearson limits; medians of certificate, regret and worst regret.
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


def binomial_limits(count: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's limits for a probability.

    Parameters
    ----------
    count
        How often the event happened.
    of
        How often it could have.
    level
        Confidence level.
    """
    from scipy.stats import binomtest  # slow to load

    limits = binomtest(count, of).proportion_ci(level, method="exact")
    return float(limits.low), float(limits.high)


def coverage_run(cell: CoverageCell, seed: int) -> Result:
    """Explore once; see after every step whether intervals and certificates hold.

    Parameters
    ----------
    cell
        What to run.
    seed
        Makes the run repeatable; it fixes the problem whatever the width.
    """
    rng = _random_source(cell, seed)
    points = draw_contexts(cell, rng)
    truth = draw_functions(cell.kernel, points, cell.n_arms, cell.norm, rng)
    observed = truth[: cell.steps] + _draw_noise(cell, rng)
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


def draw_contexts(cell: CoverageCell, rng: np.random.Generator) -> FloatArray:
    """Return contexts of the unit square: those to explore, in order, then those to evaluate.

    Parameters
    ----------
    cell
        How many, and in which order.
    rng
        The source of randomness.
    """
    points = rng.uniform(size=(cell.steps + cell.evaluated, _DIMENSION))
    if cell.order == "drifting":
        start = np.linspace(0.0, 1.0 - _WINDOW, cell.steps)[:, None]
        points[: cell.steps] = start + _WINDOW * points[: cell.steps]
    return points


def draw_functions(
    kernel: Kernel, points: FloatArray, n_arms: int, norm: float, rng: np.random.Generator
) -> FloatArray:
    """Return values of random functions of exactly the given norm, shape (points, arms).

    Each is a sum of kernels Σ cᵢ k(xᵢ, ·) at random centres, whose norm is √(cᵀKc).

    Parameters
    ----------
    kernel
        Its space holds the functions.
    points
        Where to evaluate, in the unit cube.
    n_arms
        How many functions.
    norm
        Their norm.
    rng
        The source of randomness.
    """
    values = np.empty((len(points), n_arms))
    for arm in range(n_arms):
        centres = rng.uniform(size=(_CENTRES, points.shape[1]))
        weights = rng.standard_normal(_CENTRES)
        weights *= norm / np.sqrt(weights @ kernel(centres, centres) @ weights)
        values[:, arm] = kernel(points, centres) @ weights
    return values


def _random_source(cell: CoverageCell, seed: int) -> np.random.Generator:
    # Kinds of problems must not share their draws, or pooling them would count a run twice; widths
    # share them on purpose, to be compared on the same problems.
    kind = f"{cell.kernel} {cell.noise_kind} {cell.order}"
    return np.random.default_rng([seed, crc32(kind.encode())])


def _draw_noise(cell: CoverageCell, rng: np.random.Generator) -> FloatArray:
    shape = (cell.steps, cell.n_arms)
    if cell.noise_kind == "gaussian":
        return np.asarray(cell.noise * rng.standard_normal(shape))
    # E exp(sζ) = sinh(sb)/(sb) ≤ exp(s²b²/6): uniform noise on ±b is sub-Gaussian with its own
    # standard deviation b/√3, so the promise is not helped by a loose scale.
    return np.asarray(cell.noise * np.sqrt(3.0) * rng.uniform(-1.0, 1.0, size=shape))


def _pick(model: TrackedModel, width: Width, rng: np.random.Generator) -> int:
    pulls = model.pulls.tolist()
    moment = Moment(lambda: Belief(model.posterior_now(), width), pulls, model.steps + 1, rng)
    return explore(moment, METHODS["contextual-gap"].explorer, burn_in=1)[0]


def _allowed(width: Width) -> float:
    return float("nan") if width.probability is None else 1.0 - width.probability
