"""A frozen policy as plain arrays: all that an export in another language needs to know.

At a context x, with k the kernel values between x and an arm's support,

    mean = prior + weights·k        v = L⁻¹k        std² = k(x, x) − v·v + u·u
    upper = mean + reach·std        lower = mean − reach·std

where u = M⁻¹k for models of inducing points, which have a second factor, and is nothing for others.
All widths of this library are proportional to std, so one number per arm stands for them.

Of a table with typed columns, exports take rows with one number per column, as ``TableSchema.read``
gives it: a number, days since 1970, a code of a category, NaN if missing. An export makes of it
what ``TableSchema.spread`` makes, number by number, and needs to know no more than
``SpreadNumber``. A code that is no level's is like no level. Where kernels see NaN or an infinity
there is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg.blas import dtpmv, dtpsv

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, check_written
from contextgap.beliefs import Width
from contextgap.kernels import (
    Constant,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Product,
    Scaled,
    Sum,
    Warped,
)
from contextgap.kernels.warped import Warp
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)
from contextgap.models import Posterior, Support
from contextgap.policy import Policy
from contextgap.policy.state import Fallback
from contextgap.tables.columns import (
    CYCLES,
    MOST_LEVELS,
    Category,
    Coding,
    Cyclic,
    Date,
    TableSchema,
)
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.table import Table

_KERNELS = (Gaussian, Matern, Periodic, Linear, Polynomial, Constant, Sum, Product, Scaled)
# By what arms are compared: gaps after the last step, or after every step of a look-back.
_COMPARED: dict[type[Recommender], str] = {
    HighestMean: "mean",
    HighestUpper: "upper",
    SmallestGap: "gap",
    SmallestGapInHistory: "history",
}
# Sines and cosines of two libraries differ by less than so many roundings of 1.
_ROUNDINGS = 16
_MISSING = 0.15  # share of cells of random rows that are missing, where some may be


class ExportError(ValueError):
    """A policy, or a part of it, cannot be expressed where it is to be exported to."""


@dataclass(frozen=True)
class ArmTable:
    """What the decisions about one arm rest on, with n observed contexts.

    Of models that keep their history, prefixes of v and of the innovations give the mean after
    fewer observations.
    """

    support: FloatArray  # its observed contexts, shape (n, d)
    weights: FloatArray  # the mean is prior + weights·k
    factor: FloatArray  # the rows of the Cholesky factor L one after the other
    innovations: FloatArray  # Lᵀ·weights, so that the mean is also prior + v·innovations
    reach: FloatArray  # half width over std after 0, 1, ..., n observations
    added: FloatArray = field(default_factory=lambda: np.empty(0))  # the rows of M, if there is one


@dataclass(frozen=True)
class SharedTable:
    """What the decisions about arms that share rest on.

    At a context, v_a = L⁻¹(s_a∘k) with s_a = alike[a, whose], mean_a = prior + innovations·v_a, and
    the variance of the difference of two arms is (2 − 2·among)·k(x, x) − |v_a − v_b|².
    """

    support: FloatArray  # all observed contexts, shape (n, d)
    whose: IntArray  # the column of ``alike`` that belongs to each
    alike: FloatArray  # correlations of the arms with those observed
    among: FloatArray  # correlations of the arms
    weights: FloatArray  # mean_a = prior + weights[a]·k, shape (arms, n)
    factor: FloatArray  # the rows of the Cholesky factor L one after the other
    innovations: FloatArray  # L⁻¹(rewards − prior)
    reach: float  # half width over standard deviation, of arms and of differences


@dataclass(frozen=True)
class DecisionRule:
    """A policy as plain arrays; all numbers are about rewards, which are minus the costs."""

    kernel: Kernel
    dimension: int  # numbers per context, as kernels see it
    columns: tuple[str, ...] | None  # the names of what an export takes, if they have any
    table: TableSchema | None  # how columns become what kernels see; None if they are that
    prior: float  # the mean believed where nothing was observed
    labels: tuple[Label, ...]
    arms: tuple[ArmTable, ...]  # in the order of labels; none for arms that share
    shared: SharedTable | None  # of arms that share
    common: bool  # whether arms have the same support and ``factor``, and differ in ``added``
    recommender: Recommender
    probability: float | None  # with which all certificates hold at once; None if heuristic
    pulls: IntArray  # the arm observed at each step; −1 for arms no longer in use
    first_step: int  # the look-back compares the states after so many steps, one more, ..., all
    fallback: Fallback | None  # the safe arm, and when it is answered
    costs: bool = False  # whether users observe costs

    @property
    def compares(self) -> str:
        """By what arms are compared: "mean", "upper", "gap" or "history"."""
        return _COMPARED[type(self.recommender)]

    @property
    def inputs(self) -> int:
        """How many numbers an export takes: one per column of a table."""
        return self.dimension if self.table is None else len(self.table.codings)

    @property
    def warp(self) -> Warp | None:
        """What becomes of the numbers that kernels see, before they see them; None for nothing."""
        return self.kernel.warp if isinstance(self.kernel, Warped) else None

    @property
    def inner_kernel(self) -> Kernel:
        return self.kernel.kernel if isinstance(self.kernel, Warped) else self.kernel

    def warped(self, contexts: FloatArray) -> FloatArray:
        return contexts if self.warp is None else self.warp(contexts)

    @property
    def tolerance(self) -> float | None:
        """The largest bound with which a recommended arm is answered; None for any."""
        return None if self.fallback is None else self.fallback.tolerance


def decision_rule(policy: Policy) -> DecisionRule:
    """Return a policy as plain arrays.

    Raises ``ExportError`` for rules that are not a function of means and widths of the arms.
    """
    recommender = policy.method.recommender
    if type(recommender) not in _COMPARED:  # a subclass may decide otherwise
        can = ", ".join(kind.__name__ for kind in _COMPARED)
        raise ExportError(
            f"a policy that deploys by {type(recommender).__name__} cannot be exported; {can} can"
        )
    if policy.dimension is None:
        raise ExportError("a policy that never saw a context cannot be exported: tell it something")
    check_written(policy.arms)
    model, active = policy.state.model, policy.state.active
    shared = _shared_table(policy)
    tables = () if shared else tuple(_table(policy, each) for each in model.supports(active))
    index = np.full(model.n_arms, -1, dtype=np.intp)
    index[list(active)] = np.arange(len(active))
    steps = first = len(model)
    if isinstance(recommender, SmallestGapInHistory):
        first = min(policy.state.rules.burn_in * len(active), steps)
        first = first if recommender.last is None else max(first, steps + 1 - recommender.last)
    return DecisionRule(
        kernel=policy.kernel,
        dimension=policy.dimension,
        columns=policy.columns,
        table=policy.state.schema.table,
        prior=model.prior(),
        labels=policy.arms,
        arms=tables,
        shared=shared,
        common=model.common_support,
        recommender=recommender,
        # An export answers at any number of contexts, which not every guarantee covers.
        probability=policy.probability if policy.width.adaptive else None,
        pulls=index[model.observed.arms],
        first_step=first,
        fallback=policy.fallback,
        costs=policy.state.rules.sign < 0,
    )


def observed_contexts(rule: DecisionRule) -> FloatArray:
    if rule.shared is not None:
        return rule.shared.support
    if rule.common:
        return rule.arms[0].support
    return np.concatenate([arm.support for arm in rule.arms])


def check_kernel(kernel: Kernel, purpose: str) -> None:
    """Raise ``ExportError`` if a kernel, or one inside it, is not the library's own."""
    # By exact type: a subclass may compute anything.
    if type(kernel) not in _KERNELS:
        can = ", ".join(kind.__name__ for kind in _KERNELS)
        raise ExportError(
            f"the kernel {type(kernel).__name__} cannot be {purpose}; {can} and combinations of "
            "them can"
        )
    if isinstance(kernel, Sum | Product):
        check_kernel(kernel.left, purpose)
        check_kernel(kernel.right, purpose)
    if isinstance(kernel, Scaled):
        check_kernel(kernel.kernel, purpose)


