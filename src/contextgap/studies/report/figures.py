"""Figures of studies: curves of regret, ranks of the arms tried, grids of settings, selectors.

Every method has one colour, line and marker in all of them, and axes stay readable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
)
from matplotlib.transforms import ScaledTranslation

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import study_import
from contextgap.insight import plot
from contextgap.studies.experiments import GridSearch
from contextgap.studies.experiments.compare import GIVEN
from contextgap.studies.experiments.selection import YARDSTICK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend
    from pandas import DataFrame


Dashes: TypeAlias = tuple[int, tuple[float, ...]]

# Figures are 7 inches wide, so at half size, in a journal's column, letters are 6.5 points high.
WIDTH = 7.0
TEXT = 13.0
SMALL = 11.0
INK, FAINT = plot.INK, plot.FAINT
DEFAULT = " (default)"  # behind the name of the method that users get

_DIGITS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)

_SOLID: Dashes = (0, ())
_DASHED: Dashes = (0, (5, 1.6))
_DOTTED: Dashes = (0, (1.2, 1.2))
_DASH_DOT: Dashes = (0, (5, 1.4, 1.2, 1.4))


@dataclass(frozen=True)
class LineStyle:
    """How one method is drawn, in matplotlib's terms; dashes are an offset and lengths."""

    colour: str
    line: Dashes
    marker: str

    @property
    def drawn(self) -> dict[str, Any]:
        return {"color": self.colour, "ls": self.line, "marker": self.marker}


# Okabe and Ito's colours, without the yellow that white paper swallows, for the paper's methods;
# Paul Tol's muted ones for the rest. No two share line and marker, so grey prints work too.
_FIXED = {
    "contextual-gap": LineStyle("#0072B2", _SOLID, "o"),
    "contextual-gap-history": LineStyle("#56B4E9", _DASHED, "o"),
    "kernel-ucb-mod": LineStyle("#D55E00", _SOLID, "s"),
    "kernel-ucb": LineStyle("#E69F00", _DASHED, "s"),
    "kernel-ts": LineStyle("#CC79A7", _DASH_DOT, "^"),
    "uniform": LineStyle("#000000", _DOTTED, "D"),
    "epsilon-greedy": LineStyle("#009E73", _DASHED, "v"),
    "max-variance": LineStyle("#882255", _DOTTED, "P"),
    "elimination": LineStyle("#999933", _SOLID, "X"),
    "top-two-ts": LineStyle("#AA4499", _DASHED, "^"),
    "knowledge-gradient": LineStyle("#332288", _SOLID, "*"),
    "eb-tc": LineStyle("#DDAA33", _DASH_DOT, "X"),
    "planned-sampling": LineStyle("#555555", _DASH_DOT, "P"),
    "proportional-response": LineStyle("#66A61E", _DASHED, "d"),
    "gain-or-gap": LineStyle("#B22222", _SOLID, "d"),
    "auto": LineStyle("#B22222", _SOLID, "D"),
    "best single arm": LineStyle("#767676", (0, (2, 2)), "_"),
    "full information": LineStyle("#767676", _SOLID, "_"),
    "last step": LineStyle("#0072B2", _SOLID, "o"),
    "last 25 steps": LineStyle("#E69F00", _DASHED, "s"),
    "all steps": LineStyle("#000000", _DOTTED, "D"),
}
_SPARE = tuple(
    LineStyle(colour, line, marker)
    for line, marker in ((_DASH_DOT, "h"), (_SOLID, "<"), (_DASHED, ">"), (_DOTTED, "p"))
    for colour in ("#117733", "#CC6677", "#44AA99", "#7A4B00", "#6699CC")
)


