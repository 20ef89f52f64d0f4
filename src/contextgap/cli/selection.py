"""The command that selects algorithms: few solver runs on scenarios of the ASlib format."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgap.base.components import study_import
from contextgap.base.files import whole_file
from contextgap.cli.policies import kind_of_bounds
from contextgap.cli.studies import parts_of, resume, workers
from contextgap.cli.terminal import (
    CORES,
    Dask,
    Fresh,
    Jobs,
    Methods,
    Results,
    command_line,
    complaints,
    list_option,
    numbers_in,
    out,
    phases,
    print_table,
)
from contextgap.studies.experiments import (
    select_algorithms,
    summarise_cpu,
    summarise_selection,
)
from contextgap.studies.experiments.compare import read_methods
from contextgap.studies.experiments.selection import (
    DESCRIPTION,
    POLICY,
    REGRET,
    SELECTION_METHODS,
    YARDSTICK,
    Selector,
    known_preparation,
    learn_selector,
)
from contextgap.studies.problems import AlgorithmSelection, Scenario
from contextgap.studies.problems.algorithm_selection import Instances, read_instances

if TYPE_CHECKING:
    from pandas import DataFrame


_ALL_METHODS = list(SELECTION_METHODS)
_BUDGET = ["1"]


def select_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...",
            help="ASlib scenarios, or tables with --solvers.",
            show_default=False,
        ),
    ],
    methods: Methods = _ALL_METHODS,
    budget: Annotated[
        list[str], list_option("Runs per training instance, such as 1 or 0.25,1,4.")
    ] = _BUDGET,
    seeds: Annotated[int, typer.Option(help="Repetitions of every fold.", min=1)] = 3,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose", help="Also run every method with training instances that it chooses itself."
        ),
    ] = False,
    cpu: Annotated[
        list[str] | None,
        list_option("CPU time in place of runs: shares of the full table, such as 0.02,0.05."),
    ] = None,
    seconds: Annotated[list[str] | None, list_option("The same in seconds, for each fold.")] = None,
    aim: Annotated[
        str, typer.Option(help="What races are for, with --cpu or --seconds: regret or par10.")
    ] = REGRET,
    solvers: Annotated[
        list[str] | None,
        list_option("Of a table with a row per instance: the columns with solvers' results."),
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(help="Of a table of times: seconds after which runs were stopped."),
    ] = None,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Results = Path("out/select"),
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
    fresh: Fresh = False,
) -> Iterator[Any]:
    """Learn from few runs which solver suits which instance.

    Methods are studied by cross-validation, which continues where it stopped. With
    --cpu or --seconds, solvers race each other on training instances within that
    time, and are compared with ExtraTrees, random solvers and the full table.

    With --selector, --instance, --onnx or --c the first method learns one selector
    from all instances of one scenario instead, and saves it; FOLDER may be where it
    was saved. For new instances it prints the solver, its expected loss against the
    best solver, in units of reward, and a bound on that loss.
    """
    load = partial(_load, solvers=solvers, cutoff=cutoff)
    within, ships = cpu is not None or seconds is not None, selector or instance or onnx or c
    if within:
        if ships or choose or budget != _BUDGET:
            raise ValueError("--cpu and --seconds are for a study, and without --budget")
        how: dict[str, Any] = {"methods": None if methods == _ALL_METHODS else list(methods)}
        if cpu is not None:
            how["cpu"] = numbers_in("--cpu", cpu, "0.02,0.05")
        if seconds is not None:
            how["seconds"] = numbers_in("--seconds", seconds, "600,3600")
        passes = [("", {**how, "aim": aim})]
    elif aim != REGRET:
        raise ValueError("--aim is about races; give --cpu or --seconds too")
    else:
        names = list(read_methods(methods))
        budgets = numbers_in("--budget", budget, "0.25,1,4")
        passes = _passes(names, budgets, choose)
    if ships:
        if len(folders) != 1 or len(budgets) != 1:
            raise ValueError("a selector is learnt on one FOLDER, with one --budget")
        how = {"method": names[0], "budget": budgets[0], "choose": choose}
        yield from ship(folders[0], instance, how, folder, onnx, c, load)
        return
    from contextgap.studies.report.studies import cpu_report, selection_report, write

    with (
        complaints(resume(folder)),
        phases() as watch,
        workers(jobs, dask) as executor,
    ):
        scenarios = [load(path) for path in folders]  # so that mistyped folders are noticed now
        titles = [scenario.name for scenario in scenarios]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(f"scenarios must have different names, got {title!r} twice")
        common: dict[str, Any] = {"seeds": range(seeds), "executor": executor}
        common["store"] = parts_of(folder, fresh)
        tables = [
            select_algorithms(scenario, progress=watch(scenario.name + phase), **how, **common)
            for scenario in scenarios
            for phase, how in passes
        ]
        records = study_import("pandas").concat(tables, ignore_index=True)
        records.to_parquet(folder / "records.parquet", index=False)
        summary = (summarise_cpu if within else summarise_selection)(records)
        watch("drawing")
        report = (cpu_report if within else selection_report)(summary, records)
        page = write(report, folder, command_line(), watch.seconds)
    yield {"results": summary.to_dict("records"), "report": str(page)}
    units = {scenario.name: "PAR10" if scenario.runtime else "cost" for scenario in scenarios}
    by = "cpu" if within else "budget"
    for (name, most), rows in summary.groupby(["scenario", by], sort=False):
        if within:
            unit = " of the full table's CPU time" if seconds is None else " s"
            _show_within(f"{name}: {most:g}{unit}", rows)
        else:
            _show_study(f"{name}: budget {most:g}", rows, units[str(name)])
    if choose:
        out.print("* chose the training instances too")
    out.print(f"report: {page}")


def _load(path: Path, solvers: Sequence[str] | None, cutoff: float | None) -> Scenario:
    if not path.is_file():
        if solvers is not None or cutoff is not None:
            raise ValueError(f"--solvers and --cutoff are for tables, and {path} is no file")
        return AlgorithmSelection(path).load()
    if solvers is None:
        raise ValueError(f"{path} is a table: --solvers names its columns of solvers' results")
    return Scenario.from_frame(path, solvers, cutoff=cutoff, name=path.stem)


def _passes(
    names: Sequence[str], budgets: Sequence[float], choose: bool
) -> list[tuple[str, dict[str, Any]]]:
    methods = list(dict.fromkeys([*names, YARDSTICK]))
    passes: list[tuple[str, dict[str, Any]]] = [("", {"methods": methods, "budget": budgets})]
    choosing = [name for name in names if name != YARDSTICK]
    if choose and choosing:
        passes.append((", choosing", {"methods": choosing, "budget": budgets, "choose": True}))
    return passes


def _show_within(title: str, rows: DataFrame) -> None:
    lines = [
        [
            row["method"],
            _with_error(row["regret"], row["regret_error"], "#.3g", "#.2g"),
            _with_error(row.get("ratio", math.nan), row.get("ratio_error", 0), ".2f", ".2f"),
            _short(row["par10"]),
            _with_error(row["closed_gap"], row["closed_gap_error"], ".2f", ".2f"),
            f"{100 * row['spent']:.3g} %",
        ]
        for row in rows.to_dict("records")
    ]
    headers = ["method", "regret", "of ExtraTrees'", "PAR10", "closed gap", "CPU"]
    _print_rows(title, rows, headers, lines)


def _print_rows(
    title: str, rows: DataFrame, headers: Sequence[str], lines: Sequence[Sequence[str]]
) -> None:
    first = rows.iloc[0]
    title = f"{title}, {first['folds']} folds, {first['seeds']} seeds"
    print_table(title, headers, lines, right=headers[1:])


def _show_study(title: str, rows: DataFrame, unit: str) -> None:
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
    _print_rows(title, rows, headers, lines)


def _change(row: dict[Any, Any]) -> str:
    """Return how much regret differs from uniform exploration's; nothing for its own."""
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
    """Return three digits, without an exponent where people write none."""
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


