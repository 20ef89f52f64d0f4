"""When exploring may end, how far it is, and about how long it will take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import evenly
from contextgap.learner import Learner, StoppingRule
from contextgap.policy.policy import Policy
from contextgap.tables.contexts import Encoded
from contextgap.team.campaign.payloads import decode_contexts, encode_contexts

SAMPLE = 200
"""Contexts that stand for all, where none were given."""

_GROWTH = 1.05  # by which the number of rewards grows between two records of progress
_FEW = 20  # rewards, up to which every one is a step
_FIRST = math.floor(math.log(_FEW) / math.log(_GROWTH))
_QUANTILES = (0.1, 0.5, 0.9)
_SHARE = 0.95


def encode_goal(goal: StoppingRule | None) -> dict[str, Any] | None:
    """Return a stopping rule as plain values."""
    if goal is None:
        return None
    if goal.arms is not None:
        raise ValueError("goal must be about all arms, which may come and go; leave out its arms")
    if goal.average:
        raise ValueError("goal must be about a share of contexts; leave out average=True")
    reference = encode_contexts(goal.given, called="reference")
    return {"tolerance": goal.tolerance, "share": goal.share, "reference": reference}


def decode_goal(encoded: Mapping[str, Any] | None) -> StoppingRule | None:
    """Reverse ``encode_goal``."""
    if encoded is None:
        return None
    reference = decode_contexts(encoded["reference"])
    return StoppingRule(encoded["tolerance"], share=encoded["share"], reference=reference)


def goal_for(learner: Learner, goal: StoppingRule | None) -> StoppingRule | None:
    """Return the goal, or if there is none, that arms are told apart at the contexts seen.

    None before the first reward.
    """
    if goal is not None or not len(learner.state.model):
        return goal
    seen = learner.state.model.observed.contexts
    reference = Encoded(seen[evenly(np.arange(len(seen)), SAMPLE)], learner.state.schema)
    return StoppingRule(0.0, share=_SHARE, reference=reference)


def wanted_share(goal: StoppingRule | None) -> float:
    """Return the share of contexts to be settled."""
    return _SHARE if goal is None else goal.share


def steps(rewards: int) -> int:
    """Return how many steps of progress so many rewards have made: each, then one for each 5 %.

    Progress is recorded at each.
    """
    if rewards <= _FEW:
        return rewards
    return _FEW + math.floor(math.log(rewards) / math.log(_GROWTH)) - _FIRST


def progress(learner: Learner, goal: StoppingRule | None) -> dict[str, Any]:
    """Return how far the exploration is, as plain values."""
    rule = goal_for(learner, goal)
    found: dict[str, Any] = {"rewards": len(learner.state.model), "settled": None}
    if rule is not None:
        schema = learner.state.schema
        reference = Encoded(rule.contexts_for(schema), schema)
        bounds = Policy(learner.state.policy()).certificate(reference).bound
        quantiles = np.quantile(bounds, _QUANTILES).tolist()
        found["settled"] = rule.settled(bounds)
        found["bounds"] = [bound if math.isfinite(bound) else None for bound in quantiles]
    return found


def asks_left(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], share: float
) -> int | None:
    """Return about how many more rewards are needed, at the rate since there were half as many.

    None where that cannot be told: before the first rewards, or if the settled share does not grow.
    """
    if now["settled"] is None:
        return None
    if now["settled"] >= share:
        return 0
    early = [each for each in before if each["rewards"] <= now["rewards"] / 2]
    if not early or early[-1]["settled"] is None:
        return None
    gained = now["settled"] - early[-1]["settled"]
    if gained <= 0:
        return None
    rate = gained / (now["rewards"] - early[-1]["rewards"])
    left: float = (share - now["settled"]) / rate
    return math.ceil(left)
