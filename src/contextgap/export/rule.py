"""A frozen policy as plain arrays, what it answers, and whether an export answers the same.

At a context x, with k the kernel values between x and an arm's support,

    mean = prior + weights·k        v = L⁻¹k        std² = k(x, x) − v·v + u·u
    upper = mean + reach·std        lower = mean − reach·std

where u = M⁻¹k for models of inducing points, and nothing for others: widths are proportional to
std, so that one number per arm stands for them.

Of a table with typed columns, exports take rows of numbers as ``TableSchema.read`` gives them, and
make of them what ``TableSchema.spread`` makes, as ``SpreadNumber`` says. A code that is no level's
is like no level. Where kernels see NaN or an infinity there is no answer.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg.blas import dtpmv, dtpsv

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, Mask, check_written
from contextgap.beliefs import Belief, Width, gaps
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
from contextgap.kernels.categories import Warp
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)
from contextgap.models import KeepsHistory, Posterior, Support
from contextgap.policy import Policy
from contextgap.policy.state import Fallback, Status, answer
from contextgap.tables.columns import (
    CYCLES,
    MOST_LEVELS,
    Category,
    Coding,
    Cyclic,
    Date,
    TableSchema,
)
from contextgap.tables.contexts import ContextSchema, Encoded
from contextgap.tables.table import Table

_KERNELS = (Gaussian, Matern, Periodic, Linear, Polynomial, Constant, Sum, Product, Scaled)
# By what arms are compared; "history": gaps at every step of a look-back.
_COMPARED: dict[type[Recommender], str] = {
    HighestMean: "mean",
    HighestUpper: "upper",
    SmallestGap: "gap",
    SmallestGapInHistory: "history",
}
# Roundings of 1 by which sines of two libraries may differ.
_ROUNDINGS = 16
_MISSING = 0.15  # share of cells of random rows


class ExportError(ValueError):
    """A policy, or a part of it, cannot be expressed where it is to be exported to."""


@dataclass(frozen=True)
class ArmTable:
    """What the decisions about one arm rest on, with n observed contexts.

    With a history, prefixes of v and of the innovations give the mean after fewer observations.
    """

    support: FloatArray  # its observed contexts, shape (n, d)
    weights: FloatArray  # the mean is prior + weights·k
    factor: FloatArray  # rows of the Cholesky factor L
    innovations: FloatArray  # Lᵀ·weights: the mean is prior + v·innovations
    reach: FloatArray  # half width over std after 0, 1, ..., n observations
    added: FloatArray = field(default_factory=lambda: np.empty(0))  # rows of M, if any


@dataclass(frozen=True)
class SharedTable:
    """What the decisions about arms that share rest on.

    At a context, v_a = L⁻¹(s_a∘k) with s_a = alike[a, whose], mean_a = prior + innovations·v_a, and
    the variance of the difference of two arms is (2 − 2·among)·k(x, x) − |v_a − v_b|².
    """

    support: FloatArray  # all observed contexts, shape (n, d)
    whose: IntArray  # columns of ``alike``
    alike: FloatArray  # correlations of the arms with those observed
    among: FloatArray  # correlations of the arms
    weights: FloatArray  # mean_a = prior + weights[a]·k
    factor: FloatArray  # rows of the Cholesky factor L
    innovations: FloatArray  # L⁻¹(rewards − prior)
    reach: float  # half width over std, of arms and of differences


@dataclass(frozen=True)
class DecisionRule:
    """A policy as plain arrays; all numbers are about rewards, which are minus the costs."""

    kernel: Kernel
    dimension: int  # numbers per context, as kernels see it
    columns: tuple[str, ...] | None  # of what exports take, if they have names
    table: TableSchema | None  # None if kernels see the columns
    prior: float  # the mean without observations
    labels: tuple[Label, ...]
    arms: tuple[ArmTable, ...]  # by label; none if they share
    shared: SharedTable | None  # of arms that share
    common: bool  # whether support and ``factor`` are those of all arms
    recommender: Recommender
    probability: float | None  # with which all certificates hold; None if heuristic
    pulls: IntArray  # the arm of each step; −1 if no longer in use
    first_step: int  # the first state, by steps, that the look-back compares
    fallback: Fallback | None
    costs: bool = False

    @property
    def compares(self) -> str:
        """By what arms are compared: "mean", "upper", "gap" or "history"."""
        return _COMPARED[type(self.recommender)]

    @property
    def inputs(self) -> int:
        """How many numbers an export takes."""
        return self.dimension if self.table is None else len(self.table.codings)

    @property
    def warp(self) -> Warp | None:
        """What becomes of numbers before kernels see them."""
        return self.kernel.warp if isinstance(self.kernel, Warped) else None

    @property
    def inner_kernel(self) -> Kernel:
        return self.kernel.kernel if isinstance(self.kernel, Warped) else self.kernel

    def warped(self, contexts: FloatArray) -> FloatArray:
        return contexts if self.warp is None else self.warp(contexts)

    @property
    def tolerance(self) -> float | None:
        return None if self.fallback is None else self.fallback.tolerance


def decision_rule(policy: Policy) -> DecisionRule:
    """Return a policy as plain arrays; raise ``ExportError`` if it is none of means and widths."""
    recommender = policy.method.recommender
    if type(recommender) not in _COMPARED:
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
        # Exports answer at any number of contexts, which guarantees may not cover.
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
    # Lᵀ·(unscaled weights) = innovations; rows of L are packed columns of Lᵀ.
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
    # A step of a look-back takes in one reward of one arm, and here rewards imply others'.
    no_steps = support.innovations is None or model.related
    if signs not in ((1,), (1, -1)) or (looks_back and no_steps):
        raise ExportError(
            f"a model of kind {model.kind!r} cannot be exported: "
            + (
                "a look-back needs the steps of each arm; deploy by SmallestGap"
                if looks_back
                else f"its factors have the signs {signs}"
            )
        )
    factor, size = factors[0], len(support.weights)
    added = factors[1] if len(factors) == 2 else np.empty(0)
    if support.innovations is None:
        # Rows of L are columns of its packed transpose.
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
    """Return half width over std for each information gain."""
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
    source: int
    missing: float = math.nan  # instead of a missing value
    by: float = 1.0  # the period, or how many levels there are

    @property
    def unknown(self) -> float:
        """The code of all unknown levels."""
        return -1.0 if self.by < MOST_LEVELS else self.by


def spread_numbers(table: TableSchema) -> list[SpreadNumber]:
    """Return how the numbers that kernels see come from a row."""
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
    """Return what kernels see of rows."""
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
    return (codes >= 0) & (codes < number.by) & (codes == np.floor(codes))


def has_unknown_level(table: TableSchema | None, rows: FloatArray) -> Any:
    """Say which rows have an unknown level, or lack a known one."""
    found = np.zeros(len(rows), dtype=bool)
    for each in [] if table is None else spread_numbers(table):
        if each.how is How.CODE:
            codes = rows[:, each.source]
            codes = np.where(np.isnan(codes), each.missing, codes)
            found |= ~is_level(each, codes)
    return found


def read_rows(table: TableSchema, contexts: Any) -> FloatArray:
    given = Table.of(contexts)
    cells = ContextSchema.of(table).picked(given)
    return table.read([[cell] for cell in cells] if given.single else cells)[0]


def rows_of(table: TableSchema, seen: FloatArray) -> FloatArray:
    """Return rows of which kernels see these contexts."""
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
    """Return rows like those observed, column by column."""
    # A third of the numbers lies around those observed, codes may be of no level.
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
    """Return the range of each number that kernels see."""
    # Sines may be off by a rounding error, so their ranges are a little longer.
    if not fallback.low:  # all is outside
        return np.ones(rule.dimension), np.zeros(rule.dimension)
    low, high = np.array(fallback.low), np.array(fallback.high)
    if rule.table is not None:
        circles = [each.how in (How.COSINE, How.SINE) for each in spread_numbers(rule.table)]
        slack = _ROUNDINGS * float(np.finfo(dtype).eps) * np.array(circles)
        low, high = low - slack, high + slack
    return low, high


_ROUNDED = 0.01  # of decisions, that rounding may change
# Scores around 1 this close differ by rounding alone.
NEAR = 1e-9
# The same of certificates, which rest on roots.
CLOSE = 1e-6
_NOT_ELIGIBLE = {
    "mean": -np.inf,
    "half_width": 0.0,
    "gap": np.inf,
    "scores": np.inf,
    "bounds": np.inf,
}


@dataclass(frozen=True)
class Answers:
    """Python's answers at m contexts, given as exports take them.

    ``arm`` is the ``recommended`` one, or the fallback as ``status`` says. ``mean``, ``half_width``
    and ``gap``, of shape (m, arms), are those after the last step. The recommended arm has the
    smallest of ``scores``; ``bounds`` are the gaps that arms would be recommended with.
    """

    contexts: FloatArray
    arm: IntArray
    recommended: IntArray
    status: IntArray
    mean: FloatArray
    half_width: FloatArray
    gap: FloatArray
    certificate: FloatArray
    scores: FloatArray
    bounds: FloatArray

    def tied(self, slack: FloatArray) -> Mask:
        """Say which arms' scores exceed the lowest by ``slack`` at most."""
        lowest = self.scores[np.arange(len(self.scores)), self.recommended]
        return np.asarray(self.scores - lowest[:, None] <= slack[:, None])