def line_styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """Return the look of every label, whatever the order they come in.

    An unknown label takes the spare look that its name hashes to, or the next in a colour that no
    other label here has, so that it usually looks the same in the next figure and unlike its
    neighbours. When the colours are used up, lines and markers still differ. A method that is
    marked as the default looks as it does elsewhere.
    """
    wanted = list(dict.fromkeys(str(label) for label in labels))
    plain = {label: label.removesuffix(DEFAULT) for label in wanted}
    chosen = {label: _FIXED[name] for label, name in plain.items() if name in _FIXED}
    for label in sorted(set(wanted) - set(chosen)):
        first = crc32(label.encode()) % len(_SPARE)
        turns = _SPARE[first:] + _SPARE[:first]
        unused = [look for look in turns if look not in chosen.values()]
        colours = {look.colour for look in chosen.values()}
        fresh = [look for look in unused if look.colour not in colours]
        chosen[label] = (fresh or unused or list(turns))[0]
    return {label: chosen[label] for label in wanted}


def dress(ax: Axes, grid: Any = None) -> None:
    """Give axes the common style, and light rules along one axis if asked for."""
    plot.dress(ax, grid=grid)
    ax.tick_params(labelsize=SMALL)
    ax.xaxis.label.set_fontsize(TEXT)
    ax.yaxis.label.set_fontsize(TEXT)


def log_axis(ax: Axes, low: float, high: float) -> None:
    """Make the vertical axis logarithmic, with plain numbers and never fewer than two."""
    decades = np.log10(high / low)
    labelled = (1.0,) if decades > 1.8 else (1.0, 2.0, 5.0) if decades > 0.7 else _DIGITS
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(LogLocator(subs=labelled, numticks=9))
    ax.yaxis.set_minor_locator(LogLocator(subs=_DIGITS[1:], numticks=9))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(axis="y", color=FAINT, lw=0.8)


def fix_layout(figure: Figure) -> Figure:
    """Fix the layout, so that every file made of the figure shows the same one.

    Left to itself, layout is done anew for each file and depends on how often it was done before
    and on the resolution.
    """
    lay_out(figure)
    figure.set_layout_engine("none")
    return figure


def entitle(ax: Axes, text: str, size: float = TEXT, **how: Any) -> None:
    """Write a title literally: it may be a user's label, and a dollar in it no formula."""
    ax.set_title(text, size=size, color=INK, parse_math=False, **how)


def lay_out(figure: Figure) -> None:
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def readable(value: float) -> str:
    """Return a number as text, as a power of ten where it is very small or large."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(2, len(f'{abs(value):.0f}'))}g}"
    factor, _, power = f"{value:.1e}".partition("e")
    factor = factor.removesuffix(".0")
    lead = "" if factor == "1" else rf"{factor}\!\times\!"
    return f"${lead}10^{{{int(power)}}}$"


def short(label: str, most: int = 30) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def note(ax: Axes, text: str, place: Any, up: float, **how: Any) -> None:
    """Write a few words, so many points above a place."""
    how = {"ha": "center", "size": SMALL - 1, "color": INK, **how}
    ax.annotate(text, place, (0, up), textcoords="offset points", **how)


def legend_below(figure: Figure, handles: list[Line2D], labels: Iterable[str], ncols: int) -> None:
    names = [short(label) for label in labels]
    look = {"frameon": False, "fontsize": SMALL, "handlelength": 3}
    plain(figure.legend(handles, names, loc="outside lower center", ncols=ncols, **look))


def plain(legend: Legend) -> None:
    """Write a legend's labels literally: a label is a user's, and a dollar in it no formula."""
    for text in legend.get_texts():
        text.set(parse_math=False, color=INK)


def end_labels(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write each label right of the axes, whose limits must be final, beside its curve's end."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("ax must be part of a figure")
    lay_out(figure)  # so that the height in points is known
    height = ax.get_window_extent().height * 72 / figure.dpi
    places = ax.transAxes.inverted().transform(ax.transData.transform(list(ends.values())))
    heights = apart(places[:, 1], 1.35 * TEXT / height)
    drawn = line_styles(ends)
    for label, (x, y), to in zip(ends, places, heights, strict=True):
        look = drawn[label]
        on: dict[str, Any] = {"transform": ax.transAxes, "clip_on": False, "color": look.colour}
        ax.plot([x, 1.03, 1.05], [y, to, to], lw=1, **on)
        ax.plot([1.05], [to], look.marker, ms=7, mew=0, **on)
        on = {"transform": ax.transAxes, "va": "center_baseline", "gid": f"name of {label}"}
        ax.text(1.075, to, short(label), parse_math=False, **on, **_WORDS)


def apart(wanted: FloatArray, gap: float) -> FloatArray:
    """Return the nearest places within 0..1, in least squares, that are a gap apart.

    In order and less the gaps, places must not decrease, which is isotonic regression. Where the
    gaps need more than the whole range, they get it, centred.

    Examples
    --------
    >>> apart(np.array([0.5, 0.9, 0.5]), 0.2).round(2).tolist()
    [0.4, 0.9, 0.6]
    """
    order = np.argsort(wanted, kind="stable")
    shifts = gap * np.arange(len(wanted))
    level = study_import("sklearn.isotonic").isotonic_regression(wanted[order] - shifts)
    room = 1 - shifts[-1]
    placed = np.empty(len(wanted))
    placed[order] = np.clip(level, min(0, room / 2), max(room, room / 2)) + shifts
    return placed


class Curve(NamedTuple):
    """One method's statistic, over repetitions, after each number of exploration steps."""

    steps: IntArray
    mean: FloatArray
    std: FloatArray  # not a number, as the next, where there was only one repetition
    error: FloatArray  # standard error of the mean


