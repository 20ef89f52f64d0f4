"""The figure of how many decisions a compressed policy keeps, by its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from contextgap.export.compression import CompressionReport
from contextgap.studies.report import figures as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOUR = "#0072B2"
_TARGET = "#D55E00"


def compression_curve(
    reports: CompressionReport | Sequence[CompressionReport],
    *,
    bytes: int | None = None,  # noqa: A002  # as in compress
    agreement: float | None = None,
) -> Figure:
    """Draw the share of held-out decisions unchanged against bytes of constants in C.

    All policies are drawn in the same style. A ring is the size chosen; ``bytes`` and
    ``agreement`` mark the targets. The original policy is off to the right: its size is in the
    axis label, since it is often a hundred times the others'.
    """
    several = [reports] if isinstance(reports, CompressionReport) else list(reports)
    if not several or not all(len(report.curve) > 1 for report in several):
        raise ValueError(
            "reports must be of compressed policies; those left as they were have no curve"
        )
    figure = Figure(figsize=(style.WIDTH, 4.2), layout="constrained")
    ax = figure.subplots()
    for report in several:
        rows = report.curve[:-1]
        size, share = [row.bytes for row in rows], [row.agreement for row in rows]
        ax.plot(size, share, color=_COLOUR, lw=1.6, alpha=0.9 if len(several) == 1 else 0.6)
        ax.plot(report.bytes, report.agreement, "o", mfc="white", mec=_COLOUR, mew=1.8, ms=7)
    _mark(ax, bytes, agreement)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [2.0**power for power in range(60) if low <= 2.0**power <= high]
    ax.xaxis.set_major_locator(FixedLocator(ticks[:: -(-len(ticks) // 9)]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: readable_bytes(value)))
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set_ylim(top=1.01)
    before = np.unique([report.bytes_before for report in several])
    whole = " to ".join(dict.fromkeys(readable_bytes(size) for size in before[[0, -1]]))
    ax.set_xlabel(f"constants in C; the whole policy takes {whole}")
    ax.set_ylabel("held-out decisions unchanged")
    ax.grid(color=style.FAINT, lw=0.8)
    style.dress(ax)
    return style.fix_layout(figure)


def readable_bytes(size: float) -> str:
    """Return a number of bytes with its unit; a kB has 1024."""
    for unit in ("B", "kB", "MB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GB"


def _mark(ax: Axes, size: int | None, share: float | None) -> None:
    """Draw labelled lines at the targets."""
    look: dict[str, Any] = {"color": _TARGET, "size": style.SMALL, "textcoords": "offset points"}
    if size is not None:
        ax.axvline(size, color=_TARGET, lw=1.2, ls=(0, (4, 2)))
        across = ax.get_xaxis_transform()
        text = readable_bytes(size)
        ax.annotate(text, (size, 0.03), xytext=(5, 0), xycoords=across, **look)
    if share is not None:
        ax.axhline(share, color=_TARGET, lw=1.2, ls=(0, (4, 2)))
        along = ax.get_yaxis_transform()
        ax.annotate(f"{100 * share:.3g} %", (0.01, share), xytext=(0, -14), xycoords=along, **look)
