"""Posteriors at contexts that are tried one after the other, before any of their rewards is known.

A pick counts as an observation whose reward equals its expectation: means stay, and covariances C
shrink. With c the covariances with the arm picked, at the context where it is picked,

    C −= c·cᵀ/(variance there + ridge)

So the covariances between a block of contexts, and between them and reference points of
look-aheads, are computed at once, and every pick changes them by an outer product.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dger

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.arm import root
from contextgap.models.base import LookAhead, Model, Pending, Posterior, is_places

_MOST = 192  # contexts of a block
_NUMBERS = 2**17  # covariances of a block that a pick may change, about: what caches hold


class Batch:
    """The posterior of some arms at contexts, each of which is tried in order.

    ``pending`` holds the picks that wait for their reward; whoever adds one of the batch to it
    calls ``add``.
    """

    def __init__(
        self, model: Model, contexts: FloatArray, arms: Sequence[int], pending: Pending
    ) -> None:
        self.model, self.contexts, self.pending = model, contexts, pending
        self.arms = tuple(arms)
        self._own: Batch | None = None
        self._reference: IntArray | FloatArray = np.empty(0, dtype=np.intp)
        self._block = range(0)

    def posterior(self, place: int, arms: Sequence[int]) -> Posterior:
        """Return the posterior of some of the arms at one of the contexts."""
        row, columns = self._at(place), self._columns(arms)
        known, variance = self._known, self._variance[row, columns]
        covariance = None
        if self.model.shares:
            own = self._rows(row)
            covariance = self._covariances[0, own, own][np.ix_(columns, columns)]
            variance = covariance.diagonal().copy()
        gain = known.information_gain[columns]
        mean = known.mean[row, columns]
        return known._replace(
            mean=mean, std=root(variance), information_gain=gain, covariance=covariance
        )

    @property
    def own(self) -> Batch:
        """The same for the model of every arm's own rewards."""
        model = self.model.of_own_rewards()
        if model is self.model:
            return self
        if self._own is None:
            self._own = Batch(model, self.contexts, self.arms, self.pending)
        return self._own

    def look_ahead(
        self, place: int, arms: Sequence[int], reference: IntArray | FloatArray
    ) -> LookAhead:
        """Return what trying arms at one of the contexts would teach about reference points.

        As ``Follower.look_ahead``, for arms that do not share what they learn.
        """
        if place not in self._block or not _same(reference, self._reference):
            self._start(place, reference)
        row, first, every = self._at(place), len(self._block), len(self._known.mean)
        mean, move = np.empty((2, every - first + 1, len(self.arms)))
        mean[:-1], mean[-1] = self._known.mean[first:], self._known.mean[row]
        here = self._covariances[:, row]
        np.divide(here[:, first:].T, steps := self._steps(row), out=move[:-1])
        np.divide(here[:, row], steps, out=move[-1])
        if len(arms) < len(self.arms):
            columns = self._columns(arms)
            mean, move = mean[:, columns], move[:, columns]
        return LookAhead(mean, move)

    def add(self, place: int, arm: int) -> None:
        """Count a pick at one of the contexts, which is pending from now on."""
        if self._own is not None:
            self._own.add(place, arm)
        if place not in self._block:
            return  # those that come before a block are in it from the start
        row, column = place - self._block.start, self.arms.index(arm)
        step = float(self._steps(row)[column])
        group, own, rest = column, row, row + 1
        if self.model.shares:
            rows = self._rows(row)
            group, own, rest = 0, rows.start + column, rows.stop
        covariances = self._covariances[group]
        moved = covariances[own] / step
        changed = covariances[rest:].T  # in BLAS's order, in which this is in place
        if changed.size:
            dger(-1.0, moved, moved[rest : len(covariances)], a=changed, overwrite_a=1)
        if not self.model.shares:
            self._variance[:, column] -= moved**2

    def _columns(self, arms: Sequence[int]) -> IntArray:
        return np.array([self.arms.index(arm) for arm in arms])

    def _rows(self, row: int) -> slice:
        """Where the arms at a context are, if they share what they learn."""
        return slice(row * len(self.arms), (row + 1) * len(self.arms))

    def _at(self, place: int) -> int:
        if place not in self._block:
            self._start(place, self._reference)
        return place - self._block.start

    def _steps(self, row: int) -> FloatArray:
        """√(variance + ridge) of each arm's reward at a context."""
        variance = self._variance[row]
        if self.model.shares:
            own = self._rows(row)
            variance = self._covariances[0, own, own].diagonal()
        least = np.maximum(variance, 0.0) + self.model.ridge
        return np.asarray(np.sqrt(np.maximum(least, self._floors[row])))

    def _start(self, place: int, reference: IntArray | FloatArray) -> None:
        """Begin a block of contexts, with all picks that are pending now."""
        model, arms = self.model, len(self.arms)
        most = int(np.sqrt(_NUMBERS)) // arms if model.shares else _MOST
        block = self.contexts[place : place + max(1, most)]
        self._block, self._reference = range(place, place + len(block)), reference
        given = model.observed.contexts[reference] if is_places(reference) else reference
        points = np.concatenate([block, given.reshape(-1, block.shape[1])])
        pooled = model.pooled(points, self.arms, self.pending)
        self._known, self._floors = pooled.posterior, pooled.floors
        self._variance = pooled.posterior.std**2
        own = np.arange(len(block))
        found = np.stack([pooled.covariances(arm, own) for arm in range(arms)])
        if model.shares:  # those of arm a at context i and arm b at j, so far as (a, j, i, b)
            found = found.transpose(2, 0, 1, 3).reshape(1, len(block) * arms, -1)
        self._covariances = np.ascontiguousarray(found)


def _same(one: IntArray | FloatArray, two: IntArray | FloatArray) -> bool:
    return one is two or (one.dtype == two.dtype and np.array_equal(one, two))
