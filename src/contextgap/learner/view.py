"""Picks whose reward has not come yet, and what an explorer may see of a learner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.beliefs.belief import Belief
from contextgap.beliefs.widths import Width
from contextgap.methods.explorers import LookAhead, Moment, Pool, check_reference
from contextgap.methods.explorers.base import as_numbers
from contextgap.models import Batch, Eligible, Follower, Model, Posterior
from contextgap.tables.eligible import Mask

_DECIMALS = 3  # a number with fewer is not taken for another one, rounded


class Asked(NamedTuple):
    eligible: Eligible = None  # the arms among which it was made; None for all
    propensity: float | None = None  # if it is known
    number: int | None = None  # of its trial, if it is one


@dataclass
class Pending:
    """Contexts picked without a reward so far, by arm, oldest first, and how each was asked."""

    by_arm: dict[int, list[FloatArray]] = field(default_factory=dict)
    asked: dict[int, list[Asked]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum([len(waiting) for waiting in self.by_arm.values()])

    def copy(self) -> Pending:
        return Pending(
            {arm: list(waiting) for arm, waiting in self.by_arm.items()},
            {arm: list(asked) for arm, asked in self.asked.items()},
        )

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> Pending:
        """Return the same picks with other contexts."""
        by_arm = {arm: list(map(change, waiting)) for arm, waiting in self.by_arm.items()}
        return Pending(by_arm, self.asked)

    def count(self, arm: int) -> int:
        return len(self.by_arm.get(arm, ()))

    def add(self, context: FloatArray, arm: int, asked: Asked) -> None:
        self.asked.setdefault(arm, []).append(asked)
        self.by_arm.setdefault(arm, []).append(context)

    def number(self, arm: int, number: int) -> None:
        """Make the latest pick of an arm a trial."""
        self.asked[arm][-1] = self.asked[arm][-1]._replace(number=number)

    def trials(self) -> list[tuple[int, int, FloatArray]]:
        """Return the picks that are trials, in order: numbers, arms and contexts."""
        pairs = ((arm, *each) for arm in self.by_arm for each in self._of(arm))
        return sorted(
            ((asked.number, arm, x) for arm, x, asked in pairs if asked.number is not None),
            key=lambda each: each[0],
        )

    def bring_forward(self, number: int) -> tuple[int, FloatArray] | None:
        """Make a trial the oldest pick of its arm at its context, which ``find`` then finds."""
        for arm in self.by_arm:
            for place, (context, asked) in enumerate(self._of(arm)):
                if asked.number == number:
                    first, own = self.find(context, arm), self.asked[arm]
                    if first is not None:
                        own[first], own[place] = own[place], own[first]
                    return arm, context
        return None

    def _of(self, arm: int) -> Iterator[tuple[FloatArray, Asked]]:
        return zip(self.by_arm[arm], self.asked[arm], strict=True)

    def find(self, context: FloatArray, arm: int) -> int | None:
        """Return the place of the oldest waiting pick of an arm at a context, if there is one."""
        given = context.tolist()  # as short as contexts are, the fastest way
        for place, candidate in enumerate(self.by_arm.get(arm, ())):
            if candidate.tolist() == given:
                return place
        return None

    def find_rounded(self, context: FloatArray, arm: int) -> int | None:
        """Return the place of the oldest waiting pick that equals a context but for rounding."""
        waiting = np.array(self.by_arm.get(arm, []))
        if not len(waiting):
            return None
        same = np.isclose(waiting, context, rtol=1e-6, atol=0.0)  # as single precision would be
        decimals = max(-int(Decimal(repr(each)).as_tuple().exponent) for each in context.tolist())
        if decimals >= _DECIMALS:
            same |= np.round(waiting, decimals) == context
        places = np.flatnonzero(same.all(axis=1))
        return int(places[0]) if len(places) else None

    def answer(self, rows: FloatArray, places: IntArray) -> tuple[list[Asked], int]:
        """Forget the picks answered; return how they were made, and how many only when rounded."""
        asked, rounded, unanswered = [Asked()] * len(rows), 0, []
        if not self.by_arm:
            return asked, rounded
        for row, (context, arm) in enumerate(zip(rows, map(int, places), strict=True)):
            found = self.find(context, arm)
            if found is None:
                unanswered.append(row)
            else:
                asked[row] = self.take(arm, found)
        for row in unanswered:  # exact answers first, so that no pick is taken from them
            arm = int(places[row])
            found = self.find_rounded(rows[row], arm)
            if found is not None:
                asked[row] = self.take(arm, found)
                rounded += 1
        return asked, rounded

    def take(self, arm: int, place: int) -> Asked:
        """Forget a waiting pick; return how it was made."""
        waiting = self.by_arm[arm]
        del waiting[place]
        asked = self.asked[arm].pop(place)
        if not waiting:  # files keep no empty lists; the order of arms must not differ
            del self.by_arm[arm], self.asked[arm]
        return asked


@dataclass
class View:
    """A model together with the picks whose rewards are still to come."""

    model: Model
    pending: Pending
    active: tuple[int, ...]  # the model's indices of the arms to choose from
    width: Width
    rng: np.random.Generator
    follower: Callable[[], Follower]  # keeps the posterior at reference points up to date
    read: Callable[[Any], FloatArray] = as_numbers  # of contexts that an explorer was given
    costs: Callable[[FloatArray, Sequence[int]], FloatArray | None] = lambda _rows, _arms: None
    batch: Batch | None = None  # the posterior at many contexts that are picked for in order

    def among(self, eligible: Mask) -> View:
        """Return a view of some of the arms only; the mask has one entry for each arm."""
        return replace(self, active=tuple(np.array(self.active)[eligible].tolist()))

    def pulls(self) -> list[int]:
        return [self.model.observed.count(i) + self.pending.count(i) for i in self.active]

    def moment(self, context: FloatArray, row: int = 0) -> Moment:
        """Return what an explorer sees at one context, which is so many rows into the batch."""
        own = self._own_posterior if self.model.implies else None
        return Moment(
            believe=lambda: Belief(self._posterior(context, row), self.width),
            pulls=self.pulls(),
            step=len(self.model) + len(self.pending) + 1,
            rng=self.rng,
            seen=len(self.model),
            look_ahead=lambda reference: self._look_ahead(context, row, reference),
            ridge=self.model.ridge,
            shares=self.model.related,
            read=self.read,
            kernel_at=lambda reference: self._kernel_at(context, reference),
            costs=None if (costs := self._costs(context[None])) is None else costs[0],
            believe_own=None if own is None else lambda: Belief(own(context, row), self.width),
        )

    def pool(self, contexts: FloatArray) -> Pool:
        """Return what an explorer sees of several contexts at once."""
        pooled = self.model.pooled(contexts, self.active, self.pending.by_arm)
        return Pool(
            contexts=contexts,
            believe=lambda: Belief(pooled.posterior, self.width),
            moves=pooled.moves,
            means=pooled.means,
            ridge=self.model.ridge,
            shares=self.model.related,
            rng=self.rng,
            read=self.read,
            costs=self._costs(contexts),
        )

    def _costs(self, contexts: FloatArray) -> FloatArray | None:
        """Return what arms cost at contexts, None if all cost the same."""
        costs = self.costs(contexts, self.active)
        return None if costs is None or (costs == costs.flat[0]).all() else costs

    def told(self, context: FloatArray) -> Belief:
        """Return what the rewards told so far say at one context, pending picks left out."""
        return Belief(self.model.posterior(context, self.active), self.width)

    def _kernel_at(self, context: FloatArray, reference: IntArray | FloatArray) -> FloatArray:
        check_reference(reference, len(context))
        given = reference if reference.ndim == 2 else self.model.observed.contexts[reference]
        points = np.vstack([np.reshape(given, (-1, len(context))), context])
        return self.model.kernel(points, points)

    def _posterior(self, context: FloatArray, row: int) -> Posterior:
        if self.batch is not None:
            return self.batch.posterior(row, self.active)
        return self.model.posterior(context, self.active, self.pending.by_arm)

    def _own_posterior(self, context: FloatArray, row: int) -> Posterior:
        """Return the posterior from every arm's own rewards alone."""
        if self.batch is not None:
            return self.batch.own.posterior(row, self.active)
        model = self.model.of_own_rewards()
        return model.posterior(context, self.active, self.pending.by_arm)

    def _look_ahead(
        self, context: FloatArray, row: int, reference: IntArray | FloatArray
    ) -> LookAhead:
        check_reference(reference, len(context))
        if self.batch is not None and not self.model.shares:
            return self.batch.look_ahead(row, self.active, reference)
        follower = self.follower()
        return follower.look_ahead(context, self.active, reference, self.pending.by_arm)
