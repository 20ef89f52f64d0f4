"""The reports of studies: learners with default settings, and methods tuned on held-out data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from contextgap.base.names import study_import
from contextgap.insight import plot
from contextgap.policy import Card, Policy
from contextgap.studies.experiments import GridSearch, Results, Study
from contextgap.studies.experiments.compare import (
    FULL,
    SINGLE,
    Pair,
    final_regret,
    marked,
    same_rows,
    summarise_defaults,
)
from contextgap.studies.report.figures import (
    HALF_DEVIATION,
    ONE_ERROR,
    SINGLE_ARM,
    choosing_labels,
    cpu_figure,
    pick_histogram,
    regret_curves,
    scale_panels,
    selection_figure,
    tuning_heat_map,
)
from contextgap.studies.report.page import Origin, Report, Section, save, write_report

if TYPE_CHECKING:
    from pandas import DataFrame


_REGRET = (
    "Simple regret is what the deployed arm pays less than the best arm would, without feedback."
)
HEADINGS = {"average_regret": "average regret", "worst_regret": "worst regret"}
_WORST = "The highest simple regret over all contexts deployed on."
_TRIED = (
    "How often each method, while it explored, tried the arm that was best at that step's context, "
    "the second best, and so on. Arms that pay the same share a rank. What was "
    "earned there does not count."
)


def write(
    report: Report, folder: Path, command: str, seconds: Callable[[], Mapping[str, float]]
) -> Path:
    """Write the page with links to the files in its folder, and every figure as SVG and PNG."""
    sections = [
        replace(section, figures=_saved(section, folder / "figures")) for section in report.sections
    ]
    page = folder / "report.html"
    beside = [path.name for path in folder.iterdir() if path.is_file() and path != page]
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    origin = Origin(command, date, beside, seconds())
    return write_report(replace(report, sections=sections, origin=origin), page)


def _saved(section: Section, folder: Path) -> list[tuple[str, Path]]:
    """Return the captions of a section's figures and the SVG files that these are written to."""
    name = re.sub(r"\W+", "-", section.title.lower()).strip("-")
    saved = []
    for number, (caption, figure) in enumerate(section.figures, 1):
        called = name if len(section.figures) == 1 else f"{name}-{number}"
        path = figure if isinstance(figure, Path) else save(figure, folder, called)[0]
        saved.append((caption, path))
    return saved


def reading(records: DataFrame, band: str = HALF_DEVIATION) -> str:
    """Return how to read curves of regret: one run has no band."""
    repetitions = records["seed"].nunique()
    if repetitions == 1:
        return f"{_REGRET} Each curve is one run: another would look different."
    return (
        f"{_REGRET} Curves are means over {repetitions} repetitions; bands are {band} to each side."
    )


def single_arm(study: Study) -> dict[str, float]:
    """Return the regret of the single arm that is best on average."""
    tables = [
        exploit.regret_table[:, exploit.rewards.mean(axis=0).argmax()]
        for _, exploit in study.rounds
    ]
    return {
        "average_regret": float(np.mean([table.mean() for table in tables])),
        "worst_regret": float(np.mean([table.max() for table in tables])),
    }


def compare_report(study: Study, tunings: Mapping[str, GridSearch], results: Results) -> Report:
    """Return the report of a comparison."""
    best = ranking(results.records).iloc[0]
    return Report(
        title=f"Comparison: {study.name}",
        summary=(
            f"After the last step {best['method']} (scale {best['scale']:g}) has the lowest "
            f"average regret: {best['average regret']:.3g}. Each method was tuned on held-out data "
            "at scale 1."
        ),
        sections=[
            *comparison_sections(results, single_arm(study)),
            tuning_section("Tuning", tunings),
        ],
        settings=study_settings(study),
        seeds=list(range(len(study.rounds))),
        timings=results.timings,
    )


def comparison_sections(
    results: Results, single: Mapping[str, float], single_scale: bool = True
) -> list[Section]:
    """Return the sections on average and worst regret, scales and picks."""
    records = results.records
    scales = sorted(records["scale"].unique())
    main = 1.0 if 1.0 in scales else scales[0]
    where = f" at scale {main:g}" if len(scales) > 1 else ""
    dashed = "The grey line is the best single arm, chosen by the rewards deployed on."
    shown = at_scale(records, main)
    ranked = ("After the last step, best first.", ranking(records, single))
    sections = []
    if single_scale:
        figure = regret_curves(shown, single_arm=single["average_regret"])
        figures = [(f"Average simple regret{where}. {dashed}", figure)]
        sections.append(Section("Average regret", reading(records), figures, [ranked]))
    figure = regret_curves(shown, "worst_regret", single_arm=single["worst_regret"])
    sections.append(
        Section("Worst regret", _WORST, [(f"Worst simple regret{where}. {dashed}", figure)])
    )
    if len(scales) > 1:
        text = f"Settings tuned at scale 1 are kept for the others. {_best_by_scale(records)}"
        figures = [("Average simple regret by scale of the intervals.", scale_panels(records))]
        sections.append(Section("Other scales", text, figures, [ranked]))
    sections.append(_tried(at_scale(results.picks, main), where))
    return sections


