"""The report of algorithm selection: methods by scenario and by number of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from contextgap.studies.experiments.selection import YARDSTICK
from contextgap.studies.report import style
from contextgap.studies.report.curves import check_columns
from contextgap.studies.report.page import Report, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_ROW = 0.3  # inches per line of text
# What is drawn, times which factor, and what to call it.
_STATISTICS = (
    ("regret_change", 100.0, "regret against uniform, %"),
    ("closed_gap", 1.0, "closed gap"),
)
_APART = 4.0  # points between the bars of methods with equally many runs
_STEPS = [1, 2, 5, 10]  # between ticks, times a power of ten
_CHOOSING = ", choosing"
_READING = (
    "Regret is log10 of how many times longer the selected solver takes than the best one, or the "
    "difference in quality, averaged over the tested instances. The closed gap is 0 for picks as "
    "good as the single best solver's and 1 for perfect ones, in mean PAR10 or quality. Bars are "
    "two standard errors to each side, paired over folds and seeds. Computing features is not "
    "paid for."
)


def selection_figure(summary: DataFrame) -> Figure:
    """Draw regret against uniform and closed gap by scenario; by share of runs for many budgets."""
    check_columns("summary", summary, ("scenario", "budget", "method", "choose", "share_of_runs"))
    shown = summary.assign(label=_labels(summary))
    labels = list(dict.fromkeys(shown["label"]))
    scenarios = list(dict.fromkeys(shown["scenario"]))
    several = shown["budget"].nunique() > 1
    height = 2.6 if several else 0.7 + _ROW * len(labels)
    below = 0.4 + _ROW * (len(labels) + 1) / 2 if several else 0.3
    figure = Figure(figsize=(style.WIDTH, height * len(scenarios) + below))
    figure.set_layout_engine("constrained", w_pad=0.08)  # long names would touch the edge
    grid = figure.subplots(len(scenarios), 2, squeeze=False, sharex=False if several else "col")
    draw = _curves if several else _dots
    for panels, scenario in zip(grid, scenarios, strict=True):
        rows = shown[shown["scenario"] == scenario]
        for ax, (name, factor, _) in zip(panels, _STATISTICS, strict=True):
            draw(ax, rows, labels, name, factor)
        title = style.short(str(scenario))
        panels[0].set_title(title, loc="left", size=style.TEXT, color=style.INK, parse_math=False)
    for panels in grid if several else grid[-1:]:
        for ax, (_, _, words) in zip(panels, _STATISTICS, strict=True):
            # Words stand along the axis that has the values.
            (ax.set_ylabel if several else ax.set_xlabel)(words, size=style.SMALL)
    if several:
        for ax in grid[-1]:
            ax.set_xlabel("share of all runs paid for", size=style.SMALL)
        handles = [Line2D([], [], **_drawn(label, labels)) for label in labels]
        style.legend_below(figure, handles, labels, 2)
    return style.fix_layout(figure)


def selection_report(summary: DataFrame, records: DataFrame) -> Report:
    """Return the report of what ``select_algorithms`` recorded and its summary."""
    tables = [
        (f"{scenario}.", _readable(rows))
        for scenario, rows in summary.groupby("scenario", sort=False)
    ]
    return Report(
        title="Selecting algorithms from few runs",
        summary=_READING,
        sections=[
            Section(
                "Selection",
                "What deploying the selectors gives on instances they were not trained on.",
                [("Methods by scenario.", selection_figure(summary))],
                tables,
            )
        ],
        settings={
            "methods": list(dict.fromkeys(_labels(summary))),
            "budgets": sorted(set(summary["budget"])),
        },
        seeds=sorted(set(records["seed"])),
        timings=records.assign(method=_labels(records))[["method", "seconds"]],
    )


_CPU_READING = (
    "Regret is log10 of how many times longer the selected solver takes than the best one, over "
    "the tested instances; the closed gap is 0 for picks as good as the single best solver's "
    "and 1 for perfect ones, in mean PAR10. CPU time is that of all runs made for training, as a "
    "share of what all solvers take on all training instances, and of computing features. Bars are "
    "two standard errors to each side, over folds."
)
_CPU_STATISTICS = (("regret", "regret"), ("par10", "PAR10, s"), ("closed_gap", "closed gap"))


def cpu_figure(summary: DataFrame) -> Figure:
    """Draw regret, PAR10 and closed gap by CPU time spent, a row per scenario."""
    check_columns("summary", summary, ("scenario", "cpu", "method", "spent", "regret"))
    labels = list(dict.fromkeys(summary["method"]))
    scenarios = list(dict.fromkeys(summary["scenario"]))
    figure = Figure(figsize=(style.WIDTH, 2.6 * len(scenarios) + 0.8))
    figure.set_layout_engine("constrained", w_pad=0.08)
    grid = figure.subplots(len(scenarios), len(_CPU_STATISTICS), squeeze=False)
    for panels, scenario in zip(grid, scenarios, strict=True):
        rows = summary[summary["scenario"] == scenario]
        for ax, (name, words) in zip(panels, _CPU_STATISTICS, strict=True):
            for label, part in rows.groupby("method", sort=False):
                _spent(ax, part, name, str(label), labels)
            style.dress(ax)
            ax.grid(axis="y", color=style.FAINT, lw=0.8)
            ax.set_xscale("log")
            made = rows[rows["method"] == labels[0]]["spent"]
            ax.set_xticks(sorted(made), [f"{100 * value:.2g} %" for value in sorted(made)])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_ylabel(words, size=style.SMALL)
        title = style.short(str(scenario))
        panels[0].set_title(title, loc="left", size=style.TEXT, color=style.INK, parse_math=False)
    grid[-1, 1].set_xlabel("CPU time, share of the full table's", size=style.SMALL)
    handles = [Line2D([], [], **_drawn(label, labels)) for label in labels]
    style.legend_below(figure, handles, labels, 2)
    return style.fix_layout(figure)


def _spent(ax: Axes, part: DataFrame, name: str, label: str, labels: list[str]) -> None:
    look = _drawn(label, labels)
    if part["spent"].nunique() == 1 and len(part) > 1:  # the full table, whatever the budget
        ax.axhline(part[name].iloc[0], color=look["color"], ls=look["ls"], lw=1.8)
        return
    ordered = part.sort_values("spent")
    errors = (2 * ordered[f"{name}_error"]).fillna(0.0)
    ax.errorbar(ordered["spent"], ordered[name], yerr=errors, elinewidth=1.4, lw=1.8, **look)


def cpu_report(summary: DataFrame, records: DataFrame) -> Report:
    """Return the report of what ``select_algorithms`` recorded within budgets of CPU time."""
    tables = [
        (f"{scenario}.", rows.drop(columns="scenario"))
        for scenario, rows in summary.groupby("scenario", sort=False)
    ]
    figures = [("Regret, PAR10 and closed gap by CPU time.", cpu_figure(summary))]
    return Report(
        title="Selecting algorithms within a budget of CPU time",
        summary=_CPU_READING,
        sections=[Section("Selection", "What the selectors pick.", figures, tables)],
        settings={
            "methods": list(dict.fromkeys(summary["method"])),
            "budgets": sorted(set(summary["cpu"])),
        },
        seeds=sorted(set(records["seed"])),
        timings=records[["method", "seconds"]],
    )


def _labels(summary: DataFrame) -> list[str]:
    return [
        f"{method}{_CHOOSING}" if chosen else str(method)
        for method, chosen in zip(summary["method"], summary["choose"], strict=True)
    ]


def _readable(rows: DataFrame) -> DataFrame:
    """Return a scenario's rows with headings for people."""
    columns = {
        "budget": "budget",
        "label": "method",
        "average_regret": "regret",
        "regret_change": "change against uniform",
        "regret_change_error": "± (standard error)",
        "selected": "selected",
        "single_best": "single best solver",
        "virtual_best": "virtual best solver",
        "closed_gap": "closed gap",
        "closed_gap_error": "± (standard error) ",
        "runs_paid": "runs paid per fold",
        "runs_in_table": "runs in the full table",
        "share_of_runs": "share paid",
    }
    return rows.assign(label=_labels(rows))[list(columns)].rename(columns=columns)


