"""What a log of events needs of a learner: whoever replays it has the same learner, bit by bit.

A pick is made once and then a fact. Replaying it means ``expect`` and putting the random source
where the pick left it, so that nothing of what led to the pick is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.contexts import Encoded
from contextgap.base.labels import Label
from contextgap.learner.learner import Learner
from contextgap.learner.stopping import StoppingRule
from contextgap.tuning.sample import evenly


def forget_followed(learner: Learner) -> None:
    """Forget the reference points that look-aheads follow.

    They are updated with every reward, and then differ in the last digits from those of a learner
    that begins to follow them now.
    """
    learner._followed = None


def random_state(learner: Learner) -> dict[str, Any]:
    """Return the state of a learner's random source as plain values."""
    return dict(learner._rng.bit_generator.state)


def set_random_state(learner: Learner, state: dict[str, Any]) -> None:
    """Put a learner's random source where ``random_state`` found it."""
    learner._rng.bit_generator.state = state


def last_propensities(learner: Learner, arms: Sequence[Label]) -> list[float | None] | None:
    """Return the propensities of the latest picks, which were of these arms; None if none has any.

    They are the last ones of each arm that are pending.
    """
    waiting = {arm: list(own) for arm, own in learner._pending.propensities.items()}
    chances = [waiting[learner._place(label)].pop() for label in reversed(arms)]
    return chances[::-1] if any(each is not None for each in chances) else None


def knows_columns(learner: Learner, contexts: Any) -> bool:
    """Return whether contexts have nothing new to say about columns and their levels."""
    return learner._read(contexts).schema is learner._schema


def learn_columns(learner: Learner, contexts: Any) -> None:
    """Take in what contexts say about columns and their levels, and nothing else."""
    learner._adopt(learner._read(contexts).schema)


def add_recorded_arm(learner: Learner, label: Label, features: Any) -> None:
    """Add an arm that a log has; logs of earlier versions may have labels that are refused now."""
    learner._add_arm(label, features)


def forget_pick(learner: Learner, context: Any, arm: Label) -> None:
    """Forget the oldest pending pick of an arm at a context, if there is one."""
    place = learner._place(arm)
    found = learner._pending.find(learner._read(context).rows[0], place)
    if found is not None:
        learner._pending.take(place, found)


def observations(learner: Learner) -> int:
    """Return how many rewards were told, those of removed arms included."""
    return len(learner._model)


def seen_contexts(learner: Learner, most: int) -> Encoded:
    """Return contexts whose rewards were told, at most so many, evenly spread over time."""
    contexts = learner._model.observed.contexts
    return Encoded(contexts[evenly(np.arange(len(contexts)), most)], learner._schema)


def certificates(learner: Learner, rule: StoppingRule) -> FloatArray:
    """Return the certificate at each of a rule's reference contexts.

    They are those of ``Learner.settled``, computed at once instead of from reward to reward.
    """
    reference = Encoded(rule.contexts_for(learner._schema), learner._schema)
    return learner._policy(learner._model).certificate(reference).bound
