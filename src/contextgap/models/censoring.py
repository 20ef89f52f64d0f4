"""Censored rewards: of some it is known only that they are at most a limit.

Such a reward says Φ((limit − f)/√noise) about the expected reward f. Expectation propagation puts a
normal observation in its place, a value with noise of its own (Minka, "Expectation Propagation for
Approximate Bayesian Inference", 2001). With μ and s² the mean and variance of f from all other
rewards, v = s² + noise, z = (limit − μ)/√v, λ = φ(z)/Φ(z) and κ = λ·(λ + z), which is between 0
and 1, the observation that leaves f with the moments it should have is

    value = μ − √v/(λ + z)        variance = (v − s²·κ)/κ

The variance is never below the noise: being at most a limit says less than being known.
"""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.kernels import Kernel
from contextgap.models.base import Model
from contextgap.models.choice import Relation, refitted_model, restated_model
from contextgap.models.observations import Observations

_GUESSES = 30  # steps of expectation maximisation
_SWEEPS = 6  # over all censored rewards, and how much of each change is made
_DAMPING = 0.8
_CLOSE = 1e-2  # changes of a stand-in, in units of what it says, that end the sweeps
_SURE = 38.0  # standard deviations below a limit, which says nothing then; it may be infinite
_MOST = 1e6  # noise in units of v: an observation that says nothing


def stand_in(
    limits: FloatArray, mean: FloatArray, variance: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the rewards that stand in for censored ones, and their noise besides the ridge.

    ``mean`` and ``variance`` are those of the expected rewards without them.
    """
    v, z, ratio = _standardised(limits, mean, variance, ridge)
    away = np.maximum(ratio + z, 1e-12)
    share = np.clip(ratio * away, 1.0 / _MOST, 1.0)
    noise = (v - variance * share) / share - ridge
    # At least what keeps apart the two kinds of rewards in a file.
    return mean - np.sqrt(v) / away, np.maximum(noise, 1e-9 * ridge)


def expected_rewards(
    limits: FloatArray, mean: FloatArray, variance: FloatArray, ridge: float
) -> FloatArray:
    """Return the rewards to be expected given that they are at most the limits."""
    v, _, ratio = _standardised(limits, mean, variance, ridge)
    return np.asarray(mean - np.sqrt(v) * ratio)


def _standardised(
    limits: FloatArray, mean: FloatArray, variance: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return v, z and φ(z)/Φ(z)."""
    from scipy.special import log_ndtr  # slow to load, and few rewards are censored

    v = np.asarray(np.maximum(variance, 0.0) + ridge)
    z = np.asarray(np.minimum((limits - mean) / np.sqrt(v), _SURE))
    return v, z, np.exp(-0.5 * np.square(z) - 0.5 * np.log(2 * np.pi) - log_ndtr(z))


def first_guess(log: Observations) -> Observations:
    """Return a log with what is expected of censored rewards if all have one normal distribution.

    Its mean and variance are the most probable ones, found by expectation maximisation. Limits in
    the place of rewards would make them look less different than they are, and hyperparameters
    that were learnt from them would find that confirmed.
    """
    places, limits = log.censored, log.limits[log.censored]
    known = np.delete(log.rewards, places)
    # What stands in for them now depends on how it came about; this does not.
    told = np.concatenate([known, limits[np.isfinite(limits)]])
    rewards, spread = np.concatenate([known, limits]), np.zeros(len(places))
    mean, variance = float(told.mean()), float(told.var()) or 1.0
    for _ in range(_GUESSES):
        whole = np.full(len(places), mean), np.full(len(places), variance)
        _, z, ratio = _standardised(limits, *whole, 0.0)
        value, spread = mean - np.sqrt(variance) * ratio, variance * (1 - ratio * (ratio + z))
        mean = float(np.concatenate([known, value]).mean())
        squares = np.square(known - mean).sum() + (np.square(value - mean) + spread).sum()
        variance = max(float(squares / len(rewards)), 1e-300)
    return log.restated(places, value, np.maximum(spread, 1e-9 * variance))


def settled_model(
    log: Observations,
    kernel: Kernel,
    ridge: float,
    prior_mean: float | str,
    alike: Relation | None = None,
    points: int | None = None,
) -> Model:
    """Return a model of logged observations, with stand-ins for censored rewards that suit it.

    They depend on what was told alone, so that a log that is replayed has the same.
    """
    places = log.censored
    log = first_guess(log) if len(places) else log
    model = refitted_model(log, kernel, ridge, prior_mean, alike, points)
    for _ in range(_SWEEPS if len(places) else 0):
        log = model.observed
        mean, variance = model.cavities(places)
        value, noise = stand_in(log.limits[places], mean, variance, ridge)
        old, new = 1 / (ridge + log.noise[places]), 1 / (ridge + noise)
        precision = old + _DAMPING * (new - old)
        pulls = old * log.rewards[places], new * value
        pull = pulls[0] + _DAMPING * (pulls[1] - pulls[0])
        v = variance + ridge
        changed = np.abs(precision - old) * v + np.abs(pull - pulls[0]) * np.sqrt(v)
        told = places, pull / precision, np.maximum(1 / precision - ridge, 1e-9 * ridge)
        model = restated_model(model, log.restated(*told), alike, points)
        if changed.max() < _CLOSE:
            break
    return model
