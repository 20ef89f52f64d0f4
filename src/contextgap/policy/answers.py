"""What a policy answers: arms, certificates, rankings, the expected regret of its picks, and why.

Arms are chosen block by block, so that memory stays bounded. Where only some arms are eligible,
rows with the same eligible arms are chosen for together: the answer is that for each row alone.

Why one arm is believed to be better than another is said by trials and by columns. A posterior mean
is a weighted sum of what trials gave, so the parts of all trials sum up to the difference of two
arms' means exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contextgap.base import display
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.components import lazy
from contextgap.base.labels import Label, Mask, groups
from contextgap.base.names import study_import
from contextgap.beliefs import Belief
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import Model, Predictor

if TYPE_CHECKING:
    from contextgap.policy.state import PolicyState, Rules

_REACH = np.arange(-8.0, 9.0)  # standard deviations; what is beyond does not count in a float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_BLOCK = 2**22  # numbers in one block of kernel values, which take 32 MB
_SEEN = 64  # contexts from which a column takes other values


@dataclass(frozen=True)
class Certificate:
    """A bound on the simple regret of each recommendation.

    Parameters
    ----------
    bound
        One per context, never negative; where rewards have two values, at most their difference.
    probability
        The probability with which all bounds hold at once; None where the width guarantees nothing
        and the bounds are heuristic.

    See Also
    --------
    Policy.certificate : Returns one.

    Examples
    --------
    >>> certificate = policy.certificate([[0.5, 0.0]])
    >>> bool(certificate.bound[0] < 0.5), certificate.probability is None
    (True, True)
    """

    bound: FloatArray
    probability: float | None

    def _repr_html_(self) -> str:
        kind = "heuristic" if self.probability is None else f"probability {self.probability:g}"
        shares = (0.1, 0.5, 0.9, 1.0) if len(self.bound) else ()
        # Bounds may be infinite, between which there is nothing to interpolate.
        bounds = np.quantile(self.bound, shares, method="higher") if shares else ()
        rows = [[f"{100 * p:g} %", float(x)] for p, x in zip(shares, bounds, strict=True)]
        title = f"bounds on regret at {len(self.bound)} contexts ({kind})"
        return display.table(title, ["of contexts", "at most"], rows)


class Answered(NamedTuple):
    """All that is answered at some contexts: labels, statuses and, if asked for, certificates."""

    arms: Any
    status: IntArray
    certificate: Certificate | None


@dataclass(frozen=True)
class Ranked:
    """One arm of a ranking, with its mean, interval and regret bound.

    .. versionadded:: 0.2

    Parameters
    ----------
    arm
        Its label.
    mean, std, lower, upper
        Posterior of its reward; of its cost where rewards are costs.
    bound
        A bound on the simple regret of deploying it: max(0, its gap among the eligible arms), and
        at most the difference of rewards that have two values.

    See Also
    --------
    Policy.rank : Returns them in order.

    Examples
    --------
    >>> best = policy.rank([0.5, 0.0])[0]
    >>> best.arm, best.lower < best.mean < best.upper
    ('right', True)
    """

    arm: Label
    mean: float
    std: float
    lower: float
    upper: float
    bound: float


@dataclass(frozen=True)
class Beliefs:
    """Means, standard deviations and intervals of every arm at many contexts.

    .. versionadded:: 0.3

    Parameters
    ----------
    arms
        The arms, in the order of the arrays.
    mean, std, lower, upper
        Of shape (rows, arms), for one context (arms,): of rewards, or of costs where costs are
        told.
    index
        The index of the DataFrame that the contexts were; None for other contexts.

    See Also
    --------
    Policy.beliefs : Returns them.

    Examples
    --------
    >>> beliefs = policy.beliefs([[0.5, 0.0], [-0.5, 0.0]])
    >>> beliefs.arms, beliefs.mean.shape
    (('left', 'right'), (2, 2))
    """

    arms: tuple[Label, ...]
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    index: Any = None

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per context and columns such as ("mean", arm).

        It has the index of the contexts: ``X.join(frame["mean"])`` puts the means of all arms
        beside them. Needs pandas.

        Examples
        --------
        >>> frame = policy.beliefs([[0.5, 0.0], [-0.5, 0.0]]).to_frame()
        >>> frame["mean"].idxmax(axis=1).tolist()
        ['right', 'left']
        """
        pandas = study_import("pandas")
        arms = np.fromiter(self.arms, dtype=object, count=len(self.arms))
        columns = pandas.Index(arms, name="arm", tupleize_cols=False)
        parts = {
            name: pandas.DataFrame(np.atleast_2d(getattr(self, name)), self.index, columns)
            for name in ("mean", "std", "lower", "upper")
        }
        return pandas.concat(parts, axis=1)


