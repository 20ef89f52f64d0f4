"""What was learnt: beliefs along columns, which columns matter, and how exploration went.

All columns but one or two are fixed at one context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import Label
from contextgap.kernels import Warped
from contextgap.policy import Estimate, Policy
from contextgap.policy.answers import QUICK, regret_bounds
from contextgap.tables.columns import Category, Cyclic, Date, Kind, Number
from contextgap.tables.contexts import Encoded
from contextgap.tables.table import date_of

_SEEN = 256  # contexts among which the most typical one is found
_MOST_LEVELS = 40  # of a category, the first that were met
_SHUFFLED, _REPEATS = 500, 5  # contexts, at most, in which each column is shuffled, and how often
_SETTLED = 200  # contexts at which the certificates of progress are computed


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
        The context that fixes all other columns.
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
        The context that fixes all other columns; by default the most typical observed one.
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
    policy = _read_policy(source)
    name, context = _read_column(policy, column), read_context(policy, at)
    values = values_of(policy, name, checks.whole("points", points, least=2))
    contexts = _varied(policy, context, {name: values}, len(values))
    (mean, _, lower, upper), best, bound = _answered(policy, contexts.rows)
    return Course(
        column=name,
        values=tuple(values),
        ordered=_is_ordered(policy, name),
        context=policy.state.schema.decode(context[None])[0],
        arms=policy.arms,
        mean=mean,
        lower=lower,
        upper=upper,
        best=tuple(policy.arms[arm] for arm in best),
        bound=bound,
    )


def _answered(policy: Policy, rows: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return beliefs, shape (4, rows, arms), what is answered by them, and its regret bounds."""
    told = np.empty((4, len(rows), len(policy.arms)))
    best, gap = np.empty(len(rows), dtype=np.intp), np.empty(len(rows))
    for where, found, evidence in policy.answers(rows):
        told[:, where] = policy.state.told(evidence.belief)
        best[where], gap[where] = found.arm, found.gap
    return told, best, regret_bounds(gap, policy.state.largest_regret)


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
        The context that fixes all other columns.
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
        The context that fixes all other columns; by default the most typical observed one.
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
    policy = _read_policy(source)
    context, points = read_context(policy, at), checks.whole("points", points, least=2)
    across, up = _read_column(policy, x), _read_column(policy, y)
    if across == up:
        raise ValueError(f"x and y must be two columns, got {across!r} twice")
    xs, ys = values_of(policy, across, points), values_of(policy, up, points)
    changes = {across: xs * len(ys), up: [value for value in ys for _ in xs]}
    contexts = _varied(policy, context, changes, len(xs) * len(ys))
    _, best, bound = _answered(policy, contexts.rows)
    shape = len(ys), len(xs)
    return Area(
        x=across,
        y=up,
        xs=tuple(xs),
        ys=tuple(ys),
        ordered=(_is_ordered(policy, across), _is_ordered(policy, up)),
        context=policy.state.schema.decode(context[None])[0],
        arms=policy.arms,
        best=best.reshape(shape),
        bound=bound.reshape(shape),
    )


@dataclass(frozen=True)
class Importance:
    """How much decisions depend on each column; print it.

    .. versionadded:: 0.2

    Parameters
    ----------
    changed
        By column: the share of decisions that change if it is shuffled among observed contexts.
    spread
        By column: its standard deviation over its bandwidth, the largest if it has several numbers.
        Categories count as a deviation of 1. Near 0, the kernel ignores the column. None if the
        kernel has not one bandwidth per number.
    contexts
        How many contexts there were.

    Examples
    --------
    >>> importance = cg.insight.importance(policy)
    >>> importance.changed["x"] > importance.changed["y"]
    True
    """

    changed: Mapping[str, float]
    spread: Mapping[str, float] | None
    contexts: int

    def __str__(self) -> str:
        size = max(len("column"), *(len(name) for name in self.changed))
        lines = [f"  {'column':{size}}  {'changed':>8}" + ("  spread" if self.spread else "")]
        for name, share in sorted(self.changed.items(), key=lambda each: -each[1]):
            scale = f"  {self.spread[name]:6.2g}" if self.spread else ""
            lines.append(f"  {name:{size}}  {100 * share:6.1f} %{scale}")
        return "\n".join([f"decisions at {self.contexts} contexts", *lines])


