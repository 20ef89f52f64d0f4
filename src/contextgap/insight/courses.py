"""What is believed along one column or over two, everything else being as at one context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.labels import Label
from contextgap.policy import Policy
from contextgap.policy.answers import regret_bounds
from contextgap.tables.cells import date_of
from contextgap.tables.columns import Category, Cyclic, Date, Kind, Number
from contextgap.tables.contexts import Encoded

_SEEN = 256  # contexts among which the most typical one is found
_MOST_LEVELS = 40  # of a category, the first that were met


@dataclass(frozen=True)
class Course:
    """Means and intervals of every arm along one column.

    .. versionadded:: 0.2

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
        Shape (values, arms): expected rewards, or costs where rewards are costs.
    best
        Which arm is answered at each value.
    bound
        A bound on the simple regret of that answer.

    Examples
    --------
    >>> course = cg.insight.along(policy, "x", points=3)
    >>> course.best
    ('left', 'right', 'right')
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
        """Return the same as plain values, for machines; a bound that is infinite is None.

        Examples
        --------
        >>> cg.insight.along(policy, "x", points=3).describe()["column"]
        'x'
        """
        plain = dict(vars(self))
        plain |= {name: list(plain[name]) for name in ("values", "arms", "best")}
        plain |= {name: plain[name].tolist() for name in ("mean", "lower", "upper")}
        plain["bound"] = [each if np.isfinite(each) else None for each in self.bound.tolist()]
        return plain


def along(source: Any, column: Any, at: Any = None, points: int = 61) -> Course:
    """Return means and intervals of all arms along one column.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    column
        A column's name, or its number.
    at
        The context that all other columns are taken from; by default the most typical one seen.
    points
        How many values of a number or a date.

    See Also
    --------
    plot.along : Draws it.

    Examples
    --------
    >>> cg.insight.along(policy, "x", points=3).mean.shape
    (3, 2)
    """
    policy = read_policy(source)
    name, context = read_column(policy, column), read_context(policy, at)
    values = values_of(policy, name, checks.whole("points", points, least=2))
    contexts = varied(policy, context, {name: values}, len(values))
    shape = len(values), len(policy.arms)
    mean, std, lower, upper = (np.empty(shape) for _ in range(4))
    best, gap = np.empty(len(values), dtype=np.intp), np.empty(len(values))
    for rows, found, evidence in policy.answers(contexts.rows):
        mean[rows], std[rows], lower[rows], upper[rows] = policy.state.told(evidence.belief)
        best[rows], gap[rows] = found.arm, found.gap
    return Course(
        column=name,
        values=tuple(values),
        ordered=is_ordered(policy, name),
        context=policy.state.schema.decode(context[None])[0],
        arms=policy.arms,
        mean=mean,
        lower=lower,
        upper=upper,
        best=tuple(policy.arms[arm] for arm in best),
        bound=regret_bounds(gap, policy.state.largest_regret),
    )


@dataclass(frozen=True)
class Area:
    """The recommended arm over two columns, with regret bounds.

    .. versionadded:: 0.2

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

    Examples
    --------
    >>> area = cg.insight.area(policy, "x", "y", points=5)
    >>> area.best.shape, area.arms
    ((5, 5), ('left', 'right'))
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
    """Return the recommended arm over two columns.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    x, y
        Two columns, by name or number.
    at
        The context that all other columns are taken from; by default the most typical one seen.
    points
        How many values of a number or a date.

    See Also
    --------
    plot.map : Draws it.

    Examples
    --------
    >>> cg.insight.area(policy, "x", "y", points=5).bound.shape
    (5, 5)
    """
    policy = read_policy(source)
    context, points = read_context(policy, at), checks.whole("points", points, least=2)
    across, up = read_column(policy, x), read_column(policy, y)
    if across == up:
        raise ValueError(f"x and y must be two columns, got {across!r} twice")
    xs, ys = values_of(policy, across, points), values_of(policy, up, points)
    changes = {across: xs * len(ys), up: [value for value in ys for _ in xs]}
    contexts = varied(policy, context, changes, len(xs) * len(ys))
    best, gap = np.empty(len(contexts.rows), dtype=np.intp), np.empty(len(contexts.rows))
    for rows, found, _ in policy.answers(contexts.rows):
        best[rows], gap[rows] = found.arm, found.gap
    shape = len(ys), len(xs)
    return Area(
        x=across,
        y=up,
        xs=tuple(xs),
        ys=tuple(ys),
        ordered=(is_ordered(policy, across), is_ordered(policy, up)),
        context=policy.state.schema.decode(context[None])[0],
        arms=policy.arms,
        best=best.reshape(shape),
        bound=regret_bounds(gap, policy.state.largest_regret).reshape(shape),
    )


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
    """Return values of a column: levels, or what lies between the lowest and highest."""
    kind, table = _kind_of(policy, column), policy.state.schema.table
    numbers = policy.state.model.observed.contexts[:, policy.state.schema.parts()[column]]
    if isinstance(kind, Category) and table is not None:
        levels = table.codings[table.columns.index(column)].levels
        return list(levels[:_MOST_LEVELS])
    if isinstance(kind, Cyclic):
        return list(np.linspace(0.0, kind.period, points).tolist())
    known = numbers[:, 0][numbers[:, -1] == 0.0] if kind.missing else numbers[:, 0]
    if not len(known):
        raise ValueError(f"the column {column!r} has nothing but missing values")
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
    return coding.spread(coding.read(values, learning=False)[0])


def trials(source: Any, most: int) -> list[tuple[Mapping[str, Any], Label]]:
    """Return contexts by column and the arms tried there, at most so many, evenly over time."""
    policy = read_policy(source)
    log, schema = policy.state.model.observed, policy.state.schema
    places, names = evenly(np.arange(len(log)), most), list(schema.parts())
    found = []
    for cells, arm in zip(schema.decode(log.contexts[places]), log.arms[places], strict=True):
        context = cells if isinstance(cells, Mapping) else dict(zip(names, cells, strict=True))
        found.append((context, policy.state.labels[int(arm)]))
    return found
