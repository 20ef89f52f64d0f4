"""Compare all methods on all bundled problems: ``python benchmarks/leaderboard/run.py --help``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from contextgap.cli.options import CORES, Dask, Jobs, Json
from contextgap.cli.problems import split
from contextgap.cli.terminal import complaints, out, phases, print_json, print_table
from contextgap.cli.workers import workers
from contextgap.experiments.reproduce import Workshop
from contextgap.methods import METHODS

sys.path.insert(0, str(Path(__file__).parents[1]))
from leaderboard.board import leaderboard
from leaderboard.contest import MAKERS, QUICK, Contest
from leaderboard.figures import recommender_tables
from leaderboard.page import write_page
from leaderboard.recommender_grid import recommender_grid
from leaderboard.standings import Standings, standings

if TYPE_CHECKING:
    from pandas import DataFrame

_Number = TypeVar("_Number", int, float)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    problems: Annotated[
        str | None, typer.Option(help=f"Comma-separated: {', '.join(MAKERS)}; all by default.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help=f"Comma-separated: {', '.join(METHODS)}; all by default.")
    ] = None,
    budgets: Annotated[
        str | None, typer.Option(help="Exploration steps to compare at, comma-separated.")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Noise levels, in standard deviations of the rewards."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Repetitions.", min=1)] = None,
    grid: Annotated[
        int | None, typer.Option(help="Bandwidths and ridges tried when tuning.", min=1)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A trial in half a minute.")] = False,
    recommenders: Annotated[
        bool,
        typer.Option(
            "--recommenders/--no-recommenders",
            help="Whether to deploy every exploration by every recommender too.",
        ),
    ] = True,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path(
        "out/leaderboard"
    ),
    page: Annotated[
        Path | None,
        typer.Option(help="Markdown file to write; figures go to images beside it."),
    ] = None,
    json: Json = False,
) -> None:
    """Tune and rank all methods on all bundled problems; goes on where it was stopped."""
    resume = f"finished parts are kept in {folder}; the same command goes on from there"
    with complaints(resume), phases() as watch, workers(jobs, dask) as executor:
        asked: dict[str, Any] = {
            "problems": split(problems),
            "methods": split(methods),
            "budgets": _numbers("budgets", budgets, int),
            "noise": _numbers("noise", noise, float),
            "seeds": seeds,
            "grid": grid,
        }
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in asked.items()
            if value is not None
        }
        contest = replace(QUICK if quick else Contest(), **given)
        workshop = Workshop(executor, folder, watch)
        found = leaderboard(contest, workshop)
        table = recommender_grid(contest, workshop) if recommenders else None
        standing = standings(found.records)
        found.records.to_parquet(folder / "records.parquet", index=False)
        found.settings.to_parquet(folder / "settings.parquet", index=False)
        if table is not None:
            table.to_parquet(folder / "recommenders.parquet", index=False)
        target = folder / "leaderboard.md" if page is None else page
        target.parent.mkdir(parents=True, exist_ok=True)
        command = command_line(contest, quick, recommenders, page)
        write_page(found, standing, table, target, folder / "figures", command)
    if json:
        print_json({**summary(contest, standing, table), "page": str(target)})
        return
    _show(standing, table, contest)
    out.print(f"page: {target}\nrecords: {folder / 'records.parquet'}", soft_wrap=True)


def _numbers(
    name: str, text: str | None, read: Callable[[str], _Number]
) -> tuple[_Number, ...] | None:
    try:
        return None if text is None else tuple(read(part) for part in split(text) or [])
    except ValueError:
        kind = "whole numbers such as 100,1000" if read is int else "numbers such as 0,0.5"
        raise ValueError(f"--{name} must be {kind}, got {text!r}") from None


def command_line(contest: Contest, quick: bool, recommenders: bool, page: Path | None) -> str:
    """Return the command that makes this contest's page, options at their defaults left out."""
    usual = QUICK if quick else Contest()
    words = ["python benchmarks/leaderboard/run.py", *(["--quick"] if quick else [])]
    for field in fields(contest):
        value = getattr(contest, field.name)
        if value != getattr(usual, field.name):
            listed = value if isinstance(value, tuple) else (value,)
            shown = ",".join(f"{x:g}" if isinstance(x, float) else str(x) for x in listed)
            words.append(f"--{field.name} {shown}")
    words += [] if recommenders else ["--no-recommenders"]
    words += [] if page is None else [f"--page {page.as_posix()}"]
    return " ".join(words)


def summary(contest: Contest, standing: Standings, grid: DataFrame | None) -> dict[str, Any]:
    """Return all that was found, for machines."""
    names = standing.table["method"].tolist()
    cells = standing.means.stack().rename("average_regret").reset_index()
    answer: dict[str, Any] = {
        "contest": asdict(contest),
        "ranks": standing.table.to_dict("records"),
        "regret_ratios": [
            {
                "method": method,
                "over": other,
                "ratio": standing.ratios.estimate[i, j],
                "low": standing.ratios.low[i, j],
                "high": standing.ratios.high[i, j],
            }
            for i, method in enumerate(names)
            for j, other in enumerate(names)
            if i != j
        ],
        "tests": [asdict(test) for test in standing.tests],
        "situations": [asdict(situation) for situation in standing.situations],
        "cells": cells.to_dict("records"),
    }
    if grid is not None:
        keys = ["problem", "noise", "explorer", "recommender"]
        means = grid.groupby(keys, sort=False)["average_regret"].mean().reset_index()
        answer["recommenders"] = means.to_dict("records")
    return answer


def _show(standing: Standings, grid: DataFrame | None, contest: Contest) -> None:
    budgets = [str(name) for name in standing.table.columns if str(name).startswith("at ")]
    ranks = [
        [row["method"], row["rank"], f"{row['low']:.1f}–{row['high']:.1f}"]
        + [row[name] for name in budgets]
        for row in standing.table.to_dict("records")
    ]
    title = f"average ranks: {len(contest.problems)} problems × {len(contest.noise)} noise levels"
    print_table(title, ["method", "rank", "95 %", *budgets], ranks)
    tests = [
        [test.ranked_at, test.block, test.friedman.blocks, test.friedman.p_value, test.difference]
        for test in standing.tests
    ]
    headers = ["ranks at", "block", "blocks", "Friedman's p", "critical difference"]
    print_table("cells of one problem are not independent", headers, tests)
    rows = [
        [situation.name, situation.best, ", ".join(situation.rivals) or "none"]
        for situation in standing.situations
    ]
    print_table("lowest average rank", ["situation", "method", "not told apart"], rows)
    if grid is not None and len(grid):
        _show_recommenders(grid)


def _show_recommenders(grid: DataFrame) -> None:
    for (problem, noise), table in recommender_tables(grid).items():
        rows = [
            [name, *map(float, row)]
            for name, row in zip(table.index, table.to_numpy(), strict=True)
        ]
        title = f"regret on {problem}, noise {noise:g}, by recommender"
        # One word a line, so that the table fits 80 columns.
        headers = [str(name).replace(" ", "\n") for name in table.columns]
        print_table(title, ["explorer", *headers], rows)


if __name__ == "__main__":
    app()