def regret_bounds(gap: FloatArray, most: float) -> FloatArray:
    """Return bounds on the simple regret of arms, given their gaps and the largest regret."""
    bound = np.maximum(gap, 0.0)
    bound[np.isnan(bound)] = np.inf  # what cannot be computed is not certified
    return np.minimum(bound, most)


def expected_regret(mean: FloatArray, std: FloatArray, picks: IntArray) -> FloatArray:
    """Return E[highest reward of any arm] − E[reward of the pick], for each row of beliefs."""
    regrets = np.full(len(picks), np.inf)  # what cannot be computed is not certified
    for row, pick in enumerate(picks):
        relative = mean[row] - mean[row, pick]
        if np.isfinite(relative).all() and np.isfinite(std[row]).all():
            regrets[row] = max(_expected_highest(relative, std[row]), relative.max(), 0.0)
    return regrets


def own_std(belief: Belief) -> FloatArray:
    """Return the standard deviations of what arms do not share."""
    # By the average covariance of two arms, the average variance of a difference is right.
    arms = belief.mean.shape[-1]
    if belief.covariance is None or arms == 1:
        return belief.std
    variance = np.square(belief.std)
    pairs = belief.covariance.sum(axis=(-2, -1)) - variance.sum(axis=-1)
    common = np.minimum(pairs / (arms * (arms - 1)), variance.min(axis=-1))
    return np.asarray(np.sqrt(np.maximum(variance - common[:, None], 0.0)))


def _expected_highest(mean: FloatArray, std: FloatArray) -> float:
    """Return E[highest] = end − ∫ P(all are below z) dz, up to an end that none exceeds."""
    # Within reach of an arm, no interval is longer than the arm's standard deviation.
    from scipy.special import ndtr  # slow to load, and most policies do without

    edges = np.unique(mean + std * _REACH[:, None])
    edges = edges[edges >= (mean + std * _REACH[0]).max()]  # below, P is zero
    half = np.diff(edges) / 2
    z = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    with np.errstate(over="ignore"):  # arms that are known exactly
        all_below = ndtr((z[..., None] - mean) / np.maximum(std, np.finfo(float).tiny)).prod(-1)
    return float(edges[-1] - half @ (all_below @ _WEIGHTS))


@dataclass(frozen=True)
class Chooser:
    """Chooses among some arms of a policy, by its recommender; arms are places in ``active``."""

    model: Model
    active: tuple[int, ...]  # the model's indices of the arms
    columns: tuple[int, ...]  # their places among all arms of the policy
    rules: Rules
    seed: int

    def groups(self, eligible: Mask | None) -> Iterator[tuple[IntArray | slice, Chooser]]:
        """Yield places of rows, and what chooses among the arms that are eligible there."""
        if eligible is None:
            yield slice(None), self
            return
        for places, columns in groups(eligible):
            active = tuple(self.active[column] for column in columns)
            yield places, replace(self, active=active, columns=tuple(columns.tolist()))

    def evidence(self, rows: FloatArray, among: int = 0) -> ModelEvidence:
        """Return what the recommender sees; ``among`` counts all rows, if these are a block."""
        return ModelEvidence(
            self.predictor,
            rows,
            self.rules.width,
            burn_in_end=self.rules.burn_in * len(self.active),
            seed=self.seed,
            columns=self.columns,
            among=among,
        )

    @lazy
    def predictor(self) -> Predictor:
        """What the model says about these arms; a policy's model never changes."""
        return self.model.predictor(self.active)

    def pick(self, rows: FloatArray) -> IntArray:
        """Return the arms chosen by ``decisions``, without their gaps, which take longer."""
        picks = np.empty(len(rows), dtype=np.intp)
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], among=len(rows))
            picks[block] = self.rules.method.recommender.choose_arms(evidence)
        return picks

    def decisions(self, rows: FloatArray) -> Iterator[tuple[slice, Choice, ModelEvidence]]:
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], among=len(rows))
            yield block, self.rules.method.recommender.choose(evidence), evidence

    def blocks(self, rows: int) -> Iterator[slice]:
        size = max(1, _BLOCK // max(1, self.model.numbers_per_context, len(self.active)))
        for first in range(0, rows, size):
            yield slice(first, first + size)


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
        trials = display.table(
            self._title, ["trial", "adds", "weight", "reward", "arm", "tried at"], rows
        )
        said = "compared with what else was seen"
        return trials + display.table(said, ["column", "adds"], self._columns)


def in_words(context: Any) -> str:
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
