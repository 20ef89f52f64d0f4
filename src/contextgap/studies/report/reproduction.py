"""The reports of the paper's studies, beside its published results.

The published values were read off the figures of "Simple Regret Minimization for Contextual
Bandits", section 6 and the experimental appendix, to about ±5 %: average simple regret of the
exploitation phase by exploration steps. The synthetic study has one scale, and means of ten runs;
the laboratory study four, each curve a single run. Uniform exploration, which knows no scale, ends
at 0.0445, 0.0355, 0.039 and 0.065 in its four figures: so much do single runs differ.
"""

from __future__ import annotations

from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from contextgap.base.names import study_import
from contextgap.insight.plot import ARMS
from contextgap.studies.experiments import Comparison, FlightTrace, fly
from contextgap.studies.experiments.reproduce import AUTHORS, PAPER, Reproduction, protocol_width
from contextgap.studies.problems import Problem
from contextgap.studies.report import style
from contextgap.studies.report.figures import (
    check_columns,
    history_comparison,
    regret_curves,
    tuning_heat_map,
)
from contextgap.studies.report.page import Report, Section, resource
from contextgap.studies.report.studies import (
    HEADINGS,
    at_scale,
    comparison_sections,
    ranking,
    reading,
    single_arm,
    study_settings,
    tuning_section,
)
from contextgap.studies.report.style import end_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


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
    check_columns("records", records, ("method", "checkpoint", "average_regret"))
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
    figure = Figure(figsize=(style.WIDTH * 1.35, 6.6), layout="constrained")
    above, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 2.4, 0.8))
    for ax in (above, middle, below):
        _shade(ax, minutes, trace.deployed[rows])
        style.dress(ax)
    above.plot(minutes, mission.dipole_latitude[rows], color=style.INK, lw=1.8)
    above.set_ylabel("magnetic\nlatitude [°]")
    above.set_yticks([-90, -55, 0, 55, 90])
    night = mission.sunlit[rows] < 0.5
    above.fill_between(minutes, -90, -82, where=night, color=style.INK, lw=0, step="mid")
    for place, arm in enumerate(mission.arms):
        error = -_UNIT * mission.rewards[rows, place]
        middle.plot(minutes, error, color=ARMS[place % len(ARMS)], lw=1.3, label=str(arm))
    middle.set_ylabel("expected error [nT]")
    middle.set_yscale("log")
    middle.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _strip(below, minutes, trace.arms[rows], trace.deployed[rows])
    below.set_yticks([0.5, 1.5], ["deployed", "tried"])
    below.set_xlabel("time [min]")
    below.set_xlim(minutes[0], minutes[-1])
    extras = [Patch(color=_ALONE, label="no feedback"), Patch(color=style.INK, label="eclipse")]
    handles = [*middle.get_lines(), *extras]
    look: dict[str, Any] = {"ncols": 5, "frameon": False, "fontsize": 11}
    style.plain(figure.legend(handles=handles, loc="outside upper center", **look))
    return figure


def _shade(ax: Axes, minutes: Any, deployed: Any) -> None:
    for alone, group in groupby(range(len(minutes)), key=lambda i: bool(deployed[i])):
        places = list(group)
        if alone:
            ax.axvspan(minutes[places[0]], minutes[places[-1]], color=_ALONE, lw=0, zorder=0)


def _strip(ax: Axes, minutes: Any, arms: Any, deployed: Any) -> None:
    """Coloured stretches: below where the pick was deployed, above where it was tried."""
    step = float(np.median(np.diff(minutes)))
    for (arm, alone), group in groupby(
        range(len(minutes)), key=lambda i: (int(arms[i]), bool(deployed[i]))
    ):
        places = list(group)
        stretch = [(minutes[places[0]], minutes[places[-1]] - minutes[places[0]] + step)]
        ax.broken_barh(stretch, (0.05 if alone else 1.05, 0.9), color=ARMS[arm % len(ARMS)], lw=0)
    ax.set_ylim(0, 2)


def flight_curves(flights: DataFrame) -> Figure:
    """Draw average regret without feedback by orbit, beside the best single and a random arm."""
    check_columns("flights", flights, ("method", "seed", "orbit", "steps", "average_regret"))
    steps = flights.groupby("orbit")["steps"].mean()
    whole = steps.index[steps >= 0.5 * steps.max()]  # the ends of a flight cut orbits short
    flights = flights[flights["orbit"].isin(whole)]
    figure = Figure(figsize=(style.WIDTH, 4.4), layout="constrained")
    ax = figure.add_subplot()
    methods = list(dict.fromkeys(flights["method"]))
    looks = style.line_styles(methods)
    ends: dict[str, tuple[float, float]] = {}
    for method in methods:
        rows = flights[flights["method"] == method]
        curve = rows.groupby("orbit")["average_regret"].agg(["mean", "std"])
        x, mean = curve.index.to_numpy() + 1, curve["mean"].to_numpy()
        half = 0.5 * curve["std"].fillna(0).to_numpy()
        look = looks[method]
        ax.plot(x, mean, color=look.colour, ls=look.line, marker=look.marker, lw=2.4, ms=6)
        ax.fill_between(x, mean - half, mean + half, color=look.colour, alpha=0.18, lw=0)
        ends[method] = (float(x[-1]), float(mean[-1]))
    for name, label in (("best_single", "best single arm"), ("random", "random arm")):
        mean = flights.groupby("orbit")[name].mean()
        ax.plot(mean.index + 1, mean, color=style.INK, ls=":", lw=1.4)
        place = (float(mean.idxmax() + 1), float(mean.max()))
        ax.annotate(label, place, (0, 5), textcoords="offset points", ha="center", size=style.SMALL)
    style.dress(ax)
    ax.set_xlabel("orbit")
    ax.set_ylabel("average regret without feedback")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=style.FAINT, lw=0.8)
    end_labels(ax, ends)
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
    """Return the report of one of the paper's studies."""
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
        sections.append(_looking_back(found.history.records))
    if found.flights is not None:
        sections += _flight_sections(found.flights, found.main)
    sections.append(tuning_section("Tuning", found.main.tunings))
    sections.append(_over_grid(found))
    if found.wider is not None:
        sections += _wider_grid(found.wider)
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
    figure = tuning_heat_map(found.over_grid, chosen=found.main.tunings)
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
    """Say where our curves and the published ones differ."""
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


def _looking_back(records: DataFrame) -> Section:
    return Section(
        "Looking back",
        "Contextual-Gap deployed by the leader of the last step, of the last 25 steps and of all "
        "steps since the burn-in (Algorithm 1).",
        [("Average simple regret by length of the look-back.", history_comparison(records))],
        [("After the last step.", ranking(records))],
    )


def _wider_grid(wider: Comparison) -> list[Section]:
    records = wider.results.records
    return [
        Section(
            "With the wider grid",
            "The library's own grid reaches to smaller bandwidths and ridges. Rewards have no "
            "noise here, which favours a small ridge; but the text's half width grows as the ridge "
            "shrinks.",
            [("Average simple regret at scale 1.", regret_curves(records))],
            [("After the last step.", ranking(records))],
        ),
        tuning_section("Tuning on the wider grid", wider.tunings),
    ]


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
