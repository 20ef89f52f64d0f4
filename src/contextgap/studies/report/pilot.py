"""The figure of a pilot simulation: regret by exploration steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from contextgap.studies.report import style
from contextgap.studies.report.summary import check_columns

if TYPE_CHECKING:
    from pandas import DataFrame


def pilot_curve(table: DataFrame, tolerance: float | None = None) -> Figure:
    """Draw average simple regret against exploration steps: median, and bands of repetitions."""
    check_columns("table", table, ("checkpoint", "average_regret"))
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    bands = table.groupby("checkpoint")["average_regret"].quantile(shares).unstack()
    figure = Figure(figsize=(style.WIDTH, 4.4), layout="constrained")
    ax = figure.add_subplot()
    colour = "#0072B2"
    x = bands.index.to_numpy()
    for low, high, alpha, label in (
        (0.05, 0.95, 0.15, "90 % of explorations"),
        (0.25, 0.75, 0.3, "half of them"),
    ):
        ax.fill_between(x, bands[low], bands[high], color=colour, alpha=alpha, lw=0, label=label)
    ax.plot(x, bands[0.5], color=colour, lw=2.4, label="median")
    if tolerance is not None:
        ax.axhline(tolerance, color=style.INK, ls="--", lw=1.4, label=f"tolerance {tolerance:g}")
    style.dress(ax)
    ax.set_xlabel("exploration steps")
    ax.set_ylabel("average simple regret")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=style.FAINT, lw=0.8)
    style.plain(ax.legend(frameon=False, fontsize=style.SMALL))
    return figure
