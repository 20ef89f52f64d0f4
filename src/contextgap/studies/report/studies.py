"""The reports of studies: learners with default settings, tuned methods, and the paper's studies.

The published values were read off the figures of "Simple Regret Minimization for Contextual
Bandits", section 6 and the experimental appendix, to about ±5 %: average simple regret of the
exploitation phase by exploration steps. The synthetic study has one scale, and means of ten runs;
the laboratory study four, each curve a single run. Uniform exploration, which knows no scale, ends
at 0.0445, 0.0355, 0.039 and 0.065 in its four figures: so much do single runs differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from contextgap.base.components import study_import
from contextgap.insight import plot
from contextgap.policy import Card, Policy
from contextgap.studies.experiments import Comparison, FlightTrace, GridSearch, Results, Study, fly
from contextgap.studies.experiments.compare import (
    FULL,
    SINGLE,
    Pair,
    final_regret,
    marked,
    same_rows,
    summarise_defaults,
)
from contextgap.studies.experiments.paper import AUTHORS, PAPER, Reproduction, protocol_width
from contextgap.studies.problems import Problem
from contextgap.studies.report import figures
from contextgap.studies.report.figures import HALF_DEVIATION, ONE_ERROR, SINGLE_ARM, regret_curves
from contextgap.studies.report.page import Origin, Report, Section, resource, save, write_report

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
    tables = [
        exploit.regret_table[:, exploit.rewards.mean(axis=0).argmax()]
        for _, exploit in study.rounds
    ]
    return {
        "average_regret": float(np.mean([table.mean() for table in tables])),
        "worst_regret": float(np.mean([table.max() for table in tables])),
    }


def compare_report(study: Study, tunings: Mapping[str, GridSearch], results: Results) -> Report:
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
        drawn = [(f"Average simple regret{where}. {dashed}", figure)]
        sections.append(Section("Average regret", reading(records), drawn, [ranked]))
    figure = regret_curves(shown, "worst_regret", single_arm=single["worst_regret"])
    sections.append(
        Section("Worst regret", _WORST, [(f"Worst simple regret{where}. {dashed}", figure)])
    )
    if len(scales) > 1:
        table = ranking(records)
        best = table.loc[table.groupby("scale")["average regret"].idxmin()]
        listed = "; ".join(
            f"scale {row['scale']:g} {row['method']} ({row['average regret']:.2g})"
            for row in best.to_dict("records")
        )
        text = (
            "Settings tuned at scale 1 are kept for the others. Lowest average regret after the "
            f"last step: {listed}."
        )
        drawn = [
            ("Average simple regret by scale of the intervals.", figures.scale_panels(records))
        ]
        sections.append(Section("Other scales", text, drawn, [ranked]))
    sections.append(_tried(at_scale(results.picks, main), where))
    return sections


def _tried(picks: DataFrame, where: str = "") -> Section:
    caption = f"Share of exploration steps by rank of the arm tried{where}."
    return Section("What was tried", _TRIED, [(caption, figures.pick_histogram(picks))])


def tuning_section(title: str, tunings: Mapping[str, GridSearch]) -> Section:
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
        [("Brighter is better; the star is the setting chosen.", figures.tuning_heat_map(tunings))],
        [(f"Settings chosen; bandwidths in {units}.", study_import("pandas").DataFrame(rows))],
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
    return table[table["scale"] == scale]


def study_settings(study: Study) -> dict[str, object]:
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
    columns = {name: name for name in ("scenario", "budget", "method")} | {
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
    shown = summary.assign(method=figures.choosing_labels(summary))[list(columns)].rename(
        columns=columns
    )
    return _selectors(
        "Selecting algorithms from few runs",
        _SELECTION_READING,
        "What deploying the selectors gives on instances they were not trained on.",
        ("Methods by scenario.", figures.selection_figure(summary)),
        shown,
        summary["budget"],
        records.assign(method=figures.choosing_labels(records)),
    )


def cpu_report(summary: DataFrame, records: DataFrame) -> Report:
    return _selectors(
        "Selecting algorithms within a budget of CPU time",
        _CPU_READING,
        "What the selectors pick.",
        ("Regret, PAR10 and closed gap by CPU time.", figures.cpu_figure(summary)),
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


# The paper's studies, by its own names and by the names of the problems here.
_PUBLISHED = {
    "synthetic": "synthetic",
    "sinusoids": "synthetic",
    "spacecraft-lab": "laboratory",
    "bench": "laboratory",
}


def published(study: str, scale: float = 1.0, protocol: str = PAPER) -> DataFrame | None:
    """Return the paper's values for a study, or None where it has none.

    Parameters
    ----------
    study
        The name in the records, such as ``"sinusoids"``.
    scale
        The scale of the intervals.
    protocol
        "paper" has the last point where the figure has it, after 1950 or 2950 steps; "authors"
        after 2000 or 3000, when the authors' code evaluates it.

    Returns
    -------
    table
        Columns method, exploration_steps, average_simple_regret.

    Examples
    --------
    >>> published("sinusoids")["average_simple_regret"].head(4).tolist()
    [0.053, 0.0122, 0.0048, 0.00215]
    >>> published("wine") is None
    True
    """
    values = study_import("pandas").read_csv(StringIO(resource("published.csv")))
    same = (values["study"] == _PUBLISHED.get(study)) & (values["scale"] == scale)
    if not same.any():
        return None
    table: DataFrame = values[same].drop(columns=["study", "scale"]).reset_index(drop=True)
    if protocol == AUTHORS:
        last = table["exploration_steps"] == table["exploration_steps"].max()
        table.loc[last, "exploration_steps"] += 50
    return table


def beside(records: DataFrame, study: str, protocol: str = PAPER) -> DataFrame:
    """Return our results beside the paper's, wherever both exist.

    Parameters
    ----------
    records
        From ``experiments.compare``; without a column ``scale``, of scale 1.
    study
        The name in the records, such as ``"sinusoids"``.
    protocol
        As of ``published``.

    Returns
    -------
    table
        Columns method, scale, steps, ours (mean over repetitions), std, published, and ratio of
        ours to published; no rows where the paper has no values.
    """
    figures.check_columns("records", records, ("method", "checkpoint", "average_regret"))
    pandas = study_import("pandas")
    columns = ["method", "scale", "steps", "ours", "std", "published", "ratio"]
    if "study" in records.columns:
        records = records[records["study"] == study]
    if "scale" not in records.columns:
        records = records.assign(scale=1.0)
    keys = ["method", "scale", "checkpoint"]
    ours = records.groupby(keys)["average_regret"].agg(["mean", "std"])
    found = [
        theirs.assign(scale=scale)
        for scale in records["scale"].unique()
        if (theirs := published(study, scale, protocol)) is not None
    ]
    if not found:
        return pandas.DataFrame(columns=columns)
    names = {"checkpoint": "steps", "mean": "ours", "average_simple_regret": "published"}
    theirs = pandas.concat(found).rename(columns={"exploration_steps": "checkpoint"})
    both = theirs.merge(ours, on=keys).rename(columns=names)
    both["ratio"] = both["ours"] / both["published"]
    return both[columns]


# Okabe and Ito; sensors are not methods, so they get colours that no method's line has in a panel.
_ALONE = "#E8E8E8"
_UNIT = 100.0  # nT per unit of reward


def mission_timeline(mission: Any, trace: FlightTrace, orbits: int = 2) -> Figure:
    """Draw the last orbits of a flight: where it was, what sensors err by, which was used."""
    per_orbit = int(np.bincount(mission.orbit_number - mission.orbit_number.min()).max())
    rows = np.arange(len(mission.time))[-orbits * per_orbit :]
    minutes = (mission.time[rows] - mission.time[rows[0]]) / 60
    figure = Figure(figsize=(figures.WIDTH * 1.35, 6.6), layout="constrained")
    above, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 2.4, 0.8))
    arms, deployed = trace.arms[rows].tolist(), trace.deployed[rows].tolist()
    for ax in (above, middle, below):
        for alone, first, last in _stretches(deployed):
            if alone:
                ax.axvspan(minutes[first], minutes[last], color=_ALONE, lw=0, zorder=0)
        figures.dress(ax)
    above.plot(minutes, mission.dipole_latitude[rows], color=figures.INK, lw=1.8)
    above.set_ylabel("magnetic\nlatitude [°]")
    above.set_yticks([-90, -55, 0, 55, 90])
    night = mission.sunlit[rows] < 0.5
    above.fill_between(minutes, -90, -82, where=night, color=figures.INK, lw=0, step="mid")
    for place, arm in enumerate(mission.arms):
        error = -_UNIT * mission.rewards[rows, place]
        middle.plot(minutes, error, color=plot.ARMS[place % len(plot.ARMS)], lw=1.3, label=str(arm))
    middle.set_ylabel("expected error [nT]")
    middle.set_yscale("log")
    middle.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    step = float(np.median(np.diff(minutes)))
    for (arm, alone), first, last in _stretches(list(zip(arms, deployed, strict=True))):
        stretch = (minutes[first], minutes[last] - minutes[first] + step)
        height = (0.05 if alone else 1.05, 0.9)
        below.broken_barh([stretch], height, color=plot.ARMS[arm % len(plot.ARMS)], lw=0)
    below.set_ylim(0, 2)
    below.set_yticks([0.5, 1.5], ["deployed", "tried"])
    below.set_xlabel("time [min]")
    below.set_xlim(minutes[0], minutes[-1])
    extras = [Patch(color=_ALONE, label="no feedback"), Patch(color=figures.INK, label="eclipse")]
    handles = [*middle.get_lines(), *extras]
    look: dict[str, Any] = {"ncols": 5, "frameon": False, "fontsize": 11}
    figures.plain(figure.legend(handles=handles, loc="outside upper center", **look))
    return figure


def _stretches(values: list[Any]) -> Iterator[tuple[Any, int, int]]:
    for value, group in groupby(range(len(values)), key=values.__getitem__):
        places = list(group)
        yield value, places[0], places[-1]


def flight_curves(flights: DataFrame) -> Figure:
    """Draw average regret without feedback by orbit, beside the best single and a random arm."""
    figures.check_columns(
        "flights", flights, ("method", "seed", "orbit", "steps", "average_regret")
    )
    steps = flights.groupby("orbit")["steps"].mean()
    whole = steps.index[steps >= 0.5 * steps.max()]  # the ends of a flight cut orbits short
    flights = flights[flights["orbit"].isin(whole)]
    figure, ax = figures.one_panel(4.4)
    looks = figures.line_styles(flights["method"])
    ends: dict[str, tuple[float, float]] = {}
    for method, look in looks.items():
        rows = flights[flights["method"] == method]
        curve = rows.groupby("orbit")["average_regret"].agg(["mean", "std"])
        x, mean = curve.index.to_numpy() + 1, curve["mean"].to_numpy()
        half = 0.5 * curve["std"].fillna(0).to_numpy()
        ax.plot(x, mean, lw=2.4, ms=6, **look.drawn)
        ax.fill_between(x, mean - half, mean + half, color=look.colour, alpha=0.18, lw=0)
        ends[method] = (float(x[-1]), float(mean[-1]))
    for name, label in (("best_single", "best single arm"), ("random", "random arm")):
        mean = flights.groupby("orbit")[name].mean()
        ax.plot(mean.index + 1, mean, color=figures.INK, ls=":", lw=1.4)
        place = (float(mean.idxmax() + 1), float(mean.max()))
        figures.note(ax, label, place, 5, size=figures.SMALL, color="black")
    figures.dress(ax, grid="y")
    ax.set_xlabel("orbit")
    ax.set_ylabel("average regret without feedback")
    ax.set_ylim(bottom=0)
    figures.end_labels(ax, ends)
    return figure


_SUMMARIES = {
    "sinusoids": (
        "The paper's synthetic study",
        "Arms pay sin(a·x), a = {first} to {last}, at contexts x drawn evenly from 0 to 2π, "
        "without noise. Six methods explore, each tuned on held-out data; what they deploy is "
        "judged on contexts they have not seen.",
    ),
    "bench": (
        "The paper's magnetometer study, on a simulated bench",
        "Three magnetometers among current loops that are driven as a satellite's loads drive "
        "them; the context is the loops' currents, the reward minus the sensor's error in nT. The "
        "paper's laboratory data were never published, so these are recorded runs of a simulated "
        "bench, one per seed. Published curves are of other data: their rates and ratios compare, "
        "their levels need not.",
    ),
    "spacecraft": (
        "The paper's spacecraft study, on simulated missions",
        "Three magnetometers aboard a small satellite; the context is its telemetry, the reward "
        "minus the sensor's error in units of 100 nT, and regret is against the expected reward. "
        "The paper's laboratory data were never published, so these are simulated missions, one "
        "per seed, in time order. Each channel has a bandwidth of its own.",
    ),
}
_LAST = "After the last step."
_SETTINGS = (
    "A learner without settings does otherwise than what follows: contextgap run shows what that "
    "gets."
)
_PROTOCOLS = {
    PAPER: "The half width of intervals is the text's, scale · std / √ridge. Bandwidths and ridges "
    "are tuned as in the paper, on held-out rows at scale 1, and kept for other scales. Where the "
    "text says nothing, docs/studies.md says what was done.",
    AUTHORS: "The protocol is that of the authors' code: uniform exploration draws arms at random, "
    "the half width is the variance of Thompson draws, each arm first has one reward of 0 or 1, "
    "and the last published point stands after all steps.",
}


def reproduction_report(found: Reproduction) -> Report:
    study = found.study
    title, summary = _SUMMARIES.get(study.name, (f"Study: {study.name}", ""))
    arms = study.rounds[0][0].arms
    summary = summary.format(first=arms[0], last=arms[-1])
    records = found.main.results.records
    sections = []
    if published(study.name) is not None:
        sections.append(_beside_published(found))
    if study.name != "sinusoids":
        sections.append(_by_steps(records, study.name, found.protocol))
    sections += comparison_sections(
        found.main.results, single_arm(study), single_scale=study.name != "sinusoids"
    )
    if found.history is not None:
        history = found.history.records
        text = (
            "Contextual-Gap deployed by the leader of the last step, of the last 25 steps and of "
            "all steps since the burn-in (Algorithm 1)."
        )
        caption = "Average simple regret by length of the look-back."
        drawn = [(caption, figures.history_comparison(history))]
        sections.append(Section("Looking back", text, drawn, [(_LAST, ranking(history))]))
    if found.flights is not None:
        sections += _flight_sections(found.flights, found.main)
    sections.append(tuning_section("Tuning", found.main.tunings))
    sections.append(_over_grid(found))
    if found.wider is not None:
        wider = found.wider.results.records
        text = (
            "The library's own grid reaches to smaller bandwidths and ridges. Rewards have no "
            "noise here, which favours a small ridge; but the text's half width grows as the ridge "
            "shrinks."
        )
        drawn = [("Average simple regret at scale 1.", regret_curves(wider))]
        sections.append(Section("With the wider grid", text, drawn, [(_LAST, ranking(wider))]))
        sections.append(tuning_section("Tuning on the wider grid", found.wider.tunings))
    return Report(
        title=title,
        summary=f"{summary}\n\n{_PROTOCOLS[found.protocol]} {_SETTINGS}",
        sections=sections,
        settings=study_settings(study),
        seeds=list(range(len(study.rounds))),
        timings=found.main.results.timings,
    )


def _beside_published(found: Reproduction) -> Section:
    name, records = found.study.name, found.main.results.records
    table = beside(records, name, found.protocol)
    points = published(name, protocol=found.protocol)
    caption = (
        "Average simple regret at scale 1; hollow markers are read off the paper's figure, to "
        "about 5 %."
    )
    return Section(
        "Ours beside the published",
        f"{_differences(table)}\n\n{reading(records)}",
        [(caption, regret_curves(at_scale(records, 1.0), published=points))],
        [("Average simple regret; ratio is ours over published.", table)],
    )


def _over_grid(found: Reproduction) -> Section:
    """Every setting's regret where methods are compared, so that luck in tuning is seen."""
    rows: list[dict[str, Any]] = []
    for method, grid in found.over_grid.items():
        tuned = float(grid.regret[found.main.tunings[method].best])
        regret = grid.regret.ravel()
        rows.append(
            {
                "method": method,
                "tuned": tuned,
                "best in the grid": float(regret.min()),
                "median": float(np.median(regret)),
                "settings below the tuned": int((regret < tuned).sum()),
            }
        )
    best = min(rows, key=lambda row: row["best in the grid"])
    figure = figures.tuning_heat_map(found.over_grid, chosen=found.main.tunings)
    table = study_import("pandas").DataFrame(rows)
    return Section(
        "The whole grid",
        "Average simple regret of every setting after the last step of the first repetition, not "
        "on held-out rows. A tuned setting far from the best is bad luck in tuning. With the best "
        f"setting of the grid {best['method']} is lowest ({best['best in the grid']:.2g}).",
        [("Brighter is better; the star is the best setting, the cross the tuned one.", figure)],
        [(f"Of {regret.size} settings; regret on the first repetition.", table)],
    )


