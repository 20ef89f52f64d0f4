"""Figures of the leaderboard: ratios to the reference in every cell, and regret by budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, NullLocator

from contextgap.studies.experiments.compare import FULL, SINGLE, YARDSTICKS
from contextgap.studies.report import figures as style
from leaderboard.ranking import log_ratios
from leaderboard.standings import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_ROW = 0.27  # inches per line of text
_MOST = 4.0  # ratios beyond this, or below its inverse, look alike
# Panels of the second figure, as far as they were compared on.
CURVES = ("sinusoids-0", "sinusoids-0.5", "spacecraft", "digits", "payments", "doses")
_YARDSTICK_LOOKS = {
    FULL: style.LineStyle("#767676", (0, ()), ""),
    SINGLE: style.LineStyle("#767676", (0, (2, 2)), ""),
}


def ratio_heat_map(cells: Sequence[Cell]) -> Figure:
    """Draw every method's regret over the reference's: a row per problem, a column per budget."""
    problems = list(dict.fromkeys(cell.problem for cell in cells))
    budgets = sorted({cell.budget for cell in cells})
    labels = cells[0].labels[1:]
    values = np.full((len(labels), len(problems), len(budgets)), np.nan)
    apart = np.zeros(values.shape, dtype=bool)
    for cell in cells:
        place = problems.index(cell.problem), budgets.index(cell.budget)
        ratios = log_ratios(cell.regrets.mean[None], 0)[0, 1:]
        values[:, *place] = np.clip(ratios, -np.log(_MOST), np.log(_MOST))
        apart[:, *place] = cell.behind.significant[1:]
    size = (style.WIDTH, 2.6 + _ROW * len(problems))
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.05, wspace=0.0))
    axes = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    norm = TwoSlopeNorm(0.0, -np.log(_MOST), np.log(_MOST))
    for ax, label, table, dots in zip(axes, labels, values, apart, strict=True):
        image = ax.imshow(table, cmap="RdBu_r", norm=norm, aspect="auto")
        dark = np.abs(table) > 0.6 * np.log(_MOST)
        for marked, colour in ((dots & dark, "white"), (dots & ~dark, style.INK)):
            rows, columns = np.nonzero(marked)
            ax.plot(columns, rows, ".", color=colour, ms=5, mew=0)
        _bare(ax, [str(budget) for budget in budgets], problems)
        ax.set_title(style.short(label, 20), size=style.SMALL - 1, color=style.INK)
        ax.title.set(rotation=45, rotation_mode="anchor", ha="left", x=0.3, parse_math=False)
    bar = figure.colorbar(image, ax=list(axes), location="bottom", aspect=50, pad=0.02)
    bar.ax.xaxis.set_major_locator(FixedLocator(np.log([0.25, 0.5, 1, 2, 4])))
    bar.ax.xaxis.set_minor_locator(NullLocator())
    bar.ax.set_xticklabels(["a quarter", "half", "equal", "twice", "four times"])
    bar.ax.tick_params(labelsize=style.SMALL - 1, labelcolor=style.INK, length=0)
    bar.outline.set_visible(False)
    return style.fix_layout(figure)


def _bare(ax: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    style.dress(ax)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(range(len(columns)), columns, rotation=90, size=style.SMALL - 3)
    ax.set_yticks(range(len(rows)), rows, size=style.SMALL - 1)


def curves(cells: Sequence[Cell]) -> Figure:
    """Draw mean regret by budget, with standard errors, on some problems."""
    known = list(dict.fromkeys(cell.problem for cell in cells))
    shown = [name for name in CURVES if name in known] or known[: len(CURVES)]
    rows = -(-len(shown) // 2)
    figure = Figure(figsize=(style.WIDTH, 1.1 + 2.3 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    labels = cells[0].labels
    looks = {**style.line_styles(labels), **_YARDSTICK_LOOKS}
    for ax, problem in zip(axes, shown, strict=False):  # an odd one leaves a panel free
        part = sorted((c for c in cells if c.problem == problem), key=lambda c: c.budget)
        handles = [_curve(ax, part, place, looks[name]) for place, name in enumerate(labels)]
        _scale(ax, part)
        ax.set_title(problem, size=style.SMALL, color=style.INK)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    for ax in axes[: len(shown)][-2:]:
        ax.set_xlabel("exploration steps")
    figure.supylabel("average simple regret", size=style.TEXT, color=style.INK)
    style.legend_below(figure, handles, labels, 3)
    return style.fix_layout(figure)


def _curve(ax: Axes, part: Sequence[Cell], place: int, look: style.LineStyle) -> Line2D:
    # Side by side: bars of several methods would hide each other.
    shift = 1.03 ** (place - len(part[0].labels) / 2)
    x = [cell.budget * shift for cell in part]
    mean = np.array([cell.regrets.mean[place] for cell in part])
    error = np.array([cell.regrets.error[place] for cell in part])
    if part[0].labels[place] not in YARDSTICKS:
        ax.errorbar(x, mean, error, fmt="none", ecolor=look.colour, elinewidth=0.8)
    (line,) = ax.plot(x, mean, color=look.colour, ls=look.line, marker=look.marker, ms=5, lw=1.5)
    return line


def _scale(ax: Axes, part: Sequence[Cell]) -> None:
    style.dress(ax)
    ax.set_xscale("log")
    budgets = [cell.budget for cell in part]
    ax.xaxis.set_major_locator(FixedLocator(budgets))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([str(budget) for budget in budgets])
    values = np.array([cell.regrets.mean for cell in part])
    own = values[:, : -len(YARDSTICKS)]
    high = float(values.max()) or 1.0
    # Full information may be orders of magnitude below; then it leaves the panel.
    low = max(table[table > 0].min(initial=high) / fall for table, fall in ((values, 1), (own, 10)))
    style.log_axis(ax, low / 1.3, high * 1.3)
