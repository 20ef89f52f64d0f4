"""The reports of the paper's two studies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base.names import study_import
from contextgap.studies.experiments import Comparison, fly
from contextgap.studies.experiments.reproduce import AUTHORS, PAPER, Reproduction
from contextgap.studies.problems import Problem
from contextgap.studies.report.curves import history_comparison, regret_curves
from contextgap.studies.report.mission import flight_curves, mission_timeline
from contextgap.studies.report.page import Report, Section
from contextgap.studies.report.published import beside, published
from contextgap.studies.report.studies import (
    at_scale,
    comparison_sections,
    ranking,
    reading,
    single_arm,
    study_settings,
    tuning_section,
)
from contextgap.studies.report.tuning import tuning_heat_map

if TYPE_CHECKING:
    from pandas import DataFrame

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
    PAPER: "Bandwidths and ridges are tuned as in the paper, on held-out rows at scale 1, and kept "
    "for other scales. Where the text says nothing, docs/studies.md says what was done.",
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
    return Section(
        "The whole grid",
        "Average simple regret of every setting after the last step of the first repetition, not "
        "on held-out rows. A tuned setting far from the best is bad luck in tuning. With the best "
        f"setting in hindsight {best['method']} is lowest ({best['best in the grid']:.2g}).",
        [
            (
                "Brighter is better; the star is the best setting, the cross the tuned one.",
                tuning_heat_map(found.over_grid, chosen=found.main.tunings),
            )
        ],
        [
            (
                f"Of {regret.size} settings; regret on the first repetition.",
                study_import("pandas").DataFrame(rows),
            )
        ],
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
    names = {
        "checkpoint": "steps",
        "average_regret": "average regret",
        "worst_regret": "worst regret",
    }
    return Section(
        "By number of steps",
        "Contextual-Gap's average regret over uniform exploration's, with standard errors of the "
        f"paired differences: {listed}.",
        tables=[
            (
                "Mean over missions at scale 1, best first; the last column is the share of "
                "uniform's average regret.",
                table.rename(columns=names),
            )
        ],
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
            "The library's own grid reaches to smaller bandwidths and ridges, where the paper's "
            "best settings lie on its grid's edge. Rewards have no noise here, so that a smaller "
            "ridge is better without end.",
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
    trace = fly(mission, "contextual-gap", kernel=tuning.kernel, ridge=tuning.ridge, seed=0)
    timeline = mission_timeline(mission, trace)
    return [
        Section(
            "In alternating phases",
            "Exploring where the field is known (near the magnetic equator) and deciding alone "
            "elsewhere, in turns along the orbit; regret counts where there is no feedback. The "
            "oracle's is 0.",
            [("Average regret without feedback, by orbit.", flight_curves(table))],
            [(f"Per step without feedback, {when}.", shown)],
        ),
        Section(
            "The mission",
            "The last two orbits of the first mission, flown with Contextual-Gap.",
            [
                (
                    "Where the spacecraft was, each sensor's expected error, and which was used: "
                    "tried where the field is known, deployed where it is not.",
                    timeline,
                )
            ],
        ),
    ]
