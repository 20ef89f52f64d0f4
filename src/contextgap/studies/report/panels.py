"""One panel per method: the ranks of the arms tried, and the regret of every setting of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from contextgap.studies.experiments import GridSearch
from contextgap.studies.experiments.tune import GIVEN
from contextgap.studies.report import style
from contextgap.studies.report.curves import check_columns, check_single

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
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
    looks = style.line_styles(methods)
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
        How many ranks to distinguish; the arms beyond are pooled, unless there is just one.

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


def tuning_heat_map(
    tunings: Mapping[str, GridSearch], chosen: Mapping[str, GridSearch] | None = None
) -> Figure:
    """Draw one panel per method: average regret by bandwidth and ridge, the best setting marked.

    Parameters
    ----------
    tunings
        What ``experiments.tune`` found, by label.
    chosen
        Tunings on other rows of the same problem and grid, whose settings a cross marks.
    """
    if not tunings:
        raise ValueError("tunings must not be empty")
    columns = min(3, len(tunings))
    rows = math.ceil(len(tunings) / columns)
    size = (style.WIDTH if columns > 1 else 4.4, 1.6 + 2.6 * rows)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    norm = _norm([tuning.regret for tuning in tunings.values()])
    images = [
        _panel(ax, label, tuning, norm, None if chosen is None else chosen[label].best)
        for ax, (label, tuning) in zip(grid.flat, tunings.items(), strict=False)
    ]
    for ax in grid.flat[len(tunings) :]:
        ax.set_axis_off()
    if len({tuning.grid for tuning in tunings.values()}) == 1:
        for place, ax in enumerate(grid.flat[: len(tunings)]):
            lowest = place + columns >= len(tunings)
            ax.tick_params(labelleft=place % columns == 0, labelbottom=lowest)
    figure.supxlabel("ridge", size=style.TEXT, color=style.INK)
    figure.supylabel("bandwidth", size=style.TEXT, color=style.INK)
    bar = figure.colorbar(images[0], ax=list(grid.flat), location="top", aspect=40, shrink=0.8)
    bar.set_label("average simple regret", size=style.TEXT, color=style.INK, labelpad=7)
    wide = (norm.vmax or 1.0) / (norm.vmin or 1.0) > 30
    bar.ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    bar.ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.readable(value)))
    bar.ax.xaxis.set_minor_formatter(NullFormatter())  # they would overlap with the others
    bar.ax.tick_params(labelsize=style.SMALL, which="both")
    bar.outline.set_visible(False)
    return style.fix_layout(figure)


def _panel(
    ax: Axes, label: str, tuning: GridSearch, norm: LogNorm, chosen: tuple[int, int] | None
) -> AxesImage:
    # viridis works for colour-blind readers and in grey; bright is good.
    image = ax.imshow(
        np.maximum(tuning.regret, norm.vmin or 0),
        norm=norm,
        cmap="viridis_r",
        aspect="auto",
        origin="lower",
        interpolation="nearest",
    )
    row, column = tuning.best
    ax.plot(column, row, "*", ms=14, mfc="white", mec="black", clip_on=False, gid="best setting")
    best = f"best {style.readable(float(tuning.regret.min()))}"
    if chosen is None:
        best += ", on the edge" if tuning.on_edge else ""
    else:
        ax.plot(*chosen[::-1], "X", ms=10, mfc="red", mec="white", clip_on=False, gid="chosen")
        best += f", tuned {style.readable(float(tuning.regret[chosen]))}"
    style.dress(ax)
    ax.spines[:].set_visible(False)
    given = tuning.grid.unit == GIVEN
    ax.set_xticks(*_some(tuning.grid.ridges), rotation=0)
    ax.set_yticks(*(([0], ["given"]) if given else _some(tuning.grid.bandwidths)))
    ax.tick_params(length=3)
    title = style.short(label, 22)
    ax.set_title(title, size=style.SMALL + 1, color=style.INK, parse_math=False, pad=18)
    ax.annotate(
        best,
        (0.5, 1),
        xycoords="axes fraction",
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        size=style.SMALL - 1,
        color=style.INK,
    )
    return image


def _some(values: Sequence[float]) -> tuple[list[int], list[str]]:
    """Return four evenly spaced places at most and the numbers there, where possible both ends."""
    step = max(1, math.ceil((len(values) - 1) / 3))
    places = list(range(0, len(values), step))
    return places, [style.readable(values[place]) for place in places]


def _norm(regrets: Sequence[np.ndarray]) -> LogNorm:
    """Return a scale from the lowest regret above zero to the highest."""
    every = np.concatenate([regret.ravel() for regret in regrets])
    positive = every[np.isfinite(every) & (every > 0)]
    if not len(positive):
        return LogNorm(1e-3, 1.0)
    low, high = float(positive.min()), float(positive.max())
    return LogNorm(low, max(high, low * 1.5))
