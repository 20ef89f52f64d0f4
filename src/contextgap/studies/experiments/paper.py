"""How long to explore, by the paper's theorem and by a pilot; and the paper's studies, reproduced.

REPRO
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contextgap.base import checks
from contextgap.base.components import study_import
from contextgap.beliefs import PosteriorWidth, RidgeWidth
from contextgap.kernels import Kernel
from contextgap.methods.explorers import ContextualGap, KernelTS, Moment, Uniform
from contextgap.methods.method import Method, read_method
from contextgap.methods.recommenders import (
    Choice,
    Evidence,
    HighestMean,
    Recommender,
    SmallestGapInHistory,
)
from contextgap.methods.recommenders.rules import context_normals
from contextgap.studies.experiments.compare import (
    PAPER_BANDWIDTHS,
    PAPER_METHODS,
    PAPER_RIDGES,
    PAPER_SCALES,
    Comparison,
    Entry,
    Grid,
    GridSearch,
    Pair,
    Results,
    ScaledWidth,
    Study,
    conduct,
    read_methods,
    scaled_entries,
    tune_all,
    tune_and_compare,
)
from contextgap.studies.experiments.run import (
    Progress,
    Result,
    Store,
    Task,
    execute,
    fly,
    rows_reached,
    run,
)
from contextgap.studies.problems import MagnetometerBench, Problem, Sinusoids, Spacecraft
from contextgap.studies.problems.spacecraft import SENSORS
from contextgap.studies.theory import RegretBound, Spectrum, spectrum
from contextgap.tables.contexts import ContextSchema

if TYPE_CHECKING:
    from pandas import DataFrame


def pilot(
    contexts: Any,
    *,
    n_arms: int,
    kernel: Kernel,
    noise: float,
    budget: int,
    reward_scale: float = 1.0,
    method: str | Method = "contextual-gap",
    repetitions: int = 20,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> DataFrame:
    """Simulate explorations of random problems on a sample of contexts.

    Every repetition draws one function per arm from the Gaussian process with the kernel, explores
    ``budget`` contexts drawn from the sample and evaluates on the sample.

    Parameters
    ----------
    contexts
        A sample of the contexts to come, shape (n, d) or a DataFrame.
    n_arms
        Number of arms.
    kernel
        How fast rewards change with the context.
    noise
        Standard deviation of the rewards' noise.
    budget
        The longest exploration to consider.
    reward_scale
        Standard deviation of an arm's expected reward over contexts and functions.
    method
        A name from ``METHODS``, or a ``Method``.
    repetitions
        How many random problems to draw.
    seed
        Seed of the draws.
    executor, progress
        As of ``compare``.

    Returns
    -------
    table
        One row per repetition and checkpoint: average and worst simple regret.

    See Also
    --------
    experiments.plan : How long to explore.

    Examples
    --------
    >>> table = cg.experiments.pilot(
    ...     contexts, n_arms=2, kernel=cg.Gaussian(0.5), noise=0.1, budget=20, repetitions=2
    ... )
    >>> table.columns.tolist()
    ['seed', 'checkpoint', 'average_regret', 'worst_regret']
    """
    intake = ContextSchema().read(contexts, learning=True)
    if intake.single or len(intake.rows) < 2:
        raise ValueError("contexts must be a sample of at least 2 contexts (2-D)")
    kernel.check_dimension(intake.rows.shape[1])
    common = {
        "rows": intake.rows.tolist(),
        "kernel": kernel,
        "method": read_method(method),
        "n_arms": checks.whole("n_arms", n_arms, least=1),
        "budget": checks.whole("budget", budget, least=1),
        "noise": checks.at_least("noise", noise, 0, "a standard deviation"),
        "reward_scale": checks.positive("reward_scale", reward_scale, "a standard deviation"),
    }
    tasks = [
        Task(explore_once, {**common, "seed": [seed, number]}, {"seed": number})
        for number in range(repetitions)
    ]
    results = execute(tasks, executor=executor, progress=progress)
    return study_import("pandas").DataFrame(rows_reached(tasks, results))


def explore_once(
    rows: list[list[float]],
    kernel: Kernel,
    method: Method,
    n_arms: int,
    budget: int,
    noise: float,
    reward_scale: float,
    seed: Sequence[int],
) -> Result:
    rng = np.random.default_rng(seed)
    contexts = np.array(rows)
    if len(contexts) > 1000:
        contexts = contexts[rng.choice(len(contexts), 1000, replace=False)]
    # Scaled so that an arm's expected reward has the standard deviation asked for.
    prior = float(reward_scale**2 / kernel.diagonal(contexts).mean()) * kernel
    # One function per arm from the Gaussian process with the kernel, at the contexts.
    eigenvalues, vectors = np.linalg.eigh(prior(contexts, contexts))
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    values = root @ rng.standard_normal((len(contexts), n_arms))
    tried = rng.integers(len(contexts), size=budget)
    observed = values[tried] + noise * rng.standard_normal((budget, n_arms))
    explore = Problem(
        name="pilot", contexts=contexts[tried], rewards=values[tried], observations=observed
    )
    exploit = Problem(name="pilot", contexts=contexts, rewards=values)
    trace = run(
        explore,
        exploit,
        method=method,
        kernel=prior,
        ridge=max(noise, 1e-3 * reward_scale) ** 2,  # the noise's variance: the Bayesian choice
        width=PosteriorWidth(1.0),
        checkpoints=max(1, budget // 40),
        seed=int(rng.integers(2**31)),
    )
    return {"reached": trace.rows()}


def budget_for(table: DataFrame, tolerance: float, probability: float) -> int | None:
    """Return after how many steps regret stays within the tolerance often enough; None if never."""
    within = (table["average_regret"] <= tolerance).groupby(table["checkpoint"]).mean()
    # From that checkpoint on: one lucky checkpoint is not enough.
    lasting = within[::-1].cummin()[::-1]
    enough = lasting[lasting >= probability]
    return None if enough.empty else int(enough.index[0])


@dataclass(frozen=True, eq=False)
class Plan:
    """How long to explore, by the theorem and by the pilot.

    Parameters
    ----------
    tolerance
        The simple regret that may be left.
    probability
        The probability of staying within the tolerance.
    spectrum
        What was estimated of the contexts.
    theorem
        Theorem 5.3's formula with these numbers, for arms that are all equally good.
    theorem_steps
        Steps after which the formula gives tolerance and probability.
    steps
        The exploration length asked about; by default the longest of the pilot.
    theorem_probability
        The probability it gives after those steps; 0 where it says nothing.
    pilot
        Regret of simulated explorations by steps, as ``experiments.pilot`` returns it.
    pilot_steps
        Steps after which the average regret was within the tolerance in that share of simulated
        explorations; None where the longest was too short.
    pilot_probability
        In which share it was within the tolerance after ``steps``.
    """

    tolerance: float
    probability: float
    spectrum: Spectrum
    theorem: RegretBound
    theorem_steps: int
    steps: int
    theorem_probability: float
    pilot: DataFrame
    pilot_steps: int | None
    pilot_probability: float


def plan(
    contexts: Any,
    *,
    n_arms: int,
    kernel: Kernel,
    noise: float,
    tolerance: float,
    probability: float = 0.9,
    norm: float = 1.0,
    ridge: float | None = None,
    steps: int | None = None,
    budget: int = 500,
    method: str | Method = "contextual-gap",
    repetitions: int = 20,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Return how long to explore, or what to expect of a given number of steps.

    Neither number is a guarantee. The theorem's is what its formula asks for: its proof has a gap
    that is open (docs/theory.md), the kernel's rank is taken to be the dimension estimated from the
    contexts, and its constants are loose. The pilot says what happens for functions drawn from the
    prior.

    Parameters
    ----------
    contexts, n_arms, kernel
        As of ``pilot``.
    noise
        Standard deviation (sub-Gaussian scale) of the rewards' noise, positive.
    tolerance
        The simple regret that may be left.
    probability
        The probability of staying within the tolerance.
    norm
        Bound on every arm's norm in the kernel's space, for the theorem; for the pilot, the
        standard deviation of an arm's expected reward.
    ridge
        Regularisation in the theorem; noise² / norm² by default.
    steps
        Ask about this exploration length.
    budget, method, repetitions, seed, executor, progress
        As of ``pilot``.

    See Also
    --------
    experiments.pilot : The simulation alone.

    Examples
    --------
    >>> kernel, noise = cg.Gaussian(0.5), 0.1
    >>> plan = cg.experiments.plan(
    ...     contexts, n_arms=2, kernel=kernel, noise=noise, tolerance=0.5, budget=20, repetitions=2
    ... )
    >>> plan.pilot_steps
    5
    """
    tolerance = checks.positive("tolerance", tolerance, "a simple regret")
    noise = checks.positive("noise", noise, "a standard deviation")
    norm = checks.positive("norm", norm, "about the size of the rewards")
    if not 0 < checks.real("probability", probability) < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability!r}")
    asked = budget if steps is None else checks.whole("steps", steps, least=1)
    estimated = spectrum(contexts, kernel)
    theorem = RegretBound(
        n_arms=n_arms,
        hardness=n_arms / tolerance**2,  # the worst case: all arms equally good
        noise=noise,
        norm=norm,
        ridge=noise**2 / norm**2 if ridge is None else ridge,
        spectrum=estimated,
        failure_probability=min(1 / 8, (1 - probability) / (2 * n_arms)),
    )
    table = pilot(
        contexts,
        n_arms=n_arms,
        kernel=kernel,
        noise=noise,
        budget=max(budget, asked),
        reward_scale=norm,
        method=method,
        repetitions=repetitions,
        seed=seed,
        executor=executor,
        progress=progress,
    )
    at = table["checkpoint"][table["checkpoint"] <= asked].max()
    within = table[table["checkpoint"] == at]["average_regret"] <= tolerance
    return Plan(
        tolerance=tolerance,
        probability=probability,
        spectrum=estimated,
        theorem=theorem,
        theorem_steps=theorem.steps_for(probability),
        steps=asked,
        theorem_probability=theorem.probability(asked),
        pilot=table,
        pilot_steps=budget_for(table, tolerance, probability),
        pilot_probability=float(within.mean()),
    )