def _drawn(label: str, labels: list[str]) -> dict[str, Any]:
    """Return a method's look; one that chooses instances is drawn hollow in the same colour."""
    looks = style.line_styles(name.removesuffix(_CHOOSING) for name in labels)
    look = looks[label.removesuffix(_CHOOSING)]
    hollow = label.endswith(_CHOOSING)
    return {
        "color": look.colour,
        "marker": look.marker,
        "ms": 8,
        "mew": 1.6,
        "mfc": "white" if hollow else look.colour,
        "ls": (0, (5, 1.6)) if hollow else look.line,
    }


def _dots(ax: Axes, rows: DataFrame, labels: list[str], name: str, factor: float) -> None:
    for row in rows.to_dict("records"):
        place, error = labels.index(row["label"]), 2 * factor * row[f"{name}_error"]
        drawn = _drawn(row["label"], labels)
        if not (name == "regret_change" and row["label"] == YARDSTICK):
            ax.errorbar(
                [factor * row[name]],
                [place],
                xerr=[error] if error == error else None,
                elinewidth=2,
                **drawn | {"ls": ""},
            )
    ax.axvline(0, color=style.INK, lw=1, zorder=0)
    style.dress(ax)
    ax.grid(axis="x", color=style.FAINT, lw=0.8)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    first = name == _STATISTICS[0][0]
    names = [style.short(label) for label in labels] if first else [""] * len(labels)
    ax.set_yticks(range(len(labels)), names, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
    ax.tick_params(labelbottom=True)


def _curves(ax: Axes, rows: DataFrame, labels: list[str], name: str, factor: float) -> None:
    middle = (len(labels) - 1) / 2
    for label, part in rows.groupby("label", sort=False):
        ordered = part.sort_values("share_of_runs")
        x, y = ordered["share_of_runs"], factor * ordered[name]
        errors = (2 * factor * ordered[f"{name}_error"]).fillna(0.0)
        ax.errorbar(
            x,
            y,
            yerr=errors,
            elinewidth=1.4,
            lw=1.8,
            # Methods make the same number of runs: their bars are moved apart to be legible.
            transform=_moved(ax, _APART * (labels.index(str(label)) - middle)),
            **_drawn(str(label), labels),
        )
        for end in (y - errors, y + errors):  # shifted points do not extend the axes by themselves
            ax.update_datalim(np.column_stack([x, end]))
    ax.margins(x=0.1)
    ax.autoscale_view()
    ax.set_xlim(left=0)
    style.dress(ax)
    ax.grid(axis="y", color=style.FAINT, lw=0.8)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=_STEPS))


def _moved(ax: Axes, points: float) -> Transform:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("ax must be part of a figure")
    return ax.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)
