"""Why one arm is believed to be better than another: the trials and the columns that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from contextgap.base import html
from contextgap.base.labels import Label


@dataclass(frozen=True)
class Argument:
    """A trial, and what it adds to the difference between two arms.

    Parameters
    ----------
    place
        The trial's place in the log, from 0.
    arm
        The arm tried.
    context
        Where it was tried, as users write contexts.
    reward
        What it gave, as it was told.
    weight
        By how much the difference would grow if the reward were higher by 1, the prior mean
        being what it is.
    part
        What the trial adds to the difference: weight times (reward − the prior mean).
    """

    place: int
    arm: Label
    context: Any
    reward: float
    weight: float
    part: float


@dataclass(frozen=True)
class Explanation:
    """Why one arm is believed to be better, or worse, than another at a context; print it.

    Parameters
    ----------
    context
        Where, as users write contexts.
    arm, against
        The two arms.
    difference
        What is believed of the first arm's expected reward minus the second's; of their costs,
        where costs are told.
    std
        The standard deviation of that belief.
    trials
        Those that add most to the difference, the largest first.
    others
        How many other trials there are.
    rest
        What these add. The parts of ``trials`` and the rest sum up to the difference.
    columns
        By column: the difference here minus what it is on average if the column, and nothing else,
        is as in other contexts that were seen.
    """

    context: Any
    arm: Label
    against: Label
    difference: float
    std: float
    trials: tuple[Argument, ...]
    others: int
    rest: float
    columns: Mapping[str, float]

    def describe(self) -> dict[str, Any]:
        """Return the explanation as plain values, for machines."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.arm} over {self.against} at {in_words(self.context)}: "
            f"{self.difference:+.4g} ± {self.std:.2g}",
            f"  {'trial':>7} {'adds':>9} {'weight':>8} {'reward':>9}  tried",
        ]
        lines += [
            f"  {each.place:>7} {each.part:>+9.3g} {each.weight:>+8.2g} {each.reward:>9.4g}  "
            f"{each.arm} at {in_words(each.context)}"
            for each in self.trials
        ]
        if self.others:
            lines.append(f"  {'others':>7} {self.rest:>+9.3g}  {self.others} trials")
        lines.append("  what each column adds, compared with what else was seen")
        order = sorted(self.columns.items(), key=lambda each: -abs(each[1]))
        lines += [f"  {part:>+17.3g}  {name}" for name, part in order]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = f"{self.arm} over {self.against} at {in_words(self.context)}: "
        title += f"{self.difference:+.4g} ± {self.std:.2g}"
        rows: list[list[Any]] = [
            [e.place, e.part, e.weight, e.reward, e.arm, in_words(e.context)] for e in self.trials
        ]
        if self.others:
            rows.append(["", self.rest, "", "", "", f"{self.others} other trials"])
        trials = html.table(title, ["trial", "adds", "weight", "reward", "arm", "tried at"], rows)
        order = sorted(self.columns.items(), key=lambda each: -abs(each[1]))
        return trials + html.table("compared with what else was seen", ["column", "adds"], order)


def in_words(context: Any) -> str:
    """Return a context in a few words."""
    if not context:
        return "the same"
    if isinstance(context, Mapping):
        return " ".join(f"{name}={_cell(value)}" for name, value in context.items())
    return "(" + ", ".join(_cell(value) for value in context) + ")"


def differing(context: Any, other: Any) -> Any:
    """Return those cells of a context that another has not, by column if columns have names."""
    if not isinstance(context, Mapping):
        return context
    return {name: value for name, value in context.items() if other.get(name) != value}


def _cell(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str):
        return value.removesuffix("T00:00:00")  # a date
    return f"{value:.4g}" if isinstance(value, float) else str(value)
