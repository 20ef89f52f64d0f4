"""The picture of how an exploration went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contextgap import insight
from contextgap.insight.plot.style import BLUE, ORANGE, colours, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def progress(source: Any, tolerance: float = 0.0, contexts: Any = None) -> tuple[Axes, Axes, Axes]:
    """Draw picks, the share of contexts that are settled, and the estimated value over time.

    Parameters
    ----------
    source
        A learner or a policy.
    tolerance
        The largest regret bound at which a context counts as settled.
    contexts
        Contexts that are to be settled; by default some that were seen.

    Returns
    -------
    axes
        The three axes drawn on, from above, of a new pyplot figure.
    """
    found = insight.progress(source, tolerance, contexts=contexts)
    picks, settled, value = new_figure(6.4, 6.0).subplots(3, 1, sharex=True)
    hues, shares = colours(len(found.arms)), found.picks / found.rewards[:, None]
    picks.stackplot(found.rewards, 100 * shares.T, labels=found.arms, colors=hues, alpha=0.85)
    picks.set_ylabel("picks, %")
    picks.set_ylim(0, 100)
    picks.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=6, frameon=False, fontsize=8)
    settled.plot(found.rewards, 100 * found.settled, "o-", ms=3, color=BLUE)
    settled.set_ylim(0, 103)
    settled.set_ylabel("settled contexts, %")
    value.fill_between(
        found.rewards, found.value - found.error, found.value + found.error, alpha=0.2, color=ORANGE
    )
    value.plot(found.rewards, found.value, "o-", ms=3, color=ORANGE)
    value.set_ylabel("value if deployed")
    value.set_xlabel("rewards told")
    for axes in (picks, settled, value):
        axes.spines[["top", "right"]].set_visible(False)
    return picks, settled, value
