"""What a policy answers: arms, certificates, rankings, the expected regret, why, and score cards.

Arms are chosen block by block, so that memory stays bounded. Where only some arms are eligible,
rows with the same eligible arms are chosen for together: the answer is that for each row alone.

Why one arm is believed to be better than another is said by trials and by columns. A posterior mean
is a weighted sum of what trials gave, so the parts of all trials sum up to the difference of two
arms' means exactly.

A score card says what a policy would earn, estimated from the log it was learnt from. At every
logged context the recommender decides by beliefs from which the reward observed there is left out.
The direct method takes the posterior mean of the arm chosen. Its standard error combines the
model's uncertainty about the average (a posterior variance) and the random choice of logged
contexts. Where the logging propensities are known, the doubly robust estimator adds, at rows whose
logged arm is the one chosen, the prediction error divided by the propensity (Dudík, Langford and
Li, "Doubly Robust Policy Evaluation and Learning", 2011); it is unbiased whatever the model.

Leave-one-out predictions take time, so that a long log has them at some rows only, evenly spread.
Ordinary predictions are cheap, and give the same estimates of every arm, and of the arm with the
highest mean, at all rows. Their averages over all rows correct those over some rows (two-phase
sampling with regression: Cochran, "Sampling Techniques", 1977, chapter 12). That adds no bias,
whatever is wrong with ordinary predictions, and both estimates go together almost perfectly, so
that standard errors are those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contextgap.base import checks, display
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import Label, Mask, groups
from contextgap.base.components import lazy, study_import
from contextgap.beliefs import Belief
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import Model, Posterior, Predictor, expected_rewards
from contextgap.models.tuning.choose import errors_of_averages
from contextgap.models.tuning.criteria import repetitions
from contextgap.policy.state import Answer, Card, Estimate, Fallback, answer

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


QUICK = 2000
"""Leave-one-out predictions of a card that is computed again and again, such as a live page's."""
# Leave-one-out predictions may take so many operations, about 10 seconds at 12 billion a second.
# They are counted, not timed, so that the same log has the same card on every machine.
_OPERATIONS = 1.2e11
_FEWEST = 1000  # leave-one-out predictions, whatever they cost
_CORRELATED = 2000  # rows whose predictions' covariances are computed
# How much errors of rows go together, per leverage of a reward over its propensity. With 3, 95 %
# intervals held in 95 to 96 % of 300 simulated logs each of 90, 300 and 1000 rows.
_TOGETHER = 3.0
_ROUNDING = 1e-12  # relative to the largest reward; smaller differences mean nothing


@dataclass(frozen=True)
class _Rows:
    """Logged rows, each with a posterior from which its own reward was left out."""

    places: IntArray  # among all observations
    contexts: FloatArray
    arms: IntArray  # the model's indices
    rewards: FloatArray
    posterior: Posterior  # shape (rows, active arms)
    error: FloatArray  # reward minus prediction
    visits: IntArray  # repeated observations; 1 where every visit had noise of its own

    @property
    def alike(self) -> float:
        """How many rows are worth one with independent noise."""
        return len(self.visits) / float((1.0 / self.visits).sum())


@dataclass
class GivenEvidence:
    """What a recommender sees where a belief is given, such as a leave-one-out one."""

    belief: Belief
    contexts: FloatArray
    n_arms: int
    seed: int
    columns: Sequence[int]
    smallest_gap_in_history: Callable[[int | None], Choice]


class AllRows(NamedTuple):
    """Averages over all rows of a log of which the model keeps a sample."""

    rows: int  # how many rows there are
    logged: float  # the average reward
    direct: FloatArray  # what always choosing each arm in use would earn, by ordinary predictions
    robust: FloatArray | None  # corrected by importance-weighted errors; None without propensities


class _Control(NamedTuple):
    """Control variates at some rows, shape (rows, c), of average 0 over all ``rows``."""

    terms: FloatArray
    rows: int