def _differences(table: DataFrame) -> str:
    if table.empty:
        return "No checkpoint coincides with a published value."
    close = table["ratio"].between(0.8, 1.25)
    ranges = table.groupby("method", sort=False)["ratio"].agg(["min", "max"])
    listed = "; ".join(
        f"{method} {low:.2g} to {high:.2g}" for method, low, high in ranges.itertuples()
    )
    return (
        f"{close.sum()} of {len(table)} published values are met within a quarter either way, "
        f"{(table['ratio'] < 0.8).sum()} of ours are lower and "
        f"{(table['ratio'] > 1.25).sum()} higher. "
        f"Ours over published, lowest to highest: {listed}."
    )


def _by_steps(records: DataFrame, name: str, protocol: str) -> Section:
    """Regret by steps, and Contextual-Gap's over that of uniform exploration."""
    rows = at_scale(records, 1.0)
    last = 3000 if protocol == AUTHORS else 2950
    rows = rows[rows["checkpoint"].isin((500, 1000, 2000, last))]
    if rows.empty:
        return Section("By number of steps", "No run is as long as the shortest published.")
    means = rows.groupby(["checkpoint", "method"])[["average_regret", "worst_regret"]].mean()
    table = means.reset_index().sort_values(["checkpoint", "average_regret"])
    uniform = table[table["method"] == "uniform"].set_index("checkpoint")["average_regret"]
    table["over uniform"] = table["average_regret"] / table["checkpoint"].map(uniform)
    each = rows.pivot(index=["checkpoint", "seed"], columns="method", values="average_regret")
    lead = (each["contextual-gap"] - each["uniform"]).groupby("checkpoint").sem() / uniform
    gap = table[table["method"] == "contextual-gap"].set_index("checkpoint")["over uniform"]
    listed = ", ".join(
        f"{ratio:.2f} ± {lead[step]:.2f} after {step}" for step, ratio in gap.items()
    )
    theirs = published(name, protocol=protocol)
    if theirs is not None:
        curves = theirs.pivot(
            index="exploration_steps", columns="method", values="average_simple_regret"
        )
        ratio = curves["contextual-gap"] / curves["uniform"]
        listed += " steps; published " + ", ".join(f"{value:.2f}" for value in ratio)
    caption = (
        "Mean over missions at scale 1, best first; the last column is the share of uniform's "
        "average regret."
    )
    return Section(
        "By number of steps",
        "Contextual-Gap's average regret over uniform exploration's, with standard errors of the "
        f"paired differences: {listed}.",
        tables=[(caption, table.rename(columns={**HEADINGS, "checkpoint": "steps"}))],
    )


