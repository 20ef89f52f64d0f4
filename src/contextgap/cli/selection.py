"""The command that selects algorithms: few solver runs on scenarios of the ASlib format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgap.base.names import study_import
from contextgap.cli.options import CORES, Dask, Jobs, Json, Methods, list_option
from contextgap.cli.selector import ship
from contextgap.cli.terminal import command_line, complaints, out, phases, print_json, print_table
from contextgap.cli.workers import parts_of, workers
from contextgap.studies.experiments import select_algorithms, summarise_selection
from contextgap.studies.experiments.compare import read_methods
from contextgap.studies.experiments.selection import SELECTION_METHODS, YARDSTICK
from contextgap.studies.problems import AlgorithmSelection, Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

_USUAL = list(SELECTION_METHODS)
_BUDGET = ["1"]


def select_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="ASlib scenarios.", show_default=False)
    ],
    methods: Methods = _USUAL,
    budget: Annotated[
        list[str], list_option("Runs per training instance, such as 1 or 0.25,1,4.")
    ] = _BUDGET,
    seeds: Annotated[int, typer.Option(help="Repetitions of every fold.", min=1)] = 3,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose", help="Have methods, once more, choose the training instances too."
        ),
    ] = False,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path("out/select"),
    instance: Annotated[
        Path | None,
        typer.Option(help="New instances to select for: a .csv or .parquet file of features."),
    ] = None,
    onnx: Annotated[Path | None, typer.Option(help="ONNX file for the selector.")] = None,
    c: Annotated[Path | None, typer.Option("--c", help="Folder for the selector as C99.")] = None,
    selector: Annotated[
        bool,
        typer.Option("--selector", help="Learn one selector; so do --instance, --onnx and --c."),
    ] = False,
    json: Json = False,
) -> None:
    """Learn from few runs which solver suits which instance.

    Methods are studied by cross-validation, which continues where it stopped.

    With --selector, --instance, --onnx or --c there is no study: the first method
    learns one selector from all instances of one scenario. It is saved for later;
    FOLDER may be where it was saved.

    For new instances it prints the solver, the loss against the best one that is
    expected, in units of reward, and a bound on that loss.
    """
    with complaints():
        names = list(read_methods(methods))
        budgets = _read_budgets(budget)
        if selector or instance or onnx or c:
            if len(folders) != 1 or len(budgets) != 1:
                raise ValueError("a selector is learnt on one FOLDER, with one --budget")
            how = {"method": names[0], "budget": budgets[0], "choose": choose}
            ship(folders[0], instance, how, folder, onnx, c, json)
            return
    _study(folders, names, budgets, range(seeds), choose, jobs, dask, folder, json)


def _study(
    folders: Sequence[Path],
    names: Sequence[str],
    budgets: Sequence[float],
    seeds: Sequence[int],
    choose: bool,
    jobs: int,
    dask: str | None,
    folder: Path,
    json: bool,
) -> None:
    from contextgap.studies.report.selection import selection_report
    from contextgap.studies.report.studies import write

    resume = f"finished parts are kept in {folder}; the same command goes on from there"
    with complaints(resume), phases() as watch, workers(jobs, dask) as executor:
        scenarios = _read_scenarios(folders)
        how: dict[str, Any] = {
            "budget": budgets,
            "seeds": seeds,
            "executor": executor,
            "store": parts_of(folder),
        }
        tables = [
            select_algorithms(scenario, methods=wanted, choose=chosen, progress=watch(phase), **how)
            for scenario in scenarios
            for wanted, chosen, phase in _passes(names, choose, scenario.name)
        ]
        records = study_import("pandas").concat(tables, ignore_index=True)
        records.to_parquet(folder / "records.parquet", index=False)
        summary = summarise_selection(records)
        watch("drawing")
        report = selection_report(summary, records)
        page = write(report, folder, command_line(), watch.seconds)
    if json:
        print_json({"results": summary.to_dict("records"), "report": str(page)})
        return
    units = {scenario.name: "PAR10" if scenario.runtime else "cost" for scenario in scenarios}
    for (name, _), rows in summary.groupby(["scenario", "budget"], sort=False):
        _show(rows, units[str(name)])
    if choose:
        out.print("* chose the training instances too")
    out.print(f"report: {page}", soft_wrap=True)


def _read_budgets(texts: Sequence[str]) -> list[float]:
    try:
        return [float(value) for value in texts]
    except ValueError:
        shown = ",".join(texts)
        raise ValueError(f"--budget must be numbers such as 0.25,1,4, got {shown!r}") from None


def _read_scenarios(folders: Sequence[Path]) -> list[Scenario]:
    """Read all scenarios first, so that a mistyped folder is noticed before hours of work."""
    scenarios = [AlgorithmSelection(path).load() for path in folders]
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"scenarios must have different names, got {name!r} twice")
    return scenarios


def _passes(
    names: Sequence[str], choose: bool, scenario: str
) -> Iterator[tuple[list[str], bool, str]]:
    """Yield which methods to run, whether they choose instances, and what to call that."""
    yield list(dict.fromkeys([*names, YARDSTICK])), False, scenario
    choosing = [name for name in names if name != YARDSTICK]
    if choose and choosing:
        yield choosing, True, f"{scenario}, choosing"


def _show(rows: DataFrame, unit: str) -> None:
    """Print one scenario at one budget: a line per method, the best single solver and the best."""
    first = rows.iloc[0]
    whole = f"{first['runs_in_table']:.0f}"
    lines = [
        [
            row["method"] + ("*" if row["choose"] else ""),
            f"{row['average_regret']:#.3g}",
            _change(row),
            _short(row["selected"]),
            _with_error(row["closed_gap"], row["closed_gap_error"], ".2f", ".2f"),
            f"{row['runs_paid']:.0f}",
        ]
        for row in rows.to_dict("records")
    ]
    single = [f"{first['single_best_regret']:#.3g}", "", _short(first["single_best"]), "0", whole]
    lines += [
        ["single best solver", *single],
        ["virtual best solver", "0", "", _short(first["virtual_best"]), "1", ""],
    ]
    headers = ["method", "regret", "% against\nuniform", unit, "closed gap", f"runs\nof {whole}"]
    title = (
        f"{first['scenario']}: budget {first['budget']:g}, {first['folds']} folds, "
        f"{first['seeds']} seeds"
    )
    print_table(title, headers, _flush_right(headers, lines))


def _change(row: dict[Any, Any]) -> str:
    """Return by how many percent regret differs from uniform exploration's; nothing for its own."""
    if row["method"] == YARDSTICK and not row["choose"]:
        return ""
    value, error = 100 * row["regret_change"], 100 * row["regret_change_error"]
    digits = 0 if abs(value) >= 100 or error >= 10 else 1
    return _with_error(value, error, f"+.{digits}f", f".{digits}f")


def _with_error(value: float, error: float, form: str, error_form: str) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:{form}}" + ("" if math.isnan(error) else f" ± {error:{error_form}}")


def _short(value: float) -> str:
    """Return three significant digits, without an exponent where people write none."""
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def _flush_right(headers: Sequence[str], lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return lines in which all columns but the first are padded to their header's width."""
    wanted = [max(map(len, header.split("\n"))) for header in headers]
    widths = [
        max(width, *map(len, column))
        for width, column in zip(wanted, zip(*lines, strict=True), strict=True)
    ]
    return [
        [line[0], *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in lines
    ]