def curves(records: DataFrame, statistic: str) -> dict[str, Curve]:
    check_columns("records", records, ("method", "seed", "checkpoint", statistic))
    check_single("records", records, ("study", "scale"))
    found = {}
    for method, rows in records.groupby("method", sort=False):
        table = rows.groupby("checkpoint")[statistic].agg(["mean", "std", "sem"])
        steps = table.index.to_numpy(dtype=np.intp)
        found[str(method)] = Curve(steps, *table.to_numpy(dtype=float).T)
    return found


def check_columns(name: str, table: DataFrame, columns: Iterable[str]) -> None:
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


_WORDS: dict[str, Any] = {"size": TEXT, "color": INK}


def one_panel(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _panels(
    count: int, columns: int, above: float, height: float, width: float = WIDTH, **shared: Any
) -> tuple[Figure, Any]:
    """Return a figure with at most so many columns of panels, and its axes."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width, above + height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    for ax in grid.flat[count:]:
        ax.set_axis_off()
    return figure, grid


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
    figure, ax = one_panel(max(4.4, 1.2 + 0.25 * len(found)))
    points = _known(published, found)
    level = [] if single_arm is None else [np.array([single_arm])]
    axis = _LogRange([*(c.mean for c in found.values()), *(y for _, y in points.values()), *level])
    widths = [_THIN if label == FULL_INFORMATION else 2.0 for label in found]
    _draw(ax, found, axis, widths, half=_BANDS[band])
    looks = line_styles(found)
    for label, (x, y) in points.items():
        look = looks[label]
        (hollow,) = ax.plot(x, axis.clip(y), look.marker, ms=9, mfc="none", mew=1.8, zorder=4)
        hollow.set(markeredgecolor=look.colour, clip_on=False)
    if points:
        handle = Line2D([], [], ls="", marker="o", ms=9, mfc="none", mec=INK, mew=1.8)
        plain(ax.legend([handle], ["published"], frameon=False, fontsize=SMALL, loc=3))
    _name_axes(ax, statistic, title)
    ends = {label: (c.steps[-1], axis.clip(c.mean)[-1]) for label, c in found.items()}
    if single_arm is not None:
        at = float(axis.clip(np.array([single_arm]))[0])
        look = line_styles([SINGLE_ARM])[SINGLE_ARM]
        ax.axhline(at, color=look.colour, ls=look.line, lw=_THIN, zorder=1, gid=SINGLE_ARM)
        ends[SINGLE_ARM] = (ax.get_xlim()[1], at)
    end_labels(ax, ends)
    return fix_layout(figure)


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
    columns = 2 if len(panels) <= 4 else 3
    figure, grid = _panels(len(panels), columns, 1.2, 2.6, sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for found in panels.values() for label in found))
    axis = _LogRange([c.mean for found in panels.values() for c in found.values()])
    for ax, (scale, found) in zip(grid.flat, panels.items(), strict=False):
        _draw(ax, found, axis, looks=line_styles(labels))
        entitle(ax, f"scale {scale:g}")
    for ax in grid.flat[max(0, len(panels) - columns) : len(panels)]:
        # The lowest panel of each column, which need not be in the last row.
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(_STEPS)
    for ax in grid.flat:
        ax.xaxis.set_major_locator(MaxNLocator(4))
    figure.supylabel(_NAMES.get(statistic, statistic), **_WORDS)
    looks = line_styles(labels).values()
    handles = [Line2D([], [], lw=2, ms=7, mew=0, **look.drawn) for look in looks]
    legend_below(figure, handles, labels, min(3, len(labels)))
    return fix_layout(figure)


def history_comparison(records: DataFrame) -> Figure:
    """Draw one curve per length of the look-back; the curves may coincide.

    Parameters
    ----------
    records
        From ``experiments.compare``, with methods labelled such as "last step", "last 25 steps"
        and "all steps".
    """
    found = curves(records, "average_regret")
    figure, ax = one_panel(4.4)
    axis = _LogRange([curve.mean for curve in found.values()])
    widths = [_TAPER[min(place, len(_TAPER) - 1)] for place in range(len(found))]
    _draw(ax, found, axis, widths=widths, markers=False)
    _name_axes(ax, "average_regret", None)
    handles = [
        Line2D([], [], color=look.colour, ls=look.line, lw=width)
        for look, width in zip(line_styles(found).values(), widths, strict=True)
    ]
    look = {"fontsize": TEXT, "title_fontsize": TEXT, "frameon": False, "handlelength": 3}
    names, title = [short(label) for label in found], "recommendation considers"
    legend = ax.legend(handles, names, title=title, loc="upper right", **look)
    plain(legend)
    legend.get_title().set_color(INK)
    return fix_layout(figure)


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
        return np.maximum(values, self.low if self.zero is None else self.zero)


def _draw(
    ax: Axes,
    found: Mapping[str, Curve],
    axis: _LogRange,
    widths: Sequence[float] | None = None,
    looks: Mapping[str, LineStyle] | None = None,
    markers: bool = True,
    half: Callable[[Curve], FloatArray] = _BANDS[HALF_DEVIATION],
) -> None:
    looks = line_styles(found) if looks is None else looks
    widths = [2.0] * len(found) if widths is None else widths
    for place, ((label, curve), width) in enumerate(zip(found.items(), widths, strict=True)):
        look, mean, spread = looks[label], axis.clip(curve.mean), half(curve)
        # A few markers per curve, at different steps in each.
        every = max(1, len(curve.steps) // 6)
        marked = (place * every // max(1, len(found)), every)
        drawn = look.drawn if markers else look.drawn | {"marker": ""}
        # All points lie within; markers on the border stay whole.
        whole: dict[str, Any] = {"clip_on": False, "zorder": 3, "gid": f"mean of {label}"}
        ax.plot(curve.steps, mean, lw=width, ms=6, mew=0, markevery=marked, **drawn, **whole)
        if np.isfinite(spread).any() and label != FULL_INFORMATION:
            band = (axis.clip(curve.mean - spread), axis.clip(curve.mean + spread))
            ax.fill_between(curve.steps, *band, color=look.colour, alpha=0.18, lw=0, zorder=1.5)
    dress(ax)
    log_axis(ax, axis.low, axis.high)
    ax.set_xlim(0, max(1, *(int(curve.steps[-1]) for curve in found.values())))
    if axis.zero is not None:
        _mark_zero(ax, axis.zero)


def _mark_zero(ax: Axes, level: float) -> None:
    ax.axhline(level, color=INK, lw=1, ls=(0, (1, 2)), zorder=1)
    top = ax.get_ylim()[1]
    major, minor = (
        [tick for tick in places if 1.3 * level < tick <= top]
        for places in (ax.yaxis.get_majorticklocs(), ax.yaxis.get_minorticklocs())
    )
    ax.set_yticks([level, *major], ["0", *map(readable, major)])
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
        entitle(ax, title, loc="left")


def pilot_curve(table: DataFrame, tolerance: float | None = None) -> Figure:
    """Draw average simple regret against exploration steps: median, and bands of repetitions."""
    check_columns("table", table, ("checkpoint", "average_regret"))
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    bands = table.groupby("checkpoint")["average_regret"].quantile(shares).unstack()
    figure, ax = one_panel(4.4)
    colour = "#0072B2"
    x = bands.index.to_numpy()
    shown = ((0.05, 0.95, 0.15, "90 % of explorations"), (0.25, 0.75, 0.3, "half of them"))
    for low, high, alpha, label in shown:
        ax.fill_between(x, bands[low], bands[high], color=colour, alpha=alpha, lw=0, label=label)
    ax.plot(x, bands[0.5], color=colour, lw=2.4, label="median")
    if tolerance is not None:
        ax.axhline(tolerance, color=INK, ls="--", lw=1.4, label=f"tolerance {tolerance:g}")
    dress(ax, grid="y")
    _name_axes(ax, "average_regret", None)
    ax.set_ylim(bottom=0)
    plain(ax.legend(frameon=False, fontsize=SMALL))
    return figure


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
    figure, grid = _panels(len(methods), 3, 0.9, 2.1, sharey=True)
    looks = line_styles(methods)
    for ax, method in zip(grid.flat, methods, strict=False):
        _bars(ax, shares[shares["method"] == method], looks[method].colour)
        entitle(ax, short(method, 22), SMALL + 1)
    top = float((shares["share"] + shares["std"].fillna(0) / 2).max())
    grid[0, 0].set_ylim(0, min(1.0, top) * 1.16)
    grid[0, 0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    figure.supxlabel("rank of the tried arm", **_WORDS)
    figure.supylabel("share of exploration steps", **_WORDS)
    return fix_layout(figure)


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
    at = half > 0
    ax.errorbar(places[at], share[at], yerr=half[at], fmt="none", ecolor="#777777", lw=1.4)
    for place, value, up in zip(places, share, half, strict=True):
        note(ax, f"{value:.0%}", (place, value + up), 2)
    ax.set_xticks(places, [name.replace(" ", "\n") for name in names])
    dress(ax, grid="y")
    ax.tick_params(axis="x", length=0, labelsize=SMALL if len(rows) <= 4 else 9)


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
    figure, grid = _panels(len(tunings), 3, 1.6, 2.6, WIDTH if len(tunings) > 1 else 4.4)
    columns = grid.shape[1]
    # From the lowest regret above zero to the highest.
    every = np.concatenate([tuning.regret.ravel() for tuning in tunings.values()])
    positive = every[np.isfinite(every) & (every > 0)]
    norm = LogNorm(1e-3, 1.0)
    if len(positive):
        low, high = float(positive.min()), float(positive.max())
        norm = LogNorm(low, max(high, low * 1.5))
    images = [
        _panel(ax, label, tuning, norm, None if chosen is None else chosen[label].best)
        for ax, (label, tuning) in zip(grid.flat, tunings.items(), strict=False)
    ]
    if len({tuning.grid for tuning in tunings.values()}) == 1:
        for place, ax in enumerate(grid.flat[: len(tunings)]):
            lowest = place + columns >= len(tunings)
            ax.tick_params(labelleft=place % columns == 0, labelbottom=lowest)
    figure.supxlabel("ridge", **_WORDS)
    figure.supylabel("bandwidth", **_WORDS)
    bar = figure.colorbar(images[0], ax=list(grid.flat), location="top", aspect=40, shrink=0.8)
    bar.set_label("average simple regret", **_WORDS, labelpad=7)
    wide = (norm.vmax or 1.0) / (norm.vmin or 1.0) > 30
    bar.ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    bar.ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(value)))
    bar.ax.xaxis.set_minor_formatter(NullFormatter())  # they would overlap with the others
    bar.ax.tick_params(labelsize=SMALL, which="both")
    bar.outline.set_visible(False)
    return fix_layout(figure)


def _panel(
    ax: Axes, label: str, tuning: GridSearch, norm: LogNorm, chosen: tuple[int, int] | None
) -> AxesImage:
    # viridis works for colour-blind readers and in grey; bright is good.
    look: dict[str, Any] = {"cmap": "viridis_r", "aspect": "auto", "interpolation": "nearest"}
    image = ax.imshow(np.maximum(tuning.regret, norm.vmin or 0), norm=norm, origin="lower", **look)
    row, column = tuning.best
    ax.plot(column, row, "*", ms=14, mfc="white", mec="black", clip_on=False, gid="best setting")
    best = f"best {readable(float(tuning.regret.min()))}"
    if chosen is None:
        best += ", on the edge" if tuning.on_edge else ""
    else:
        ax.plot(*chosen[::-1], "X", ms=10, mfc="red", mec="white", clip_on=False, gid="chosen")
        best += f", tuned {readable(float(tuning.regret[chosen]))}"
    dress(ax)
    ax.spines[:].set_visible(False)
    given = tuning.grid.unit == GIVEN
    ax.set_xticks(*_some(tuning.grid.ridges), rotation=0)
    ax.set_yticks(*(([0], ["given"]) if given else _some(tuning.grid.bandwidths)))
    ax.tick_params(length=3)
    entitle(ax, short(label, 22), SMALL + 1, pad=18)
    note(ax, best, (0.5, 1), 4, xycoords="axes fraction")
    return image


def _some(values: Sequence[float]) -> tuple[list[int], list[str]]:
    """Return four evenly spaced places at most and the numbers there, where possible both ends."""
    step = max(1, math.ceil((len(values) - 1) / 3))
    places = list(range(0, len(values), step))
    return places, [readable(values[place]) for place in places]


_CHOOSING = ", choosing"
_TICKS = [1, 2, 5, 10]  # between ticks, times a power of ten


def choosing_labels(summary: DataFrame) -> list[str]:
    return [
        f"{method}{_CHOOSING}" if chosen else str(method)
        for method, chosen in zip(summary["method"], summary["choose"], strict=True)
    ]


def selection_figure(summary: DataFrame) -> Figure:
    """Draw regret against uniform and closed gap by scenario; by share of runs for many budgets."""
    check_columns("summary", summary, ("scenario", "budget", "method", "choose", "share_of_runs"))
    shown = summary.assign(label=choosing_labels(summary))
    labels = list(dict.fromkeys(shown["label"]))
    several = shown["budget"].nunique() > 1
    inches = 0.3  # of a line of text
    height = 2.6 if several else 0.7 + inches * len(labels)
    below = 0.4 + inches * (len(labels) + 1) / 2 if several else 0.3
    figure, grid, parts = _by_scenario(shown, 2, height, below, False if several else "col")
    # What is drawn, times which factor, and what to call it.
    change = ("regret_change", 100.0, "regret against uniform, %")
    statistics = (change, ("closed_gap", 1.0, "closed gap"))
    for panels, rows in zip(grid, parts, strict=True):
        for ax, (name, factor, words) in zip(panels, statistics, strict=True):
            (_curves if several else _dots)(ax, rows, labels, name, factor)
            # Words stand along the axis that has the values.
            if several:
                ax.set_ylabel(words, size=SMALL)
            elif ax in grid[-1]:
                ax.set_xlabel(words, size=SMALL)
    if several:
        for ax in grid[-1]:
            ax.set_xlabel("share of all runs paid for", size=SMALL)
        _explain(figure, labels)
    return fix_layout(figure)


def cpu_figure(summary: DataFrame) -> Figure:
    """Draw regret, PAR10 and closed gap by CPU time spent, a row per scenario."""
    check_columns("summary", summary, ("scenario", "cpu", "method", "spent", "regret"))
    labels = list(dict.fromkeys(summary["method"]))
    statistics = (("regret", "regret"), ("par10", "PAR10, s"), ("closed_gap", "closed gap"))
    figure, grid, parts = _by_scenario(summary, len(statistics), 2.6, 0.8)
    for panels, rows in zip(grid, parts, strict=True):
        for ax, (name, words) in zip(panels, statistics, strict=True):
            for label, part in rows.groupby("method", sort=False):
                if part["spent"].nunique() == 1 and len(part) > 1:  # the full table, always
                    look = _drawn(str(label), labels)
                    ax.axhline(part[name].iloc[0], color=look["color"], ls=look["ls"], lw=1.8)
                else:
                    _along(ax, part, "spent", name, 1.0, _drawn(str(label), labels))
            dress(ax, grid="y")
            ax.set_xscale("log")
            made = sorted(rows[rows["method"] == labels[0]]["spent"])
            ax.set_xticks(made, [f"{100 * value:.2g} %" for value in made])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_ylabel(words, size=SMALL)
    grid[-1, 1].set_xlabel("CPU time, share of the full table's", size=SMALL)
    _explain(figure, labels)
    return fix_layout(figure)


def _by_scenario(
    summary: DataFrame, columns: int, height: float, below: float, sharex: Any = False
) -> tuple[Figure, Any, list[DataFrame]]:
    scenarios = list(dict.fromkeys(summary["scenario"]))
    figure = Figure(figsize=(WIDTH, height * len(scenarios) + below))
    figure.set_layout_engine("constrained", w_pad=0.08)  # long names would touch the edge
    grid = figure.subplots(len(scenarios), columns, squeeze=False, sharex=sharex)
    for panels, scenario in zip(grid, scenarios, strict=True):
        entitle(panels[0], short(str(scenario)), loc="left")
    return figure, grid, [summary[summary["scenario"] == each] for each in scenarios]


def _explain(figure: Figure, labels: list[str]) -> None:
    handles = [Line2D([], [], **_drawn(label, labels)) for label in labels]
    legend_below(figure, handles, labels, 2)


def _drawn(label: str, labels: list[str]) -> dict[str, Any]:
    """Return a method's look; one that chooses instances is drawn hollow in the same colour."""
    looks = line_styles(name.removesuffix(_CHOOSING) for name in labels)
    look = looks[label.removesuffix(_CHOOSING)]
    hollow = label.endswith(_CHOOSING)
    own = {"mfc": "white", "ls": _DASHED} if hollow else {"mfc": look.colour}
    return {**look.drawn, "ms": 8, "mew": 1.6, **own}


def _along(
    ax: Axes, part: DataFrame, paid: str, name: str, factor: float, look: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Draw values by what was paid for them; return the ends of the bars."""
    ordered = part.sort_values(paid)
    x, y = ordered[paid], factor * ordered[name]
    errors = (2 * factor * ordered[f"{name}_error"]).fillna(0.0)
    ax.errorbar(x, y, yerr=errors, elinewidth=1.4, lw=1.8, **look)
    return x, y - errors, y + errors


def _dots(ax: Axes, rows: DataFrame, labels: list[str], name: str, factor: float) -> None:
    first = name == "regret_change"
    for row in rows.to_dict("records"):
        place, error = labels.index(row["label"]), 2 * factor * row[f"{name}_error"]
        if not (first and row["label"] == YARDSTICK):
            bar = {"xerr": [error] if error == error else None, "elinewidth": 2, "ls": ""}
            ax.errorbar([factor * row[name]], [place], **_drawn(row["label"], labels) | bar)
    ax.axvline(0, color=INK, lw=1, zorder=0)
    dress(ax, grid="x")
    ax.set_ylim(len(labels) - 0.5, -0.5)
    names = [short(label) if first else "" for label in labels]
    ax.set_yticks(range(len(labels)), names, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=_TICKS))
    ax.tick_params(labelbottom=True)


def _curves(ax: Axes, rows: DataFrame, labels: list[str], name: str, factor: float) -> None:
    middle, scale = (len(labels) - 1) / 2, ax.figure.dpi_scale_trans
    for label, part in rows.groupby("label", sort=False):
        # Methods make the same number of runs: their bars are moved apart to be legible, by points.
        shift = 4 * (labels.index(str(label)) - middle) / 72
        moved = {"transform": ax.transData + ScaledTranslation(shift, 0, scale)}
        x, *ends = _along(ax, part, "share_of_runs", name, factor, _drawn(label, labels) | moved)
        for end in ends:  # shifted points do not extend the axes by themselves
            ax.update_datalim(np.column_stack([x, end]))
    ax.margins(x=0.1)
    ax.autoscale_view()
    ax.set_xlim(left=0)
    dress(ax, grid="y")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=_TICKS))
