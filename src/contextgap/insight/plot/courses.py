"""The picture of what is believed along a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap import insight
from contextgap.insight.plot.places import elsewhere, places, write_levels
from contextgap.insight.plot.style import colours, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def along(source: Any, column: Any, at: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw means and intervals of all arms along one column.

    Parameters
    ----------
    source
        A learner or a policy.
    column
        A column's name, or its number.
    at
        The context that all other columns are taken from; by default the most typical one seen.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.
    """
    found = insight.along(source, column, at)
    ax = ax or new_axes(6.4, 3.8)
    where, count = places(found.values, found.ordered), len(found.arms)
    for number, (arm, colour) in enumerate(zip(found.arms, colours(count), strict=True)):
        mean, low, high = (each[:, number] for each in (found.mean, found.lower, found.upper))
        if found.ordered:
            ax.fill_between(where, low, high, color=colour, alpha=0.18, lw=0)
            ax.plot(where, mean, color=colour, lw=1.8, label=str(arm))
        else:
            beside = np.asarray(where) + 0.6 * ((number + 0.5) / count - 0.5)
            ax.errorbar(
                beside, mean, [mean - low, high - mean], fmt="o", color=colour, capsize=3, label=arm
            )
    if not found.ordered:
        write_levels(ax, "x", found.values)
    ax.set_xlabel(found.column)
    ax.set_ylabel("reward: mean and interval")
    ax.set_title(elsewhere(found.context, found.column), fontsize=9)
    ax.legend(frameon=False, fontsize=8, ncols=min(4, count))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
