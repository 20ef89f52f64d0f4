"""Names at the ends of curves, moved apart where the curves end close together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def end_labels(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write each label to the right of the axes, beside the last point of its curve.

    The axes must have their final limits; the figure's layout makes room.
    """
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("ax must be part of a figure")
    style.lay_out(figure)  # so that the height in points is known
    height = ax.get_window_extent().height * 72 / figure.dpi
    places = ax.transAxes.inverted().transform(ax.transData.transform(list(ends.values())))
    heights = apart(places[:, 1], 1.35 * style.TEXT / height)
    looks = style.looks(ends)
    for label, (x, y), to in zip(ends, places, heights, strict=True):
        look = looks[label]
        on: dict[str, Any] = {"transform": ax.transAxes, "clip_on": False, "color": look.colour}
        ax.plot([x, 1.03, 1.05], [y, to, to], lw=1, **on)
        ax.plot([1.05], [to], look.marker, ms=7, mew=0, **on)
        ax.text(
            1.075,
            to,
            style.short(label),
            transform=ax.transAxes,
            va="center_baseline",
            size=style.TEXT,
            color=style.INK,
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
