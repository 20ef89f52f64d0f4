"""One colour, line and marker per method in every figure, and axes that stay readable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from contextgap.base.arrays import FloatArray
from contextgap.insight import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


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
    """Do the layout now, without drawing."""
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
    """Return a label that fits beside a figure."""
    return label if len(label) <= most else label[: most - 1] + "…"


def legend_below(figure: Figure, handles: list[Line2D], labels: Iterable[str], ncols: int) -> None:
    """Explain lines below all panels."""
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
        ax.text(
            1.075,
            to,
            short(label),
            transform=ax.transAxes,
            va="center_baseline",
            size=TEXT,
            color=INK,
            parse_math=False,
            gid=f"name of {label}",
        )


def apart(wanted: FloatArray, gap: float) -> FloatArray:
    """Return the nearest places within 0..1, in least squares, that are a gap apart.

    In order and less the gaps, places must not decrease: isotonic regression, by pooling
    neighbours that do. Where the gaps need more than the whole range, they get it, centred.

    Examples
    --------
    >>> apart(np.array([0.5, 0.9, 0.5]), 0.2).round(2).tolist()
    [0.4, 0.9, 0.6]
    """
    order = np.argsort(wanted, kind="stable")
    shifts = gap * np.arange(len(wanted))
    pools: list[list[float]] = []  # mean and size
    for value in wanted[order] - shifts:
        pools.append([float(value), 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (b, n), (a, m) = pools.pop(), pools.pop()
            pools.append([(a * m + b * n) / (m + n), m + n])
    level = np.concatenate([np.full(int(size), mean) for mean, size in pools])
    room = 1 - shifts[-1]
    placed = np.empty(len(wanted))
    placed[order] = np.clip(level, min(0, room / 2), max(room, room / 2)) + shifts
    return placed