HISTORIES = {"last step": 1, "last 25 steps": 25, "all steps": None}
PAPER, AUTHORS = PROTOCOLS = ("paper", "authors")


@dataclass(frozen=True)
class RootTS(KernelTS):
    """Kernel-TS as the authors' code draws: the half width is the draw's variance."""

    def pick(self, moment: Moment) -> int:
        """Return argmax of a draw whose standard deviations are the half widths' roots."""
        belief = moment.belief
        normals = moment.rng.standard_normal(len(belief.mean))
        return int((belief.mean + np.sqrt(belief.half_width) * normals).argmax())


@dataclass(frozen=True)
class RootSample(Recommender):
    """Deploy the highest of one draw per arm whose variance is the half width."""

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm of the highest draw, and its gap."""
        belief = evidence.belief
        normals = context_normals(evidence.contexts, evidence.columns, evidence.seed)
        arm = (belief.mean + np.sqrt(belief.half_width) * normals).argmax(axis=-1)
        return Choice(arm, np.take_along_axis(belief.gap, arm[:, None], axis=-1)[:, 0])


def protocol_methods(protocol: str) -> dict[str, Method]:
    methods = read_methods(PAPER_METHODS)
    if protocol == AUTHORS:
        methods["uniform"] = Method(explorer=Uniform(random=True), recommender=HighestMean())
        methods["kernel-ts"] = Method(explorer=RootTS(), recommender=RootSample())
    return methods


def protocol_width(protocol: str) -> ScaledWidth:
    """Return the half width of a protocol at scale 1; section 4.1 of the text divides by √ridge."""
    return PosteriorWidth() if protocol == AUTHORS else RidgeWidth()


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One of the paper's studies; what was not asked for is None."""

    study: Study
    main: Comparison  # every method, tuned, at all scales
    over_grid: dict[str, GridSearch]  # the grid's regret on the first repetition's rows, by method
    history: Results | None = None  # deployed by the last step, the last 25 and all steps
    wider: Comparison | None = None  # tuned on a wider grid and compared at scale 1
    flights: tuple[tuple[Problem, ...], DataFrame] | None = None  # in alternating phases, by orbit
    protocol: str = PAPER