def _tried(picks: DataFrame, where: str = "") -> Section:
    """Return the section on the ranks of the arms tried."""
    caption = f"Share of exploration steps by rank of the arm tried{where}."
    return Section("What was tried", _TRIED, [(caption, pick_histogram(picks))])


def tuning_section(title: str, tunings: Mapping[str, GridSearch]) -> Section:
    """Return the section on a grid search."""
    pandas = study_import("pandas")
    rows = [
        {
            "method": method,
            "bandwidth": tuning.bandwidth,
            "ridge": tuning.ridge,
            "average regret": float(tuning.regret.min()),
            "on the grid's edge": "yes" if tuning.on_edge else "no",
        }
        for method, tuning in tunings.items()
    ]
    units = " or ".join(dict.fromkeys(tuning.grid.unit for tuning in tunings.values()))
    return Section(
        title,
        "Average simple regret on the held-out part, by bandwidth and ridge.",
        [("Brighter is better; the star is the setting chosen.", tuning_heat_map(tunings))],
        [(f"Settings chosen; bandwidths in {units}.", pandas.DataFrame(rows))],
    )


def ranking(records: DataFrame, single: Mapping[str, float] | None = None) -> DataFrame:
    """Return average and worst regret after the last step, best first, and of ``single``."""
    table = final_regret(records).rename(columns=HEADINGS)
    if single is not None:
        row = [SINGLE_ARM, None, single["average_regret"], single["worst_regret"]]
        table = table.astype({"scale": object})
        table.loc[len(table)] = row
    return table.sort_values("average regret", ignore_index=True)


def at_scale(table: DataFrame, scale: float) -> DataFrame:
    """Return the rows of one scale."""
    return table[table["scale"] == scale]


def _best_by_scale(records: DataFrame) -> str:
    table = ranking(records)
    best = table.loc[table.groupby("scale")["average regret"].idxmin()]
    listed = "; ".join(
        f"scale {row['scale']:g} {row['method']} ({row['average regret']:.2g})"
        for row in best.to_dict("records")
    )
    return f"Lowest average regret after the last step: {listed}."


def study_settings(study: Study) -> dict[str, object]:
    """Return what a study's report says of its data."""
    sizes = [
        " explored, ".join(str(len(part)) for part in pair) + " evaluated"
        for pair in (study.hold_out, study.rounds[0])
    ]
    return {
        "problem": repr(study.rounds[0][0]),
        "held out for tuning": sizes[0],
        "compared on": sizes[1],
        "repetitions": len(study.rounds),
    }


_YARDSTICKS = (
    "The thin grey lines are yardsticks. Full information is the same learner with the rewards of "
    "all arms at every context. The best single arm is chosen by the rewards deployed on."
)
_CAPTION = (
    "After the last step, best first. The error is one standard error of the average regret, and "
    "× uniform its ratio to that of uniform exploration."
)
_SEED = {"repetition": "seed"}  # as figures of other studies call it
_HEADINGS = {
    "average_regret": "average regret",
    "error": "± error",
    "worst_regret": "worst",
    "ratio_to_uniform": "× uniform",
}


def run_report(
    rounds: Sequence[Pair],
    results: Results,
    policy: Policy,
    card: Card | None,
    *,
    settings: Mapping[str, Any],
    seeds: Sequence[int],
) -> Report:
    """Return the report of a run; the policy is the first method's after the first round."""
    explore, exploit = rounds[0]
    records = results.records.rename(columns=_SEED).assign(
        method=results.records["method"].map(marked)
    )
    table = ranked(results.records)
    how_to_read = reading(records, ONE_ERROR)
    if same_rows(rounds):
        how_to_read += (
            " The rows are in time order and the same in every repetition, so the bands show the "
            "methods' own randomness only."
        )
    sections = [
        Section(
            "Average regret",
            f"{how_to_read}\n\n{_YARDSTICKS}",
            [("Average simple regret.", regret_figure(records))],
            [(_CAPTION, table)],
        ),
        *_worst(records),
        _tried(results.picks.rename(columns=_SEED)),
        _policy_section(policy, card, exploit.inputs[0]),
    ]
    return Report(
        title=f"What you get: {explore.name}",
        summary=_summary(table, len(explore), len(exploit), settings),
        sections=sections,
        settings={
            "problem": repr(explore),
            "explored, then deployed on": f"{len(explore)} rows, {len(exploit)} rows",
            "repetitions": len(rounds),
            "learner": dict(settings) or "no settings",
        },
        seeds=seeds,
        timings=results.timings,
    )