def _flight_sections(
    flights: tuple[tuple[Problem, ...], DataFrame], main: Comparison
) -> list[Section]:
    missions, table = flights
    late, when = table[table["orbit"] >= 4], "after four orbits"
    if late.empty:
        late, when = table, "over the whole flight"
    columns = ["average_regret", "best_single", "random"]
    # Orbits at either end are cut short: weigh by steps.
    weighted = late[columns].mul(late["steps"], axis=0).groupby(late["method"], sort=False).sum()
    after = weighted.div(late.groupby("method", sort=False)["steps"].sum(), axis=0)
    shown = after.sort_values("average_regret").reset_index()
    tuning = main.tunings["contextual-gap"]
    mission: Any = missions[0]
    settings = {"kernel": tuning.kernel, "ridge": tuning.ridge, "width": protocol_width(PAPER)}
    trace = fly(mission, "contextual-gap", seed=0, **settings)
    caption = (
        "Where the spacecraft was, each sensor's expected error, and which was used: tried where "
        "the field is known, deployed where it is not."
    )
    return [
        Section(
            "In alternating phases",
            "Exploring where the field is known (near the magnetic equator) and deciding alone "
            "elsewhere, alternating along the orbit; regret counts where there is no feedback. The "
            "oracle's is 0.",
            [("Average regret without feedback, by orbit.", flight_curves(table))],
            [(f"Per step without feedback, {when}.", shown)],
        ),
        Section(
            "The mission",
            "The last two orbits of the first mission, flown with Contextual-Gap.",
            [(caption, mission_timeline(mission, trace))],
        ),
    ]