def score(
    chooser: Chooser,
    labels: Sequence[Label],
    fallback: Fallback | None,
    probability: float | None,
    propensities: Any = None,
    rows: int | None = None,
    known: AllRows | None = None,
    picks: IntArray | None = None,
) -> Card:
    """Return the score card of a policy; of a sample of rows, given what is ``known`` of all.

    By default propensities are those logged with the picks, and ``_OPERATIONS`` limit ``rows``.
    Another policy's ``picks``, as places in ``active``, are scored by this model of the rewards.
    """
    model, active = chooser.model, chooser.active
    if len(model) < 2:
        raise ValueError(f"a score needs at least 2 rewards, got {len(model)}")
    noted = model.observed.propensities if propensities is None else propensities
    chances = read_propensities(noted, len(model.observed))
    if rows is None:  # one takes a few solves with each arm's factor
        sizes = np.square(np.asarray(model.support_sizes(active), dtype=np.float64))
        count = max(_FEWEST, int(_OPERATIONS / max(sizes.sum() + 2 * sizes.max(), 1.0)))
    else:
        count = checks.whole("rows", rows, least=2)
    everywhere = _rows_that_count(model, active)
    places = evenly(everywhere, count)
    eligible = eligible_at(model, active, places)
    rewards = _told(model)
    left, choice = _left_out(chooser, fallback, places, eligible, rewards, picks)
    picked = np.eye(len(active))[choice.arm]
    own = left.arms[:, None] == np.asarray(active)
    used = None if chances is None else chances[places]
    earned = _terms(left.posterior.mean, own, left.error, used)
    order = _fixed_order(earned, eligible)
    always = _in_order(order, eligible)
    shares = np.stack([picked, always, picked - always])
    ordinary = _Ordinary(chooser, everywhere, order, known)
    total = len(everywhere) if known is None else known.rows
    uncertain = _model_variance(model, active, left, shares)
    by_model = ordinary.control(left, None) if len(places) < total else None
    direct = _direct(left, shares, own, uncertain, by_model)
    weighted, found = None, direct
    if chances is not None and used is not None:
        by_both = ordinary.control(left, chances) if len(places) < total else None
        found = _doubly_robust(left, shares, own, used, uncertain, model.ridge, by_both)
        weighted = _self_normalised(left, picked * own, used, by_both)
    told = rewards[everywhere]
    average = float(told.mean()) if known is None else known.logged
    least = _ROUNDING * float(np.abs(told).max())
    card = Card(
        rewards=len(model),
        looked_at=len(places),
        error=_root_mean_square(left.error, least),
        error_of_averages=_root_mean_square(_errors_of_averages(model, rewards)[places], least),
        value=found[0],
        best_single_arm=labels[order[0]],
        best_single=found[1],
        gain=found[2],
        logged=Estimate(average, math.sqrt(told.var(ddof=1) * left.alike / total)),
        estimator="direct" if used is None else "doubly robust",
        certificate=float(np.median(np.maximum(choice.gap, 0.0))),
        probability=probability,
        warnings=(),
        direct=None if used is None else direct[0],
        weighted=weighted,
    )
    warnings = _warnings(card, chooser, labels, choice, told, everywhere, least)
    return replace(card, warnings=tuple(warnings))


def _told(model: Model) -> FloatArray:
    """Return all rewards told, and what is to be expected of those that are censored."""
    log, places = model.observed, model.observed.censored
    if not len(places):
        return log.rewards
    rewards = log.rewards.copy()
    limits, others = log.limits[places], model.cavities(places)
    rewards[places] = expected_rewards(limits, *others, model.ridge)
    return rewards


def read_propensities(propensities: Any, count: int) -> FloatArray | None:
    """Return the probabilities with which logged arms were chosen; None if they are unknown."""
    if propensities is None:
        return None
    chances = checks.finite_vector("propensities", propensities)
    if len(chances) != count:
        raise ValueError(f"propensities must be one per reward, {count}, got {len(chances)}")
    if not ((chances > 0) & (chances <= 1)).all():
        row = int(np.flatnonzero(~((chances > 0) & (chances <= 1)))[0])
        raise ValueError(
            f"propensities must be above 0 and at most 1, got {chances[row]:g} at row {row}"
        )
    return chances


def _in_order(order: IntArray, eligible: Mask) -> FloatArray:
    return np.asarray(np.eye(len(order))[order[eligible[:, order].argmax(axis=1)]])


def _terms(
    means: FloatArray, own: FloatArray, error: FloatArray, chances: FloatArray | None
) -> FloatArray:
    """Return what each arm earns at each row: its mean, doubly robust where chances are known."""
    return means if chances is None else means + own * (error / chances)[:, None]


def _direct(
    rows: _Rows,
    shares: FloatArray,
    own: FloatArray,
    uncertain: FloatArray,
    control: _Control | None,
) -> list[Estimate]:
    terms = np.einsum("kij,ij->ki", shares, rows.posterior.mean)
    values, variance = _averages(terms, rows.alike, control)
    missed = np.square([_missed(rows.error, share, own) for share in shares])
    return _estimates(values, variance + missed + uncertain)


