"""Score cards: what a policy would earn, from rewards each left out of what decides about it.

At every logged context the recommender decides by beliefs from which the reward heard there is left
out. The direct method takes the mean believed of the arm decided on. Its standard error joins what
the model does not know of the average (a posterior variance) and the chance in which contexts were
logged. Where the logging's propensities are known the doubly robust estimator adds, at rows whose
arm is the one decided on, the prediction's error over the propensity (Dudík, Langford and Li,
"Doubly Robust Policy Evaluation and Learning", 2011); it is unbiased whatever the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap import checks
from contextgap.arrays import FloatArray, IntArray
from contextgap.belief import Belief
from contextgap.card import Card, Estimate
from contextgap.history import Choice
from contextgap.labels import Label
from contextgap.models import ExactModel, Posterior
from contextgap.recommenders import ModelEvidence
from contextgap.state import Rules
from contextgap.tuning.choose import errors_of_averages
from contextgap.tuning.sample import evenly, repetitions

_MOST = 2000  # rows looked at


@dataclass(frozen=True)
class _Rows:
    """Logged rows, each with beliefs that know nothing of its own reward.

    Parameters
    ----------
    contexts, arms, rewards
        What was logged; arms are the model's indices.
    posterior
        Of the active arms, shape (rows, active arms).
    error
        What the prediction of each reward missed.
    independent
        How many rows with noise of their own these are worth.
    """

    contexts: FloatArray
    arms: IntArray
    rewards: FloatArray
    posterior: Posterior
    error: FloatArray
    independent: float


@dataclass
class _Evidence:
    """What a recommender sees at logged rows; only the look-back sees all rewards."""

    belief: Belief
    contexts: FloatArray
    n_arms: int
    seed: int
    smallest_gap_in_history: Callable[[int | None], Choice]


def score(
    model: ExactModel,
    labels: Sequence[Label],
    active: Sequence[int],
    rules: Rules,
    seed: int,
    probability: float | None,
    propensities: Any = None,
) -> Card:
    """Return the score card of a policy.

    Parameters
    ----------
    model
        What was observed.
    labels, active
        All arms, and the indices of those to choose from.
    rules
        How to deploy.
    seed
        For rules that draw at random.
    probability
        With which probability certificates hold.
    propensities
        With which probability each logged arm was chosen, in the order in which rewards were told;
        None if that is not known.
    """
    if len(model) < 2:
        raise ValueError(f"a score needs at least 2 rewards, got {len(model)}")
    chances = _read_propensities(propensities, len(model))
    places = evenly(np.arange(len(model)), _MOST)
    rows = _left_out(model, active, places)
    choice = _decide(model, active, rules, seed, rows)
    picked = np.eye(len(active))[choice.arm]
    mean = rows.posterior.mean
    if chances is None:
        own = np.zeros_like(mean)
    else:
        same = rows.arms[:, None] == np.asarray(active)
        own = same * (rows.error / chances[places])[:, None]
    earned = mean + own  # an unbiased guess of every arm's expected reward, where chances are known
    single = int(earned.mean(axis=0).argmax())
    shares = np.stack([picked, np.eye(len(active))[np.full(len(rows.arms), single)]])
    shares = np.concatenate(
        [shares, shares[:1] - shares[1:]]
    )  # policy, single arm, their difference
    values = np.einsum("kij,ij->ki", shares, earned)
    unknown = _model_variance(model, active, rows, shares) if chances is None else np.zeros(3)
    spread = values.var(axis=1, ddof=1) / rows.independent
    value, best_single, gain = (
        Estimate(float(average), math.sqrt(variance))
        for average, variance in zip(values.mean(axis=1), unknown + spread, strict=True)
    )
    logged = Estimate(
        float(rows.rewards.mean()), math.sqrt(rows.rewards.var(ddof=1) / rows.independent)
    )
    overall = float(model.rewards.mean())
    averages = [errors_of_averages(y, overall) for y in model.by_arm()[1]]
    card = Card(
        rewards=len(model),
        looked_at=len(places),
        error=_root_mean_square(rows.error),
        error_of_averages=_root_mean_square(np.concatenate(averages)),
        value=value,
        best_single_arm=labels[active[single]],
        best_single=best_single,
        gain=gain,
        logged=logged,
        estimator="direct" if chances is None else "doubly robust",
        certificate=float(np.median(np.maximum(choice.gap, 0.0))),
        probability=probability,
        warnings=(),
    )
    return replace(card, warnings=_warnings(card, len(active)))


def _warnings(card: Card, n_arms: int) -> tuple[str, ...]:
    warnings = []
    if n_arms > 1 and card.gain.value <= 1.96 * card.gain.error:
        warnings.append(
            "the policy cannot be told apart from always choosing "
            f"{card.best_single_arm!r}: collect more rewards, or better contexts"
        )
    if card.explained <= 0:
        warnings.append("rewards are predicted no better than by the arms' averages")
    return tuple(warnings)


def _left_out(model: ExactModel, active: Sequence[int], places: IntArray) -> _Rows:
    contexts, rewards = model.contexts[places], model.rewards[places]
    arms = model.sequence[places]
    posterior = model.posterior(contexts, active)
    visits = _visits(model)
    error = np.empty(len(places))
    columns = {arm: column for column, arm in enumerate(active)}
    for arm in np.unique(arms).tolist():
        rows = np.flatnonzero(arms == arm)
        alone = model.left_out(arm, places[rows], visits[places[rows]])
        error[rows] = alone.error
        if arm in columns:
            posterior.mean[rows, columns[arm]] = rewards[rows] - alone.error
            posterior.std[rows, columns[arm]] = np.sqrt(alone.variance)
    independent = float((1.0 / visits[places]).sum())
    return _Rows(contexts, arms, rewards, posterior, error, independent)


def _visits(model: ExactModel) -> IntArray:
    """Return how often each observation was made: 1 where every visit had noise of its own."""
    visits = np.ones(len(model), dtype=np.intp)
    for arm, (contexts, rewards) in enumerate(zip(*model.by_arm(), strict=True)):
        counts = repetitions(contexts, rewards)
        if counts is None:
            return np.ones(len(model), dtype=np.intp)
        visits[model.sequence == arm] = counts
    return visits


def _decide(
    model: ExactModel, active: Sequence[int], rules: Rules, seed: int, rows: _Rows
) -> Choice:
    burn_in_end = rules.burn_in * len(active)
    history = ModelEvidence(model, rows.contexts, active, rules.width, burn_in_end, seed)
    evidence = _Evidence(
        belief=Belief(rows.posterior, rules.width),
        contexts=rows.contexts,
        n_arms=len(active),
        seed=seed,
        smallest_gap_in_history=history.smallest_gap_in_history,
    )
    return rules.method.recommender.choose(evidence)


def _model_variance(
    model: ExactModel, active: Sequence[int], rows: _Rows, shares: FloatArray
) -> FloatArray:
    """Return the posterior variance of each average of expected rewards, weighted by shares."""
    gram = model.kernel(rows.contexts, rows.contexts)
    weights = shares / len(rows.arms)
    each = [
        model.variance_of_sums(arm, rows.contexts, weights[:, :, column].T, gram)
        for column, arm in enumerate(active)
    ]
    return np.asarray(np.sum(each, axis=0))


def _read_propensities(propensities: Any, count: int) -> FloatArray | None:
    if propensities is None:
        return None
    chances = checks.finite_vector("propensities", propensities)
    if len(chances) != count:
        raise ValueError(f"propensities must be one per reward told, {count}, got {len(chances)}")
    if not ((chances > 0) & (chances <= 1)).all():
        wrong = chances[~((chances > 0) & (chances <= 1))][0]
        raise ValueError(f"propensities must be above 0 and at most 1, got {wrong:g}")
    return chances


def _root_mean_square(values: FloatArray) -> float:
    return math.sqrt(float(np.square(values).mean()))
