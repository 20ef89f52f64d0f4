"""What an explorer may see of a learner, at one context or for a pool of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.beliefs.belief import Belief
from contextgap.beliefs.widths import Width
from contextgap.learner.pending import Pending
from contextgap.methods.explorers import LookAhead, Moment, Pool, as_numbers, check_reference
from contextgap.models import Follower, Model
from contextgap.tables.eligible import Mask


@dataclass
class View:
    """A model together with the picks whose rewards are still to come.

    ``active`` holds the model's indices of the arms to choose from; ``follower`` makes an object
    that keeps the posterior at reference points up to date; ``read`` reads contexts that an
    explorer was given.
    """

    model: Model
    pending: Pending
    active: tuple[int, ...]
    width: Width
    rng: np.random.Generator
    follower: Callable[[], Follower]
    read: Callable[[Any], FloatArray] = as_numbers

    def among(self, eligible: Mask) -> View:
        """Return a view of some of the arms only; the mask has one entry for each arm."""
        return replace(self, active=tuple(np.array(self.active)[eligible].tolist()))

    def pulls(self) -> list[int]:
        """Return how often each arm was picked so far, pending picks included."""
        return [self.model.observed.count(i) + self.pending.count(i) for i in self.active]

    def moment(self, context: FloatArray) -> Moment:
        """Return what an explorer sees at one context."""
        return Moment(
            believe=lambda: self._believe(context),
            pulls=self.pulls(),
            step=len(self.model) + len(self.pending) + 1,
            rng=self.rng,
            seen=len(self.model),
            look_ahead=lambda reference: self._look_ahead(context, reference),
            ridge=self.model.ridge,
            shares=self.model.shares,
            read=self.read,
            kernel_at=lambda reference: self._kernel_at(context, reference),
        )

    def pool(self, contexts: FloatArray) -> Pool:
        """Return what an explorer sees of several contexts at once."""
        model, active, waiting = self.model, self.active, self.pending.by_arm
        return Pool(
            contexts=contexts,
            believe=lambda: Belief(model.posterior(contexts, active, waiting), self.width),
            moves=lambda arm, points: self._moves(contexts, arm, points),
            means=lambda points: model.posterior(points, active, waiting).mean,
            ridge=model.ridge,
            shares=model.shares,
            rng=self.rng,
            read=self.read,
        )

    def told(self, context: FloatArray) -> Belief:
        """Return what the rewards told so far say at one context, pending picks left out."""
        return Belief(self.model.posterior(context, self.active), self.width)

    def _believe(self, context: FloatArray) -> Belief:
        posterior = self.model.posterior(context, self.active, self.pending.by_arm)
        return Belief(posterior, self.width)

    def _moves(self, contexts: FloatArray, arm: int, points: FloatArray) -> FloatArray:
        moves = self.model.moves(contexts, self.active[arm], points, self.pending.by_arm)
        return moves if moves.ndim == 2 else moves[..., list(self.active)]

    def _kernel_at(self, context: FloatArray, reference: IntArray | FloatArray) -> FloatArray:
        check_reference(reference, len(context))
        given = reference if reference.ndim == 2 else self.model.observed.contexts[reference]
        points = np.vstack([np.reshape(given, (-1, len(context))), context])
        return self.model.kernel(points, points)

    def _look_ahead(self, context: FloatArray, reference: IntArray | FloatArray) -> LookAhead:
        check_reference(reference, len(context))
        follower = self.follower()
        return follower.look_ahead(context, self.active, reference, self.pending.by_arm)