def _doubly_robust(
    rows: _Rows,
    shares: FloatArray,
    own: FloatArray,
    chances: FloatArray,
    uncertain: FloatArray,
    ridge: float,
    control: _Control | None,
) -> list[Estimate]:
    """Return the same, corrected by prediction errors where the logged arm has a share.

    Every row's error is that of a model learnt from all others, so that errors of different rows go
    together: the more, the more a single reward weighs in predictions and in the average. The
    model's variance counts as much, which is all of it in short logs and nothing in long ones.
    """
    predicted = np.einsum("kij,ij->ki", shares, rows.posterior.mean)
    weights = (shares * own).sum(axis=2) / chances
    terms = predicted + weights * rows.error
    values, variance = _averages(terms, rows.alike, control)
    # Few rows count, those whose arm is the policy's. If none of them happens to contain one of the
    # rare large rewards, that must not be mistaken for certainty: errors of all rows are pooled.
    noise = np.square(weights).mean(axis=1) * np.square(rows.error).mean()
    plain = terms.var(axis=1, ddof=1)
    pooled = predicted.var(axis=1, ddof=1) + noise
    variance *= np.divide(pooled, plain, out=np.ones(len(plain)), where=pooled > plain)
    unknown = np.square(rows.posterior.std[own])
    leverage = unknown / (unknown + ridge) / chances[own.any(axis=1)]
    weight = min(1.0, _TOGETHER * float(leverage.mean())) if len(leverage) else 1.0
    return _estimates(values, variance + weight * uncertain)


def _self_normalised(
    rows: _Rows, matches: FloatArray, chances: FloatArray, control: _Control | None
) -> Estimate | None:
    """Return the importance-weighted average of the rewards of rows whose arm is the policy's."""
    weights = matches.sum(axis=1) / chances
    if not weights.any():
        return None
    average = float(weights @ rows.rewards / weights.sum())
    terms = average + weights * (rows.rewards - average) / weights.mean()
    return _estimates(*_averages(terms[None], rows.alike, control))[0]


def _estimates(values: FloatArray, variances: FloatArray) -> list[Estimate]:
    return [Estimate(float(x), math.sqrt(v)) for x, v in zip(values, variances, strict=True)]


def _averages(
    terms: FloatArray, alike: float, control: _Control | None
) -> tuple[FloatArray, FloatArray]:
    values = terms.mean(axis=1)
    if control is None:
        return values, terms.var(axis=1, ddof=1) * alike / terms.shape[1]
    found = control.terms.mean(axis=0)
    centred = control.terms - found
    slope = np.linalg.lstsq(centred, (terms - values[:, None]).T, rcond=None)[0]
    explained = (centred @ slope).T
    variance = (terms - explained).var(axis=1, ddof=1 + len(found)) / terms.shape[1]
    variance += explained.var(axis=1, ddof=1) / control.rows
    return values - found @ slope, variance * alike


@dataclass(frozen=True)
class _Ordinary:
    chooser: Chooser
    everywhere: IntArray
    order: IntArray
    known: AllRows | None

    def control(self, rows: _Rows, chances: FloatArray | None) -> _Control | None:
        """Return control variates at some rows; None where means are not cheap.

        They are estimates of every arm and, where the model keeps all rows, of two policies: the
        best single arm where it is eligible, and the highest mean.
        """
        terms = self._terms(rows.places, chances)
        if terms is None:
            return None
        if self.known is None:
            blocks = self.chooser.blocks(len(self.everywhere))
            parts = (self._terms(self.everywhere[each], chances) for each in blocks)
            total = sum(part.sum(axis=0) for part in parts if part is not None)
            return _Control(terms - total / len(self.everywhere), len(self.everywhere))
        averages = self.known.direct if chances is None else self.known.robust
        return None if averages is None else _Control(terms[:, :-2] - averages, self.known.rows)

    def _terms(self, places: IntArray, chances: FloatArray | None) -> FloatArray | None:
        model, active = self.chooser.model, self.chooser.active
        log, eligible = model.observed, eligible_at(model, active, places)
        blocks = self.chooser.blocks(len(places))
        found = [self.chooser.predictor.means(log.contexts[places[each]]) for each in blocks]
        if any(each is None for each in found):
            return None
        means = np.concatenate([each[0] for each in found if each is not None])
        own = log.arms[places][:, None] == np.asarray(active)
        error = np.where(own, log.rewards[places][:, None] - means, 0.0).sum(axis=1)
        earned = _terms(means, own, error, None if chances is None else chances[places])
        best = np.where(eligible, means, -np.inf).argmax(axis=1)
        policies = np.stack([_in_order(self.order, eligible), np.eye(len(active))[best]])
        return np.column_stack([earned, np.einsum("kij,ij->ik", policies, earned)])