def answers_of(
    policy: Policy, rule: DecisionRule, contexts: FloatArray, eligible: Mask | None = None
) -> Answers:
    """Return a policy's answers; ``rule`` is the policy's."""
    seen, everywhere = seen_by_kernels(rule.table, contexts), np.arange(len(contexts))
    arm, recommended, status = np.empty((3, len(contexts)), dtype=np.intp)
    certificate, shape = np.empty(len(contexts)), (len(contexts), len(rule.labels))
    tables = {name: np.full(shape, otherwise) for name, otherwise in _NOT_ELIGIBLE.items()}
    for places, chooser in policy.chooser.groups(eligible):
        for block, choice, evidence in chooser.decisions(seen[places]):
            rows, columns = everywhere[places][block], np.array(evidence.columns)
            belief, found = evidence.belief, answer(rule.fallback, choice, evidence)
            arm[rows], recommended[rows] = columns[found.arm], columns[choice.arm]
            status[rows], certificate[rows] = found.status, np.maximum(found.gap, 0.0)
            scores = _scores(policy, rule, evidence.contexts, belief)
            bounds = scores if rule.compares == "history" else belief.gap
            believed = belief.mean, belief.half_width, belief.gap, scores, bounds
            for table, values in zip(tables.values(), believed, strict=True):
                table[np.ix_(rows, columns)] = values
    return Answers(contexts, arm, recommended, status, certificate=certificate, **tables)