@dataclass(frozen=True)
class Workshop:
    executor: Executor | None = None
    store: Store | None = None  # keeps results as they finish; with the same one, work goes on
    progress: Callable[[str], Progress | None] = lambda _: None  # what counts the tasks of a phase
    grid_size: int = 10  # below 10 thins the grids out
    protocol: str = PAPER  # what the text says, or AUTHORS for what its authors' code does

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be {' or '.join(PROTOCOLS)}, got {self.protocol!r}")

    def how(self, phase: str) -> dict[str, Any]:
        watch = self.progress(phase)
        return {"executor": self.executor, "store": self.store, "progress": watch}

    def compared(
        self, study: Study, grid: Grid, scales: tuple[float, ...], where: str
    ) -> Comparison:
        found = tune_and_compare(
            study,
            protocol_methods(self.protocol),
            thinned(grid, self.grid_size),
            scales=scales,
            width=protocol_width(self.protocol),
            checkpoints=self.checkpoints(study),
            begin=lambda phase: self.progress(f"{phase}, {where}"),
            executor=self.executor,
            store=self.store,
        )
        if self.protocol == AUTHORS:  # steps are counted behind the first rewards
            found.results.records["checkpoint"] -= study.rounds[0][0].n_arms
        return found

    def checkpoints(self, study: Study) -> list[int]:
        """Return the numbers of rewards after which to deploy: every 50, and all of them."""
        explore = study.rounds[0][0]
        first = explore.n_arms if self.protocol == AUTHORS else 0
        return [*range(first + 50, len(explore), 50), len(explore)]

    def over_grid(self, study: Study, main: Comparison) -> dict[str, GridSearch]:
        grid = next(iter(main.tunings.values())).grid
        methods, width = protocol_methods(self.protocol), protocol_width(self.protocol)
        return tune_all(study.rounds[0], methods, grid, width, 0, **self.how("the whole grid"))

    def looked_back(self, study: Study, tuning: GridSearch) -> Results:
        methods = {
            label: Method(explorer=ContextualGap(), recommender=SmallestGapInHistory(last))
            for label, last in HISTORIES.items()
        }
        tunings = dict.fromkeys(methods, tuning)
        entries = scaled_entries(methods, tunings, (1.0,), protocol_width(self.protocol))
        return conduct(study, entries, 50, **self.how("looking back"))