def _warnings(
    card: Card,
    chooser: Chooser,
    labels: Sequence[Label],
    choice: Choice,
    told: FloatArray,
    everywhere: IntArray,
    least: float,
) -> Iterator[str]:
    log = chooser.model.observed
    if len(labels) > 1 and card.gain.value <= max(1.96 * card.gain.error, least):
        yield (
            f"no significant gain over always choosing {card.best_single_arm!r} (at 95 %): "
            "collect more rewards, or better contexts"
        )
    if card.explained <= 0:
        yield "rewards are predicted no better than by the arms' averages"
    shares = np.bincount(choice.arm, minlength=len(labels)) / len(choice.arm)
    for place, (arm, share) in enumerate(zip(chooser.active, shares.tolist(), strict=True)):
        if share > 0 and not log.count(arm):
            yield (
                f"{labels[place]!r} was never tried, and is chosen at {100 * share:.3g} % of the "
                "contexts: try it, or remove it before deploying"
            )
    away = np.square(told - told.mean())
    first = int(away.argmax())
    if away[first] > 0.5 * away.sum() and len(np.unique(told)) > 2:  # of two values, it may
        yield (
            f"one reward, number {everywhere[first] + 1}, carries "
            f"{100 * away[first] / away.sum():.0f} % of the variance: if it is a mistake, leave it "
            "out, since it hides what all others show"
        )
    if count := len(log.censored):
        yield (
            f"{100 * count / len(log):.3g} % of the rewards are censored; what the model expects "
            "of them stands for them"
        )


def _left_out(
    chooser: Chooser,
    fallback: Fallback | None,
    places: IntArray,
    eligible: Mask,
    rewards: FloatArray,
    picks: IntArray | None,
) -> tuple[_Rows, Choice]:
    model, log = chooser.model, chooser.model.observed
    contexts, told = log.contexts[places], rewards[places]
    visits, error, gap = visits_of(model)[places], told - log.rewards[places], np.empty(len(places))
    arm = np.empty(len(places), dtype=np.intp) if picks is None else picks[places]
    posteriors = []
    for block in chooser.blocks(len(places)):
        posterior, own_error = model.left_out(places[block], visits[block], chooser.active)
        error[block] += own_error
        posteriors.append(posterior)
        if picks is None:
            found = decided(chooser, fallback, posterior, contexts[block], eligible[block])
            arm[block], gap[block] = found.arm, found.gap
        else:
            gaps = Belief(posterior, chooser.rules.width).gap
            gap[block] = gaps[np.arange(len(gaps)), arm[block]]
    posterior = _joined(posteriors)
    rows = _Rows(places, contexts, log.arms[places], told, posterior, error, visits)
    return rows, Choice(arm, gap)


def _joined(parts: Sequence[Posterior]) -> Posterior:
    covariances = [each.covariance for each in parts if each.covariance is not None]
    return parts[0]._replace(
        mean=np.concatenate([each.mean for each in parts]),
        std=np.concatenate([each.std for each in parts]),
        covariance=np.concatenate(covariances) if covariances else None,
    )


def visits_of(model: Model) -> IntArray:
    """Return how often each observation was made: 1 where every visit had noise of its own."""
    log = model.observed
    visits = np.ones(len(log), dtype=np.intp)
    for arm, (contexts, rewards) in enumerate(zip(*log.by_arm(), strict=True)):
        counts = repetitions(contexts, rewards)
        if counts is None:
            return np.ones(len(log), dtype=np.intp)
        # Of a sample, observations that were repeated were so more often than it shows.
        often = np.round(counts * _standing_for(model, arm)).astype(np.intp)
        visits[log.places(arm)] = np.where(counts > 1, often, counts)
    return visits


def _standing_for(model: Model, arm: int) -> float:
    kept = len(model.observed.places(arm))
    return model.observed.count(arm) / kept if kept else 1.0


