"""Plots of what a learner or policy has learnt; needs the extra ``plot``."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from contextgap.base import checks
from contextgap.base.components import study_import
from contextgap.beliefs import Decision
from contextgap.insight import learnt
from contextgap.insight.watch import Watch
from contextgap.policy.answers import Explanation, differing, in_words
from contextgap.policy.rules import Leaf, Node, Rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["along", "decision", "explanation", "importance", "map", "progress", "rules", "watch"]

# Okabe and Ito's palette, which colour-blind readers can distinguish too.
GREY, BLUE, ORANGE, YELLOW = "#666666", "#0072B2", "#D55E00", "#F0E442"
INK, FAINT = "#222222", "#D9D9D9"
ARMS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#5D3A9B")
_ROLES = ("leader (smallest gap)", "challenger", "other arms")
_MOST_DOTS = 400  # trials drawn
_PALE = 0.8  # how much white is mixed in where the bound is largest
_LONGEST, _LONGEST_TITLE = 44, 80  # letters of a label, and of a title


def along(source: Any, column: Any, at: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw means and intervals of all arms along one column.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    column
        A column's name, or its number.
    at
        The context that fixes all other columns; by default the most typical observed one.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.

    See Also
    --------
    insight.along : The numbers.

    Examples
    --------
    >>> cg.plot.along(policy, "x").get_xlabel()
    'x'
    """
    found = learnt.along(source, column, at)
    ax = ax or _new_axes(6.4, 3.8)
    where, count = _places(found.values, found.ordered), len(found.arms)
    for number, (arm, colour) in enumerate(zip(found.arms, _colours(count), strict=True)):
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
        _write_levels(ax, "x", found.values)
    ax.set_xlabel(found.column)
    ax.set_ylabel("reward: mean and interval")
    ax.set_title(_elsewhere(found.context, found.column), fontsize=9)
    _explain(ax)
    return dress(ax)