def importance(source: Any, seed: int = 0) -> Importance:
    """Return which columns decisions depend on.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    seed
        Of the shuffling.

    See Also
    --------
    plot.importance : Draws it.

    Examples
    --------
    >>> sorted(cg.insight.importance(policy).changed)
    ['x', 'y']
    """
    policy = _read_policy(source)
    rng = np.random.default_rng(checks.whole("seed", seed, least=0))
    rows, schema = _seen(policy, _SHUFFLED), policy.state.schema
    usual, changed = policy.recommend(Encoded(rows, schema)), {}
    for name, numbers in schema.parts().items():
        shares = []
        for _ in range(_REPEATS):
            shuffled = rows.copy()
            shuffled[:, numbers] = rows[rng.permutation(len(rows))][:, numbers]
            shares.append(np.mean(policy.recommend(Encoded(shuffled, schema)) != usual))
        changed[name] = float(np.mean(shares))
    return Importance(changed, _spread_by_column(policy, rows), len(rows))


def _bandwidths(policy: Policy) -> tuple[float, ...] | None:
    """Return the bandwidths of the kernel's first part that has one for every number; else None."""
    parts = [policy.kernel]
    while parts:
        part = parts.pop(0)
        found = getattr(part, "bandwidth", None)
        if isinstance(found, tuple):
            return found
        parts += [
            getattr(part, name) for name in ("left", "right", "kernel") if hasattr(part, name)
        ]
    return None


def bandwidths_by_column(policy: Policy) -> dict[str, list[float]] | None:
    """Return a kernel's bandwidths by column, for columns that are not all numbers; else None."""
    table, found = policy.state.schema.table, _bandwidths(policy)
    return None if table is None or found is None else table.by_column(found)


def _spread_by_column(policy: Policy, contexts: FloatArray) -> dict[str, float] | None:
    found = _bandwidths(policy)
    if found is None:
        return None
    kernel = policy.kernel
    spread = (kernel.warp(contexts) if isinstance(kernel, Warped) else contexts).std(axis=0)
    layout = policy.state.schema.layout
    if layout is not None and layout.categories:
        spread[-layout.categories :] = 1.0  # two levels are 1 apart, whatever their codes
    in_bandwidths = spread / np.asarray(found)
    parts = policy.state.schema.parts()
    return {name: float(in_bandwidths[numbers].max()) for name, numbers in parts.items()}


@dataclass(frozen=True)
class Progress:
    """How an exploration went.

    .. versionadded:: 0.2

    Parameters
    ----------
    arms
        The arms.
    rewards
        How many rewards there were at each point in time.
    picks
        Shape (times, arms): how many of them were of each arm.
    settled
        The share of contexts at which regret bounds were within the tolerance.
    value
        The value of the policy, as the score card estimates it; NaN where there is no estimate.
    error
        The standard error of that.

    Examples
    --------
    >>> progress = cg.insight.progress(policy, points=4)
    >>> progress.rewards, progress.picks.shape
    (array([11, 20, 30, 40]), (4, 2))
    """

    arms: tuple[Label, ...]
    rewards: IntArray
    picks: IntArray = field(repr=False)
    settled: FloatArray = field(repr=False)
    value: FloatArray = field(repr=False)
    error: FloatArray = field(repr=False)


