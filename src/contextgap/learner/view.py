"""What an explorer may see of a learner: from one context, or from a pool of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.belief import Belief
from contextgap.explorers import LookAhead, Moment, Pool, check_reference
from contextgap.learner.pending import Pending
from contextgap.models import ExactModel
from contextgap.widths import Width


@dataclass
class Outlook:
    """A model, in which picks whose reward is still to come count as made.

    Parameters
    ----------
    model
        What was observed.
    pending
        Picks whose reward is still to come.
    active
        The model's indices of the arms to choose from.
    width
        How standard deviations become intervals.
    rng
        The one source of randomness.
    """

    model: ExactModel
    pending: Pending
    active: tuple[int, ...]
    width: Width
    rng: np.random.Generator

    def pulls(self) -> list[int]:
        """Return how often each arm was picked so far, pending picks included."""
        return [self.model.count(i) + self.pending.count(i) for i in self.active]

    def moment(self, context: FloatArray) -> Moment:
        """Return what there is to see from one context."""
        return Moment(
            believe=lambda: self._believe(context),
            pulls=self.pulls(),
            step=len(self.model) + len(self.pending) + 1,
            rng=self.rng,
            seen=len(self.model),
            look_ahead=lambda reference: self._look_ahead(context, reference),
        )

    def pool(self, contexts: FloatArray) -> Pool:
        """Return what there is to see from several contexts at once."""
        self._assume_pending()
        model, active = self.model, self.active
        return Pool(
            contexts=contexts,
            believe=lambda: Belief(model.posterior(contexts, active, assumed=True), self.width),
            moves=lambda arm, points: model.moves(contexts, active[arm], points),
            means=lambda points: model.posterior(points, active, assumed=True).mean,
            ridge=model.ridge,
            rng=self.rng,
        )

    def _believe(self, context: FloatArray) -> Belief:
        self._assume_pending()
        return Belief(self.model.posterior_at(context, self.active), self.width)

    def _look_ahead(self, context: FloatArray, reference: IntArray | FloatArray) -> LookAhead:
        check_reference(reference, len(context))
        self._assume_pending()
        return LookAhead(*self.model.look_ahead(context, self.active, reference))

    def _assume_pending(self) -> None:
        for arm, waiting in self.pending.by_arm.items():
            for late in waiting[self.model.assumed(arm) :]:
                self.model.assume(late, arm)
