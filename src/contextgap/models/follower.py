"""Keeps the posteriors of the exact model up to date at a changing set of points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.arm import pivot, root
from contextgap.models.base import NOTHING_PENDING, Follower, LookAhead, Pending, Posterior

if TYPE_CHECKING:
    from contextgap.models.exact import ExactModel


class FollowedArm:
    """One arm's posterior at a changing set of points, updated row by row.

    Keeps V = L⁻¹K(arm's contexts, points). An observation adds a row, from its row of L, for one
    matrix–vector product; a point adds a column. The posterior covariances between the points and a
    context with v = L⁻¹k are then k(x, points) − v·V.
    """

    def __init__(self) -> None:
        self.size = 0  # rows, those of assumed observations included
        self.told = 0  # rows of real observations, which are the first
        self.assumed: list[FloatArray] = []  # contexts of the others
        self.fit = np.empty(0)  # the mean for prior mean 0
        self.ones = np.empty(0)  # the fit to rewards that are all 1
        self.explained = np.empty(0)  # by how much the variance is below the prior's
        self._buffer = np.empty((16, 16))

    @property
    def rows(self) -> FloatArray:
        """V, shape (observations, points)."""
        return self._buffer[: self.size, : len(self.fit)]

    def observe(
        self, factor_row: FloatArray, values: FloatArray, error: float, ones_error: float
    ) -> None:
        """Add an observation: its row of L, its kernel values at the points, its entries of z, w.

        An assumed observation's entries are 0: it shrinks covariances and leaves the mean.
        """
        row = (values - factor_row[:-1] @ self.rows) / factor_row[-1]
        self._reserve(self.size + 1, len(row))
        self._buffer[self.size, : len(row)] = row
        self.size += 1
        self.fit += row * error
        self.ones += row * ones_error
        self.explained += row**2

    def add(self, columns: FloatArray, z: FloatArray, w: FloatArray) -> None:
        """Add points with these columns of V; z and w may be shorter, by assumed observations."""
        if not len(self.fit):
            self.size = len(columns)  # without points, rows are empty and need no catching up
        first, end = len(self.fit), len(self.fit) + columns.shape[1]
        self._reserve(self.size, end)
        self._buffer[: self.size, first:end] = columns
        self.fit = np.concatenate([self.fit, z @ columns[: len(z)]])
        self.ones = np.concatenate([self.ones, w @ columns[: len(w)]])
        self.explained = np.concatenate([self.explained, np.einsum("ij,ij->j", columns, columns)])

    def keep(self, which: IntArray) -> None:
        """Forget all points but some."""
        self._buffer[: self.size, : len(which)] = self.rows[:, which]
        self.fit, self.ones = self.fit[which], self.ones[which]
        self.explained = self.explained[which]

    def forget_assumed(self) -> None:
        """Forget the rows of assumed observations."""
        if self.assumed:
            gone = self.rows[self.told :]
            self.explained -= np.einsum("ij,ij->j", gone, gone)
            self.size, self.assumed = self.told, []

    def mean(self, prior: float) -> FloatArray:
        """Return the posterior mean at the points."""
        return self.fit if prior == 0 else self.fit + prior * (1.0 - self.ones)

    def _reserve(self, rows: int, columns: int) -> None:
        shape = self._buffer.shape
        if rows > shape[0] or columns > shape[1]:
            longer = max(shape[0], 2 * rows if rows > shape[0] else 0)
            wider = max(shape[1], 2 * columns if columns > shape[1] else 0)
            grown = np.empty((longer, wider))
            grown[: shape[0], : shape[1]] = self._buffer
            self._buffer = grown


def carried_over(
    old: IntArray | FloatArray, new: IntArray | FloatArray
) -> tuple[IntArray, IntArray]:
    """Return which of the old reference points to keep, and which of the new to add after them.

    Points are places in a sequence, of which some usually stay, or an array of their own.
    """
    everything = np.arange(len(new))
    if old is new or (old.dtype == new.dtype and np.array_equal(old, new)):
        return everything, everything[:0]
    if len(old) and old.dtype.kind == new.dtype.kind == "i":
        kept, added = np.flatnonzero(np.isin(old, new)), np.flatnonzero(~np.isin(new, old))
        if np.array_equal(np.concatenate([old[kept], new[added]]), new):
            return kept, added
    return everything[:0], everything


class ExactFollower(Follower):
    """Follows the exact model: every observation takes one matrix–vector product per arm."""

    model: ExactModel

    def __init__(self, model: ExactModel, points: FloatArray | None = None) -> None:
        super().__init__(model, points)
        self._arms: list[FollowedArm] = []
        self._gains: list[float] = []
        # The points as they were asked for: places or contexts.
        self._reference: IntArray | FloatArray = np.empty(0, dtype=np.intp)
        if points is not None:
            self._reference = points
            self._prior_variance = model.kernel.diagonal(points)

    def steps(self, arms: Sequence[int]) -> Iterator[Posterior]:
        while self._seen < len(self.model):
            self._take_in_next()
            yield self._posterior(arms)

    def posterior(self, arms: Sequence[int]) -> Posterior:
        while self._seen < len(self.model):
            self._take_in_next()
        return self._posterior(arms)

    def look_ahead(
        self,
        context: FloatArray,
        arms: Sequence[int],
        reference: IntArray | FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> LookAhead:
        model = self.model
        here, solved, prior_variance = model.solved_at(context, arms, pending)
        self._move_to(reference)
        mean, move = np.empty((2, len(self._points) + 1, len(arms)))
        prior, ridge, variance = model.prior(), model.ridge, here.std**2
        steps = [
            pivot(left, ridge, prior_variance, len(solved[arm]))
            for left, arm in zip(variance.tolist(), arms, strict=True)
        ]
        mean[-1], move[-1] = here.mean, variance
        if len(self._points):
            for i, arm in enumerate(arms):
                followed = self._arms[arm]
                mean[:-1, i] = followed.mean(prior)
                np.matmul(solved[arm], followed.rows, out=move[:-1, i])
            np.subtract(self._values(context)[:, None], move[:-1], out=move[:-1])
        move /= steps
        return LookAhead(mean, move)

    def _take_in_next(self) -> None:
        arm = int(self.model.observed.arms[self._seen])
        self._add_arms()
        self._catch_up(arm, self._arms[arm].told + 1)
        self._seen += 1

    def _posterior(self, arms: Sequence[int]) -> Posterior:
        model = self.model
        self._add_arms()
        followed = [self._arms[arm] for arm in arms]
        mean = np.stack([arm.mean(model.prior()) for arm in followed], axis=-1)
        explained = np.stack([arm.explained for arm in followed], axis=-1)
        std = root(self._prior_variance[:, None] - explained)
        # The gains at that step, not the current ones: a look-back sees every step as it was.
        gain = np.array([self._gains[arm] for arm in arms])
        return Posterior(mean, std, gain, model.ridge, model.n_arms)

    def _move_to(self, reference: IntArray | FloatArray) -> None:
        """Update every arm, assumed observations included, at the points now wanted."""
        kept, added = carried_over(self._reference, reference)
        before = len(self._points)
        points = self._contexts_of(reference)
        self._add_arms()
        for number, followed in enumerate(self._arms):
            if len(followed.fit):  # else the arm is new, or nothing was followed so far
                self._catch_up(number)
                if len(kept) < before:
                    followed.keep(kept)
                self._add_points(number, points[added])
            else:
                self._add_points(number, points)
        self._reference, self._points = reference.copy(), points
        self._seen = len(self.model)

    def _catch_up(self, number: int, told: int | None = None) -> None:
        """Take in an arm's real observations up to ``told``, or all and the assumed ones."""
        arm, followed = self.model.arm(number), self._arms[number]
        end = len(arm) if told is None else told
        if followed.told == end and not followed.assumed and not arm.assumed:
            return
        contexts, places = self.model.observed.contexts, self.model.observed.places(number)
        if followed.told < end or not starts_with(arm.assumed, followed.assumed):
            followed.forget_assumed()
        for i in range(followed.told, end):
            row = arm.factor.row(i)
            values = self._values(contexts[places[i]])
            followed.observe(row, values, arm.z.view[i], arm.w.view[i])
            followed.told += 1
            self._gains[number] += math.log(row[-1]) - 0.5 * math.log(arm.ridge)
        for context in arm.assumed[len(followed.assumed) :] if told is None else ():
            followed.observe(arm.factor.row(followed.size), self._values(context), 0.0, 0.0)
            followed.assumed.append(context)

    def _add_points(self, number: int, points: FloatArray) -> None:
        if not len(points):
            return
        arm, followed = self.model.arm(number), self._arms[number]
        columns = self.model.solved(points, number, assumed=True)
        followed.add(columns, arm.z.view, arm.w.view)
        followed.told, followed.assumed = len(arm), list(arm.assumed)
        self._gains[number] = arm.gain

    def _add_arms(self) -> None:
        """Begin to follow newly added arms."""
        while len(self._arms) < self.model.n_arms:
            followed = FollowedArm()
            if len(self._points):
                followed.add(np.empty((0, len(self._points))), np.empty(0), np.empty(0))
            self._arms.append(followed)
            self._gains.append(0.0)

    def _values(self, context: FloatArray) -> FloatArray:
        if not len(self._points):
            return np.empty(0)
        return np.asarray(self.model.kernel(context[None], self._points)[0])


def starts_with(whole: Sequence[FloatArray], start: Sequence[FloatArray]) -> bool:
    """Return whether a list of contexts begins with the very arrays of another.

    Pending picks are only ever appended or removed, so that all before one that kept its place
    kept theirs.
    """
    return not start or (len(start) <= len(whole) and whole[len(start) - 1] is start[-1])
