"""The command that searches for a bandwidth and a ridge: tune."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.beliefs.widths import PosteriorWidth
from contextgap.cli.options import (
    CORES,
    CategoryColumns,
    Context,
    CyclicColumns,
    Evaluate,
    Exclude,
    Explore,
    GridSize,
    Jobs,
    Json,
    Missing,
    Noise,
    Ordered,
    ProblemName,
    Rewards,
    Rows,
    Seed,
    Separator,
    SkipMissing,
)
from contextgap.cli.problems import read_problem
from contextgap.cli.studies import make_study
from contextgap.cli.terminal import complaints, out, phases, print_json, print_table
from contextgap.cli.workers import workers
from contextgap.kernels import Gaussian
from contextgap.methods.method import RECOMMENDED
from contextgap.studies.experiments import Grid
from contextgap.studies.experiments.compare import read_methods
from contextgap.studies.experiments.reproduce import thinned
from contextgap.studies.experiments.tune import tune_all


def tune_command(
    problem: ProblemName = "sinusoids",
    method: Annotated[str, typer.Option(help="Which method to tune.")] = RECOMMENDED,
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
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path("out/tune"),
    json: Json = False,
) -> None:
    """Find a good bandwidth and ridge on held-out rows."""
    from contextgap.studies.report import save, tuning_heat_map

    with complaints(), phases() as watch, workers(jobs, None) as executor:
        table: dict[str, Any] = {
            "exclude": exclude,
            "category": category,
            "cyclic": cyclic,
            "missing": missing,
        }
        table |= {"separator": separator, "skip_missing": skip_missing}
        data = read_problem(problem, context, rewards, noise, ordered, rows, seed, **table)
        study = make_study(data, explore, evaluate, 1)
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
    kernel = found.kernel
    bandwidth = kernel.bandwidth if isinstance(kernel, Gaussian) else str(kernel)
    best = float(found.regret.min())
    if json:
        print_json(
            {
                "method": method,
                "bandwidth": bandwidth,
                "ridge": found.ridge,
                "average_regret": best,
                "on_edge": found.on_edge,
                "grid": {
                    "bandwidth": found.grid.bandwidths,
                    "unit": found.grid.unit,
                    "ridge": found.grid.ridges,
                },
                "regret": found.regret.tolist(),
            }
        )
        return
    rows_: list[list[Any]] = [
        ["bandwidth", found.bandwidth],
        ["ridge", found.ridge],
        ["average regret", best],
    ]
    print_table(f"{study.name}, {method}: best of {found.regret.size}", ["setting", "value"], rows_)
    out.print(f"bandwidth in {found.grid.unit}")
    if found.on_edge:
        out.print("the best setting lies on the grid's edge: a wider grid may do better")
    out.print(f"heat map: {folder / 'tuning.png'}", soft_wrap=True)
