"""Why one arm is believed to be better than another: the trials and the columns that say so.

A posterior mean is a weighted sum of what trials gave, so the parts of all trials sum up to the
difference of two arms' means exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from contextgap.base import html
from contextgap.base.arrays import FloatArray, evenly
from contextgap.base.labels import Label
from contextgap.models import Model
from contextgap.policy.state import PolicyState

_SEEN = 64  # contexts from which a column takes other values


@dataclass(frozen=True)
class Argument:
    """A trial, and what it adds to the difference between two arms.

    .. versionadded:: 0.2

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

    Examples
    --------
    >>> argument = policy.explain([0.5, 0.0]).trials[0]
    >>> argument.arm in policy.arms
    True
    """

    place: int
    arm: Label
    context: Any
    reward: float
    weight: float
    part: float


@dataclass(frozen=True)
class Explanation:
    """Why the expected rewards of two arms differ at a context; print it.

    .. versionadded:: 0.2

    Parameters
    ----------
    context
        Where, as users write contexts.
    arm, against
        The two arms.
    difference
        The first arm's posterior mean minus the second's; of costs, where rewards are costs.
    std
        Its posterior standard deviation.
    trials
        Those that add most to the difference, the largest first.
    others
        How many other trials there are.
    rest
        What these add. The parts of ``trials`` and the rest sum up to the difference.
    columns
        By column: how much the difference changes, on average, when only this column takes its
        value from other observed contexts.

    See Also
    --------
    Policy.explain : Returns one.
    plot.explanation : Draws it.

    Examples
    --------
    >>> explanation = policy.explain([0.5, 0.0], most=2)
    >>> len(explanation.trials), explanation.others
    (2, 38)
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
        """Return the explanation as plain values, for machines.

        Examples
        --------
        >>> policy.explain([0.5, 0.0]).describe()["against"]
        'left'
        """
        return asdict(self)

    @property
    def _title(self) -> str:
        compared = f"{self.arm} over {self.against} at {in_words(self.context)}"
        return f"{compared}: {self.difference:+.4g} ± {self.std:.2g}"

    @property
    def _columns(self) -> list[tuple[str, float]]:
        return sorted(self.columns.items(), key=lambda each: -abs(each[1]))

    def __str__(self) -> str:
        lines = [
            self._title,
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
        lines += [f"  {part:>+17.3g}  {name}" for name, part in self._columns]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[list[Any]] = [
            [e.place, e.part, e.weight, e.reward, e.arm, in_words(e.context)] for e in self.trials
        ]
        if self.others:
            rows.append(["", self.rest, "", "", "", f"{self.others} other trials"])
        trials = html.table(
            self._title, ["trial", "adds", "weight", "reward", "arm", "tried at"], rows
        )
        said = "compared with what else was seen"
        return trials + html.table(said, ["column", "adds"], self._columns)


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


def explain(
    state: PolicyState, context: FloatArray, pair: tuple[int, int], most: int
) -> Explanation:
    """Return why the first arm of a pair is believed to be better than the second, at (1, d)."""
    model, schema, labels, sign = state.model, state.schema, state.labels, state.rules.sign
    (variance,), (weights,) = model.sums(context, pair, np.array([[[1.0, -1.0]]]))
    difference = float(_difference(model, context, pair)[0])
    log, prior = model.observed, model.prior()
    parts = weights * (log.rewards - prior)
    order = [i for i in np.argsort(-np.abs(parts), kind="stable")[:most].tolist() if parts[i]]
    where = schema.decode(log.contexts[order]) if order else []
    trials = tuple(
        Argument(
            place=place,
            arm=labels[int(log.arms[place])],
            context=found,
            reward=sign * float(log.rewards[place]),
            weight=float(weights[place]),
            part=sign * float(parts[place]),
        )
        for place, found in zip(order, where, strict=True)
    )
    return Explanation(
        context=schema.decode(context)[0],
        arm=labels[pair[0]],
        against=labels[pair[1]],
        difference=sign * difference,
        std=math.sqrt(variance),
        trials=trials,
        others=len(model) - len(trials),
        rest=sign * difference - sum(each.part for each in trials),
        columns={
            name: sign * (difference - _elsewhere(model, context, pair, numbers))
            for name, numbers in schema.parts().items()
        },
    )


def _difference(model: Model, contexts: FloatArray, pair: tuple[int, int]) -> FloatArray:
    mean = model.posterior(contexts, pair).mean
    return mean[:, 0] - mean[:, 1]


def _elsewhere(
    model: Model, context: FloatArray, pair: tuple[int, int], numbers: Sequence[int]
) -> float:
    """Return the average difference if some numbers of a context are those of others."""
    seen = model.observed.contexts
    if not len(seen):
        return float(_difference(model, context, pair)[0])
    others = seen[evenly(np.arange(len(seen)), _SEEN)]
    changed = np.repeat(context, len(others), axis=0)
    changed[:, numbers] = others[:, numbers]
    return float(_difference(model, changed, pair).mean())
