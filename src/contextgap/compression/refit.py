"""A policy made of points and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg.blas import dtpmv

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.methods import Method
from contextgap.models import ExactModel
from contextgap.policy import Policy
from contextgap.recommenders import Recommender


def refitted(
    policy: Policy,
    recommender: Recommender,
    contexts: FloatArray,
    arm: IntArray,
    weights: FloatArray,
) -> Policy:
    """Return a policy whose means are prior + weights·k(points, x).

    The ordinary posterior mean is that if the rewards are prior + (K + ridge·I)·weights. They were
    never observed, so nothing is promised any more (``Rules.hindsight``).
    ``arm`` holds the points' arms as indices into ``policy.arms``.
    """
    model, prior = policy._model, policy.prior_mean
    place = np.asarray(policy._active, dtype=np.intp)[arm]
    trial = ExactModel(model.kernel, model.ridge, model.n_arms, prior)
    rewards = np.full(len(arm), prior)
    if len(arm):
        trial.observe_many(contexts, place, rewards)
        rewards = rewards + _through_factor(trial, place, weights)
    final = ExactModel(model.kernel, model.ridge, model.n_arms, prior)
    if len(arm):
        final.observe_many(contexts, place, rewards)
    method = Method(explorer=policy.method.explorer, recommender=recommender)
    return Policy(
        model=final,
        labels=policy._labels,
        active=policy._active,
        rules=replace(policy._rules, method=method, hindsight=True),
        schema=policy._schema,
        seed=policy._seed,
    )


def _through_factor(model: ExactModel, place: IntArray, weights: FloatArray) -> FloatArray:
    """L·Lᵀ·weights of each arm.

    Where K is nearly singular, L·Lᵀ is not K + ridge·I to the last digit, and the factor is what
    the mean comes from.
    """
    arrays = model.arrays()
    product = np.empty_like(weights)
    for one in np.unique(place):
        own, packed = place == one, arrays[f"factor{one}"]
        size = int(own.sum())
        # Rows of L are columns of its packed transpose.
        product[own] = dtpmv(size, packed, dtpmv(size, packed, weights[own]), trans=1)
    return product
