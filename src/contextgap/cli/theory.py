"""Commands about guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.cli.options import CORES, Jobs, Json, Methods, Seed
from contextgap.cli.problems import split
from contextgap.cli.terminal import command_line, complaints, out, phases, print_json, print_table
from contextgap.cli.workers import parts_of, workers
from contextgap.experiments.coverage import coverage, coverage_table
from contextgap.experiments.coverage_cell import coverage_cells, theorem_widths
from contextgap.experiments.plan import Plan, plan
from contextgap.experiments.stopping_trial import stopping_trial
from contextgap.kernels import Gaussian
from contextgap.problems.sheet import read_sheet
from contextgap.widths import PosteriorWidth


def plan_command(
    contexts: Annotated[Path, typer.Argument(help="A .csv or .parquet sample of contexts.")],
    arms: Annotated[int, typer.Option(help="Number of arms.", min=2)],
    noise: Annotated[float, typer.Option(help="Standard deviation of the rewards' noise.")],
    tolerance: Annotated[float, typer.Option(help="Simple regret that may be left.")],
    probability: Annotated[float, typer.Option(help="With which probability.")] = 0.9,
    steps: Annotated[
        int | None, typer.Option(help="Ask what this exploration length gives.", min=1)
    ] = None,
    norm: Annotated[
        float, typer.Option(help="Size of the rewards: RKHS norm bound, and prior deviation.")
    ] = 1.0,
    bandwidth: Annotated[
        float | None, typer.Option(help="Of a Gaussian kernel; from the contexts if left out.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Context columns, comma-separated; all by default.")
    ] = None,
    method: Methods = "contextual-gap",
    budget: Annotated[int, typer.Option(help="Longest exploration simulated.", min=1)] = 500,
    repetitions: Annotated[int, typer.Option(help="Explorations simulated.", min=2)] = 20,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the figure.")] = Path(
        "out/plan"
    ),
    json: Json = False,
) -> None:
    """Say how long to explore: by the theorem, and by a pilot simulation."""
    from contextgap.report.files import save
    from contextgap.report.pilot import pilot_curve

    with complaints(), phases() as watch, workers(jobs, None) as executor:
        sheet = read_sheet(contexts)
        rows = sheet.numbers(split(columns) or list(sheet.columns))
        kernel = Gaussian.from_contexts(rows) if bandwidth is None else Gaussian(bandwidth)
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
    if json:
        print_json({**_facts(found), "figure": str(folder / "plan.png")})
        return
    facts = _facts(found)
    rows_ = [
        [name, "beyond the budget" if value is None else value] for name, value in facts.items()
    ]
    print_table("how long to explore", ["", "value"], rows_)
    out.print(
        "the theorem holds for every problem that meets its assumptions; "
        "the pilot says what functions drawn from the prior need and promises nothing"
    )
    out.print(f"figure: {folder / 'plan.png'}", soft_wrap=True)


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


def coverage_command(
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
    from contextgap.report.coverage import coverage_report, short_width
    from contextgap.report.studies import write

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
        report = coverage_report(records, stops, 0.1, budget)
        page = write(report, folder, command_line(), watch.seconds)
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
