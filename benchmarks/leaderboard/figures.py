"""Figures of the leaderboard: who is told apart from whom, ranks by cell, recommenders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from contextgap.base.arrays import FloatArray
from contextgap.report import style
from leaderboard.ranking import cliques
from leaderboard.standings import over_budgets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_ROW = 0.3  # inches per line of text
_LABEL: dict[str, Any] = {"va": "center_baseline", "size": style.SMALL, "color": style.INK}


def _layout() -> ConstrainedLayoutEngine:
    """Return a layout with more room at the sides: long names touch the edge without."""
    return ConstrainedLayoutEngine(w_pad=0.1)


def critical_difference_diagram(table: DataFrame, difference: float) -> Figure:
    """Draw average ranks, best on top; bars on the right join methods that are not told apart."""
    ordered = table.sort_values("rank", kind="stable").reset_index(drop=True)
    joined = cliques(ordered["rank"], difference)
    methods = len(ordered)
    size = (style.WIDTH, 1.5 + _ROW * methods)
    figure = Figure(figsize=size, layout=_layout())
    ax = figure.add_subplot()
    names = [str(name) for name in ordered["method"]]
    for place, row in enumerate(ordered.to_dict("records")):
        look = style.looks(names)[names[place]]
        ax.plot([row["low"], row["high"]], [place, place], color=look.colour, lw=2, alpha=0.5)
        ax.plot([row["rank"]], [place], look.marker, ms=9, mew=0, color=look.colour, gid="rank")
    style.dress(ax)
    ax.set_yticks(range(methods), [style.short(name) for name in names], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.8, methods + 0.2)
    ax.set_ylim(methods - 0.4, -2.0 if _is_long(difference, methods) else -1.5)
    ax.set_xticks(range(1, methods + 1))
    ax.grid(axis="x", color=style.FAINT, lw=0.8)
    ax.set_xlabel("average rank")
    _measure(ax, methods, difference)
    across = ax.get_yaxis_transform()  # fractions of the width, rows
    for number, clique in enumerate(joined):
        x = 1.04 + 0.035 * number
        ends = [clique[0] - 0.25, clique[-1] + 0.25]
        ax.plot(
            [x, x],
            ends,
            transform=across,
            color=style.INK,
            lw=4,
            solid_capstyle="butt",
            clip_on=False,
            gid="not told apart",
        )
    return style.fix_layout(figure)


def _measure(ax: Axes, methods: int, difference: float) -> None:
    """Draw the critical difference to scale, or in words where it is longer than the scale."""
    if difference > methods - 1:
        ax.text(1, -1, f"critical difference {difference:.2f}, beyond this scale", **_LABEL)
        return
    ends = [1, 1 + difference]
    ax.plot(ends, [-1, -1], color=style.INK, lw=1.5, marker="|", ms=9, mew=1.5)
    x, y = (1.0, -1.55) if _is_long(difference, methods) else (1.15 + difference, -1.0)
    ax.text(x, y, f"critical difference {difference:.2f}", **_LABEL)


def _is_long(difference: float, methods: int) -> bool:
    """Whether there is no room for words behind the measure, so that they go above it."""
    return (methods - 1) / 2 < difference <= methods - 1


def rank_heat_map(ranks: DataFrame) -> Figure:
    """Draw every method's rank in every cell, averaged over budgets."""
    cells = over_budgets(ranks)
    methods, values = [str(name) for name in cells.columns], cells.to_numpy(dtype=float).T
    figure = Figure(figsize=(style.WIDTH, 1.9 + _ROW * len(methods)), layout=_layout())
    ax = figure.add_subplot()
    image = ax.imshow(values, cmap="viridis_r", vmin=1, vmax=len(methods), aspect="auto")
    _write(ax, values, [[f"{value:.0f}" for value in row] for row in values], image, style.SMALL)
    levels = cells.index.get_level_values("noise")
    _bare(ax, [f"{level:g}" for level in levels], methods)
    ax.tick_params(axis="x", labelsize=style.SMALL - 2)
    ax.set_xlabel("noise, in standard deviations of the rewards")
    problems = list(cells.index.get_level_values("problem"))
    for problem in dict.fromkeys(problems):
        first = problems.index(problem)
        last = first + problems.count(problem) - 1
        if first:
            ax.axvline(first - 0.5, color="white", lw=5)
        ax.annotate(
            problem.replace("_", "\n"),
            ((first + last) / 2, -0.5),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            size=style.SMALL - 1,
            color=style.INK,
            annotation_clip=False,
        )
    return style.fix_layout(figure)


def recommender_heat_map(grid: DataFrame) -> Figure:
    """Draw mean regret by explorer and recommender, one panel per problem and noise."""
    panels = recommender_tables(grid)
    rows = max(len(table) for table in panels.values())
    size = (style.WIDTH, 0.3 + (_ROW * rows + 0.4) * len(panels) + 1.0)
    figure = Figure(figsize=size, layout=_layout())
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for ax, ((problem, noise), table) in zip(axes, panels.items(), strict=True):
        values = table.to_numpy(dtype=float)
        positive = values[values > 0]
        low = float(positive.min()) if positive.size else 1e-3
        norm = LogNorm(low, max(float(values.max()), low * 1.5))
        image = ax.imshow(np.maximum(values, low), cmap="viridis_r", norm=norm, aspect="auto")
        texts = [[style.readable(value) for value in row] for row in values]
        _write(ax, np.maximum(values, low), texts, image, style.SMALL)
        _bare(ax, [_folded(str(name)) for name in table.columns], table.index)
        ax.set_title(f"{problem}, noise {noise:g}", size=style.SMALL + 1, color=style.INK)
    for ax in axes[:-1]:
        ax.tick_params(labelbottom=False)
    axes[-1].set_xlabel("recommender")
    figure.supylabel("explorer", size=style.TEXT, color=style.INK)
    return style.fix_layout(figure)


def recommender_tables(grid: DataFrame) -> dict[tuple[str, float], DataFrame]:
    """Return mean regret, explorers by recommenders, for each problem and noise."""
    return {
        (str(problem), float(noise)): rows.pivot_table(
            "average_regret", "explorer", "recommender", "mean", sort=False
        )
        for (problem, noise), rows in grid.groupby(["problem", "noise"], sort=False)
    }


def _folded(name: str) -> str:
    words = name.split()
    middle = math.ceil(len(words) / 2)
    return " ".join(words[:middle]) + "\n" + " ".join(words[middle:])


def _bare(ax: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    style.dress(ax)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)


def _write(
    ax: Axes, values: FloatArray, texts: Sequence[Sequence[str]], image: Any, size: float
) -> None:
    """Write a number on every field, dark on light fields and light on dark ones."""
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            red, green, blue, _ = image.cmap(image.norm(values[row, column]))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            colour = "white" if dark else style.INK
            ax.text(column, row, text, ha="center", va="center_baseline", size=size, color=colour)