_USUAL = {"method": SELECTION_METHODS[0], "budget": 1.0, "choose": False}

_FEW = 3


def ship(
    place: Path,
    instance: Path | None,
    how: dict[str, Any],
    folder: Path,
    onnx: Path | None,
    c: Path | None,
    load: Callable[[Path], Scenario],
) -> Iterator[Any]:
    """Learn a selector, or load the one at ``place``; export and ask it."""
    with phases() as watch:
        instances = None
        if (place / DESCRIPTION).is_file():
            if how != _USUAL:
                raise ValueError(
                    f"{place} holds a selector that was learnt before; --methods, --budget and "
                    "--choose are for learning one from a scenario"
                )
            selector, home = Selector.load(place), place
            if instance is not None:
                instances = selector.read(instance)
        else:
            scenario, home = load(place), folder
            if instance is not None:  # mistakes are found before the work
                instances = read_instances(instance, known_preparation(scenario))
            selector = learn_selector(scenario, progress=watch(scenario.name), **how)
            selector.save(folder)
        written = {"selector": home / POLICY, "preparation": home / DESCRIPTION}
        if onnx is not None:
            selector.policy.to_onnx(onnx)
            written["ONNX"] = onnx
        if c is not None:
            selector.policy.to_c(c)
            written["C"] = c
        selections = []
        if instances is not None:
            written["contexts"] = _write_contexts(folder, selector, instances)
            selections = selector.select(instances)
    unused = () if instances is None else instances.unused
    answers = [asdict(selection) for selection in selections]
    for each in answers if selector.runtime else ():
        each["times_as_long"] = _factor(each["expected_loss"])
        each["bound_times_as_long"] = _factor(each["bound"])
    policy = selector.policy
    yield {
        "scenario": selector.scenario,
        "method": policy.method.name,
        "runs": sum(policy.counts.values()),
        "selections": answers,
        "bounds": kind_of_bounds(policy.probability),
        "columns_not_used": list(unused),
        "written": {what.lower(): str(path) for what, path in written.items()},
    }
    _show(selector, answers)
    if unused:
        more = f" and {len(unused) - _FEW} more" if len(unused) > _FEW else ""
        out.print(f"columns not used: {', '.join(unused[:_FEW])}{more}", soft_wrap=False)
    for what, path in written.items():
        out.print(f"{what}: {path}")


