"""The picture of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contextgap.base import checks
from contextgap.beliefs.belief import Decision
from contextgap.insight.plot.style import BLUE, GREY, ORANGE, YELLOW, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def decision(decision: Decision, ax: Axes | None = None) -> Axes:
    """Draw every arm's interval, with leader, challenger and pick marked.

    Parameters
    ----------
    decision
        What ``Learner.decide`` or ``Policy.decide`` returned.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.
    """
    checks.instance("decision", decision, Decision, "learner.decide(context)")
    if ax is None:
        ax = new_axes(max(4.5, 1.5 + 0.45 * len(decision.arms)), 3.6)
    for place, arm in enumerate(decision.arms):
        role, colour = _role(decision, place)
        half = (decision.upper[place] - decision.lower[place]) / 2
        ax.errorbar(
            place,
            decision.mean[place],
            yerr=half,
            fmt="o",
            color=colour,
            capsize=6,
            elinewidth=2.5,
            capthick=2,
            label=role,
        )
        if arm == decision.arm:
            ax.axvspan(place - 0.4, place + 0.4, color=YELLOW, alpha=0.45, lw=0, label="pick")
    names = [str(arm) for arm in decision.arms]
    tilted = max(map(len, names)) * len(names) > 50
    ax.set_xticks(range(len(names)), names, rotation=45 if tilted else 0)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xlabel("arm")
    ax.set_ylabel("reward: mean and interval")
    ax.set_title(f"pick: {decision.arm} ({decision.reason})", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax)
    return ax


def _role(decision: Decision, place: int) -> tuple[str, str]:
    if decision.arms[place] == decision.leader:
        return "leader (smallest gap)", BLUE
    if decision.arms[place] == decision.challenger:
        return "challenger", ORANGE
    return "other arms", GREY


def _legend(ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    order = sorted(unique, key=lambda label: ("lco p".find(label[0]), label))
    ax.legend(
        [unique[label] for label in order],
        order,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=2,
        frameon=False,
        fontsize=8,
    )
