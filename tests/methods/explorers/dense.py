"""Textbook answers for explorers: dense solves, moments made by hand."""

from __future__ import annotations

import numpy as np

from contextgap.beliefs import Belief, PosteriorWidth
from contextgap.methods.explorers import LookAhead, Moment
from contextgap.models import Posterior


def moment_of(mean, std, seed=0):
    """A moment in which this is believed, with half width = std."""
    mean, std = np.array(mean, dtype=float), np.array(std, dtype=float)
    posterior = Posterior(mean, std, np.zeros(len(mean)), 0.1, len(mean))
    pulls = np.ones(len(mean), dtype=int)
    rng = np.random.default_rng(seed)
    return Moment(lambda: Belief(posterior, PosteriorWidth(1.0)), pulls, 1, rng)


def look_ahead(kernel, ridge, prior, told, waiting, n_arms, context, reference):
    """What trying each arm would teach, by solving the full system.

    ``told`` holds (context, arm, reward), ``waiting`` (context, arm) of picks still open.
    """
    points = np.vstack([reference.reshape(-1, len(context)), context])
    mean, move = np.empty((2, len(points), n_arms))
    for arm in range(n_arms):
        seen = np.array([x for x, a, _ in told if a == arm]).reshape(-1, len(context))
        late = np.array([x for x, a in waiting if a == arm]).reshape(-1, len(context))
        rewards = np.array([r for _, a, r in told if a == arm])
        weights = _solve(kernel, ridge, seen, rewards - prior)
        mean[:, arm] = prior + kernel(points, seen) @ weights if len(seen) else prior
        both = np.vstack([seen, late])
        covariance = kernel(points, context[None])[:, 0]
        if len(both):
            solved = _solve(kernel, ridge, both, kernel(both, context[None])[:, 0])
            covariance = covariance - kernel(points, both) @ solved
        move[:, arm] = covariance / np.sqrt(covariance[-1] + ridge)
    return LookAhead(mean, move)


def _solve(kernel, ridge, contexts, right):
    if not len(contexts):
        return right
    return np.linalg.solve(kernel(contexts, contexts) + ridge * np.eye(len(contexts)), right)
