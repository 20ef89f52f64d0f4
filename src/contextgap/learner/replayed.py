"""Learners for given logs: one that replays events bit by bit, and one that scores any rule.

A pick is made once and then a fact. Replaying it means ``add_pending`` and putting the random
source where the pick left it, so that nothing of what led to the pick is computed again. So are
hyperparameters: those that a learner learns are noted, and another one can use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.checks import Label
from contextgap.base.components import build
from contextgap.kernels import Kernel
from contextgap.learner.learner import Learner
from contextgap.methods.explorers import Moment, Pick
from contextgap.models import Ageing, Alike, Exclusive
from contextgap.models.tuning import AmortisedSearch, Hyperparameters, Tuning
from contextgap.policy.state import Card


class ReplayedLearner(Learner):
    """A learner to which the events of a log are given, one after the other."""

    check: Callable[[], None] = staticmethod(lambda: None)
    """Called before every pick, and before hyperparameters are learnt; it may raise."""

    learnt: dict[str, Any] | None = None
    """The hyperparameters learnt last, as plain values."""

    _recorded: Mapping[str, Any] | None = None
    _replaying = False

    @contextmanager
    def using(self, learnt: Mapping[str, Any] | None) -> Iterator[None]:
        """Use noted hyperparameters in the block instead of learning any; None for none."""
        self._recorded, self._replaying = learnt, True
        try:
            yield
        finally:
            self._recorded, self._replaying = None, False

    def _result(
        self, search: AmortisedSearch, operations: float
    ) -> tuple[Hyperparameters, Tuning] | None:
        if self._replaying:
            return None if self._recorded is None else self._restored(self._recorded)
        self.check()
        found = super()._result(search, operations)
        if found is not None:
            self.learnt = _described(*found)
        return found

    def _learns_at_once(self, new: int, *, finish: bool) -> bool:
        if self._replaying:
            return self._recorded is not None and new > 1
        return super()._learns_at_once(new, finish=finish)

    def _is_time_to_tune(self, count: int, new: int) -> bool:
        return self._recorded is not None or super()._is_time_to_tune(count, new)

    def _pick(self, moment: Moment) -> Pick:
        self.check()
        return super()._pick(moment)

    def _restored(self, learnt: Mapping[str, Any]) -> tuple[Hyperparameters, Tuning]:
        kernel, alike = build(learnt["kernel"]), learnt["alike"]
        if not isinstance(kernel, Kernel):
            raise ValueError("the kernel has the wrong type")
        if alike is not None and "doubt" in alike:
            alike = Exclusive(**alike)
        elif alike is not None and "half_life" in alike:
            alike = Ageing(**alike)
        elif alike is not None:
            own = self.state.features
            features = None if own is None else tuple(map(tuple, own.numbers.rows.tolist()))
            alike = Alike(**{**alike, "features": features})
        ridge = checks.positive("ridge", learnt["ridge"], "as a learner's")
        mean = checks.real("prior_mean", learnt["prior_mean"])
        return Hyperparameters(kernel, ridge, mean, 0.0, (), alike), Tuning.restored(
            learnt["tuning"]
        )

    def set_random(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = state
        self.state = replace(self.state, random=state)

    def forget_followed(self) -> None:
        """Forget what look-aheads follow: updated with rewards, it differs in the last digits."""
        self._followed = None

    def last_propensities(self, arms: Sequence[Label]) -> list[float | None] | None:
        waiting = {arm: list(own) for arm, own in self.state.pending.asked.items()}
        chances = [waiting[self._place(label)].pop().propensity for label in reversed(arms)]
        return chances[::-1] if any(each is not None for each in chances) else None

    def knows_columns(self, contexts: Any) -> bool:
        """Return whether contexts have nothing new to say about columns and their levels."""
        return self._read(contexts).schema is self.state.schema

    def learn_columns(self, contexts: Any) -> None:
        """Take in what contexts say about columns and their levels, and nothing else."""
        self.state = self.state.adopting(self._read(contexts).schema)

    def add_recorded_arm(self, label: Label, features: Any, cost: float | None = None) -> None:
        """Add an arm that a log has; earlier versions took labels that are refused now."""
        self._add_arm(label, features, cost)

    def forget_pick(self, context: Any, arm: Label) -> None:
        self._forget(self._read(context).rows[0], self._place(arm))


def _described(found: Hyperparameters, tuning: Tuning) -> dict[str, Any]:
    """Return hyperparameters as plain values; the features of arms are the learner's."""
    alike = None if found.alike is None else asdict(found.alike)
    if isinstance(found.alike, Alike):
        alike = {**asdict(found.alike), "features": None}
    return {
        "kernel": found.kernel.describe(),
        "ridge": found.ridge,
        "prior_mean": found.prior_mean,
        "alike": alike,
        "tuning": tuning.describe(),
    }


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
