"""What a model of the arms' rewards offers.

Every arm has a kernel ridge regression of its own, equivalently a Gaussian-process posterior:
with the arm's contexts X and rewards y, K = k(X, X) and k = k(X, x) (section 4.1 of "Simple Regret
Minimization for Contextual Bandits", which this library follows throughout),

    mean(x) = m + kᵀ(K + ridge·I)⁻¹(y − m)        std²(x) = k(x, x) − kᵀ(K + ridge·I)⁻¹k

where m is the prior mean, 0 in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from contextgap.base.arrays import FloatArray, IntArray


class Posterior(NamedTuple):
    """What a model knows about some arms at some contexts.

    Parameters
    ----------
    mean, std
        Shape (arms,) for one context, (contexts, arms) for several.
    information_gain
        ½ ln det(I + K/ridge) of each arm, broadcastable against ``mean``.
    ridge
        The regularisation the posterior was computed with.
    n_arms
        How many arms the model has, retired ones and those not asked about included: what
        promises about all arms at once must share their failure probability over.
    """

    mean: FloatArray
    std: FloatArray
    information_gain: FloatArray
    ridge: float
    n_arms: int


class Model(Protocol):
    """Posteriors of several arms that share a kernel and a ridge.

    ``arms`` are indices; ``contexts`` have shape (m, d); a ``context`` has shape (d,).
    """

    def add_arm(self) -> None:
        """Add an arm without observations, with the next index."""

    def observe(self, context: FloatArray, arm: int, reward: float) -> None:
        """Take in one reward."""

    def observe_many(self, contexts: FloatArray, arms: IntArray, rewards: FloatArray) -> None:
        """Take in many rewards at once; the posterior is that of one ``observe`` for each."""

    def posterior(self, contexts: FloatArray, arms: Sequence[int]) -> Posterior:
        """Return the posterior of ``arms`` at every row of ``contexts``."""
