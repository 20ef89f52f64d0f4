"""What the reports of the studies say: which figures and tables, in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from contextgap import plot
from contextgap.experiments import Results, Study, Tuning
from contextgap.experiments.study import Pair
from contextgap.kernels import Gaussian
from contextgap.policy import Policy
from contextgap.problems.extras import study_import
from contextgap.report.curves import regret_curves, scale_panels
from contextgap.report.files import save
from contextgap.report.page import Report, Section, write_report
from contextgap.report.picks import pick_histogram
from contextgap.report.tuning import tuning_heat_map

if TYPE_CHECKING:
    from pandas import DataFrame

READING = (
    "Simple regret is what the deployed arm pays less than the best arm would, without feedback. "
    "Curves are means over repetitions; bands are half a standard deviation to each side."
)


def write(report: Report, folder: Path) -> Path:
    """Write the page and, beside it, every figure as SVG and PNG.

    Parameters
    ----------
    report
        What to write.
    folder
        Where to.
    """
    figures = folder / "figures"
    for section in report.sections:
        for number, (_, figure) in enumerate(section.figures):
            name = re.sub(r"\W+", "-", section.title.lower()).strip("-")
            save(figure, figures, name if len(section.figures) == 1 else f"{name}-{number + 1}")
    return write_report(report, folder / "report.html")


def run_report(
    study: Study,
    tunings: Mapping[str, Tuning],
    results: Results,
    policy: Policy,
    seconds: float,
) -> Report:
    """Return the report of one run.

    Parameters
    ----------
    study
        The data.
    tunings
        Settings by method.
    results
        What was found.
    policy
        The frozen policy of the first method.
    seconds
        How long it all took.
    """
    explored, deployed = (len(part) for part in study.rounds[0])
    context = study.rounds[0][1].contexts[0]
    drawing = Figure(figsize=(8, 4.4), layout="constrained")
    plot.decision(policy.decide(context), drawing.add_subplot())
    sections = [
        *comparison_sections(results),
        tuning_section("Tuning", tunings),
        Section(
            "One decision",
            "What the frozen policy believes about every arm at the first context to deploy on.",
            [("Means and intervals of all arms; the shaded arm is deployed.", drawing)],
        ),
    ]
    return Report(
        title=f"One run: {study.name}",
        summary=f"{explored} contexts explored, then deployed on {deployed} without feedback.",
        sections=sections,
        settings=study_settings(study, seconds),
        seeds=[0],
        timings=results.timings,
    )


def compare_report(
    study: Study, tunings: Mapping[str, Tuning], results: Results, seconds: float
) -> Report:
    """Return the report of a comparison.

    Parameters
    ----------
    study
        The data.
    tunings
        Settings by method.
    results
        What was found.
    seconds
        How long it all took.
    """
    best = ranking(results.records).iloc[0]
    return Report(
        title=f"Comparison: {study.name}",
        summary=(
            f"After the last step {best['method']} (scale {best['scale']:g}) misses least on "
            f"average: {best['average regret']:.3g}. Each method was tuned on held-out data at "
            "scale 1."
        ),
        sections=[*comparison_sections(results), tuning_section("Tuning", tunings)],
        settings=study_settings(study, seconds),
        seeds=list(range(len(study.rounds))),
        timings=results.timings,
    )


def comparison_sections(results: Results, single_scale: bool = True) -> list[Section]:
    """Return the sections on average and worst regret, scales and picks."""
    records = results.records
    scales = sorted(records["scale"].unique())
    main = 1.0 if 1.0 in scales else scales[0]
    where = f" at scale {main:g}"
    sections = []
    if single_scale:
        sections.append(
            Section(
                "Average regret",
                READING,
                [(f"Average simple regret{where}.", regret_curves(at_scale(records, main)))],
                [("After the last step, best first.", ranking(records))],
            )
        )
    sections.append(
        Section(
            "Worst regret",
            "The highest simple regret over all contexts deployed on.",
            [
                (
                    f"Worst simple regret{where}.",
                    regret_curves(at_scale(records, main), statistic="worst_regret"),
                )
            ],
        )
    )
    if len(scales) > 1:
        sections.append(
            Section(
                "Other scales",
                f"Settings tuned at scale 1 are kept for the others. {_best_by_scale(records)}",
                [("Average simple regret by scale of the intervals.", scale_panels(records))],
                [("After the last step, best first.", ranking(records))],
            )
        )
    sections.append(
        Section(
            "What was tried",
            "Methods made to earn while they learn keep to the best arm; exploring for later "
            "also tries its rivals.",
            [
                (
                    f"Share of exploration steps by rank of the arm tried{where}.",
                    pick_histogram(at_scale(results.picks, main)),
                )
            ],
        )
    )
    return sections


def tuning_section(title: str, tunings: Mapping[str, Tuning]) -> Section:
    """Return the section on a grid search."""
    pandas = study_import("pandas")
    rows = [
        {
            "method": method,
            "bandwidth": _bandwidth(tuning),
            "ridge": tuning.ridge,
            "average regret": float(tuning.regret.min()),
            "on the grid's edge": "yes" if tuning.on_edge else "no",
        }
        for method, tuning in tunings.items()
    ]
    return Section(
        title,
        "Average simple regret on the held-out part, by bandwidth and ridge.",
        [("Brighter is better; the star is the setting chosen.", tuning_heat_map(tunings))],
        [("Settings chosen.", pandas.DataFrame(rows))],
    )


def _bandwidth(tuning: Tuning) -> str | float:
    kernel = tuning.kernel
    if not isinstance(kernel, Gaussian):
        return str(kernel)
    if isinstance(kernel.bandwidth, float):
        return kernel.bandwidth
    values = list(kernel.bandwidth)
    shown = ", ".join(f"{value:.3g}" for value in values[:4])
    return shown if len(values) <= 4 else f"{shown}, ... ({len(values)})"


def ranking(records: DataFrame) -> DataFrame:
    """Return average and worst regret after the last step, best first."""
    last = records[records["checkpoint"] == records["checkpoint"].max()]
    means = last.groupby(["method", "scale"], sort=False)[["average_regret", "worst_regret"]].mean()
    named = means.rename(
        columns={"average_regret": "average regret", "worst_regret": "worst regret"}
    )
    return named.sort_values("average regret").reset_index()


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


def study_settings(study: Study, seconds: float) -> dict[str, object]:
    """Return what a study's report says of its data."""
    held, rounds = study.hold_out, study.rounds

    def sizes(pair: Pair) -> str:
        return " explored, ".join(str(len(part)) for part in pair) + " evaluated"

    return {
        "problem": repr(rounds[0][0]),
        "held out for tuning": sizes(held),
        "compared on": sizes(rounds[0]),
        "repetitions": len(rounds),
        "wall-clock seconds": round(seconds, 1),
    }
