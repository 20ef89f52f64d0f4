"""The commands that run experiments on known problems, and the one that plans an exploration."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base import components
from contextgap.beliefs import PosteriorWidth
from contextgap.cli.policies import CardRows, described_table, has_card, print_card
from contextgap.cli.terminal import (
    CORES,
    Bandwidth,
    CategoryColumns,
    ColumnOptions,
    CyclicColumns,
    Dask,
    Evaluate,
    Exclude,
    Explore,
    Fresh,
    GridSize,
    Jobs,
    Json,
    KernelName,
    Methods,
    ProblemName,
    Results,
    Seed,
    Separator,
    SkipMissing,
    cluster,
    command_line,
    complaints,
    err,
    list_option,
    noting_warnings,
    numbers_in,
    out,
    phases,
    print_json,
    print_table,
)
from contextgap.kernels import Gaussian, read_kernel
from contextgap.learner import Learner, StoppingRule
from contextgap.methods.method import METHODS, RECOMMENDED, Method, read_method
from contextgap.policy import Policy
from contextgap.studies.experiments import PAPER_METHODS, Grid, Study, tune_and_compare
from contextgap.studies.experiments.compare import (
    Pair,
    evaluate_defaults,
    final_regret,
    read_methods,
    same_rows,
    summarise_defaults,
    tune_all,
)
from contextgap.studies.experiments.paper import (
    AUTHORS,
    PAPER,
    STUDIES,
    Plan,
    Workshop,
    plan,
    reproduce,
    thinned,
)
from contextgap.studies.experiments.run import Store, explored, one_thread
from contextgap.studies.problems import (
    Classification,
    FixedData,
    MagnetometerBench,
    Maker,
    Problem,
    SensorLog,
    Sinusoids,
    Spacecraft,
    Table,
)
from contextgap.tables.contexts import Encoded, read_columns
from contextgap.tables.files import read_sheet

Context = Annotated[list[str] | None, list_option("Context columns of a file, comma-separated.")]
Rewards = Annotated[list[str] | None, list_option("Reward columns of a file, one per arm.")]
Noise = Annotated[list[str] | None, list_option("Noise columns of a sensor log.")]
Ordered = Annotated[bool, typer.Option(help="The file's rows are in time order.")]
Rows = Annotated[int | None, typer.Option(help="How many rows to use.", min=6)]

_SIMULATED: dict[str, Maker] = {
    "bench": MagnetometerBench(),
    "sinusoids": Sinusoids(),
    "spacecraft": Spacecraft(),
}
BUNDLED = (*_SIMULATED, "digits", "wine", "breast_cancer", "iris")


@dataclass(frozen=True)
class ProblemOptions(ColumnOptions):
    """The options on data; only tables need most of them."""

    context: Context = None
    rewards: Rewards = None
    noise: Noise = None
    separator: Separator = None
    skip_missing: SkipMissing = False
    ordered: Ordered = False
    rows: Rows = None
    explore: Explore = None
    evaluate: Evaluate = None

    def read(self, name: str, seed: int) -> Problem:
        if name in _SIMULATED:
            return _SIMULATED[name].sample(6000 if self.rows is None else self.rows, seed=seed)
        if name in BUNDLED or name.startswith("openml:"):
            return Classification(name.removeprefix("openml:")).sample(self.rows, seed=seed)
        if components.is_path(name):
            own = components.read("problem", name, (Problem, Maker), "Sinusoids()")
            return (_Own(own) if isinstance(own, Problem) else own).sample(self.rows, seed=seed)
        path = Path(name)
        if not path.suffix:
            raise ValueError(
                f"there is no problem {name!r}; bundled are {', '.join(BUNDLED)}; "
                "openml:NAME fetches one; your own are in a .csv, .parquet or .mat file, or at "
                f"{components.FORM}"
            )
        if self.rewards is not None:
            with noting_warnings():
                return self._table(path, self.rewards).sample(self.rows, seed=seed)
        return self._sensor_log(path).sample(self.rows)

    def _table(self, path: Path, rewards: Sequence[str]) -> Table:
        return Table(
            path,
            context=self.context,
            rewards=rewards,
            exclude=self.exclude or (),
            kinds=self.kinds,
            missing=self.missing or (),
            separator=self.separator,
            skip_missing=self.skip_missing,
            ordered=self.ordered,
        )

    def _sensor_log(self, path: Path) -> SensorLog:
        for name in ("exclude", "category", "cyclic", "missing", "separator", "skip_missing"):
            if getattr(self, name):
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is for tables; name every arm's reward by --rewards")
        if self.noise is None and path.suffix != ".mat":
            columns = read_sheet(path).columns
            if not any(name.startswith("noise") for name in columns):
                raise ValueError(
                    f"{path}: name the columns with every arm's reward by --rewards, or those with "
                    f"the sensors' noise by --noise; the columns are {', '.join(columns)}"
                )
        return SensorLog(path, noise=self.noise, telemetry=self.context)


@dataclass(frozen=True)
class _Own(FixedData):
    problem: Problem

    def load(self) -> Problem:
        return self.problem


_MOST = 1000  # rows to explore, and to deploy on
_CHECKPOINTS = 20
_METHODS = ["auto", "uniform", "kernel-ucb"]


def run_command(
    problem: ProblemName = "bench",
    methods: Methods = _METHODS,
    repetitions: Annotated[
        int, typer.Option(help="How many samples of the problem, with seeds from --seed on.", min=1)
    ] = 3,
    *,
    data: ProblemOptions,
    bandwidth: Bandwidth = None,
    kernel: KernelName = None,
    ridge: Annotated[
        float | None,
        typer.Option(
            help="Variance of the noise; learnt by default. Alone, contexts set the bandwidth."
        ),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Half width of intervals in standard deviations.")
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            help="Stop exploring for the saved policy once regret bounds are below this. "
            "Where hyperparameters are learnt anew, the certified share may fall again.",
            min=0,
        ),
    ] = None,
    share: Annotated[
        float, typer.Option(help="With --until: the share of held-out contexts.")
    ] = 0.95,
    card_rows: CardRows = None,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Results = Path("out/run"),
) -> Iterator[Any]:
    """Explore a problem with default settings, report the regret and save the policy.

    Hyperparameters are learnt from the rewards while exploring.

    Half of the rows are for exploring, the rest for deploying; by default at most 1000 each.

    The policy is the first method's, of the first repetition.
    """
    from contextgap.studies.report.studies import ranked, run_report, write

    with phases() as watch, workers(jobs, None) as executor:
        seeds = list(range(seed, seed + repetitions))
        samples = [data.read(problem, number) for number in seeds]
        reference, rounds = _parts(samples, data, held_out=until is not None)
        # "auto" gets the name of the method that it stands for.
        named = [read_method(name).name if name == "auto" else name for name in methods]
        contestants = read_methods(named)
        settings = _given_settings(rounds[0][0].inputs, kernel, bandwidth, ridge, scale)
        steps = len(rounds[0][0])
        first = next(iter(contestants.values()))
        rule = None if until is None else StoppingRule(until, share, reference)
        learn = partial(_policy, rounds[0][0], first, seed, settings, rule)
        waiting = None if executor is None else executor.submit(learn)  # while others explore
        results = evaluate_defaults(
            rounds,
            methods=contestants,
            checkpoints=_shares(steps, range(1, _CHECKPOINTS + 1), _CHECKPOINTS),
            full_checkpoints=_shares(steps, (1, 2, 4, 8), 8),
            seeds=seeds,
            settings=settings,
            executor=executor,
            progress=watch("exploring"),
        )
        watch("learning the policy")
        policy = learn() if waiting is None else waiting.result()
        card = policy.score(rows=card_rows) if has_card(policy) else None
        policy = Policy(replace(policy.state, card=card))
        watch("drawing")
        folder.mkdir(parents=True, exist_ok=True)
        policy.save(folder / "policy.cgap")
        results.write(folder)
        report = run_report(rounds, results, policy, card, settings=settings, seeds=seeds)
        page = write(report, folder, command_line(), watch.seconds)
    saving = None if until is None else _saving(policy, rounds[0], until)
    paths = {"report": str(page), "policy": str(folder / "policy.cgap")}
    summary = summarise_defaults(results.records).to_dict("records")
    yield {"results": summary, **paths, "stopping": saving}
    table, (explore, exploit) = ranked(results.records), rounds[0]
    times = "" if len(rounds) == 1 else f", {len(rounds)} times"
    title = f"{explore.name}: {len(explore)} steps explored, then deployed on {len(exploit)} rows"
    print_table(title + times, list(table.columns), table.to_numpy().tolist())
    if same_rows(rounds):
        out.print(
            "rows in time order, the same each time: errors show the methods' own randomness only",
        )
    print_card(policy)
    if saving is not None:
        out.print(
            f"{next(iter(contestants))} stopped after {saving['stopped_after']} of "
            f"{saving['of_steps']} steps ({100 * saving['saved']:.0f} % saved), average regret "
            f"{saving['average_regret']:.3g}; bounds: {saving['bounds']}",
        )
    out.print(f"policy: {folder / 'policy.cgap'}\nreport: {page}")


def _parts(
    samples: Sequence[Problem], sizes: ProblemOptions, *, held_out: bool
) -> tuple[Any, list[Pair]]:
    """Return contexts held out, if wanted, and the pairs of all samples."""
    rows = len(samples[0])
    explore = sizes.explore or min(_MOST, rows // 2)
    left = (rows - explore) // (2 if held_out else 1)
    evaluate = sizes.evaluate or min(_MOST, max(1, left))
    split = (evaluate, explore, evaluate) if held_out else (explore, evaluate)
    parts = [sample.split(*split) for sample in samples]
    reference = parts[0][0].inputs if held_out else None
    return reference, [(part[-2], part[-1]) for part in parts]


def _given_settings(
    contexts: Any,
    kernel: str | None,
    bandwidth: float | None,
    ridge: float | None,
    scale: float | None,
) -> dict[str, Any]:
    """Return what the user set; nothing if all is to be learnt."""
    settings: dict[str, Any] = {} if scale is None else {"width": PosteriorWidth(scale)}
    if kernel is not None and bandwidth is not None:
        raise ValueError(
            f"--bandwidth is a Gaussian kernel's, got {bandwidth:g} and the kernel {kernel}; "
            "leave one of the two out"
        )
    if kernel is not None:
        settings["kernel"] = read_kernel(kernel)
    elif bandwidth is not None:
        settings["kernel"] = replace(Gaussian.from_contexts(contexts), bandwidth=bandwidth)
    elif ridge is not None:  # learners take it with a kernel only
        settings["kernel"] = Gaussian.from_contexts(contexts)
    return settings if ridge is None else {**settings, "ridge": ridge}


def _shares(steps: int, parts: Iterable[int], whole: int) -> list[int]:
    return sorted({-(-steps * part // whole) for part in parts})


def _policy(
    explore: Problem,
    method: Method,
    seed: int,
    settings: Mapping[str, Any],
    rule: StoppingRule | None,
) -> Policy:
    learner = Learner(explore.arms, method=method, seed=seed, **settings)
    contexts: Any = explore.inputs
    if explore.columns is not None and explore.schema is None:
        contexts = [dict(zip(explore.columns, row, strict=True)) for row in contexts.tolist()]
    with one_thread():  # as in the comparison
        for _ in explored(learner, contexts, explore.observations):
            if rule is not None and learner.done(rule):
                break
        return learner.freeze()


def _saving(policy: Policy, pair: Pair, until: float) -> dict[str, Any]:
    explore, exploit = pair
    used, whole = sum(policy.counts.values()), len(explore)
    chosen = [exploit.arms.index(arm) for arm in policy.recommend(exploit.inputs)]
    return {
        "tolerance": until,
        "stopped_after": used,
        "of_steps": whole,
        "saved": 1 - used / whole,
        "average_regret": float(exploit.regret(chosen).mean()),
        "bounds": "heuristic" if policy.probability is None else policy.probability,
    }


_ALL = list(PAPER_METHODS)
_SCALES = ["1"]


def compare_command(
    problem: ProblemName = "sinusoids",
    methods: Methods = _ALL,
    scales: Annotated[
        list[str], list_option("Widths of the intervals, comma-separated.")
    ] = _SCALES,
    repetitions: Annotated[int, typer.Option(help="Shufflings of the data.", min=1)] = 10,
    *,
    data: ProblemOptions,
    checkpoints: Annotated[int, typer.Option(help="Steps between evaluations.", min=1)] = 50,
    kernel: KernelName = None,
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Results = Path("out/compare"),
    fresh: Fresh = False,
) -> Iterator[Any]:
    """Tune every method on held-out data, then compare them; continues where it stopped."""
    from contextgap.studies.report.studies import compare_report, write

    with (
        complaints(resume(folder)),
        phases() as watch,
        workers(jobs, dask) as executor,
    ):
        study = _study(problem, data, repetitions, seed)
        if problem == "spacecraft":
            missions = [data.read(problem, seed + i) for i in range(repetitions)]
            sizes = tuple(len(part) for part in study.hold_out)
            study = Study.of_each(missions, hold_out=sizes, evaluate=sizes)
        found = tune_and_compare(
            study,
            read_methods(methods),
            thinned(Grid.of(study.hold_out[0].inputs, kernel=kernel), grid),
            scales=numbers_in("--scales", scales, "0.5,1,2"),
            checkpoints=checkpoints,
            seed=seed,
            begin=watch,
            executor=executor,
            store=parts_of(folder, fresh),
        )
        found.results.write(folder)
        watch("drawing")
        report = compare_report(study, found.tunings, found.results)
        page = write(report, folder, command_line(), watch.seconds)
    summary = final_regret(found.results.records).to_dict("records")
    yield {"results": summary, "report": str(page)}
    _print_study(f"{study.name}: mean of {repetitions} repetitions", summary, page)


def tune_command(
    problem: ProblemName = "sinusoids",
    method: Annotated[str, typer.Option(help="Which method to tune.")] = RECOMMENDED,
    *,
    data: ProblemOptions,
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Results = Path("out/tune"),
) -> Iterator[Any]:
    """Find a good bandwidth and ridge on held-out rows."""
    from contextgap.studies.report import save, tuning_heat_map

    with phases() as watch, workers(jobs, None) as executor:
        study = _study(problem, data, 1, seed)
        found = tune_all(
            study.hold_out,
            read_methods([method]),
            thinned(Grid.of(study.hold_out[0].inputs), grid),
            PosteriorWidth(1.0),
            seed,
            executor=executor,
            progress=watch("tuning on held-out rows"),
        )[method]
        folder.mkdir(parents=True, exist_ok=True)
        save(tuning_heat_map({method: found}), folder, "tuning")
    kernel, tried = found.kernel, found.grid
    best = {"ridge": found.ridge, "average_regret": float(found.regret.min())}
    yield {
        "method": method,
        "bandwidth": kernel.bandwidth if isinstance(kernel, Gaussian) else str(kernel),
        **best,
        "on_edge": found.on_edge,
        "grid": {"bandwidth": tried.bandwidths, "unit": tried.unit, "ridge": tried.ridges},
        "regret": found.regret.tolist(),
    }
    rows = [["bandwidth", found.bandwidth]]
    rows += [[name.replace("_", " "), value] for name, value in best.items()]
    print_table(f"{study.name}, {method}: best of {found.regret.size}", ["setting", "value"], rows)
    out.print(f"bandwidth in {tried.unit}")
    if found.on_edge:
        out.print("the best setting lies on the grid's edge: a wider grid may do better")
    out.print(f"heat map: {folder / 'tuning.png'}")


def reproduce_command(
    study: Annotated[
        str, typer.Argument(help="sinusoids, bench, spacecraft, or all of the protocol's.")
    ] = "all",
    protocol: Annotated[
        str, typer.Option(help="paper: the text's; authors: that of the authors' code.")
    ] = PAPER,
    repetitions: Annotated[int, typer.Option(help="Repetitions or missions.", min=1)] = 10,
    explore: Explore = None,
    evaluate: Evaluate = None,
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Results = Path("out/reproduce"),
    fresh: Fresh = False,
    json: Json = False,
) -> None:
    """Reproduce every figure of the paper's studies, with a report of each."""
    from contextgap.studies.report.studies import reproduction_report, write

    answers = {}
    with complaints(resume(folder)):
        chosen = list(STUDIES) if study == "all" else [study]
        if protocol == AUTHORS and study == "all":
            chosen.remove("spacecraft")  # its channels share no unit
        for name in chosen:
            if name not in STUDIES:
                raise ValueError(f"study must be {', '.join(STUDIES)} or all, got {study!r}")
            with phases() as watch, workers(jobs, dask) as executor:
                place = folder / (name if protocol == PAPER else f"{name}-{protocol}")
                parts = parts_of(place, fresh)
                workshop = Workshop(executor, parts, watch, grid, protocol)
                if name == "sinusoids":
                    held_out = sizes = (explore or 2000, evaluate or 1000)
                else:
                    held_out = (min(explore or 1000, 1000), min(evaluate or 1000, 1000))
                    sizes = (explore or 3000, evaluate or 950)
                found = reproduce(
                    name,
                    workshop,
                    hold_out=held_out,
                    evaluate=sizes,
                    repetitions=repetitions,
                    seed=seed,
                )
                found.main.results.write(place)
                watch("drawing")
                page = write(reproduction_report(found), place, command_line(), watch.seconds)
            records = found.main.results.records
            summary = final_regret(records[records["scale"] == 1.0]).to_dict("records")
            answers[name] = {"results": summary, "report": str(page)}
            if not json:
                by = "the paper's text" if protocol == PAPER else "the authors' code"
                title = f"{name}, the protocol of {by}: mean of {repetitions} repetitions"
                _print_study(title, summary, page)
    if json:
        print_json(answers)