def check_masks(rule: DecisionRule) -> None:
    """Raise ``ExportError`` for rules that cannot choose among eligible arms where exported."""
    if rule.compares == "history":
        raise ExportError(
            "a look-back cannot choose among eligible arms in an export: the steps that it "
            "compares depend on them; deploy by SmallestGap, or export with eligible=False"
        )


def _shared_table(policy: Policy) -> SharedTable | None:
    model, active = policy.state.model, policy.state.active
    support = model.shared_support(active)
    if support is None:
        return None
    if isinstance(policy.method.recommender, SmallestGapInHistory):
        raise ExportError("a look-back over arms that share what they learn cannot be exported")
    gain = np.array([support.information_gain])
    # Lᵀ·(mean's weights before they are scaled) = innovations; rows of L are packed columns of Lᵀ.
    size = len(support.innovations)
    solved = dtpsv(size, support.factor, support.innovations) if size else np.empty(0)
    return SharedTable(
        support=support.points.reshape(-1, policy.dimension or 0),
        whose=support.whose,
        alike=support.alike,
        among=support.among,
        weights=support.alike[:, support.whose] * solved,
        factor=support.factor,
        innovations=support.innovations,
        reach=float(_reach(policy.width, gain, model.ridge, 1, model.n_arms)[0]),
    )