def _write_contexts(folder: Path, selector: Selector, instances: Instances) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "contexts.csv"
    with whole_file(path, text=True) as file:
        writer = csv.writer(file)
        writer.writerow(["instance_id", *(selector.policy.columns or ())])
        for name, context in zip(instances.names, instances.contexts.tolist(), strict=True):
            writer.writerow([name, *context])
    return path


_HEADERS = {
    "instance": "instance",
    "solver": "solver",
    "expected_loss": "expected\nloss",
    "times_as_long": "times\nas long",
    "bound": "bound",
    "bound_times_as_long": "times\nas long",
}


def _show(selector: Selector, answers: Sequence[dict[str, Any]]) -> None:
    policy = selector.policy
    title = (
        f"{selector.scenario}: {len(policy.arms)} solvers, {sum(policy.counts.values())} runs, "
        f"{policy.method.name}"
    )
    if not answers:
        out.print(title, soft_wrap=False)
        return
    names = [name for name in _HEADERS if name in answers[0]]
    lines = [[each[name] for name in names] for each in answers]
    print_table(title, [_HEADERS[name] for name in names], lines, unbroken=["solver"])
    if selector.runtime:
        out.print("loss: log10 of how many times as long as the best solver it takes")
    else:
        out.print("loss: how much worse the solution is than the best solver's")
    out.print(f"bounds: {kind_of_bounds(policy.probability)}")


def _factor(loss: float) -> float:
    return 10.0**loss if loss < 300 else math.inf  # no float is larger
