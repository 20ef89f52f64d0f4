"""The commands that tune methods on held-out rows: compare, tune and reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.beliefs.widths import PosteriorWidth
from contextgap.cli.options import (
    CORES,
    Dask,
    Evaluate,
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
    list_option,
    numbers_in,
    with_groups,
)
from contextgap.cli.problems import ProblemOptions
from contextgap.cli.terminal import command_line, complaints, out, phases, print_json, print_table
from contextgap.cli.workers import parts_of, workers
from contextgap.kernels import Gaussian
from contextgap.methods.method import RECOMMENDED
from contextgap.studies.experiments import PAPER_METHODS, Grid, Study, tune_and_compare
from contextgap.studies.experiments.compare import final_regret, read_methods
from contextgap.studies.experiments.reproduce import (
    AUTHORS,
    PAPER,
    STUDIES,
    Workshop,
    reproduce,
    thinned,
)
from contextgap.studies.experiments.tune import tune_all

_ALL = list(PAPER_METHODS)
_SCALES = ["1"]


@with_groups
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
    json: Json = False,
) -> None:
    """Tune every method on held-out data, then compare them; continues where it stopped."""
    from contextgap.studies.report.studies import compare_report, write

    with complaints(resume(folder)), phases() as watch, workers(jobs, dask) as executor:
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
    if json:
        print_json({"results": summary, "report": str(page)})
        return
    _print_summary(f"{study.name}: mean of {repetitions} repetitions", summary, page)


@with_groups
def tune_command(
    problem: ProblemName = "sinusoids",
    method: Annotated[str, typer.Option(help="Which method to tune.")] = RECOMMENDED,
    *,
    data: ProblemOptions,
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Results = Path("out/tune"),
    json: Json = False,
) -> None:
    """Find a good bandwidth and ridge on held-out rows."""
    from contextgap.studies.report import save, tuning_heat_map

    with complaints(), phases() as watch, workers(jobs, None) as executor:
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
    if json:
        print_json(
            {
                "method": method,
                "bandwidth": kernel.bandwidth if isinstance(kernel, Gaussian) else str(kernel),
                **best,
                "on_edge": found.on_edge,
                "grid": {"bandwidth": tried.bandwidths, "unit": tried.unit, "ridge": tried.ridges},
                "regret": found.regret.tolist(),
            }
        )
        return
    rows = [["bandwidth", found.bandwidth]]
    rows += [[name.replace("_", " "), value] for name, value in best.items()]
    print_table(f"{study.name}, {method}: best of {found.regret.size}", ["setting", "value"], rows)
    out.print(f"bandwidth in {tried.unit}")
    if found.on_edge:
        out.print("the best setting lies on the grid's edge: a wider grid may do better")
    out.print(f"heat map: {folder / 'tuning.png'}", soft_wrap=True)


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
    from contextgap.studies.report.reproduction import reproduction_report
    from contextgap.studies.report.studies import write

    answers = {}
    with complaints(resume(folder)):
        chosen = list(STUDIES) if study == "all" else [study]
        if protocol == AUTHORS and study == "all":
            chosen.remove("spacecraft")  # whose channels have no unit in common
        for name in chosen:
            if name not in STUDIES:
                raise ValueError(f"study must be {', '.join(STUDIES)} or all, got {study!r}")
            with phases() as watch, workers(jobs, dask) as executor:
                place = folder / (name if protocol == PAPER else f"{name}-{protocol}")
                parts = parts_of(place, fresh)
                workshop = Workshop(executor, parts, watch, grid, protocol)
                sizes = _paper_sizes(name, explore, evaluate)
                found = reproduce(name, workshop, **sizes, repetitions=repetitions, seed=seed)
                found.main.results.write(place)
                watch("drawing")
                page = write(reproduction_report(found), place, command_line(), watch.seconds)
            records = found.main.results.records
            summary = final_regret(records[records["scale"] == 1.0]).to_dict("records")
            answers[name] = {"results": summary, "report": str(page)}
            if not json:
                by = "the paper's text" if protocol == PAPER else "the authors' code"
                title = f"{name}, the protocol of {by}: mean of {repetitions} repetitions"
                _print_summary(title, summary, page)
    if json:
        print_json(answers)


def resume(folder: Path) -> str:
    """Return how to go on after an interruption."""
    return f"finished parts are kept in {folder}; the same command goes on from there"


def _study(name: str, data: ProblemOptions, repetitions: int, seed: int) -> Study:
    """Return the study of a problem with the sizes asked for, a third and a sixth by default."""
    problem = data.read(name, seed)
    sizes = (data.explore or len(problem) // 3, data.evaluate or len(problem) // 6)
    return Study.of(problem, hold_out=sizes, evaluate=sizes, repetitions=repetitions)


def _paper_sizes(
    name: str, explore: int | None, evaluate: int | None
) -> dict[str, tuple[int, int]]:
    """Return the rows held out and compared on: the paper's, unless others are asked for."""
    if name == "sinusoids":
        sizes = (explore or 2000, evaluate or 1000)
        return {"hold_out": sizes, "evaluate": sizes}
    held_out = (min(explore or 1000, 1000), min(evaluate or 1000, 1000))
    return {"hold_out": held_out, "evaluate": (explore or 3000, evaluate or 950)}


def _print_summary(title: str, summary: Sequence[dict[Any, Any]], page: Path) -> None:
    rows = [list(row.values()) for row in summary]
    print_table(title, ["method", "scale", "average regret", "worst regret"], rows)
    out.print(f"report: {page}", soft_wrap=True)