def reproduce(
    name: str,
    workshop: Workshop,
    *,
    hold_out: tuple[int, int],
    evaluate: tuple[int, int],
    repetitions: int = 10,
    seed: int = 0,
) -> Reproduction:
    authors = workshop.protocol == AUTHORS
    study, problems = STUDIES[name]((hold_out, evaluate), repetitions, seed, authors)
    contexts = study.hold_out[0].contexts
    # Channels of a flight have no common unit: each has a bandwidth in proportion to its spread.
    usual = () if name == "spacecraft" else (PAPER_BANDWIDTHS, PAPER_RIDGES)
    where = "the paper's grid" if name == "sinusoids" else "four scales"
    main = workshop.compared(study, Grid.of(contexts, *usual), PAPER_SCALES, where)
    found = Reproduction(study, main, workshop.over_grid(study, main), protocol=workshop.protocol)
    if authors:
        return found
    found = replace(found, history=workshop.looked_back(study, main.tunings["contextual-gap"]))
    if name == "sinusoids":
        wider = workshop.compared(study, Grid.of(contexts), (1.0,), "a wider grid")
        return replace(found, wider=wider)
    if name == "spacecraft":
        methods = protocol_methods(PAPER)
        entries = scaled_entries(methods, main.tunings, (1.0,), protocol_width(PAPER))
        flights = fly_all(problems, entries, **workshop.how("flying"))
        return replace(found, flights=(tuple(problems), flights))
    return found


_Sizes: TypeAlias = Sequence[tuple[int, int]]  # rows to explore and exploit: held out, compared
_Made: TypeAlias = tuple[Study, Sequence[Problem]]  # and the problems it was made of


def _sinusoids(asked: _Sizes, repetitions: int, seed: int, authors: bool) -> _Made:
    """Return the synthetic study; every repetition shuffles the rows to compare on anew.

    By the authors' protocol, arms pay sin(0·x) to sin(19·x), and each first has one reward more: 1
    where it is the best arm, and 0 elsewhere.
    """
    maker = Sinusoids(first=0 if authors else 1)
    sizes = _with_first_rows(asked, authors * maker.n_arms)
    problem = replace(maker.sample(sum(map(sum, sizes)), seed=seed), name="sinusoids")
    study = Study.of(problem, hold_out=sizes[0], evaluate=sizes[1], repetitions=repetitions)
    if authors:
        study = _with_first_rewards(study, lambda rows: rows.ranks == 1)
    return study, [problem]


