"""The picture of why one arm is believed to be better than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contextgap.base import checks
from contextgap.insight.plot.style import BLUE, GREY, ORANGE, new_axes
from contextgap.policy.explanation import Argument, Explanation, differing, in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 44  # letters of a label


def explanation(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw what trials and columns add to the difference of two arms, the largest on top.

    Of contexts that trials were made at, the columns that are different from the context in
    question are written.

    Parameters
    ----------
    explanation
        What ``Policy.explain`` returned.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.
    """
    checks.instance("explanation", explanation, Explanation, "policy.explain(context)")
    trials = [
        (f"{each.place}: {each.arm} at {_where(explanation, each)}", each.part)
        for each in explanation.trials
    ]
    if explanation.others:
        trials.append((f"{explanation.others} other trials", explanation.rest))
    columns = sorted(explanation.columns.items(), key=lambda each: -abs(each[1]))
    rows = [*trials, *columns]
    if ax is None:
        ax = new_axes(6.8, 1.4 + 0.3 * len(rows))
    # The trials' bars sum up to the difference; the columns' do not, and stand apart.
    places = [*range(len(trials)), *(len(trials) + 0.6 + i for i in range(len(columns)))]
    parts = [part for _, part in rows]
    colours = [BLUE if part > 0 else ORANGE for part in parts]
    ax.barh(places, parts, color=colours, height=0.7)
    ax.set_yticks(places, [_shortened(name) for name, _ in rows], fontsize=8)
    ax.set_ylim(max(places, default=0) + 0.7, -0.7)
    ax.axvline(0.0, color=GREY, lw=0.8)
    if trials and columns:
        ax.axhline(len(trials) - 0.2, color=GREY, lw=0.8, ls=":")
    ax.set_xlabel("added by trials (above), by columns (below)", fontsize=9)
    ax.set_title(
        f"{explanation.arm} over {explanation.against}: "
        f"{explanation.difference:+.3g} ± {explanation.std:.2g}\n"
        f"at {_shortened(in_words(explanation.context), 80)}",
        fontsize=10,
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _where(explanation: Explanation, trial: Argument) -> str:
    """Return what is different about the context of a trial, in words."""
    return in_words(differing(trial.context, explanation.context))


def _shortened(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
