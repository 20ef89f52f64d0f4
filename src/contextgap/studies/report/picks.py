"""Figures of how often exploration picked the best, second best, ... arm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from contextgap.studies.report import style
from contextgap.studies.report.summary import check_columns, check_single

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_ORDINALS = ("best", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th")


def pick_histogram(picks: DataFrame, ranks: int = 3) -> Figure:
    """Draw one panel per method: the share of exploration steps that tried each rank of arm.

    Whiskers are ± half a standard deviation over repetitions.

    Parameters
    ----------
    picks
        ``Results.picks`` of ``experiments.conduct``, of one scale.
    ranks
        How many ranks to show, 1 to 10; the arms beyond are pooled.
    """
    if not 1 <= ranks <= len(_ORDINALS):
        raise ValueError(f"ranks must be 1 to {len(_ORDINALS)}, got {ranks!r}")
    shares = pick_shares(picks, ranks)
    methods = list(dict.fromkeys(shares["method"]))
    columns = min(3, len(methods))
    rows = math.ceil(len(methods) / columns)
    figure = Figure(figsize=(style.WIDTH, 0.9 + 2.1 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    looks = style.looks(methods)
    for ax, method in zip(grid.flat, methods, strict=False):
        _bars(ax, shares[shares["method"] == method], looks[method].colour)
        title = style.short(method, 22)
        ax.set_title(title, size=style.SMALL + 1, color=style.INK, parse_math=False)
    for ax in grid.flat[len(methods) :]:
        ax.set_axis_off()
    top = float((shares["share"] + shares["std"].fillna(0) / 2).max())
    grid[0, 0].set_ylim(0, min(1.0, top) * 1.16)
    grid[0, 0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    figure.supxlabel("rank of the tried arm", size=style.TEXT, color=style.INK)
    figure.supylabel("share of exploration steps", size=style.TEXT, color=style.INK)
    return style.fix_layout(figure)


def pick_shares(picks: DataFrame, ranks: int = 3) -> DataFrame:
    """Return each method's mean share of steps, and its spread, per rank of the tried arm.

    Parameters
    ----------
    picks
        ``Results.picks`` of ``experiments.conduct``, of one scale.
    ranks
        How many ranks to tell apart; the arms beyond are pooled, unless there is just one.

    Returns
    -------
    shares
        Columns method, rank (a name), share, std.
    """
    check_columns("picks", picks, ("method", "seed", "rank", "count"))
    check_single("picks", picks, ("study", "scale"))
    arms = int(picks["rank"].max())
    shown = arms if arms <= min(ranks + 1, len(_ORDINALS)) else ranks
    names = [*_ORDINALS[:shown], *([f"other {arms - shown}"] if arms > shown else [])]
    place = np.minimum(picks["rank"].to_numpy() - 1, len(names) - 1)
    pooled = picks.assign(place=place).groupby(["method", "seed", "place"], sort=False)
    counts = pooled["count"].sum()
    share = counts / counts.groupby(["method", "seed"], sort=False).transform("sum")
    found = share.groupby(["method", "place"], sort=False).agg(["mean", "std"]).reset_index()
    found["rank"] = [names[place] for place in found["place"]]
    found = found.rename(columns={"mean": "share"})
    return found[["method", "rank", "share", "std"]]


def _bars(ax: Axes, rows: DataFrame, colour: str) -> None:
    places = np.arange(len(rows))
    share, half = rows["share"].to_numpy(), rows["std"].fillna(0).to_numpy() / 2
    names = list(rows["rank"])
    # The pooled bar is pale: it stands for many arms, not for one.
    full = np.array(to_rgb(colour))
    colours = [0.35 * full + 0.65 if name.startswith("other") else full for name in names]
    ax.bar(places, share, width=0.72, color=colours, lw=0)
    whiskers = half > 0
    ax.errorbar(
        places[whiskers], share[whiskers], yerr=half[whiskers], fmt="none", ecolor="#777777", lw=1.4
    )
    for place, value, up in zip(places, share, half, strict=True):
        ax.annotate(
            f"{value:.0%}",
            (place, value + up),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            size=style.SMALL - 1,
            color=style.INK,
        )
    ax.set_xticks(places, [name.replace(" ", "\n") for name in names])
    style.dress(ax)
    ax.grid(axis="y", color=style.FAINT, lw=0.8)
    ax.tick_params(axis="x", length=0, labelsize=style.SMALL if len(rows) <= 4 else 9)
