"""Figures of flights: which sensor was used where, and the regret without feedback."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from contextgap.studies.experiments import FlightTrace
from contextgap.studies.report import style
from contextgap.studies.report.end_labels import end_labels
from contextgap.studies.report.summary import check_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

# Okabe and Ito; sensors are not methods, so they get colours that no method's line has in a panel.
_SENSORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
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
        middle.plot(minutes, error, color=_SENSORS[place % 6], lw=1.3, label=str(arm))
    middle.set_ylabel("expected error [nT]")
    middle.set_yscale("log")
    middle.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _strip(below, minutes, trace.arms[rows], trace.deployed[rows])
    below.set_yticks([0.5, 1.5], ["deployed", "tried"])
    below.set_xlabel("time [min]")
    below.set_xlim(minutes[0], minutes[-1])
    extras = [
        Patch(color=_ALONE, label="no feedback"),
        Patch(color=style.INK, label="eclipse"),
    ]
    handles = [*middle.get_lines(), *extras]
    style.plain(
        figure.legend(
            handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=11
        )
    )
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
        ax.broken_barh(stretch, (0.05 if alone else 1.05, 0.9), color=_SENSORS[arm % 6], lw=0)
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
    looks = style.looks(methods)
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
