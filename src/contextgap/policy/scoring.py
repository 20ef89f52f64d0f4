"""Computes score cards: what a policy would earn, by leaving out every reward in turn.

At every logged context the recommender decides by beliefs from which the reward observed there is
left out. The direct method takes the posterior mean of the arm chosen. Its standard error combines
the model's uncertainty about the average (a posterior variance) and the random choice of logged
contexts. Where the logging propensities are known, the doubly robust estimator adds, at rows whose
logged arm is the one chosen, the prediction error divided by the propensity (Dudík, Langford and
Li, "Doubly Robust Policy Evaluation and Learning", 2011); it is unbiased whatever the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.eligible import Mask
from contextgap.base.labels import Label
from contextgap.belief import Belief
from contextgap.models import Model, Posterior
from contextgap.policy.card import Card, Estimate
from contextgap.policy.choosing import Chooser
from contextgap.policy.fallback import Fallback, answer
from contextgap.recommenders.history import Choice
from contextgap.tuning.choose import errors_of_averages
from contextgap.tuning.sample import evenly, repetitions

_MOST = 2000  # rows looked at
_ROUNDING = 1e-12  # relative to the largest reward; smaller differences mean nothing


@dataclass(frozen=True)
class _Rows:
    """Logged rows, each with a posterior from which its own reward was left out.

    ``places`` are positions among all observations, ``arms`` the model's indices, and the posterior
    has shape (rows, active arms). ``error`` is reward minus prediction; ``visits`` counts repeated
    observations, and is 1 where every visit had noise of its own.
    """

    places: IntArray
    contexts: FloatArray
    arms: IntArray
    rewards: FloatArray
    posterior: Posterior
    error: FloatArray
    visits: IntArray

    @property
    def independent(self) -> float:
        """How many rows with independent noise these are worth."""
        return float((1.0 / self.visits).sum())


@dataclass
class _Evidence:
    """What a recommender sees at logged rows; only the look-back sees all rewards."""

    belief: Belief
    contexts: FloatArray
    n_arms: int
    seed: int
    columns: Sequence[int]
    smallest_gap_in_history: Callable[[int | None], Choice]


def score(
    chooser: Chooser,
    labels: Sequence[Label],
    fallback: Fallback | None,
    probability: float | None,
    propensities: Any = None,
) -> Card:
    """Return the score card of a policy.

    ``labels`` are those of the chooser's arms, ``probability`` is that with which certificates
    hold, and ``propensities`` are the probabilities with which the logged arms were chosen, in the
    order in which rewards were told, or None for those that were logged with the picks, if all
    were. At every row the policy chooses among the
    arms that were eligible there; rows at which none of them is in use any more do not count. Where
    the model knows a sample of its observations only, the card rests on these.
    """
    model, active = chooser.model, chooser.active
    if len(model) < 2:
        raise ValueError(f"a score needs at least 2 rewards, got {len(model)}")
    logged = model.observed.propensities if propensities is None else propensities
    chances = _read_propensities(logged, len(model.observed))
    places, eligible = _rows_to_decide(model, active)
    rows = _left_out(model, active, places)
    choice = _decide(chooser, fallback, rows, eligible)
    picked = np.eye(len(active))[choice.arm]
    own = rows.arms[:, None] == np.asarray(active)
    earned = rows.posterior.mean
    if chances is not None:
        earned = earned + own * (rows.error / chances[places])[:, None]
    order = _fixed_order(earned, eligible)
    # Where the best single arm was not eligible, the next in order stands in for it.
    always = np.eye(len(active))[order[eligible[:, order].argmax(axis=1)]]
    shares = np.stack([picked, always, picked - always])
    values = np.einsum("kij,ij->ki", shares, earned)
    variance = values.var(axis=1, ddof=1) / rows.independent
    if chances is None:
        variance += np.square([_missed(rows.error, share, own) for share in shares])
    else:
        variance = np.maximum(variance, _pooled_variance(rows, shares, own, chances[places]))
    # All rows share one model: it predicts for the direct method and decides for the other, so that
    # errors of different rows go together.
    variance += _model_variance(model, active, rows, shares)
    value, best_single, gain = (
        Estimate(float(average), math.sqrt(each))
        for average, each in zip(values.mean(axis=1), variance, strict=True)
    )
    logged = Estimate(
        float(rows.rewards.mean()), math.sqrt(rows.rewards.var(ddof=1) / rows.independent)
    )
    least = _ROUNDING * float(np.abs(rows.rewards).max())
    card = Card(
        rewards=len(model),
        looked_at=len(places),
        error=_root_mean_square(rows.error, least),
        error_of_averages=_root_mean_square(_errors_of_averages(model)[places], least),
        value=value,
        best_single_arm=labels[order[0]],
        best_single=best_single,
        gain=gain,
        logged=logged,
        estimator="direct" if chances is None else "doubly robust",
        certificate=float(np.median(np.maximum(choice.gap, 0.0))),
        probability=probability,
        warnings=(),
    )
    warnings = [
        *_warnings(card, len(active), least),
        *_untried(model, active, labels, choice),
        *_outlier(rows.rewards, places),
    ]
    return replace(card, warnings=tuple(warnings))


def _untried(
    model: Model, active: Sequence[int], labels: Sequence[Label], choice: Choice
) -> list[str]:
    """Return a warning for each arm that is chosen though it has no rewards."""
    shares = np.bincount(choice.arm, minlength=len(active)) / len(choice.arm)
    return [
        f"{labels[place]!r} was never tried, and is chosen at {100 * share:.2g} % of the contexts: "
        "try it, or remove it before deploying"
        for place, (arm, share) in enumerate(zip(active, shares.tolist(), strict=True))
        if share > 0 and not model.observed.count(arm)
    ]


def _outlier(rewards: FloatArray, places: IntArray) -> list[str]:
    """Return a warning if one reward counts more than all others; of two values, it may."""
    away = np.square(rewards - rewards.mean())
    first = int(away.argmax())
    if not away[first] > 0.5 * away.sum() or len(np.unique(rewards)) < 3:
        return []
    share = f"{100 * away[first] / away.sum():.0f} %"
    return [
        f"one reward, number {places[first] + 1} of those told, carries {share} of the variance: "
        "if it is a mistake, leave it out, since it hides what all others show"
    ]


def _warnings(card: Card, n_arms: int, least: float) -> list[str]:
    """Return what the estimates warn of; gains up to ``least`` are rounding."""
    warnings = []
    if n_arms > 1 and card.gain.value <= max(1.96 * card.gain.error, least):
        told = f"the policy cannot be told apart from always choosing {card.best_single_arm!r}"
        if card.looked_at < card.rewards:
            told += f" by the {card.looked_at} rewards looked at; try both on contexts of their own"
        else:
            told += ": collect more rewards, or better contexts"
        warnings.append(told)
    if card.explained <= 0:
        warnings.append("rewards are predicted no better than by the arms' averages")
    return warnings


def _left_out(model: Model, active: Sequence[int], places: IntArray) -> _Rows:
    log, visits = model.observed, _visits(model)[places]
    posterior, error = model.left_out(places, visits, active)
    arms, rewards = log.arms[places], log.rewards[places]
    return _Rows(places, log.contexts[places], arms, rewards, posterior, error, visits)


def _visits(model: Model) -> IntArray:
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
    """Return how many observations of an arm each one stands for that is still known."""
    kept = len(model.observed.places(arm))
    return model.observed.count(arm) / kept if kept else 1.0


def _rows_to_decide(model: Model, active: Sequence[int]) -> tuple[IntArray, Mask]:
    """Return the observations to look at, and which of the active arms were eligible there."""
    count = len(model.observed)
    places, everywhere = np.arange(count), np.broadcast_to(True, (count, len(active)))
    if not model.observed.has_eligible:
        places = evenly(places, _MOST)
        return places, everywhere[: len(places)]
    eligible = model.observed.eligible(places)[:, list(active)]
    places = evenly(np.flatnonzero(eligible.any(axis=1)), _MOST)
    if len(places) < 2:
        raise ValueError(
            "a score needs at least 2 rewards told where an arm in use was eligible, "
            f"got {len(places)}"
        )
    return places, eligible[places]


def _fixed_order(earned: FloatArray, eligible: Mask) -> IntArray:
    """Return the arms by what each earns on average where it was eligible, highest first."""
    often = eligible.sum(axis=0)
    total = np.where(eligible, earned, 0.0).sum(axis=0)
    average = np.divide(total, often, out=np.full(len(often), -np.inf), where=often > 0)
    return np.argsort(-average, kind="stable")


def _decide(chooser: Chooser, fallback: Fallback | None, rows: _Rows, eligible: Mask) -> Choice:
    """Decide at every row among the arms eligible there, as the policy would."""
    arm, gap = np.empty(len(rows.arms), dtype=np.intp), np.empty(len(rows.arms))
    for places, among in chooser.groups(eligible):
        columns = np.array(among.columns)
        evidence = _Evidence(
            belief=Belief(_some_arms(rows.posterior, places, columns), among.rules.width),
            contexts=rows.contexts[places],
            n_arms=len(columns),
            seed=among.seed,
            columns=among.columns,
            smallest_gap_in_history=among.evidence(rows.contexts[places]).smallest_gap_in_history,
        )
        choice = among.rules.method.recommender.choose(evidence)
        found = answer(fallback, choice, evidence)
        arm[places], gap[places] = columns[found.arm], found.gap
    return Choice(arm, gap)


def _some_arms(posterior: Posterior, rows: IntArray | slice, columns: IntArray) -> Posterior:
    """Return the posterior of some arms at some rows."""
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


def _errors_of_averages(model: Model) -> FloatArray:
    """Return each reward minus the average of its arm's others, for every observation in order."""
    errors, overall = np.empty(len(model.observed)), float(model.observed.rewards.mean())
    for arm, rewards in enumerate(model.observed.by_arm()[1]):
        if len(rewards):
            errors[model.observed.places(arm)] = errors_of_averages(rewards, overall)
    return errors


