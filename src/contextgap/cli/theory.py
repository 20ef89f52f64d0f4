"""The command that says how long to explore."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.cli.options import (
    CORES,
    CategoryColumns,
    CyclicColumns,
    Exclude,
    Jobs,
    Json,
    Seed,
    given_kinds,
    list_option,
)
from contextgap.cli.tables import context_columns, described_table
from contextgap.cli.terminal import complaints, out, phases, print_json, print_table
from contextgap.cli.workers import workers
from contextgap.kernels import Gaussian
from contextgap.methods.method import METHODS
from contextgap.studies.experiments.plan import Plan, plan
from contextgap.tables.columns import Columns
from contextgap.tables.contexts import Encoded, read_columns
from contextgap.tables.files import read_sheet


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
    json: Json = False,
) -> None:
    """Estimate how long to explore: by the theorem's formula and by simulation."""
    from contextgap.studies.report.figures import pilot_curve
    from contextgap.studies.report.page import save

    with complaints(), phases() as watch, workers(jobs, None) as executor:
        sheet = read_sheet(contexts)
        names = context_columns(sheet, exclude, columns)
        rows = _encoded(*described_table(sheet, names, given_kinds(category, cyclic)))
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
    if json:
        print_json({**facts, "figure": str(folder / "plan.png")})
        return
    shown = [["beyond the budget" if x is None else x for x in fact] for fact in facts.items()]
    print_table("how long to explore", ["", "value"], shown)
    out.print(
        "the theorem's numbers are what its formula gives, whose proof has an open gap; "
        "the pilot's are those of functions drawn from the prior; neither is a guarantee"
    )
    out.print(f"figure: {folder / 'plan.png'}", soft_wrap=True)


def _encoded(table: Any, columns: Columns | None) -> Encoded:
    """Return contexts as kernels see them."""
    intake = read_columns(columns).read(table, learning=True)
    return Encoded(intake.rows, intake.schema)


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
