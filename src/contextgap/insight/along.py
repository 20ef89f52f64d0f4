"""What is believed along one column, everything else being as at one context."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label
from contextgap.insight.contexts import (
    is_ordered,
    read_column,
    read_context,
    read_policy,
    values_of,
    varied,
)


@dataclass(frozen=True)
class Course:
    """What is believed of every arm along one column.

    Parameters
    ----------
    column
        Its name; of columns without names "column 0", "column 1" and so on.
    values
        Numbers, levels, or dates in ISO's format.
    ordered
        Whether they lie on a line, as numbers and dates do and levels do not.
    context
        The context that all other columns are taken from.
    arms
        The arms, in the order of the arrays.
    mean, lower, upper
        Shape (values, arms): expected rewards, or costs where costs are told.
    best
        Which arm is answered at each value.
    bound
        A bound on the simple regret of that answer.
    """

    column: str
    values: tuple[Any, ...]
    ordered: bool
    context: Any
    arms: tuple[Label, ...]
    mean: FloatArray = field(repr=False)
    lower: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    best: tuple[Label, ...]
    bound: FloatArray = field(repr=False)

    def describe(self) -> dict[str, Any]:
        """Return the same as plain values, for machines; a bound that is infinite is None."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "lower", "upper")}
        return {
            "column": self.column,
            "values": list(self.values),
            "ordered": self.ordered,
            "context": self.context,
            "arms": list(self.arms),
            **arrays,
            "best": list(self.best),
            "bound": [each if np.isfinite(each) else None for each in self.bound.tolist()],
        }


def along(source: Any, column: Any, at: Any = None, points: int = 61) -> Course:
    """Return what is believed along one column.

    Parameters
    ----------
    source
        A learner or a policy.
    column
        A column's name, or its number.
    at
        The context that all other columns are taken from; by default the most typical one seen.
    points
        How many values of a number or a date to look at.
    """
    policy = read_policy(source)
    name, context = read_column(policy, column), read_context(policy, at)
    values = values_of(policy, name, checks.whole("points", points, least=2))
    contexts = varied(policy, context, {name: values}, len(values))
    sign = policy.state.rules.sign
    decisions = policy.chooser.decisions(contexts.rows)
    believed = [evidence.belief.told(sign) for _, _, evidence in decisions]
    mean, _, lower, upper = (np.concatenate(parts) for parts in zip(*believed, strict=True))
    return Course(
        column=name,
        values=tuple(values),
        ordered=is_ordered(policy, name),
        context=policy.state.schema.decode(context[None])[0],
        arms=policy.arms,
        mean=mean,
        lower=lower,
        upper=upper,
        best=tuple(policy.recommend(contexts).tolist()),
        bound=policy.certificate(contexts).bound,
    )
