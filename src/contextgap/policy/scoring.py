"""Computes score cards: what a policy would earn, estimated from the log it was learnt from.

At every logged context the recommender decides by beliefs from which the reward observed there is
left out. The direct method takes the posterior mean of the arm chosen. Its standard error combines
the model's uncertainty about the average (a posterior variance) and the random choice of logged
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.labels import Label, Mask
from contextgap.beliefs import Belief
from contextgap.methods.recommenders.history import Choice
from contextgap.models import Model, Posterior, expected_rewards
from contextgap.models.tuning.choose import errors_of_averages
from contextgap.models.tuning.criteria import repetitions
from contextgap.policy.answers import Chooser
from contextgap.policy.state import Answer, Card, Estimate, Fallback, answer

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
    """Return shares of arms if each row has the first of an order that is eligible there."""
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
    """Estimates by ordinary predictions, at rows whose number may be large."""

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
    """Leave out the rewards at some places, block by block, and decide there."""
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