def _missed(error: FloatArray, shares: FloatArray, own: FloatArray) -> float:
    """Return the error of an average if predictions are wrong everywhere as they are on some rows.

    These are the rows whose logged arm has a share. Noise apart, this is how wrong the model is
    where it matters.
    """
    weights = (shares * own).sum(axis=1)
    size = np.abs(weights).sum()
    return float(weights @ error / size * np.abs(shares).sum(axis=1).mean()) if size > 0 else 0.0


def _pooled_variance(
    rows: _Rows, shares: FloatArray, own: FloatArray, chances: FloatArray
) -> FloatArray:
    """Return the variance of doubly robust averages if all predictions were equally wrong.

    Few rows count, those whose arm is the policy's. If none of them happens to contain one of the
    rare large rewards, that must not be mistaken for certainty.
    """
    values = np.einsum("kij,ij->ki", shares, rows.posterior.mean)
    counted = np.square((shares * own).sum(axis=2) / chances)
    noise = counted.mean(axis=1) * np.square(rows.error).mean()
    return np.asarray((values.var(axis=1, ddof=1) + noise) / rows.independent)


def _model_variance(
    model: Model, active: Sequence[int], rows: _Rows, shares: FloatArray
) -> FloatArray:
    """Return the variance of each average of expected rewards, weighted by shares.

    A posterior variance takes the ridge as every reward's noise. Rewards may be noisier where the
    policy goes, as clicks are where they are likely, so each reward's own squared error replaces
    the ridge, as in sandwich estimators.
    """
    total, moves = model.sums(rows.contexts, active, shares / len(rows.arms))
    power = np.square(moves)
    for arm in range(model.n_arms):
        own = np.flatnonzero(rows.arms == arm)
        seen = power[:, rows.places[own]]
        known = seen.sum(axis=1)
        # Visits that share their noise add up before they are squared.
        noise = seen @ (rows.visits[own] * np.square(rows.error[own]))
        noise = np.divide(noise, known, out=np.full(len(shares), model.ridge), where=known > 0)
        everywhere = power[:, model.observed.places(arm)].sum(axis=1) * _standing_for(model, arm)
        total += (noise - model.ridge) * everywhere
    return np.maximum(total, 0.0)


def _read_propensities(propensities: Any, count: int) -> FloatArray | None:
    if propensities is None:
        return None
    chances = checks.finite_vector("propensities", propensities)
    if len(chances) != count:
        raise ValueError(f"propensities must be one per reward told, {count}, got {len(chances)}")
    if not ((chances > 0) & (chances <= 1)).all():
        row = int(np.flatnonzero(~((chances > 0) & (chances <= 1)))[0])
        raise ValueError(
            f"propensities must be above 0 and at most 1, got {chances[row]:g} at row {row}"
        )
    return chances


def _root_mean_square(values: FloatArray, least: float) -> float:
    """Return the root mean square; 0 up to ``least``, which is rounding."""
    found = math.sqrt(float(np.square(values).mean()))
    return found if found > least else 0.0
