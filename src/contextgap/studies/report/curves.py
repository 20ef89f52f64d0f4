"""Regret curves: the regret of deploying after a number of exploration steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.studies.report import style
from contextgap.studies.report.style import end_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


class Curve(NamedTuple):
    """One method's statistic, over repetitions, after each number of exploration steps.

    ``std`` is the sample standard deviation and ``error`` the standard error of the mean; neither
    is a number where there was only one repetition.
    """

    steps: IntArray
    mean: FloatArray
    std: FloatArray
    error: FloatArray


def curves(records: DataFrame, statistic: str) -> dict[str, Curve]:
    """Return every method's curve, in the order of the records."""
    check_columns("records", records, ("method", "seed", "checkpoint", statistic))
    check_single("records", records, ("study", "scale"))
    found = {}
    for method, rows in records.groupby("method", sort=False):
        table = rows.groupby("checkpoint")[statistic].agg(["mean", "std", "sem"])
        steps = table.index.to_numpy(dtype=np.intp)
        found[str(method)] = Curve(steps, *table.to_numpy(dtype=float).T)
    return found


def check_columns(name: str, table: DataFrame, columns: Iterable[str]) -> None:
    """Raise ``ValueError`` unless the table has rows and these columns."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(
            f"{name} must have the column {missing[0]!r}, as experiments.compare makes it; "
            f"it has {list(table.columns)}"
        )
    if not len(table):
        raise ValueError(f"{name} must have rows, got an empty table")


def check_single(name: str, table: DataFrame, columns: Iterable[str]) -> None:
    """Raise ``ValueError`` where a mean over repetitions would mix unlike runs."""
    for column in columns:
        if column in table.columns and table[column].nunique() > 1:
            values = table[column].unique().tolist()
            raise ValueError(
                f"{name} must be of one {column}, got {values}; "
                f"select one, such as {name}[{name}.{column} == {values[0]!r}]"
            )


_NAMES = {"average_regret": "average simple regret", "worst_regret": "worst simple regret"}
_STEPS = "exploration steps"
SINGLE_ARM, FULL_INFORMATION = "best single arm", "full information"
# Overlapping curves stay visible as the later, thinner ones lie on the earlier.
_TAPER = (5.0, 3.2, 2.0, 1.2)
_THIN = 1.5  # of yardsticks, which are no method's
_BANDS: Mapping[str, Callable[[Curve], FloatArray]] = {
    "half a standard deviation": lambda curve: curve.std / 2,
    "one standard error": lambda curve: curve.error,
}
HALF_DEVIATION, ONE_ERROR = _BANDS


def regret_curves(
    records: DataFrame,
    statistic: str = "average_regret",
    published: DataFrame | None = None,
    title: str | None = None,
    single_arm: float | None = None,
    band: str = HALF_DEVIATION,
) -> Figure:
    """Draw one curve per method: the mean over repetitions, with a band to each side.

    A curve called "full information" is a yardstick, drawn thin and without a band.

    Parameters
    ----------
    records
        From ``experiments.compare``, of one scale.
    statistic
        ``"average_regret"`` or ``"worst_regret"``.
    published
        Points to show beside the curves, as ``published`` returns them; those of methods and
        numbers of steps beyond the records are left out.
    title
        Above the figure.
    single_arm
        The statistic of the best single arm: a level line beside the curves.
    band
        What the band shows to each side: "half a standard deviation" or "one standard error".
    """
    if band not in _BANDS:
        raise ValueError(f"band must be one of {list(_BANDS)}, got {band!r}")
    found = curves(records, statistic)
    figure = Figure(figsize=(style.WIDTH, max(4.4, 1.2 + 0.25 * len(found))), layout="constrained")
    ax = figure.add_subplot()
    points = _known(published, found)
    level = [] if single_arm is None else [np.array([single_arm])]
    axis = _LogRange([*(c.mean for c in found.values()), *(y for _, y in points.values()), *level])
    widths = [_THIN if label == FULL_INFORMATION else 2.0 for label in found]
    _draw(ax, found, axis, widths, half=_BANDS[band])
    looks = style.line_styles(found)
    for label, (x, y) in points.items():
        look = looks[label]
        (hollow,) = ax.plot(x, axis.clip(y), look.marker, ms=9, mfc="none", mew=1.8, zorder=4)
        hollow.set(markeredgecolor=look.colour, clip_on=False)
    if points:
        handle = Line2D([], [], ls="", marker="o", ms=9, mfc="none", mec=style.INK, mew=1.8)
        style.plain(ax.legend([handle], ["published"], frameon=False, fontsize=style.SMALL, loc=3))
    _name_axes(ax, statistic, title)
    ends = {label: (c.steps[-1], axis.clip(c.mean)[-1]) for label, c in found.items()}
    if single_arm is not None:
        at = float(axis.clip(np.array([single_arm]))[0])
        look = style.line_styles([SINGLE_ARM])[SINGLE_ARM]
        ax.axhline(at, color=look.colour, ls=look.line, lw=_THIN, zorder=1, gid=SINGLE_ARM)
        ends[SINGLE_ARM] = (ax.get_xlim()[1], at)
    end_labels(ax, ends)
    return style.fix_layout(figure)


def scale_panels(records: DataFrame, statistic: str = "average_regret") -> Figure:
    """Draw one panel of curves per scale of the width.

    Parameters
    ----------
    records
        From ``experiments.compare``.
    statistic
        ``"average_regret"`` or ``"worst_regret"``.
    """
    check_columns("records", records, ("scale",))
    check_single("records", records, ("study",))
    panels = {
        float(scale): curves(rows, statistic) for scale, rows in records.groupby("scale", sort=True)
    }
    columns = min(len(panels), 2 if len(panels) <= 4 else 3)
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(style.WIDTH, 1.2 + 2.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    labels = list(dict.fromkeys(label for found in panels.values() for label in found))
    axis = _LogRange([c.mean for found in panels.values() for c in found.values()])
    for ax, (scale, found) in zip(grid.flat, panels.items(), strict=False):
        _draw(ax, found, axis, looks=style.line_styles(labels))
        ax.set_title(f"scale {scale:g}", size=style.TEXT, color=style.INK)
    for ax in grid.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in grid.flat[max(0, len(panels) - columns) : len(panels)]:
        # The lowest panel of each column, which need not be in the last row.
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(_STEPS)
    for ax in grid.flat:
        ax.xaxis.set_major_locator(MaxNLocator(4))
    figure.supylabel(_NAMES.get(statistic, statistic), size=style.TEXT, color=style.INK)
    handles = [
        Line2D([], [], color=look.colour, ls=look.line, lw=2, marker=look.marker, ms=7, mew=0)
        for look in style.line_styles(labels).values()
    ]
    style.legend_below(figure, handles, labels, min(3, len(labels)))
    return style.fix_layout(figure)


def history_comparison(records: DataFrame) -> Figure:
    """Draw one curve per length of the look-back; the curves may coincide.

    Parameters
    ----------
    records
        From ``experiments.compare``, with methods labelled such as "last step", "last 25 steps"
        and "all steps".
    """
    found = curves(records, "average_regret")
    figure = Figure(figsize=(style.WIDTH, 4.4), layout="constrained")
    ax = figure.add_subplot()
    axis = _LogRange([curve.mean for curve in found.values()])
    widths = [_TAPER[min(place, len(_TAPER) - 1)] for place in range(len(found))]
    _draw(ax, found, axis, widths=widths, markers=False)
    _name_axes(ax, "average_regret", None)
    handles = [
        Line2D([], [], color=look.colour, ls=look.line, lw=width)
        for look, width in zip(style.line_styles(found).values(), widths, strict=True)
    ]
    legend = ax.legend(
        handles,
        [style.short(label) for label in found],
        title="recommendation considers",
        title_fontsize=style.TEXT,
        fontsize=style.TEXT,
        frameon=False,
        handlelength=3,
        loc="upper right",
    )
    style.plain(legend)
    legend.get_title().set_color(style.INK)
    return style.fix_layout(figure)


class _LogRange:
    """A logarithmic axis that can show zero.

    Zero regret, the best there is, has no logarithm. Where it occurs, it is drawn a
    step below the smallest other value, on a line that is labelled 0.
    """

    def __init__(self, values: Sequence[FloatArray]) -> None:
        every = np.concatenate([np.asarray(v, dtype=float) for v in values])
        every = every[np.isfinite(every)]
        positive = every[every > 0] if (every > 0).any() else np.array([1e-3, 1.0])
        low, high = float(positive.min()) / 1.4, float(positive.max()) * 1.4
        if high / low < 4:
            middle = math.sqrt(low * high)
            low, high = middle / 2, middle * 2
        step = max(2.5, (high / low) ** 0.07)
        self.zero = low / step if (every <= 0).any() else None
        self.low = low if self.zero is None else self.zero / 1.4
        self.high = high

    def clip(self, values: FloatArray) -> FloatArray:
        """Return values that have a logarithm."""
        return np.maximum(values, self.low if self.zero is None else self.zero)


def _draw(
    ax: Axes,
    found: Mapping[str, Curve],
    axis: _LogRange,
    widths: Sequence[float] | None = None,
    looks: Mapping[str, style.LineStyle] | None = None,
    markers: bool = True,
    half: Callable[[Curve], FloatArray] = _BANDS[HALF_DEVIATION],
) -> None:
    looks = style.line_styles(found) if looks is None else looks
    widths = [2.0] * len(found) if widths is None else widths
    for place, ((label, curve), width) in enumerate(zip(found.items(), widths, strict=True)):
        look, mean, spread = looks[label], axis.clip(curve.mean), half(curve)
        # A few markers per curve, at different steps in each.
        every = max(1, len(curve.steps) // 6)
        ax.plot(
            curve.steps,
            mean,
            color=look.colour,
            ls=look.line,
            lw=width,
            marker=look.marker if markers else "",
            ms=6,
            mew=0,
            markevery=(place * every // max(1, len(found)), every),
            gid=f"mean of {label}",
            zorder=3,
            clip_on=False,  # all points lie within; markers on the border stay whole
        )
        if np.isfinite(spread).any() and label != FULL_INFORMATION:
            band = (axis.clip(curve.mean - spread), axis.clip(curve.mean + spread))
            ax.fill_between(curve.steps, *band, color=look.colour, alpha=0.18, lw=0, zorder=1.5)
    style.dress(ax)
    style.log_axis(ax, axis.low, axis.high)
    ax.set_xlim(0, max(1, *(int(curve.steps[-1]) for curve in found.values())))
    if axis.zero is not None:
        _mark_zero(ax, axis.zero)


def _mark_zero(ax: Axes, level: float) -> None:
    ax.axhline(level, color=style.INK, lw=1, ls=(0, (1, 2)), zorder=1)
    top = ax.get_ylim()[1]
    major, minor = (
        [tick for tick in places if 1.3 * level < tick <= top]
        for places in (ax.yaxis.get_majorticklocs(), ax.yaxis.get_minorticklocs())
    )
    ax.set_yticks([level, *major], ["0", *map(style.readable, major)])
    ax.set_yticks(minor, minor=True)


def _known(
    published: DataFrame | None, found: Mapping[str, Curve]
) -> dict[str, tuple[FloatArray, FloatArray]]:
    if published is None:
        return {}
    columns = ("method", "exploration_steps", "average_simple_regret")
    check_columns("published", published, columns)
    last = max(int(curve.steps[-1]) for curve in found.values())
    shown = published[published["method"].isin(list(found))]
    shown = shown[shown["exploration_steps"] <= last]
    return {
        str(method): (
            rows["exploration_steps"].to_numpy(dtype=float),
            rows["average_simple_regret"].to_numpy(dtype=float),
        )
        for method, rows in shown.groupby("method", sort=False)
    }


def _name_axes(ax: Axes, statistic: str, title: str | None) -> None:
    ax.set_xlabel(_STEPS)
    ax.set_ylabel(_NAMES.get(statistic, statistic.replace("_", " ")))
    if title is not None:
        ax.set_title(title, size=style.TEXT, color=style.INK, parse_math=False, loc="left")


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
