"""Which arm is answered where, over two columns, everything else being as at one context."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
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
class Area:
    """Which arm is answered over two columns, and how certain that is.

    Parameters
    ----------
    x, y
        The names of the columns.
    xs, ys
        Their values: numbers, levels, or dates in ISO's format.
    ordered
        For x and for y, whether values lie on a line, as numbers and dates do and levels do not.
    context
        The context that all other columns are taken from.
    arms
        The arms.
    best
        Shape (ys, xs): which of the arms is answered.
    bound
        Shape (ys, xs): a bound on the simple regret of that answer.
    """

    x: str
    y: str
    xs: tuple[Any, ...]
    ys: tuple[Any, ...]
    ordered: tuple[bool, bool]
    context: Any
    arms: tuple[Label, ...]
    best: IntArray = field(repr=False)
    bound: FloatArray = field(repr=False)


def area(source: Any, x: Any, y: Any, at: Any = None, points: int = 61) -> Area:
    """Return which arm is answered over two columns.

    Parameters
    ----------
    source
        A learner or a policy.
    x, y
        Two columns, by name or number.
    at
        The context that all other columns are taken from; by default the most typical one seen.
    points
        How many values of a number or a date to look at.
    """
    policy = read_policy(source)
    context, points = read_context(policy, at), checks.whole("points", points, least=2)
    across, up = read_column(policy, x), read_column(policy, y)
    if across == up:
        raise ValueError(f"x and y must be two columns, got {across!r} twice")
    xs, ys = values_of(policy, across, points), values_of(policy, up, points)
    changes = {across: xs * len(ys), up: [value for value in ys for _ in xs]}
    contexts = varied(policy, context, changes, len(xs) * len(ys))
    picked = policy.recommend(contexts).tolist()
    shape = len(ys), len(xs)
    return Area(
        x=across,
        y=up,
        xs=tuple(xs),
        ys=tuple(ys),
        ordered=(is_ordered(policy, across), is_ordered(policy, up)),
        context=policy.state.schema.decode(context[None])[0],
        arms=policy.arms,
        best=np.array([policy.arms.index(arm) for arm in picked]).reshape(shape),
        bound=policy.certificate(contexts).bound.reshape(shape),
    )
