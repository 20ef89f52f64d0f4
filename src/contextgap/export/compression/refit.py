"""A policy made of points and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.methods.method import Method
from contextgap.methods.recommenders import Recommender
from contextgap.models import weighted_model
from contextgap.policy import Policy


def refitted(
    policy: Policy,
    recommender: Recommender,
    contexts: FloatArray,
    arm: IntArray,
    weights: FloatArray,
) -> Policy:
    """Return a policy whose means are prior + weights·k(points, x).

    The ordinary posterior mean is that if the rewards are prior + (K + ridge·I)·weights. They were
    never observed, so nothing is promised any more (``Rules.tuned_on_rewards``).
    ``arm`` holds the points' arms as indices into ``policy.arms``.
    """
    place = np.asarray(policy.state.active, dtype=np.intp)[arm]
    final = weighted_model(policy.state.model, contexts, place, weights)
    method = Method(explorer=policy.method.explorer, recommender=recommender)
    rules = replace(policy.state.rules, method=method, tuned_on_rewards=True)
    return Policy(
        replace(policy.state, model=final, rules=rules, fallback=None, card=None, compression=None)
    )