def progress(
    source: Any, tolerance: float = 0.0, points: int = 16, contexts: Any = None
) -> Progress:
    """Return how an exploration went, by the current kernel, ridge and kind of model.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    tolerance
        The largest regret bound at which a context counts as settled.
    points
        How many points in time.
    contexts
        Contexts to settle; by default some of those at which arms were tried.

    See Also
    --------
    plot.progress : Draws it.

    Examples
    --------
    >>> cg.insight.progress(policy, points=4).picks[-1]
    array([22, 18])
    """
    policy = _read_policy(source)
    tolerance = checks.real("tolerance", tolerance)
    log = policy.state.model.observed
    if log.forgotten:
        raise ValueError(
            "progress needs all trials, and this policy was saved with a sample of them; ask its "
            "learner"
        )
    count = checks.whole("points", points, least=1)
    times = np.unique(np.linspace(1, len(log), count + 1).round().astype(np.intp)[1:])
    if contexts is None:
        contexts = Encoded(_seen(policy, _SETTLED), policy.state.schema)
    settled, value, error = np.empty((3, len(times)))
    for place, earlier in enumerate(_earlier(policy, times)):
        settled[place] = (earlier.certificate(contexts).bound <= tolerance).mean()
        known = len(earlier.state.model) > 1
        found = earlier.score(rows=QUICK).value if known else Estimate(np.nan, np.nan)
        value[place], error[place] = found.value, found.error
    own = log.arms[:, None] == np.asarray(policy.state.active)
    return Progress(policy.arms, times, own.cumsum(axis=0)[times - 1], settled, value, error)


def _earlier(policy: Policy, times: IntArray) -> Iterator[Policy]:
    now, log = policy.state.model.learnt(), policy.state.model.observed
    model = type(now)(now.kernel, now.ridge, now.n_arms, now.prior_mean, **now.settings())
    for first, last in zip([0, *times[:-1]], times, strict=True):
        model.observe_many(log.contexts[first:last], log.arms[first:last], log.rewards[first:last])
        known = log.snapshot()
        known.truncate(int(last))
        model.observed.take_notes_from(known)
        yield Policy(replace(policy.state, model=model.snapshot().for_deployment(), card=None))


def _read_policy(source: Any) -> Policy:
    if isinstance(source, Policy):
        return source
    if not hasattr(source, "freeze"):
        raise TypeError(f"expected a learner or a policy, got {source!r}")
    policy: Policy = source.freeze()
    return policy


def _read_column(policy: Policy, column: Any) -> str:
    names = list(policy.state.schema.parts())
    if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < len(names):
        return names[column]
    if column not in names:
        raise ValueError(f"there is no column {column!r}; there are {names}")
    return str(column)


def _seen(policy: Policy, most: int) -> FloatArray:
    contexts = policy.state.model.observed.contexts
    return np.asarray(contexts[evenly(np.arange(len(contexts)), most)])


def read_context(policy: Policy, at: Any) -> FloatArray:
    """Return a context as numbers; by default the one nearest to all others that were seen."""
    if at is None:
        contexts = _seen(policy, _SEEN)
        # The kernel's own distance: |x − y|² = k(x, x) + k(y, y) − 2k(x, y).
        kernel = policy.kernel
        distance = kernel.diagonal(contexts) - 2 * kernel(contexts, contexts).mean(axis=0)
        return np.asarray(contexts[distance.argmin()])
    intake = policy.state.schema.read(at, called="at")
    if not intake.single:
        raise ValueError("at must be one context; pass a 1-D context or one row")
    return np.asarray(intake.rows[0])


def _is_ordered(policy: Policy, column: str) -> bool:
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


def _varied(
    policy: Policy, context: FloatArray, changes: Mapping[str, Sequence[Any]], count: int
) -> Encoded:
    rows = np.repeat(context[None], count, axis=0)
    schema = policy.state.schema
    for column, values in changes.items():
        encoded = np.asarray(values)[:, None]
        if schema.table is not None:
            coding = schema.table.codings[schema.table.columns.index(column)]
            if isinstance(coding.kind, Date) and coding.zoned:
                values = [f"{value}+00:00" for value in values]
            encoded = coding.spread(coding.read(values, learning=False)[0])
        rows[:, schema.parts()[column]] = encoded
    return Encoded(rows, schema)


def trials(source: Any, most: int) -> list[tuple[Mapping[str, Any], Label]]:
    """Return contexts by column and the arms tried there, at most so many, evenly over time."""
    policy = _read_policy(source)
    log, schema = policy.state.model.observed, policy.state.schema
    places, names = evenly(np.arange(len(log)), most), list(schema.parts())
    found = []
    for cells, arm in zip(schema.decode(log.contexts[places]), log.arms[places], strict=True):
        context = cells if isinstance(cells, Mapping) else dict(zip(names, cells, strict=True))
        found.append((context, policy.state.labels[int(arm)]))
    return found