def _table(policy: Policy, support: Support) -> ArmTable:
    model = policy.state.model
    looks_back = isinstance(policy.method.recommender, SmallestGapInHistory)
    signs, factors = zip(*support.factors, strict=True)
    if signs not in ((1,), (1, -1)) or (looks_back and support.innovations is None):
        raise ExportError(
            f"a model of kind {model.kind!r} cannot be exported: "
            + (
                "a look-back needs the steps of each arm"
                if looks_back
                else f"its factors have the signs {signs}"
            )
        )
    factor, size = factors[0], len(support.weights)
    added = factors[1] if len(factors) == 2 else np.empty(0)
    if support.innovations is None:
        # v·Lᵀ·weights is weights·k; rows of L are columns of its packed transpose.
        innovations = dtpmv(size, factor, support.weights) if size else np.empty(0)
        gain = np.full(size + 1, support.information_gain)
    else:
        ends = np.cumsum(np.arange(1, size + 1))
        noise = model.ridge if support.noise is None else support.noise
        steps = np.log(factor[ends - 1]) - 0.5 * np.log(noise) if size else np.empty(0)
        gain, innovations = np.concatenate([[0.0], steps.cumsum()]), support.innovations
    reach = _reach(policy.width, gain, model.ridge, model.n_arms)
    points = support.points.reshape(-1, policy.dimension or 0)
    return ArmTable(points, support.weights, factor, innovations, reach, added)


def _reach(
    width: Width, gain: FloatArray, ridge: float, n_arms: int, sharing: int = 0
) -> FloatArray:
    """Return half width over std, for each information gain; ``sharing`` arms share."""
    pairs = sharing * (sharing + 1) // 2
    zero, unit = np.zeros_like(gain), np.ones_like(gain)
    one, two = (
        width.half_width(Posterior(zero, std, gain, ridge, n_arms, None, pairs))
        for std in (unit, 2 * unit)
    )
    if not np.allclose(two, 2 * one, rtol=1e-12, atol=0):
        raise ExportError(
            f"{type(width).__name__} cannot be exported: it is not proportional to std"
        )
    return one


class How(Enum):
    VALUE = 0
    COSINE = 1
    SINE = 2
    IS_MISSING = 3
    CODE = 4


@dataclass(frozen=True)
class SpreadNumber:
    how: How
    source: int  # which column
    missing: float = math.nan  # in place of a missing value; NaN if there must be none
    by: float = 1.0  # the period of a circle, or how many levels a category has

    @property
    def unknown(self) -> float:
        """The code that stands for all levels that are not known."""
        return -1.0 if self.by < MOST_LEVELS else self.by


def spread_numbers(table: TableSchema) -> list[SpreadNumber]:
    """Return how all numbers that kernels see come from a row, in the kernels' order."""
    numbers = [each for place, own in enumerate(table.codings) for each in _numbers(place, own)]
    return sorted(numbers, key=lambda each: each.how is How.CODE)


def _numbers(place: int, coding: Coding) -> Iterator[SpreadNumber]:
    kind = coding.kind
    if isinstance(kind, Category):
        found = SpreadNumber(How.CODE, place, by=float(len(coding.levels)))
        if kind.missing:
            own = [code for code, level in enumerate(coding.levels) if level is None]
            found = replace(found, missing=own[0] if own else found.unknown)
        yield found
        return
    if not isinstance(kind, Cyclic):
        filling = (coding.filling or 0.0) if kind.missing else math.nan
        yield SpreadNumber(How.VALUE, place, filling)
    periods = [kind.period] if isinstance(kind, Cyclic) else []
    if isinstance(kind, Date):
        periods = [CYCLES[cycle] for cycle in kind.cycles]
    for period in periods:
        for how in (How.COSINE, How.SINE):
            yield SpreadNumber(how, place, 0.0 if kind.missing else math.nan, period)
    if kind.missing:
        yield SpreadNumber(How.IS_MISSING, place)