def _scores(policy: Policy, rule: DecisionRule, contexts: FloatArray, belief: Belief) -> FloatArray:
    if rule.compares == "mean":
        return -belief.mean
    if rule.compares == "upper":
        return -belief.upper
    if rule.compares == "gap":
        return belief.gap
    # Each arm's smallest gap over the steps of the look-back.
    lower, upper = [], []
    model = cast(KeepsHistory, policy.state.model)
    states, steps, _ = model.history(contexts, policy.state.active, rule.first_step)
    for path in states:
        half = policy.width.half_width(path)
        lower.append(path.mean - half)
        upper.append(path.mean + half)
    smallest = np.full((len(contexts), len(lower)), np.inf)
    for now in np.unique(steps, axis=0):
        low = np.stack([path[state] for path, state in zip(lower, now, strict=True)], axis=-1)
        high = np.stack([path[state] for path, state in zip(upper, now, strict=True)], axis=-1)
        np.minimum(smallest, gaps(low, high), out=smallest)
    return smallest


def comparison_contexts(
    policy: Policy, rule: DecisionRule, count: int, given: Any, seed: int = 0
) -> FloatArray:
    """Return contexts to compare at: given ones, or near those observed."""
    # A quarter are observed, half lie between, a quarter around.
    if given is not None:
        return policy.state.read(given)[0] if rule.table is None else read_rows(rule.table, given)
    rng = np.random.default_rng(seed)
    observed = observed_contexts(rule)
    if rule.table is not None:
        rows = rows_of(rule.table, observed)
        at = rows[rng.integers(len(rows), size=count // 4)] if len(rows) else rows
        return np.concatenate([at, random_rows(rule.table, rows, count - len(at), rng)])
    if not len(observed):
        return rng.uniform(-1.0, 1.0, (count, rule.dimension))
    low, high = observed.min(axis=0), observed.max(axis=0)
    beyond = 0.25 * np.where(high > low, high - low, 1.0)
    at = observed[rng.integers(len(observed), size=count // 4)]
    between = rng.uniform(low, high, (count // 2, rule.dimension))
    around = rng.uniform(
        low - beyond, high + beyond, (count - len(at) - len(between), rule.dimension)
    )
    return np.concatenate([at, between, around])


def warn_of_rounding(policy: Policy, rule: DecisionRule, contexts: FloatArray) -> None:
    with np.errstate(over="ignore"):
        rounded = contexts.astype(np.float32).astype(np.float64)
    if not np.array_equal(np.isinf(rounded), np.isinf(contexts)):
        return  # exports complain of what single precision cannot hold
    exact, arms = (answers_of(policy, rule, rows).arm for rows in (contexts, rounded))
    changed = int(np.count_nonzero(exact != arms))
    if changed > _ROUNDED * len(contexts):
        warnings.warn(
            f"rounding contexts to single precision changes {changed} of {len(contexts)} "
            "decisions; subtract from every column a number amid its values before learning, or "
            "export in double precision",
            stacklevel=4,
        )


def fallback_arm(policy: Policy, rule: DecisionRule) -> int:
    if rule.fallback is not None:
        return rule.fallback.column
    means = policy.state.rules.sign * policy.raw_means(observed_contexts(rule))
    return int(means.sum(axis=0).argmax())


def possible_answers(fallback: Fallback | None, answers: Answers, slack: FloatArray) -> Mask:
    """Say which arms may be answered if numbers are wrong by up to ``slack``."""
    tied = answers.tied(slack)
    if fallback is None:
        return tied
    tolerance = np.inf if fallback.tolerance is None else fallback.tolerance
    excess, wrong_by = answers.bounds - tolerance, slack[:, None]
    outside = answers.status[:, None] == Status.OUTSIDE  # exact
    recommended = tied & (excess <= wrong_by) & ~outside
    falls = outside | (tied & ~(excess <= -wrong_by))
    is_fallback = np.arange(tied.shape[1]) == fallback.column
    answered = recommended | (is_fallback & falls.any(axis=1, keepdims=True))
    eligible = np.isfinite(answers.mean[:, [fallback.column]])
    return np.asarray(np.where(eligible, answered, tied))


def is_near_tie(fallback: Fallback | None, answers: Answers, slack: FloatArray) -> Mask:
    """Say where rounding by up to ``slack`` may change the answer or its reason."""
    found = answers.tied(slack).sum(axis=1) > 1
    if fallback is None:
        return np.asarray(found)
    if fallback.tolerance is not None:
        bound = answers.bounds[np.arange(len(found)), answers.recommended]
        found |= np.abs(bound - fallback.tolerance) <= slack
    return np.asarray(found & (answers.status != Status.OUTSIDE))


@dataclass(frozen=True)
class Parity:
    """How an export's decisions compare with the policy's.

    Parameters
    ----------
    contexts
        How many were compared.
    same
        Where both decide the same.
    near_ties
        Where they differ, and scores, or a bound and the tolerance, differ by rounding only.
    different
        Where they differ otherwise.
    worst_added_regret
        Highest expected reward that the export gives away, as the policy expects it.
    mean_added_regret
        The same, averaged over all contexts.
    other_statuses
        Where the status differs by more than rounding explains; None if not compared.
    certificate_error
        Largest difference of certificates where both decide the same; None if not compared.
    other_certificates
        Where certificates differ by more than rounding explains in double precision; None likewise.

    See Also
    --------
    export.parity : Returns one.

    Examples
    --------
    >>> wrong = np.zeros(len(contexts), dtype=int)
    >>> parity = cg.export.parity(policy, wrong, contexts)
    >>> parity.same, parity.different
    (18, 22)
    """

    contexts: int
    same: int
    near_ties: int
    different: int
    worst_added_regret: float
    mean_added_regret: float
    other_statuses: int | None = None
    certificate_error: float | None = None
    other_certificates: int | None = None

    @property
    def agreement(self) -> float:
        """The share of contexts where both decide the same."""
        return self.same / self.contexts


def parity(
    policy: Policy,
    exported: IntArray,
    contexts: FloatArray,
    *,
    eligible: Mask | None = None,
    status: IntArray | None = None,
    certificate: FloatArray | None = None,
) -> Parity:
    """Compare an export's decisions with the policy's.

    Parameters
    ----------
    policy
        What was exported.
    exported
        The indices of the arms that the export recommends, −1 for none.
    contexts
        Where, shape (m, d), m at least 1, as the export takes them: of a table with typed columns,
        one number per column.
    eligible
        Which arms may be chosen at each context, shape (m, arms); all by default.
    status
        How the export says that it came to its answers, in the numbers of ``Policy.status``.
    certificate
        The regret bounds that the export gives.

    Examples
    --------
    >>> same = np.where(policy.recommend(contexts) == "right", 1, 0)
    >>> cg.export.parity(policy, same, contexts).same
    40
    """
    rule = decision_rule(policy)
    if eligible is not None:
        check_masks(rule)
    expected = answers_of(policy, rule, contexts, eligible)
    rows = np.arange(len(contexts))
    differs = exported != expected.arm
    answered = exported >= 0
    # Of the largest score: what scores are sums of may be larger.
    slack = np.full(len(rows), NEAR * _largest(expected.scores))
    possible = possible_answers(rule.fallback, expected, slack)
    near = differs & answered & possible[rows, exported]
    lost = expected.mean[rows, expected.arm] - expected.mean[rows, exported]
    lost = np.where(answered, np.maximum(lost, 0.0), np.inf)
    other = (status != expected.status) & ~is_near_tie(rule.fallback, expected, slack)
    error = None
    if certificate is not None:
        comparable = ~differs & np.isfinite(expected.certificate)
        if status is not None:
            comparable &= ~other
        error = np.where(comparable, np.abs(certificate - expected.certificate), 0.0)
        believed = max(_largest(expected.mean), _largest(expected.half_width))
    return Parity(
        contexts=len(contexts),
        same=int((~differs).sum()),
        near_ties=int(near.sum()),
        different=int((differs & ~near).sum()),
        worst_added_regret=float(lost.max()),
        mean_added_regret=float(lost.mean()),
        other_statuses=None if status is None else int(other.sum()),
        certificate_error=None if error is None else float(error.max()),
        other_certificates=None if error is None else int((error > CLOSE * believed).sum()),
    )


def _largest(values: FloatArray) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


@dataclass(frozen=True)
class Comparison:
    parity: Parity
    single: bool
    microseconds: float
    microseconds_in_python: float

    def reasons(self, name: str, agreement: float) -> list[str]:
        found, most = self.parity, (1.0 - agreement) * self.parity.contexts
        wrong = {"decisions": found.different, "statuses": found.other_statuses or 0}
        if not self.single:
            wrong["certificates"] = found.other_certificates or 0
        return [
            f"{name}: {count} of {found.contexts} {what} differ"
            for what, count in wrong.items()
            if count > most
        ]

    def described(self) -> dict[str, Any]:
        return {
            **asdict(self.parity),
            "agreement": self.parity.agreement,
            "microseconds": self.microseconds,
            "microseconds_in_python": self.microseconds_in_python,
        }


def compare(
    policy: Policy, export: Any, contexts: FloatArray, eligible: Mask | None = None
) -> Comparison:
    """Ask a ``GraphPolicy`` or ``CompiledPolicy``, and its policy."""
    rule = decision_rule(policy)
    microseconds, arms = _timed(lambda: export.recommend(contexts, arms=eligible), len(contexts))
    details = export.details(contexts, eligible)
    unknown = details.pop("unknown", None)
    if unknown is not None:  # as no status of Python's
        wrong = unknown != has_unknown_level(rule.table, contexts)
        details["status"][wrong & (details["status"] == Status.RECOMMENDED)] = -2
    seen = Encoded(seen_by_kernels(rule.table, contexts), policy.state.schema)
    in_python, _ = _timed(lambda: policy.recommend(seen, arms=eligible), len(contexts))
    found = parity(policy, arms, contexts, eligible=eligible, **details)
    return Comparison(found, export.dtype == np.float32, microseconds, in_python)


def _timed(call: Callable[[], Any], count: int) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return 1e6 * (time.perf_counter() - start) / count, answer
