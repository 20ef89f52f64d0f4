"""Compare methods with default settings: ``python benchmarks/leaderboard/run.py --help``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas
import typer

from contextgap.cli.studies import workers
from contextgap.cli.terminal import CORES, Jobs, complaints, err, names_in, out, phases, print_table
from contextgap.studies.experiments.run import Store
from contextgap.studies.report.page import save

sys.path.insert(0, str(Path(__file__).parents[1]))
from leaderboard.board import USUAL, Contest, code_digest, compare_at, seconds_of_runs, sizes
from leaderboard.figures import curves, ratio_heat_map
from leaderboard.page import Findings, page_text, printed_cells
from leaderboard.places import ASLIB, SCENARIOS, Place, places
from leaderboard.standings import Cell, Standing, Traits, cells_of, situations, standings

if TYPE_CHECKING:
    from pandas import DataFrame

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
USUALLY = Contest()


@app.command()
def main(
    problems: Annotated[
        str | None, typer.Option(help=f"Comma-separated: {', '.join(places())}; all by default.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help='Comma-separated names, "auto", or your own as package.module:name.')
    ] = ",".join(USUAL),
    budgets: Annotated[
        str, typer.Option(help="Exploration steps to compare at, comma-separated.")
    ] = ",".join(map(str, USUALLY.budgets)),
    seeds: Annotated[int, typer.Option(help="Repetitions.", min=2)] = USUALLY.seeds,
    first_seed: Annotated[int, typer.Option(help="Seed of the first.", min=0)] = USUALLY.first_seed,
    reference: Annotated[
        str, typer.Option(help="The method that others are compared with.")
    ] = USUALLY.reference,
    aslib: Annotated[Path, typer.Option(help="Folder of ASlib scenarios.")] = ASLIB,
    jobs: Jobs = CORES,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path(
        "out/leaderboard"
    ),
    page: Annotated[
        Path | None, typer.Option(help="Markdown file to write; figures go to images beside it.")
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="A page of an earlier run: problems that are not run keep its rows."),
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Run the first seed only, and say what all take if nothing else runs.",
        ),
    ] = False,
) -> None:
    """Compare methods with default settings on all problems; goes on where it was stopped."""
    resume = f"finished runs are kept in {folder}; the same command goes on from there"
    with complaints(resume):
        known = places(aslib)
        contest = Contest(
            problems=tuple(names_in([problems or ""]) or ()),
            methods=tuple(names_in([methods]) or ()),
            budgets=_steps(budgets),
            seeds=seeds,
            first_seed=first_seed,
            reference=reference,
        )
        chosen = contest.places(known)
        missing = [name for name in SCENARIOS if name not in known and not contest.problems]
        for name in missing:
            err.print(f"{name} is left out: there is no {aslib / name}", soft_wrap=True)
        kept = [] if keep is None else printed_cells(keep.read_text(encoding="utf-8"), contest)
        asked = replace(contest, seeds=1) if estimate else contest
        records = compare_all(chosen, asked, jobs, folder)
        if estimate:
            _show_estimate(records, seeds)
            return
        records.to_parquet(folder / "records.parquet", index=False)
        target = folder / "leaderboard.md" if page is None else page
        command = command_line(contest, keep, page)
        found = findings(records, kept, known, contest, command, missing)
        write(found, target, folder / "figures")
    _show(found.standings, found.reference)
    out.print(f"page: {target}\nrecords: {folder / 'records.parquet'}", soft_wrap=True)


def _steps(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in names_in([text]) or [])
    except ValueError:
        raise ValueError(
            f"--budgets must be whole numbers such as 100,1000, got {text!r}"
        ) from None


def compare_all(chosen: list[Place], contest: Contest, jobs: int, folder: Path) -> DataFrame:
    """Return the records of all problems, and keep every finished run in the folder."""
    contest.entered()  # a name that is wrong is said before hours of work
    store = Store(folder / "parts" / code_digest())
    with phases() as watch, workers(jobs, None) as executor:
        how = {"executor": executor, "store": store}
        parts = [compare_at(place, contest, progress=watch(place.name), **how) for place in chosen]
    return pandas.concat(parts, ignore_index=True)


def findings(
    records: DataFrame,
    kept: list[Cell],
    known: Mapping[str, Place],
    contest: Contest,
    command: str,
    missing: list[str],
) -> Findings:
    """Return all that follows from the records, and from kept cells of problems without any."""
    run = [str(name) for name in records["problem"].unique()]
    cells = cells_of(records, next(iter(contest.entered())))
    cells += [cell for cell in kept if cell.problem not in run]
    order = list(known)
    absent = {cell.problem for cell in cells} - set(order)
    if absent:
        raise ValueError(f"{min(absent)}, on the page to keep, is not present; see --aslib")
    cells.sort(key=lambda cell: (order.index(cell.problem), cell.budget))
    compared = [known[name] for name in dict.fromkeys(cell.problem for cell in cells)]
    sized = [sizes(place, contest) for place in compared]
    traits = {
        place.name: Traits(place.group, size["arms"], place.noisy)
        for place, size in zip(compared, sized, strict=True)
    }
    found = standings(cells, traits), situations(cells, traits)
    return Findings(contest, command, cells, *found, sized, run, missing)


def write(found: Findings, page: Path, figures: Path) -> None:
    """Write the page, with its figures in the folder ``images`` beside it."""
    images = page.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    drawn = {"ratios": ratio_heat_map(found.cells), "curves": curves(found.cells)}
    for name, figure in drawn.items():
        _, png = save(figure, figures, f"leaderboard-{name}")
        shutil.copyfile(png, images / png.name)
    page.write_text(page_text(found), encoding="utf-8")


def command_line(contest: Contest, keep: Path | None, page: Path | None) -> str:
    """Return the command that makes this page, options at their defaults left out."""
    words = ["python benchmarks/leaderboard/run.py"]
    for field in fields(contest):
        value = getattr(contest, field.name)
        if value != getattr(USUALLY, field.name):
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"--{field.name.replace('_', '-')} {shown}")
    files = {"keep": keep, "page": page}
    words += [f"--{name} {path.as_posix()}" for name, path in files.items() if path is not None]
    return " ".join(words)


def _show(found: list[Standing], reference: str) -> None:
    rows = [
        [
            one.method,
            one.ratio,
            f"{one.low:.2f} to {one.high:.2f}",
            "" if one.rank is None else f"{one.rank:.1f}",
            one.better,
            one.worse,
        ]
        for one in found
    ]
    headers = ["method", "ratio", "95 %", "rank", "cells better", "worse"]
    print_table(f"regret over that of {reference}, geometric mean", headers, rows)


def _show_estimate(records: DataFrame, seeds: int) -> None:
    """Print core-minutes of all seeds, by the time that one took."""
    once = seconds_of_runs(records)
    minutes = once.pivot(index="problem", columns="method", values="seconds") * seeds / 60
    minutes = minutes.loc[once["problem"].unique(), once["method"].unique()]
    rows = [
        [str(name), *map(float, row)]
        for name, row in zip(minutes.index, minutes.to_numpy(), strict=True)
    ]
    rows.append(["all", *map(float, minutes.sum())])
    headers = [
        "problem",
        *(str(name).replace("-", "-\n").replace(" ", "\n") for name in minutes.columns),
    ]
    print_table(f"core-minutes of {seeds} seeds", headers, rows)
    out.print(f"{minutes.to_numpy().sum():.0f} core-minutes in all")


if __name__ == "__main__":
    app()
