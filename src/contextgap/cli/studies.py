"""The command that compares tuned methods on known problems, and what such commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgap.cli.options import (
    CORES,
    CategoryColumns,
    Context,
    CyclicColumns,
    Dask,
    Evaluate,
    Exclude,
    Explore,
    GridSize,
    Jobs,
    Json,
    KernelName,
    Methods,
    Missing,
    Noise,
    Ordered,
    ProblemName,
    Rewards,
    Rows,
    Seed,
    Separator,
    SkipMissing,
    list_option,
)
from contextgap.cli.problems import read_problem
from contextgap.cli.terminal import command_line, complaints, out, phases, print_json, print_table
from contextgap.cli.workers import parts_of, workers
from contextgap.studies.experiments import PAPER_METHODS, Grid, Study, tune_and_compare
from contextgap.studies.experiments.compare import read_methods
from contextgap.studies.experiments.reproduce import thinned

if TYPE_CHECKING:
    from pandas import DataFrame

_ALL = list(PAPER_METHODS)
_SCALES = ["1"]


def make_study(problem: Any, explore: int | None, evaluate: int | None, repetitions: int) -> Study:
    """Return the study of a problem with the sizes asked for, a third and a sixth by default."""
    sizes = (explore or len(problem) // 3, evaluate or len(problem) // 6)
    return Study.of(problem, hold_out=sizes, evaluate=sizes, repetitions=repetitions)


def compare_command(
    problem: ProblemName = "sinusoids",
    methods: Methods = _ALL,
    scales: Annotated[
        list[str], list_option("Widths of the intervals, comma-separated.")
    ] = _SCALES,
    repetitions: Annotated[int, typer.Option(help="Shufflings of the data.", min=1)] = 10,
    context: Context = None,
    rewards: Rewards = None,
    noise: Noise = None,
    exclude: Exclude = None,
    category: CategoryColumns = None,
    cyclic: CyclicColumns = None,
    missing: Missing = None,
    separator: Separator = None,
    skip_missing: SkipMissing = False,
    ordered: Ordered = False,
    rows: Rows = None,
    explore: Explore = None,
    evaluate: Evaluate = None,
    checkpoints: Annotated[int, typer.Option(help="Steps between evaluations.", min=1)] = 50,
    kernel: KernelName = None,
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path(
        "out/compare"
    ),
    json: Json = False,
) -> None:
    """Tune every method on held-out data, then compare them; continues where it stopped."""
    from contextgap.studies.report.studies import compare_report, write

    resume = f"finished parts are kept in {folder}; the same command goes on from there"
    with complaints(resume), phases() as watch, workers(jobs, dask) as executor:
        table: dict[str, Any] = {
            "exclude": exclude,
            "category": category,
            "cyclic": cyclic,
            "missing": missing,
        }
        table |= {"separator": separator, "skip_missing": skip_missing}
        data = read_problem(problem, context, rewards, noise, ordered, rows, seed, **table)
        study = make_study(data, explore, evaluate, repetitions)
        if problem == "spacecraft":
            missions = [read_problem(problem, rows=rows, seed=seed + i) for i in range(repetitions)]
            sizes = tuple(len(part) for part in study.hold_out)
            study = Study.of_each(missions, hold_out=sizes, evaluate=sizes)
        found = tune_and_compare(
            study,
            read_methods(methods),
            thinned(Grid.of(study.hold_out[0].inputs, kernel=kernel), grid),
            scales=_read_scales(scales),
            checkpoints=checkpoints,
            seed=seed,
            begin=watch,
            executor=executor,
            store=parts_of(folder),
        )
        found.results.write(folder)
        watch("drawing")
        report = compare_report(study, found.tunings, found.results)
        page = write(report, folder, command_line(), watch.seconds)
    summary = summary_of(found.results.records)
    if json:
        print_json({"results": summary, "report": str(page)})
        return
    print_summary(f"{study.name}: mean of {repetitions} repetitions", summary)
    out.print(f"report: {page}", soft_wrap=True)


def _read_scales(texts: Sequence[str]) -> list[float]:
    try:
        return [float(scale) for scale in texts]
    except ValueError:
        shown = ",".join(texts)
        raise ValueError(f"--scales must be numbers such as 0.5,1,2, got {shown!r}") from None


def summary_of(records: DataFrame) -> list[dict[str, Any]]:
    """Return average and worst regret after the last step, best method first."""
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    means = last.groupby(["method", "scale"], sort=False)[["average_regret", "worst_regret"]].mean()
    ordered = means.sort_values("average_regret").reset_index()
    return [{str(key): value for key, value in row.items()} for row in ordered.to_dict("records")]


def print_summary(title: str, summary: Sequence[dict[str, Any]]) -> None:
    """Print what ``summary_of`` returned."""
    rows = [
        [row["method"], row["scale"], row["average_regret"], row["worst_regret"]] for row in summary
    ]
    print_table(title, ["method", "scale", "average regret", "worst regret"], rows)
