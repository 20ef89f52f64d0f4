"""Contexts to look at: typical ones, and what they become if some columns are changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, evenly
from contextgap.policy import Policy
from contextgap.tables.cells import date_of
from contextgap.tables.columns import Category, Cyclic, Date, Kind, Number
from contextgap.tables.contexts import Encoded

_SEEN = 256  # contexts among which the most typical one is looked for
_MOST_LEVELS = 40  # of a category, the first that were met


def read_policy(source: Any) -> Policy:
    """Return a policy, or that of a learner."""
    if isinstance(source, Policy):
        return source
    if not hasattr(source, "freeze"):
        raise TypeError(f"expected a learner or a policy, got {source!r}")
    policy: Policy = source.freeze()
    return policy


def read_column(policy: Policy, column: Any) -> str:
    """Return the name of a column, given by its name or its number."""
    names = list(policy.state.schema.parts())
    if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < len(names):
        return names[column]
    if column not in names:
        raise ValueError(f"there is no column {column!r}; there are {names}")
    return str(column)


def seen(policy: Policy, most: int) -> FloatArray:
    """Return contexts whose rewards were told, at most so many, evenly spread over time."""
    contexts = policy.state.model.observed.contexts
    return np.asarray(contexts[evenly(np.arange(len(contexts)), most)])


def read_context(policy: Policy, at: Any) -> FloatArray:
    """Return a context as numbers; by default the one nearest to all others that were seen."""
    if at is None:
        contexts = seen(policy, _SEEN)
        # The kernel's own distance: |x − y|² = k(x, x) + k(y, y) − 2k(x, y).
        kernel = policy.kernel
        distance = kernel.diagonal(contexts) - 2 * kernel(contexts, contexts).mean(axis=0)
        return np.asarray(contexts[distance.argmin()])
    intake = policy.state.schema.read(at, called="at")
    if not intake.single:
        raise ValueError("at must be one context; pass a 1-D context or one row")
    return np.asarray(intake.rows[0])


def is_ordered(policy: Policy, column: str) -> bool:
    """Whether the values of a column lie on a line, as those of a category do not."""
    return not isinstance(_kind_of(policy, column), Category)


def _kind_of(policy: Policy, column: str) -> Kind:
    return Number() if policy.kinds is None else policy.kinds[column]


def values_of(policy: Policy, column: str, points: int) -> list[Any]:
    """Return values of a column to look at: levels, or what lies between the lowest and highest."""
    kind, table = _kind_of(policy, column), policy.state.schema.table
    numbers = policy.state.model.observed.contexts[:, policy.state.schema.parts()[column]]
    if isinstance(kind, Category) and table is not None:
        levels = table.codings[table.columns.index(column)].levels
        return list(levels[:_MOST_LEVELS])
    if isinstance(kind, Cyclic):
        return list(np.linspace(0.0, kind.period, points).tolist())
    known = numbers[:, 0][numbers[:, -1] == 0.0] if kind.missing else numbers[:, 0]
    if not len(known):
        raise ValueError(f"the column {column!r} has nothing but gaps")
    values = np.linspace(known.min(), known.max(), points).tolist()
    return [date_of(day) for day in values] if isinstance(kind, Date) else list(values)


def varied(
    policy: Policy, context: FloatArray, changes: Mapping[str, Sequence[Any]], count: int
) -> Encoded:
    """Return copies of a context in which some columns have other values, ``count`` each."""
    rows = np.repeat(context[None], count, axis=0)
    for column, values in changes.items():
        rows[:, policy.state.schema.parts()[column]] = _encoded(policy, column, values)
    return Encoded(rows, policy.state.schema)


def _encoded(policy: Policy, column: str, values: Sequence[Any]) -> FloatArray:
    table = policy.state.schema.table
    if table is None:
        return np.asarray(values, dtype=np.float64)[:, None]
    coding = table.codings[table.columns.index(column)]
    if isinstance(coding.kind, Date) and coding.zoned:
        values = [f"{value}+00:00" for value in values]
    return coding.spread(coding.read(values, learning=False).values)