def _worst(records: DataFrame) -> list[Section]:
    """Return the section on the worst regret; none where it is always the same, as of classes."""
    if records["worst_regret"].nunique() == 1:
        return []
    figure = regret_figure(records, "worst_regret")
    return [Section("Worst regret", _WORST, [("Worst simple regret.", figure)])]


def regret_figure(records: DataFrame, statistic: str = "average_regret") -> Figure:
    """Draw regret by steps with bands of one standard error, and the best single arm's level."""
    single = records["method"] == SINGLE
    level = float(records.loc[single, statistic].mean()) if single.any() else None
    return regret_curves(records[~single], statistic, single_arm=level, band=ONE_ERROR)


def ranked(records: DataFrame) -> DataFrame:
    """Return the regret after the last step, best first, with names and headings for people."""
    table = summarise_defaults(records)
    table["method"] = table["method"].map(marked)
    return table.dropna(axis="columns", how="all").rename(columns=_HEADINGS)


def _summary(table: DataFrame, explored: int, deployed: int, settings: Mapping[str, Any]) -> str:
    how = "the settings below" if settings else "default settings"
    regret = dict(zip(table["method"], table["average regret"], strict=True))
    best = next(name for name in regret if name not in (FULL, SINGLE))
    beside = "; ".join(f"{name} {regret[name]:.3g}" for name in (FULL, SINGLE) if name in regret)
    return (
        f"Every method explored {explored} contexts, with {how}, and was then deployed on "
        f"{deployed} others without feedback. Lowest average regret: {best}, {regret[best]:.3g}"
        + (f" ({beside})." if beside else ".")
    )


def _policy_section(policy: Policy, card: Card | None, context: Any) -> Section:
    drawing = Figure(figsize=(5.6, 3.6), layout="constrained")
    plot.decision(policy.decide(context), drawing.add_subplot())
    believed = (
        "What it believes about every arm at the first context to deploy on; the shaded arm is "
        "deployed."
    )
    text = [
        f"The file policy.cgap holds what {marked(policy.method.name)} learnt in the first "
        "exploration."
    ]
    tables = []
    if card is not None:
        text += [f"Warning: {warning}." for warning in card.warnings]
        rows = study_import("pandas").DataFrame(card.rows(), columns=["quantity", "estimate"])
        tables.append((f"Its score card: {card.basis}.", rows))
    return Section("The policy", "\n\n".join(text), [(believed, drawing)], tables)


_SELECTION_READING = (
    "Regret is log10 of how many times longer the selected solver takes than the best one, or the "
    "difference in quality, averaged over the tested instances. The closed gap is 0 for picks as "
    "good as the single best solver's and 1 for perfect ones, in mean PAR10 or quality. Bars are "
    "two standard errors to each side, paired over folds and seeds. Computing features is not "
    "paid for."
)


_CPU_READING = (
    "Regret is log10 of how many times longer the selected solver takes than the best one, over "
    "the tested instances; the closed gap is 0 for picks as good as the single best solver's "
    "and 1 for perfect ones, in mean PAR10. CPU time is that of all runs made for training, as a "
    "share of what all solvers take on all training instances, and of computing features. Bars are "
    "two standard errors to each side, over folds."
)


def selection_report(summary: DataFrame, records: DataFrame) -> Report:
    """Return the report of what ``select_algorithms`` recorded and its summary."""
    columns = {
        "scenario": "scenario",
        "budget": "budget",
        "method": "method",
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
    shown = summary.assign(method=choosing_labels(summary))[list(columns)].rename(columns=columns)
    return _selectors(
        "Selecting algorithms from few runs",
        _SELECTION_READING,
        "What deploying the selectors gives on instances they were not trained on.",
        ("Methods by scenario.", selection_figure(summary)),
        shown,
        summary["budget"],
        records.assign(method=choosing_labels(records)),
    )


def cpu_report(summary: DataFrame, records: DataFrame) -> Report:
    """Return the report of what ``select_algorithms`` recorded within budgets of CPU time."""
    return _selectors(
        "Selecting algorithms within a budget of CPU time",
        _CPU_READING,
        "What the selectors pick.",
        ("Regret, PAR10 and closed gap by CPU time.", cpu_figure(summary)),
        summary,
        summary["cpu"],
        records,
    )


def _selectors(
    title: str,
    reading: str,
    text: str,
    figure: tuple[str, Figure],
    shown: DataFrame,
    budgets: Any,
    records: DataFrame,
) -> Report:
    """Return a report with a figure of all scenarios and a table of each."""
    tables = [
        (f"{scenario}.", rows.drop(columns="scenario"))
        for scenario, rows in shown.groupby("scenario", sort=False)
    ]
    return Report(
        title=title,
        summary=reading,
        sections=[Section("Selection", text, [figure], tables)],
        settings={
            "methods": list(dict.fromkeys(shown["method"])),
            "budgets": sorted(set(budgets)),
        },
        seeds=sorted(set(records["seed"])),
        timings=records[["method", "seconds"]],
    )