def seen_by_kernels(table: TableSchema | None, rows: FloatArray) -> FloatArray:
    """Return what kernels see of rows, shape (n, columns); rows themselves if they are plain."""
    if table is None:
        return rows
    known = rows.copy()
    for each in spread_numbers(table):
        if each.how is How.CODE:
            codes = rows[:, each.source]
            known[:, each.source] = np.where(is_level(each, codes), codes, each.unknown)
            known[np.isnan(codes), each.source] = each.missing
    return table.spread(known)


def is_level(number: SpreadNumber, codes: FloatArray) -> Any:
    """Say which codes are those of levels that are known."""
    return (codes >= 0) & (codes < number.by) & (codes == np.floor(codes))


def has_unknown_level(table: TableSchema | None, rows: FloatArray) -> Any:
    """Say which rows have a level that is not known, or lack one where none was missing before."""
    found = np.zeros(len(rows), dtype=bool)
    for each in [] if table is None else spread_numbers(table):
        if each.how is How.CODE:
            codes = rows[:, each.source]
            codes = np.where(np.isnan(codes), each.missing, codes)
            found |= ~is_level(each, codes)
    return found


def read_rows(table: TableSchema, contexts: Any) -> FloatArray:
    """Return raw cells, in a DataFrame, a mapping or rows of cells, as rows of numbers."""
    given = Table.of(contexts)
    cells = ContextSchema.of(table).picked(given)
    return table.read([[cell] for cell in cells] if given.single else cells)[0]


def rows_of(table: TableSchema, seen: FloatArray) -> FloatArray:
    """Return rows of which kernels see these contexts; points of a cycle within its first turn."""
    rows = np.empty((len(seen), len(table.codings)))
    circle = np.zeros(len(seen))
    whole = {place: isinstance(own.kind, Cyclic) for place, own in enumerate(table.codings)}
    for each, values in zip(spread_numbers(table), seen.T, strict=True):
        if each.how in (How.VALUE, How.CODE):
            rows[:, each.source] = values
        elif each.how is How.COSINE:
            circle = values
        elif each.how is How.SINE and whole[each.source]:
            turns = np.arctan2(values, circle) / (2 * np.pi)
            rows[:, each.source] = each.by * (turns % 1.0)
        elif each.how is How.IS_MISSING:
            rows[values > 0, each.source] = np.nan
    return rows


def random_rows(
    table: TableSchema, observed: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return rows like those observed, but for each column by itself."""
    # Numbers lie between and, for a third of the rows, around those observed; codes are those of
    # all levels and of none; and values are missing where they may be.
    rows = np.empty((count, len(table.codings)))
    around = 0.25 * (rng.random(count) < 1 / 3)
    for place, coding in enumerate(table.codings):
        known = observed[~np.isnan(observed[:, place]), place]
        if isinstance(coding.kind, Category):
            rows[:, place] = rng.integers(-1, max(1, len(coding.levels)), count)
        else:
            low, high = (known.min(), known.max()) if len(known) else (-1.0, 1.0)
            beyond = around * (high - low if high > low else 1.0)
            rows[:, place] = rng.uniform(low - beyond, high + beyond)
        if coding.kind.missing:
            rows[rng.random(count) < _MISSING, place] = np.nan
    return rows


def seen_ranges(
    fallback: Fallback, rule: DecisionRule, dtype: DTypeLike
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest of each number that kernels see and that counts as seen."""
    # A column of a cycle that never changed has a range of no length, which the target's own sine
    # may be off by a rounding error. So ranges of sines and cosines are longer by as much as that.
    if not fallback.low:  # every number is below 1 or above 0, and so outside
        return np.ones(rule.dimension), np.zeros(rule.dimension)
    low, high = np.array(fallback.low), np.array(fallback.high)
    if rule.table is not None:
        circles = [each.how in (How.COSINE, How.SINE) for each in spread_numbers(rule.table)]
        slack = _ROUNDINGS * float(np.finfo(dtype).eps) * np.array(circles)
        low, high = low - slack, high + slack
    return low, high
