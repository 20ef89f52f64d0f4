"""Progress of a campaign: its goal, and how far exploring is.

Progress is recorded in the log as rewards come, and computed anew for a fresh status.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import evenly
from contextgap.learner import Learner, StoppingRule
from contextgap.learner.state import LearnerState
from contextgap.policy.policy import Policy
from contextgap.policy.state import PolicyState
from contextgap.tables.contexts import Encoded
from contextgap.team.campaign.codec import decode_contexts, encode_contexts

START: dict[str, Any] = {"rewards": 0, "settled": None}  # progress before the first reward
_SAMPLE = 200  # contexts that stand for all, where none were given
_GROWTH = 1.05  # by which the number of rewards grows between two records of progress
_FEW = 20  # rewards, up to which every one is a step
_FIRST = math.floor(math.log(_FEW) / math.log(_GROWTH))
_QUANTILES = (0.1, 0.5, 0.9)
_SHARE = 0.95


def encode_goal(goal: StoppingRule | None) -> dict[str, Any] | None:
    if goal is None:
        return None
    if goal.arms is not None:
        raise ValueError("goal must be about all arms, which may come and go; leave out its arms")
    if goal.average:
        raise ValueError("goal must be about a share of contexts; leave out average=True")
    if goal.budget is not None:
        raise ValueError("goal must be about certificates; leave out budget=, status says spending")
    reference = encode_contexts(goal.given, called="reference")
    return {"tolerance": goal.tolerance, "share": goal.share, "reference": reference}


def decode_goal(encoded: Mapping[str, Any] | None) -> StoppingRule | None:
    if encoded is None:
        return None
    reference = decode_contexts(encoded["reference"])
    return StoppingRule(encoded["tolerance"], share=encoded["share"], reference=reference)


def seen_contexts(state: LearnerState | PolicyState) -> Encoded:
    """Return contexts whose rewards a learner or a policy rests on, some if there are many."""
    contexts = state.model.observed.contexts
    return Encoded(contexts[evenly(np.arange(len(contexts)), _SAMPLE)], state.schema)


def _steps(rewards: int) -> int:
    """Return at how many numbers of rewards progress was recorded: each, then every 5 % more."""
    if rewards <= _FEW:
        return rewards
    return _FEW + math.floor(math.log(rewards) / math.log(_GROWTH)) - _FIRST


def is_due(before: int, rewards: int) -> bool:
    return _steps(rewards) > _steps(before)


def progress(learner: Learner, goal: StoppingRule | None) -> dict[str, Any]:
    """Return how far exploring is; without a goal, to a regret bound of 0 at contexts seen."""
    found: dict[str, Any] = {"rewards": len(learner.state.model), "settled": None}
    if goal is None and found["rewards"]:
        goal = StoppingRule(0.0, share=_SHARE, reference=seen_contexts(learner.state))
    if goal is not None:
        schema = learner.state.schema
        reference = Encoded(goal.contexts_for(schema), schema)
        bounds = Policy(learner.state.policy()).certificate(reference).bound
        quantiles = np.quantile(bounds, _QUANTILES).tolist()
        found["settled"] = goal.settled(bounds)
        found["bounds"] = [bound if math.isfinite(bound) else None for bound in quantiles]
    return found


def summary(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], goal: StoppingRule | None
) -> dict[str, Any]:
    """Return the settled share, the share wanted, and about how many more rewards that takes."""
    wanted = _SHARE if goal is None else goal.share
    left = _asks_left(now, before, wanted)
    return {"settled": now["settled"], "wanted": wanted, "asks_left": left}


def _asks_left(
    now: Mapping[str, Any], before: Sequence[Mapping[str, Any]], share: float
) -> int | None:
    """Return how many more rewards it takes at the rate since half as many; None if unknown."""
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