def map(  # noqa: A001  # the word users know it by
    source: Any, x: Any, y: Any, at: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw which arm is recommended where: pale where regret bounds are large, trials as dots.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    x, y
        Two columns, by name or number.
    at
        The context that fixes all other columns; by default the most typical observed one.
    ax
        Where to draw; by default a new pyplot figure, which notebooks show.

    Returns
    -------
    ax
        The axes drawn on.

    See Also
    --------
    insight.area : The numbers.

    Examples
    --------
    >>> cg.plot.map(policy, "x", "y").get_ylabel()
    'y'
    """
    found = learnt.area(source, x, y, at)
    ax = ax or _new_axes(6.0, 4.8)
    axes = list(zip("xy", (found.x, found.y), (found.xs, found.ys), found.ordered, strict=True))
    across, up = (_places(values, ordered) for _, _, values, ordered in axes)
    hues = dict(zip(found.arms, _colours(len(found.arms)), strict=True))
    ax.pcolormesh(across, up, _shaded(found, list(hues.values())), shading="nearest")
    for context, arm in learnt.trials(source, _MOST_DOTS):
        where = [_place_of(context[name], values, ordered) for _, name, values, ordered in axes]
        if arm in hues and None not in where:
            ax.plot(*where, "o", ms=3.5, color=hues[arm], mec="white", mew=0.7)
    for arm, colour in hues.items():
        ax.plot([], [], "s", color=colour, label=str(arm))
    for axis, _, values, ordered in axes:
        if not ordered:
            _write_levels(ax, axis, values)
    ax.set_xlabel(found.x)
    ax.set_ylabel(found.y)
    most = found.bound[np.isfinite(found.bound)].max(initial=0.0)
    doubt = f"palest: regret up to {most:.3g}" if most else "certain everywhere"
    ax.set_title(f"{doubt} {_elsewhere(found.context, found.x, found.y)}", fontsize=9)
    _explain(ax)
    return dress(ax, grid=None)


def _shaded(area: learnt.Area, hues: list[str]) -> Any:
    """Return a colour for every place: the arm's, and the paler the larger its regret bound."""
    from matplotlib.colors import to_rgb

    own = np.array([to_rgb(colour) for colour in hues])[area.best]
    most = area.bound[np.isfinite(area.bound)].max(initial=0.0)
    doubt = np.minimum(area.bound / most, 1.0) if most > 0 else np.isinf(area.bound) * 1.0
    return own + (1.0 - own) * _PALE * doubt[..., None]


def importance(source: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of decisions that change when a column is shuffled, by column.

    .. versionadded:: 0.2

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

    See Also
    --------
    insight.importance : The numbers.

    Examples
    --------
    >>> cg.plot.importance(policy).get_xlabel()
    'decisions that change if the column is shuffled, %'
    """
    found = learnt.importance(source)
    order = sorted(found.changed, key=lambda name: found.changed[name])
    shares = [100 * found.changed[name] for name in order]
    ax = ax or _new_axes(6.0, 1.2 + 0.3 * len(order))
    ax.barh(order, shares, color=BLUE, height=0.7)
    for place, name in enumerate(order):
        text = "" if found.spread is None else f" {found.spread[name]:.2g}"
        ax.text(shares[place], place, text, va="center", fontsize=9, color=GREY)
    ax.set_xlim(0, 1.2 * max(5.0, *shares))
    said = "decisions that change if the column is shuffled, %"
    if found.spread is not None:
        said += "\ngrey: how many bandwidths the column spreads over"
    ax.set_xlabel(said, fontsize=9)
    ax.tick_params(axis="y", length=0)
    return dress(ax, "left", grid="x")


def progress(source: Any, tolerance: float = 0.0, contexts: Any = None) -> tuple[Axes, Axes, Axes]:
    """Draw picks, the share of settled contexts, and the estimated value over time.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    tolerance
        The largest regret bound at which a context counts as settled.
    contexts
        Contexts to settle; by default some that were observed.

    Returns
    -------
    axes
        The three axes drawn on, from above, of a new pyplot figure.

    See Also
    --------
    insight.progress : The numbers.

    Examples
    --------
    >>> len(cg.plot.progress(policy))
    3
    """
    found = learnt.progress(source, tolerance, contexts=contexts)
    picks, settled, value = _new_figure(6.4, 6.0).subplots(3, 1, sharex=True)
    hues, shares = _colours(len(found.arms)), found.picks / found.rewards[:, None]
    picks.stackplot(found.rewards, 100 * shares.T, labels=found.arms, colors=hues, alpha=0.85)
    picks.set_ylabel("picks, %")
    picks.set_ylim(0, 100)
    picks.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=6, frameon=False, fontsize=9)
    settled.plot(found.rewards, 100 * found.settled, "o-", ms=3, color=BLUE)
    settled.set_ylim(0, 103)
    settled.set_ylabel("settled contexts, %")
    value.fill_between(
        found.rewards, found.value - found.error, found.value + found.error, alpha=0.2, color=ORANGE
    )
    value.plot(found.rewards, found.value, "o-", ms=3, color=ORANGE)
    value.set_ylabel("value if deployed")
    value.set_xlabel("rewards told")
    return dress(picks), dress(settled), dress(value)


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

    See Also
    --------
    Learner.decide, Policy.decide : What it draws.

    Examples
    --------
    >>> cg.plot.decision(policy.decide([0.5, 0.0])).get_xlabel()
    'arm'
    """
    checks.instance("decision", decision, Decision, "learner.decide(context)")
    ax = ax or _new_axes(max(4.5, 1.5 + 0.45 * len(decision.arms)), 3.6)
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
    tilted = max(len(name) for name in names) * len(names) > 50
    ax.set_xticks(range(len(names)), names, rotation=45 if tilted else 0)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_xlabel("arm")
    ax.set_ylabel("reward: mean and interval")
    ax.set_title(f"pick: {decision.arm} ({decision.reason})", fontsize=9)
    _explain(ax, ncols=2, first=_ROLES)
    return dress(ax)


def _role(decision: Decision, place: int) -> tuple[str, str]:
    if decision.arms[place] == decision.leader:
        return _ROLES[0], BLUE
    if decision.arms[place] == decision.challenger:
        return _ROLES[1], ORANGE
    return _ROLES[2], GREY


def _explain(ax: Axes, ncols: int = 4, first: Sequence[str] = ()) -> None:
    """Say below the axes what is what, each once."""
    unique = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    labels = sorted(unique, key=[*first, *unique].index)
    ax.legend(
        [unique[label] for label in labels],
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=4.3,  # letters, for ticks and the axis' name
        ncols=ncols,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )


def dress(ax: Axes, *hidden: str, grid: Any = "y") -> Axes:
    """Give axes the look of all figures: no frame, and light rules along one axis."""
    ax.spines[["top", "right", *hidden]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(INK)
    ax.tick_params(color=INK, labelcolor=INK)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_color(INK)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, lw=0.8)
    return ax


def explanation(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw what trials and columns add to the difference between two arms, the largest on top.

    A trial's label names the columns that differ from the context in question.

    .. versionadded:: 0.2

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

    See Also
    --------
    Policy.explain : What it draws.

    Examples
    --------
    >>> cg.plot.explanation(policy.explain([0.5, 0.0])).get_xlabel()
    'added by trials (above), by columns (below)'
    """
    checks.instance("explanation", explanation, Explanation, "policy.explain(context)")
    trials = []
    for each in explanation.trials:
        where = in_words(differing(each.context, explanation.context))
        trials.append((f"{each.place}: {each.arm} at {where}", each.part))
    if explanation.others:
        trials.append((f"{explanation.others} other trials", explanation.rest))
    columns = sorted(explanation.columns.items(), key=lambda each: -abs(each[1]))
    rows = [*trials, *columns]
    ax = ax or _new_axes(6.8, 1.4 + 0.3 * len(rows))
    # The trials' bars sum up to the difference; the columns' do not, and stand apart.
    places = [*range(len(trials)), *(len(trials) + 0.6 + i for i in range(len(columns)))]
    parts = [part for _, part in rows]
    colours = [BLUE if part > 0 else ORANGE for part in parts]
    ax.barh(places, parts, color=colours, height=0.7)
    ax.set_yticks(places, [_shortened(name) for name, _ in rows], fontsize=9)
    ax.set_ylim(max(places, default=0) + 0.7, -0.7)
    ax.axvline(0.0, color=GREY, lw=0.8)
    if trials and columns:
        ax.axhline(len(trials) - 0.2, color=GREY, lw=0.8, ls=":")
    ax.set_xlabel("added by trials (above), by columns (below)", fontsize=9)
    ax.set_title(
        f"{explanation.arm} over {explanation.against}: "
        f"{explanation.difference:+.3g} ± {explanation.std:.2g}\n"
        f"at {_shortened(in_words(explanation.context), _LONGEST_TITLE)}",
        fontsize=9,
    )
    ax.tick_params(axis="y", length=0)
    return dress(ax, "left", grid="x")


def rules(rules: Rules, ax: Axes | None = None) -> Axes:
    """Draw a short rule as a tree: yes to the left, arms at the bottom.

    .. versionadded:: 0.3

    Parameters
    ----------
    rules
        What ``policy.rules`` returned.
    ax
        Where to draw; new axes by default.

    See Also
    --------
    Policy.rules : What it draws.

    Examples
    --------
    >>> cg.plot.rules(policy.rules(depth=1)).get_title()
    '98 % of decisions kept'
    """
    checks.instance("rules", rules, Rules, "policy.rules()")
    leaves, levels = _size(rules.tree)
    ax = _new_axes(max(4.0, 1.6 * leaves), 1.0 + 1.1 * levels) if ax is None else ax
    hues = dict(zip(rules.arms, _colours(len(rules.arms)), strict=True))
    taken = iter(range(leaves))

    def draw(node: Node, depth: int) -> float:
        frame: dict[str, Any] = {"boxstyle": "round,pad=0.4", "fc": "white", "ec": GREY}
        if isinstance(node, Leaf):
            x = float(next(taken))
            text = f"{_shortened(str(node.arm), 16)}\n{100 * node.share:.0f} %"
            frame |= {"ec": hues[node.arm], "lw": 2.0}
            if node.agreement < 1:
                text += f", {100 * node.agreement:.0f} % agree"
        else:
            below = [draw(each, depth + 1) for each in (node.yes, node.no)]
            x, text = sum(below) / 2, _shortened(node.question, 24)
            for end, said in zip(below, ("yes", "no"), strict=True):
                ax.plot([x, end], [-depth, -depth - 1], color=GREY, lw=1.0, zorder=0)
                where = (x + end) / 2, -depth - 0.5
                ax.text(*where, said, fontsize=8, ha="center", va="center", backgroundcolor="white")
        ax.text(x, -depth, text, ha="center", va="center", fontsize=9, bbox=frame)
        return x

    draw(rules.tree, 0)
    ax.set_xlim(-0.7, leaves - 0.3)
    ax.set_ylim(-levels - 0.5, 0.5)
    ax.set_axis_off()
    ax.set_title(f"{100 * rules.agreement:.0f} % of decisions kept", fontsize=9)
    return ax


def watch(watch: Watch) -> tuple[Axes, Axes, Axes]:
    """Draw the evidence of a shift, regret and certificates, and the rows outside the log.

    .. versionadded:: 0.3

    Parameters
    ----------
    watch
        What ``policy.watch`` returned.

    Returns
    -------
    axes
        The three axes drawn on, from above, of a new pyplot figure.

    See Also
    --------
    Policy.watch : What it draws.

    Examples
    --------
    >>> watch = policy.watch()
    >>> _ = watch.see(contexts)
    >>> cg.plot.watch(watch)[0].get_title()
    'no alarm'
    """
    checks.instance("watch", watch, Watch, "policy.watch()")
    report = watch.report()
    over, rows = report.over_time, report.over_time["row"]
    evidence, doubt, outside = _new_figure(6.4, 5.6).subplots(3, 1, sharex=True)
    evidence.semilogy(rows, over["evidence"], drawstyle="steps-pre", color=BLUE)
    evidence.axhline(1 / watch.failure_probability, color=GREY, lw=0.8, ls=":")
    evidence.set_ylabel("evidence of a shift")
    for name, colour in (("certificate", ORANGE), ("expected_regret", BLUE)):
        said = name.replace("_", " ")
        known = np.isfinite(over[name])  # some spans hold no scored row
        doubt.plot(rows[known], over[name][known], color=colour, label=said)
        doubt.axhline(getattr(report, name)[1], color=colour, lw=0.8, ls=":")
    doubt.set_ylabel("regret; dotted: log")
    doubt.legend(frameon=False, fontsize=9)
    outside.fill_between(rows, 100 * over["outside"], step="pre", color=ORANGE, alpha=0.6, lw=0)
    outside.set_ylabel("outside, %")
    outside.set_ylim(0, 103)
    outside.set_xlabel("rows seen")
    evidence.set_title("\n".join(textwrap.wrap(str(report.alarm or "no alarm"), 80)), fontsize=9)
    for axes in (evidence, doubt, outside):
        dress(axes)
        if report.alarm is not None:
            axes.axvline(report.alarm.row, color=ORANGE, lw=1.2)
    return evidence, doubt, outside


def _size(node: Node) -> tuple[int, int]:
    if isinstance(node, Leaf):
        return 1, 0
    (first, one), (second, two) = _size(node.yes), _size(node.no)
    return first + second, 1 + max(one, two)


def _shortened(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _places(values: Sequence[Any], ordered: bool) -> list[Any]:
    """Return where values are drawn: numbers, times, or for levels 0, 1, 2 and so on."""
    return [_place_of(value, values, ordered) for value in values]


def _place_of(value: Any, values: Sequence[Any], ordered: bool) -> Any:
    """Return where one more value is drawn; None if it has no place."""
    if ordered:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    return values.index(value) if value in values else None


def _write_levels(ax: Axes, axis: str, values: Sequence[Any]) -> None:
    names = ["missing" if value is None else str(value) for value in values]
    getattr(ax, f"set_{axis}ticks")(range(len(names)), names)
    if axis == "x" and sum(len(name) for name in names) > 50:
        ax.tick_params(axis="x", rotation=45)


def _elsewhere(context: Any, *shown: str) -> str:
    if not isinstance(context, Mapping):
        context = {f"column {place}": value for place, value in enumerate(context)}
    others = {name: value for name, value in context.items() if name not in shown}
    said = f"at {in_words(others)}" if others else ""
    return _shortened(said, _LONGEST_TITLE)


def _colours(count: int) -> list[str]:
    return [ARMS[place % len(ARMS)] for place in range(count)]


def _new_figure(width: float, height: float) -> Figure:
    pyplot = study_import("matplotlib.pyplot", extra="plot")
    figure: Figure = pyplot.figure(figsize=(width, height), layout="constrained")
    return figure


def _new_axes(width: float, height: float) -> Axes:
    axes: Axes = _new_figure(width, height).add_subplot()
    return axes