def _bench(asked: _Sizes, repetitions: int, seed: int, authors: bool) -> _Made:
    """Return the magnetometer study on recorded runs of the bench, one per repetition.

    All channels are divided by one unit, the smallest of their largest values in the first run, and
    have one bandwidth. By the text's protocol all rows stay in time order; by the authors', only
    those held out for tuning do, and every sensor first has one reward more, of 0.
    """
    maker = MagnetometerBench(sequence=True)
    sizes = _with_first_rows(asked, authors * len(SENSORS))
    rows, kept = sum(map(sum, sizes)), sum(sizes[0])
    runs = [maker.sample(rows, seed=seed + i) for i in range(repetitions)]
    largest = runs[0].contexts.max(axis=0)
    unit = largest[largest > 0].min()
    runs = [replace(run, contexts=run.contexts / unit) for run in runs]
    if authors:
        orders = (np.random.default_rng(i).permutation(rows - kept) for i in range(repetitions))
        behind = [np.concatenate([np.arange(kept), kept + order]) for order in orders]
        runs = [run.take(order) for run, order in zip(runs, behind, strict=True)]
    study = Study.of_each(runs, hold_out=sizes[0], evaluate=sizes[1])
    if authors:
        study = _with_first_rewards(study, lambda rows: np.zeros_like(rows.rewards))
    return study, runs


def _spacecraft(sizes: _Sizes, repetitions: int, seed: int, authors: bool) -> _Made:
    if authors:
        raise ValueError(
            "the authors' protocol divides all channels by one unit, and a flight's (A, °C, rpm, "
            "nT) have none in common; it is for the studies sinusoids and bench"
        )
    rows = sum(map(sum, sizes))
    missions = [Spacecraft().sample(rows, seed=seed + i) for i in range(repetitions)]
    return Study.of_each(missions, hold_out=sizes[0], evaluate=sizes[1]), missions


STUDIES: dict[str, Callable[..., _Made]] = {
    "sinusoids": _sinusoids,
    "bench": _bench,
    "spacecraft": _spacecraft,
}


def _with_first_rows(sizes: _Sizes, first: int) -> _Sizes:
    return [(explore + first, exploit) for explore, exploit in sizes]


def _with_first_rewards(study: Study, first: Callable[[Problem], Any]) -> Study:
    """Return a study in which each arm's first observation, in the burn-in, is another one."""

    def changed(pair: Pair) -> Pair:
        explore, exploit = pair
        observations = np.array(explore.observations)
        observations[: explore.n_arms] = first(explore)[: explore.n_arms]
        return replace(explore, observations=observations), exploit

    rounds = tuple(changed(pair) for pair in study.rounds)
    return replace(study, hold_out=changed(study.hold_out), rounds=rounds)


def thinned(grid: Grid, size: int) -> Grid:
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


def fly_all(missions: Sequence[Problem], entries: Sequence[Entry], **how: Any) -> DataFrame:
    """Fly every mission, its place the seed, with every entry; return regret by orbit."""
    pandas = study_import("pandas")
    tasks = [
        Task(
            fly_once,
            {"mission": mission, **entry.settings, "seed": seed},
            {"method": entry.label, "seed": seed},
        )
        for entry in entries
        for seed, mission in enumerate(missions)
    ]
    tables = [
        pandas.DataFrame({**task.label, **result}).drop(columns="seconds")
        for task, result in zip(tasks, execute(tasks, **how), strict=True)
    ]
    return pandas.concat(tables, ignore_index=True)


def fly_once(mission: Any, *, scale: float, width: ScaledWidth, **how: Any) -> Result:
    trace = fly(mission, width=replace(width, scale=scale), **how)
    deployed = mission.orbit_number[trace.deployed]
    return {
        "orbit": trace.orbits.tolist(),
        "steps": [int((deployed == orbit).sum()) for orbit in trace.orbits],
        "average_regret": trace.average_regret.tolist(),
        "best_single": trace.best_single.tolist(),
        "random": trace.random.tolist(),
    }
