"""The picture of which columns decisions depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contextgap import insight
from contextgap.insight.plot.style import BLUE, GREY, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importance(source: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how many decisions change if a column is shuffled, by column.

    Parameters
    ----------
    source
        A learner or a policy.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.
    """
    found = insight.importance(source)
    order = sorted(found.changed, key=lambda name: found.changed[name])
    shares = [100 * found.changed[name] for name in order]
    ax = ax or new_axes(6.0, 1.2 + 0.3 * len(order))
    ax.barh(order, shares, color=BLUE, height=0.7)
    for place, name in enumerate(order):
        text = "" if found.spread is None else f" {found.spread[name]:.2g}"
        ax.text(shares[place], place, text, va="center", fontsize=8, color=GREY)
    ax.set_xlim(0, 1.2 * max(5.0, *shares))
    said = "decisions that change if the column is shuffled, %"
    if found.spread is not None:
        said += "\ngrey: how many bandwidths the column spreads over"
    ax.set_xlabel(said, fontsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax
