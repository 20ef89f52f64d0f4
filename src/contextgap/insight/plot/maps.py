"""The picture of which arm is answered where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap import insight
from contextgap.insight import Area
from contextgap.insight.plot.places import elsewhere, place_of, places, write_levels
from contextgap.insight.plot.style import colours, new_axes
from contextgap.insight.trials import trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 400  # trials drawn
_PALE = 0.8  # how much white is mixed in where the bound is largest


def map(  # noqa: A001  # the word users know it by
    source: Any, x: Any, y: Any, at: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw which arm is answered where: pale where regret bounds are large, trials as dots.

    Parameters
    ----------
    source
        A learner or a policy.
    x, y
        Two columns, by name or number.
    at
        The context that all other columns are taken from; by default the most typical one seen.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.
    """
    found = insight.area(source, x, y, at)
    ax = ax or new_axes(6.0, 4.8)
    across, up = places(found.xs, found.ordered[0]), places(found.ys, found.ordered[1])
    hues = dict(zip(found.arms, colours(len(found.arms)), strict=True))
    ax.pcolormesh(across, up, _shaded(found, list(hues.values())), shading="nearest")
    for context, arm in trials(source, _MOST_DOTS):
        where = [
            place_of(context[name], values, ordered)
            for name, values, ordered in zip(
                (found.x, found.y), (found.xs, found.ys), found.ordered, strict=True
            )
        ]
        if arm in hues and None not in where:
            ax.plot(*where, "o", ms=3.5, color=hues[arm], mec="white", mew=0.7)
    for arm, colour in hues.items():
        ax.plot([], [], "s", color=colour, label=str(arm))
    for axis, values, ordered in zip("xy", (found.xs, found.ys), found.ordered, strict=True):
        if not ordered:
            write_levels(ax, axis, values)
    ax.set_xlabel(found.x)
    ax.set_ylabel(found.y)
    most = found.bound[np.isfinite(found.bound)].max(initial=0.0)
    doubt = f"palest: regret up to {most:.3g}" if most else "certain everywhere"
    ax.set_title(f"{doubt} {elsewhere(found.context, found.x, found.y)}", fontsize=9)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=6, frameon=False, fontsize=8)
    return ax


def _shaded(area: Area, hues: list[str]) -> Any:
    """Return a colour for every place: the arm's, and the paler the larger its regret bound."""
    from matplotlib.colors import to_rgb

    own = np.array([to_rgb(colour) for colour in hues])[area.best]
    most = area.bound[np.isfinite(area.bound)].max(initial=0.0)
    doubt = np.minimum(area.bound / most, 1.0) if most > 0 else np.isinf(area.bound) * 1.0
    return own + (1.0 - own) * _PALE * doubt[..., None]
