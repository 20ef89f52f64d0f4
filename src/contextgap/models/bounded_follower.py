"""Keeps the posteriors of the bounded model up to date at a changing set of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.arm import root
from contextgap.models.base import NOTHING_PENDING, Follower, LookAhead, Pending, Posterior
from contextgap.models.bounded_arm import BoundedArm, Folded
from contextgap.models.dictionary import Dictionary, Whitened
from contextgap.models.follower import FollowedArm, carried_over, starts_with

if TYPE_CHECKING:
    from contextgap.models.bounded import BoundedModel


class _FollowedArm:
    """One arm at some points: q of its factor, and the rows beside it as an exact model's rows.

    An observation costs one product with q and one with the rows, a fold a solve per point.
    """

    def __init__(self, arm: BoundedArm, features: FloatArray) -> None:
        self._folded: Folded
        self.q: FloatArray
        self._fits: FloatArray  # by the factor alone: to the rewards, and to rewards all 1
        self.late: FollowedArm
        self._start(arm, features)

    def catch_up(self, arm: BoundedArm, features: FloatArray) -> None:
        """Take in what the arm was told, and pending picks."""
        if self._folded is not arm.folded:
            self._start(arm, features)
            return
        beside, late = arm.beside, self.late
        if late.size == len(beside.rows) and not late.assumed and not beside.assumed:
            return
        if late.told < len(beside) or not starts_with(beside.assumed, late.assumed):
            late.forget_assumed()
        for i in range(late.size, len(beside.rows)):
            told = i < len(beside)
            s, ones = beside.innovations.view[i].tolist() if told else (0.0, 0.0)
            late.observe(beside.factor.row(i), beside.rows.view[i] @ self.q, s, ones)
            if told:
                late.told += 1
            else:
                late.assumed.append(beside.assumed[i - len(beside)])

    def keep(self, which: IntArray) -> None:
        """Forget all points but some."""
        self.q = np.ascontiguousarray(self.q[:, which])
        self._fits = self._fits[:, which]
        self.late.keep(which)

    def add(self, arm: BoundedArm, features: FloatArray) -> None:
        """Add points; the others are up to date."""
        q, v = arm.solve_many(features, assumed=True)
        self.q = np.concatenate([self.q, q], axis=1)
        self._fits = np.concatenate([self._fits, self._folded.fit @ q], axis=1)
        self._add_late(arm, v)

    def fit(self, prior: float) -> FloatArray:
        """Return the means at the points, less the prior."""
        fit, ones = self._fits
        return np.asarray(fit + self.late.fit - prior * (ones + self.late.ones))

    def variance(self) -> FloatArray:
        """Return |q|² − |v|² at the points."""
        return np.asarray(np.einsum("ij,ij->j", self.q, self.q) - self.late.explained)

    def _start(self, arm: BoundedArm, features: FloatArray) -> None:
        self._folded = arm.folded
        self.late = FollowedArm()
        self.q, v = arm.solve_many(features, assumed=True)
        self._fits = arm.folded.fit @ self.q
        self._add_late(arm, v)

    def _add_late(self, arm: BoundedArm, v: FloatArray) -> None:
        beside = arm.beside
        if v.shape[1]:
            self.late.add(v, beside.innovations.view[:, 0], beside.innovations.view[:, 1])
        self.late.told, self.late.assumed = len(beside), list(beside.assumed)


class BoundedFollower(Follower):
    """Follows the bounded model at points of shape (r, d)."""

    model: BoundedModel

    def __init__(self, model: BoundedModel, points: FloatArray | None = None) -> None:
        super().__init__(model, points)
        self._reference = np.empty(0, dtype=np.intp) if points is None else points
        self._dictionary: Dictionary | None = None
        self._whitened = Whitened(np.empty((0, 0)), np.empty(0))
        self._arms: list[_FollowedArm] = []

    def posterior(self, arms: Sequence[int]) -> Posterior:
        model = self.model
        model.assume(NOTHING_PENDING)
        self._catch_up()
        prior = model.prior()
        followed = [self._arms[arm] for arm in arms]
        mean = np.stack([prior + each.fit(prior) for each in followed], axis=-1)
        variance = np.stack(
            [self._whitened.residual + each.variance() for each in followed], axis=-1
        )
        gain = model.information_gain(arms)
        return Posterior(mean, root(variance), gain, model.ridge, model.n_arms)

    def look_ahead(
        self,
        context: FloatArray,
        arms: Sequence[int],
        reference: IntArray | FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> LookAhead:
        model = self.model
        here, asked = model.posterior_and_solved(context, arms, pending)
        self._move_to(reference)
        mean, move = np.empty((2, len(self._points) + 1, len(arms)))
        prior, mean[-1] = model.prior(), here.mean
        for i, arm in enumerate(arms):
            followed, (q, v) = self._arms[arm], asked.solved[arm]
            move[-1, i] = q.dot(q) - v.dot(v)
            if len(self._points):
                mean[:-1, i] = followed.fit(prior)
                move[:-1, i] = q @ followed.q - v @ followed.late.rows
        mean[:-1] += prior
        move /= np.sqrt(here.std**2 + model.ridge)
        return LookAhead(mean, move)

    def _catch_up(self) -> None:
        """Bring all arms up to date at the points followed."""
        model = self.model
        if self._dictionary is not model.dictionary:
            self._dictionary, self._arms = model.dictionary, []
            self._whitened = model.whiten(self._points)
        for number, followed in enumerate(self._arms):
            followed.catch_up(model.arm(number), self._whitened.features)
        for number in range(len(self._arms), model.n_arms):
            self._arms.append(_FollowedArm(model.arm(number), self._whitened.features))

    def _move_to(self, reference: IntArray | FloatArray) -> None:
        """Follow other points from now on."""
        model = self.model
        kept, added = carried_over(self._reference, reference)
        points = self._contexts_of(reference)
        before, self._reference, self._points = len(self._points), reference.copy(), points
        if self._dictionary is not model.dictionary or not len(kept):
            self._dictionary = None  # nothing to carry over
            self._catch_up()
            return
        if len(kept) == before and not len(added):
            self._catch_up()
            return
        old = self._whitened
        for number, followed in enumerate(self._arms):
            followed.catch_up(model.arm(number), old.features)
        new = model.whiten(points[added])
        if len(kept) < before:
            old = Whitened(old.features[:, kept], old.residual[kept])
            for followed in self._arms:
                followed.keep(kept)
        if len(added):
            for number, followed in enumerate(self._arms):
                followed.add(model.arm(number), new.features)
        self._whitened = Whitened(
            np.concatenate([old.features, new.features], axis=1),
            np.concatenate([old.residual, new.residual]),
        )
        self._catch_up()