def parts_of(folder: Path, fresh: bool = False) -> Store:
    store = Store(folder / "parts")
    if fresh:
        store.clear()
    for version, count in store.of_other_versions().items():
        err.print(
            f"{count} parts by contextgap {version} in {folder / 'parts'} are kept but not used",
        )
    return store


@contextmanager
def workers(jobs: int, dask: str | None) -> Iterator[Executor | None]:
    if dask is not None:
        with cluster(dask) as client:
            yield client.get_executor()
    elif jobs == 1:
        yield None
    else:
        # Not fork, which copies BLAS threads; the main process acts on Ctrl-C.
        pool = ProcessPoolExecutor(
            jobs,
            mp_context=get_context("forkserver"),
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        )
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def resume(folder: Path) -> str:
    return f"finished parts are kept in {folder}; the same command goes on from there"


def _study(name: str, data: ProblemOptions, repetitions: int, seed: int) -> Study:
    problem = data.read(name, seed)
    sizes = (data.explore or len(problem) // 3, data.evaluate or len(problem) // 6)
    return Study.of(problem, hold_out=sizes, evaluate=sizes, repetitions=repetitions)


def _print_study(title: str, summary: Sequence[dict[Any, Any]], page: Path) -> None:
    rows = [list(row.values()) for row in summary]
    print_table(title, ["method", "scale", "average regret", "worst regret"], rows)
    out.print(f"report: {page}")


def plan_command(
    contexts: Annotated[Path, typer.Argument(help="A .csv or .parquet sample of contexts.")],
    arms: Annotated[int, typer.Option(help="Number of arms.", min=2)],
    noise: Annotated[float, typer.Option(help="Standard deviation of the rewards' noise.")],
    tolerance: Annotated[float, typer.Option(help="Largest acceptable simple regret.")],
    probability: Annotated[
        float, typer.Option(help="Probability of a regret within the tolerance.")
    ] = 0.9,
    steps: Annotated[
        int | None, typer.Option(help="Estimate the result of this many steps instead.", min=1)
    ] = None,
    norm: Annotated[
        float, typer.Option(help="Size of the rewards: RKHS norm bound, and prior deviation.")
    ] = 1.0,
    bandwidth: Annotated[
        float | None,
        typer.Option(help="Bandwidth of a Gaussian kernel; by default from the contexts."),
    ] = None,
    columns: Annotated[
        list[str] | None, list_option("Context columns, comma-separated; all by default.")
    ] = None,
    exclude: Exclude = None,
    category: CategoryColumns = None,
    cyclic: CyclicColumns = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "contextual-gap",
    budget: Annotated[
        int, typer.Option(help="Longest simulated exploration, in steps.", min=1)
    ] = 500,
    repetitions: Annotated[int, typer.Option(help="Number of simulated explorations.", min=2)] = 20,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the figure.")] = Path(
        "out/plan"
    ),
) -> Iterator[Any]:
    """Estimate how long to explore: by the theorem's formula and by simulation."""
    from contextgap.studies.report.figures import pilot_curve
    from contextgap.studies.report.page import save

    with phases() as watch, workers(jobs, None) as executor:
        said = ColumnOptions(exclude, category, cyclic)
        table, known = described_table(contexts, said, columns)
        intake = read_columns(known).read(table, learning=True)
        rows = Encoded(intake.rows, intake.schema)
        kernel = Gaussian.from_contexts(rows)
        if bandwidth is not None:
            kernel = replace(kernel, bandwidth=bandwidth)
        found = plan(
            rows,
            n_arms=arms,
            kernel=kernel,
            noise=noise,
            tolerance=tolerance,
            probability=probability,
            norm=norm,
            steps=steps,
            budget=budget,
            method=method,
            repetitions=repetitions,
            seed=seed,
            executor=executor,
            progress=watch("simulating explorations"),
        )
        folder.mkdir(parents=True, exist_ok=True)
        save(pilot_curve(found.pilot, tolerance), folder, "plan")
    facts = _facts(found)
    yield {**facts, "figure": str(folder / "plan.png")}
    shown = [["beyond the budget" if x is None else x for x in fact] for fact in facts.items()]
    print_table("how long to explore", ["", "value"], shown)
    out.print(
        "the theorem's numbers are what its formula gives, whose proof has an open gap; "
        "the pilot's are those of functions drawn from the prior; neither is a guarantee",
        soft_wrap=False,
    )
    out.print(f"figure: {folder / 'plan.png'}")


def _facts(found: Plan) -> dict[str, Any]:
    percent = f"{100 * found.probability:g} %"
    return {
        f"pilot: steps to {found.tolerance:g} in {percent}": found.pilot_steps,
        f"theorem: steps to {found.tolerance:g} in {percent}": found.theorem_steps,
        f"pilot: share within after {found.steps} steps": found.pilot_probability,
        f"theorem: probability after {found.steps} steps": found.theorem_probability,
        "theorem: burn-in pulls per arm": found.theorem.burn_in,
        "effective dimension": found.spectrum.effective_dimension,
        "eigenvalue floor": found.spectrum.eigenvalue_floor,
    }