def _rows_that_count(model: Model, active: Sequence[int]) -> IntArray:
    places = np.arange(len(model.observed))
    if model.observed.has_eligible:
        places = places[model.observed.eligible(places)[:, list(active)].any(axis=1)]
    if len(places) < 2:
        raise ValueError(
            f"a score needs at least 2 rewards where an arm in use was eligible, got {len(places)}"
        )
    return places


def eligible_at(model: Model, active: Sequence[int], places: IntArray) -> Mask:
    if model.observed.has_eligible:
        return model.observed.eligible(places)[:, list(active)]
    return np.broadcast_to(True, (len(places), len(active)))


def _fixed_order(earned: FloatArray, eligible: Mask) -> IntArray:
    """Return the arms by what each earns on average where it was eligible, highest first."""
    often = eligible.sum(axis=0)
    total = np.where(eligible, earned, 0.0).sum(axis=0)
    average = np.divide(total, often, out=np.full(len(often), -np.inf), where=often > 0)
    return np.argsort(-average, kind="stable")


def decided(
    chooser: Chooser,
    fallback: Fallback | None,
    posterior: Posterior,
    contexts: FloatArray,
    eligible: Mask,
) -> Answer:
    """Decide by given posteriors among the arms eligible at each row, as the policy would."""
    arm, status = np.empty((2, len(contexts)), dtype=np.intp)
    gap = np.empty(len(contexts))
    for places, among in chooser.groups(eligible):
        columns = np.array(among.columns)
        evidence = GivenEvidence(
            belief=Belief(_some_arms(posterior, places, columns), among.rules.width),
            contexts=contexts[places],
            n_arms=len(columns),
            seed=among.seed,
            columns=among.columns,
            smallest_gap_in_history=among.evidence(contexts[places]).smallest_gap_in_history,
        )
        choice = among.rules.method.recommender.choose(evidence)
        found = answer(fallback, choice, evidence)
        arm[places], gap[places], status[places] = columns[found.arm], found.gap, found.status
    return Answer(arm, gap, status)


def _some_arms(posterior: Posterior, rows: IntArray | slice, columns: IntArray) -> Posterior:
    covariance = posterior.covariance
    if covariance is not None:
        covariance = covariance[rows][:, columns[:, None], columns]
    return posterior._replace(
        mean=posterior.mean[rows][:, columns],
        std=posterior.std[rows][:, columns],
        information_gain=np.broadcast_to(posterior.information_gain, posterior.mean.shape[1:])[
            columns
        ],
        covariance=covariance,
    )


def _errors_of_averages(model: Model, rewards: FloatArray) -> FloatArray:
    errors, overall = np.empty(len(model.observed)), float(rewards.mean())
    for places in map(model.observed.places, range(model.n_arms)):
        if len(places):
            errors[places] = errors_of_averages(rewards[places], overall)
    return errors


def _missed(error: FloatArray, shares: FloatArray, own: FloatArray) -> float:
    """Return the error of an average if all predictions are as wrong as where arms have shares."""
    weights = (shares * own).sum(axis=1)
    size = np.abs(weights).sum()
    return float(weights @ error / size * np.abs(shares).sum(axis=1).mean()) if size > 0 else 0.0


def _model_variance(
    model: Model, active: Sequence[int], rows: _Rows, shares: FloatArray
) -> FloatArray:
    """Return the variance of each average of expected rewards, weighted by shares.

    Rewards may be noisier where the policy goes, as clicks are where they are likely, so each one's
    own squared error replaces the ridge, as in sandwich estimators. A part stands for many rows.
    """
    part = evenly(np.arange(len(rows.arms)), _CORRELATED)
    shares = shares[:, part]
    total, moves = model.sums(rows.contexts[part], active, shares / len(part))
    power = np.square(moves)
    for arm in range(model.n_arms):
        own = part[rows.arms[part] == arm]
        seen = power[:, rows.places[own]]
        known = seen.sum(axis=1)
        # Visits that share their noise add up before they are squared.
        noise = seen @ (rows.visits[own] * np.square(rows.error[own]))
        noise = np.divide(noise, known, out=np.full(len(shares), model.ridge), where=known > 0)
        everywhere = power[:, model.observed.places(arm)].sum(axis=1) * _standing_for(model, arm)
        total += (noise - model.ridge) * everywhere
    return np.maximum(total, 0.0)


def _root_mean_square(values: FloatArray, least: float) -> float:
    """Return the root mean square; 0 up to ``least``, which is rounding."""
    found = math.sqrt(float(np.square(values).mean()))
    return found if found > least else 0.0
