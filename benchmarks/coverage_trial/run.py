"""Check whether intervals hold: ``python benchmarks/coverage_trial/run.py --help``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from contextgap.beliefs import PosteriorWidth
from contextgap.cli.studies import parts_of, workers
from contextgap.cli.terminal import (
    CORES,
    Jobs,
    Json,
    Seed,
    complaints,
    out,
    phases,
    print_json,
    print_table,
)
from contextgap.studies.report.studies import write

sys.path.insert(0, str(Path(__file__).parents[1]))
from coverage_trial.cells import coverage_cells, theorem_widths
from coverage_trial.page import coverage_report, short_width
from coverage_trial.stopping import stopping_trial
from coverage_trial.trial import coverage, coverage_table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    runs: Annotated[int, typer.Option(help="Runs per kind of problem.", min=1)] = 100,
    tolerance: Annotated[float, typer.Option(help="Of the stopping trial.")] = 0.5,
    budget: Annotated[int, typer.Option(help="Longest exploration of it.", min=10)] = 1000,
    ridge: Annotated[float, typer.Option(help="Regularisation in the coverage runs.")] = 0.2,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path(
        "out/coverage"
    ),
    json: Json = False,
) -> None:
    """Check by simulation that intervals, certificates and the stopping rule hold."""
    resume = f"finished parts are kept in {folder}; the same command goes on from there"
    with complaints(resume), phases() as watch, workers(jobs, None) as executor:
        store = parts_of(folder)
        cells = coverage_cells((*theorem_widths(), PosteriorWidth(1.0)), ridge=ridge)
        records = coverage(
            cells,
            runs=runs,
            seed=seed,
            executor=executor,
            store=store,
            progress=watch("coverage"),
        )
        stops = stopping_trial(
            tolerance=tolerance,
            budget=budget,
            runs=runs,
            seed=seed,
            executor=executor,
            store=store,
            progress=watch("stopping"),
        )
        records.to_parquet(folder / "coverage.parquet", index=False)
        stops.to_parquet(folder / "stopping.parquet", index=False)
        watch("drawing")
        command = shlex.join(["python", "benchmarks/coverage_trial/run.py", *sys.argv[1:]])
        report = coverage_report(records, stops, 0.1, budget)
        page = write(report, folder, command, watch.seconds)
    table = coverage_table(records, by=("width",))
    answers = {
        "coverage": table.to_dict("records"),
        "stopping": {
            "kept": float(stops["kept"].mean()),
            "within": float(stops["within"].mean()),
            "stopped": float(stops["stopped"].mean()),
            "median_steps": float(stops["steps"].median()),
            "saved": float(1 - stops["steps"].mean() / budget),
        },
        "report": str(page),
    }
    if json:
        print_json(answers)
        return
    shown = [
        [
            short_width(row["width"]),
            row["runs"],
            row["outside"],
            row["outside_high"],
            row["understated"],
        ]
        for row in answers["coverage"]
    ]
    headers = ["width", "runs", "outside", "at most", "understated"]
    print_table("share of runs in which an interval ever failed", headers, shown)
    print_table(
        f"stopping at {tolerance:g}", ["", "value"], [list(x) for x in answers["stopping"].items()]
    )
    out.print(f"report: {page}", soft_wrap=True)


if __name__ == "__main__":
    app()
