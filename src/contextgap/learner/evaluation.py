"""What any rule would earn, estimated from a log of trials that somebody else made."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.learner.learner import Learner
from contextgap.policy.card import Card


def score_of_picks(
    picks: Any,
    contexts: Any,
    arms: Any,
    rewards: Any,
    propensities: Any = None,
    *,
    minimize: bool = False,
) -> Card:
    """Return the score card of a rule that picks these arms at the logged contexts.

    A model of the rewards is learnt from the log and predicts each of them leave-one-out.
    """
    picked, tried = (_listed(each) for each in (picks, arms))
    checks.same_length(picks=len(picked), arms=len(tried))
    labels = list(dict.fromkeys([*sorted(set(tried), key=str), *picked]))
    learner = Learner(labels, seed=0, reward="minimize" if minimize else "maximize")
    learner.fit(contexts, tried, rewards)
    places = {label: place for place, label in enumerate(labels)}
    chosen = np.array([places[label] for label in picked], dtype=np.intp)
    return learner.freeze().scored(propensities, picks=chosen)


def _listed(labels: Any) -> list[Any]:
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)
