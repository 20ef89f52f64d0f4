"""What a log of events needs of a learner: whoever replays it has the same learner, bit by bit.

A pick is made once and then a fact. Replaying it means ``expect`` and putting the random source
where the pick left it, so that nothing of what led to the pick is computed again. So are
hyperparameters: ``noting_learnt`` notes those that a learner learns, and ``with_learnt`` has
another one use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, evenly
from contextgap.base.components import build
from contextgap.base.labels import Label
from contextgap.kernels import Kernel
from contextgap.learner.learner import Learner
from contextgap.learner.stopping import StoppingRule
from contextgap.models import Alike
from contextgap.models.tuning import Hyperparameters, Tuning
from contextgap.tables.contexts import Encoded


def forget_followed(learner: Learner) -> None:
    """Forget the reference points that look-aheads follow.

    They are updated with every reward, and then differ in the last digits from those of a learner
    that begins to follow them now.
    """
    learner._followed = None


def checkpoint(learner: Learner) -> Any:
    """Return what ``restore`` needs to undo asks and tells."""
    return learner._checkpoint()


def restore(learner: Learner, state: Any) -> None:
    """Undo all asks and tells since ``checkpoint``."""
    learner._restore(state)


@contextmanager
def checking(learner: Learner, check: Callable[[], None]) -> Iterator[None]:
    """Have ``check`` called before every pick in the block; it may raise."""
    pick = learner._pick

    def checked(*args: Any) -> Any:
        check()
        return pick(*args)

    with _instead(learner, _pick=checked):
        yield


@contextmanager
def noting_learnt(learner: Learner, check: Callable[[], None]) -> Iterator[list[dict[str, Any]]]:
    """Yield a list to which hyperparameters that the learner learns in the block are added.

    Before it learns any, ``check`` is called, which may raise.
    """
    found: list[dict[str, Any]] = []
    learn = learner._learn

    def noted(*args: Any, **kwargs: Any) -> tuple[Hyperparameters, Tuning]:
        check()
        scales, tuning = learn(*args, **kwargs)
        found.append(_describe(scales, tuning))
        return scales, tuning

    with _instead(learner, _learn=noted):
        yield found


@contextmanager
def with_learnt(learner: Learner, learnt: Mapping[str, Any] | None) -> Iterator[None]:
    """Have a learner use noted hyperparameters in the block instead of learning; None for none."""

    def recorded(*_: Any, **__: Any) -> tuple[Hyperparameters, Tuning]:
        if learnt is None:
            raise RuntimeError("no hyperparameters were learnt here when the log was written")
        return _restored(learner, learnt)

    with _instead(learner, _learn=recorded, _is_time_to_tune=lambda _: learnt is not None):
        yield


@contextmanager
def _instead(learner: Learner, **methods: Any) -> Iterator[None]:
    vars(learner).update(methods)
    try:
        yield
    finally:
        for name in methods:
            del vars(learner)[name]


def _describe(scales: Hyperparameters, tuning: Tuning) -> dict[str, Any]:
    """Return hyperparameters as plain values; the features of arms are the learner's."""
    alike = None if scales.alike is None else {**asdict(scales.alike), "features": None}
    return {
        "kernel": scales.kernel.describe(),
        "ridge": scales.ridge,
        "prior_mean": scales.prior_mean,
        "alike": alike,
        "tuning": tuning.describe(),
    }


def _restored(learner: Learner, learnt: Mapping[str, Any]) -> tuple[Hyperparameters, Tuning]:
    """Reverse ``_describe``."""
    kernel, alike = build(learnt["kernel"]), learnt["alike"]
    if not isinstance(kernel, Kernel):
        raise ValueError("the kernel has the wrong type")
    if alike is not None:
        own = None if learner._features is None else learner._features.numbers.rows.tolist()
        features = None if own is None else tuple(map(tuple, own))
        alike = Alike(**{**alike, "features": features})
    ridge = checks.positive("ridge", learnt["ridge"], "as a learner's")
    mean = checks.real("prior_mean", learnt["prior_mean"])
    return Hyperparameters(kernel, ridge, mean, 0.0, (), alike), Tuning.restored(learnt["tuning"])


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
