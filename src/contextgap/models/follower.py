"""Followers keep posteriors up to date at a changing set of points, for each kind of model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dger

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.models.arm import pivot, root
from contextgap.models.base import (
    NOTHING_PENDING,
    Follower,
    LookAhead,
    Model,
    Pending,
    Posterior,
    is_places,
)
from contextgap.models.bounded_arm import BoundedArm, Folded
from contextgap.models.dictionary import Dictionary, Whitened
from contextgap.models.factor import reserved

if TYPE_CHECKING:
    from contextgap.models.bounded import BoundedModel
    from contextgap.models.exact import Asked, ExactModel
    from contextgap.models.joint import JointModel


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

    def row(self, factor_row: FloatArray, values: FloatArray) -> FloatArray:
        """Return a row of V from that of L and kernel values at the points."""
        return np.asarray((values - factor_row[:-1] @ self.rows) / factor_row[-1])

    def append(self, row: FloatArray, error: float, ones_error: float) -> None:
        """Add a row of V, and entries of z and w.

        An assumed observation's entries are 0: it shrinks covariances and leaves the mean.
        """
        self._buffer = reserved(self._buffer, self.size + 1, len(row))
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
        self._buffer = reserved(self._buffer, self.size, end)
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


def carried_over(
    old: IntArray | FloatArray, new: IntArray | FloatArray
) -> tuple[IntArray, IntArray]:
    """Return which of the old reference points to keep, and which of the new to add after them."""
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
        # The last look-ahead: what was asked, arms and moves.
        self._ahead: tuple[Asked, Sequence[int], FloatArray] | None = None
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
        here, asked = model.solved_at(context, arms, pending)
        self._move_to(reference)
        mean, move = np.empty((2, len(self._points) + 1, len(arms)))
        prior, ridge, variance = model.prior(), model.ridge, here.std**2
        steps = [
            pivot(left, ridge, asked.prior_variance, len(asked.solved[arm]))
            for left, arm in zip(variance.tolist(), arms, strict=True)
        ]
        mean[-1], move[-1] = here.mean, variance
        if len(self._points):
            for i, arm in enumerate(arms):
                followed = self._arms[arm]
                mean[:-1, i] = followed.mean(prior)
                np.matmul(asked.solved[arm], followed.rows, out=move[:-1, i])
            seen = is_places(reference)
            values = asked.values[reference] if seen else self._values(context)
            np.subtract(values[:, None], move[:-1], out=move[:-1])
        move /= steps
        self._ahead = asked, arms, move
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
            if len(followed.fit):  # else nothing was followed so far
                self._catch_up(number)
                if len(kept) < before:
                    followed.keep(kept)
        if len(added):
            every = range(len(self._arms))
            for number, columns in enumerate(self.model.solved_by_arm(points[added], every)):
                self._add_points(number, columns)
        self._reference, self._points = reference.copy(), points
        self._seen = len(self.model)

    def _catch_up(self, number: int, told: int | None = None) -> None:
        """Take in an arm's real observations up to ``told``, or all and the assumed ones."""
        arm, followed = self.model.arm(number), self._arms[number]
        end = len(arm) if told is None else told
        same = followed.told == end and len(followed.assumed) == len(arm.assumed)
        if same and starts_with(arm.assumed, followed.assumed):
            return
        contexts, places = self.model.observed.contexts, self.model.rows(number)
        if followed.told < end or not starts_with(arm.assumed, followed.assumed):
            if followed.assumed:
                self._ahead = None
            followed.forget_assumed()
        for i in range(followed.told, end):
            row = self._row(number, contexts[places[i]], float(arm.noise.view[i]))
            followed.append(row, arm.z.view[i], arm.w.view[i])
            followed.told += 1
            noise = float(arm.noise.view[i])
            self._gains[number] += math.log(arm.factor.diagonal[i]) - 0.5 * math.log(noise)
        for context in arm.assumed[len(followed.assumed) :] if told is None else ():
            followed.append(self._row(number, context, arm.ridge), 0.0, 0.0)
            followed.assumed.append(context)

    def _row(self, number: int, context: FloatArray, noise: float) -> FloatArray:
        """Return the next row of an arm's V, which observes it at a context."""
        # It is by how far the last look-ahead found that trying the arm there would move means, if
        # the reward has the noise that it expected.
        followed, usual = self._arms[number], noise == self.model.ridge
        if usual and self._ahead is not None and self._ahead[0].context == context.tobytes():
            asked, arms, move = self._ahead
            if number in arms and len(asked.solved[number]) == followed.size:
                return move[:-1, arms.index(number)]
        row = self.model.arm(number).factor.row(followed.size)
        return followed.row(row, self._values(context))

    def _add_points(self, number: int, columns: FloatArray) -> None:
        arm, followed = self.model.arm(number), self._arms[number]
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
    """Return whether a list of contexts begins with the very arrays of another."""
    # Pending picks are only ever appended or removed, so that all before one that kept its place
    # kept theirs.
    return not start or (len(start) <= len(whole) and whole[len(start) - 1] is start[-1])


class _FollowedBoundedArm:
    """One arm at some points: q of its factor, and the rows beside it as an exact model's rows."""

    def __init__(self, arm: BoundedArm, features: FloatArray) -> None:
        self._folded: Folded
        self.q: FloatArray
        self._fits: FloatArray  # by the factor alone: to the rewards, and to rewards all 1
        self.late: FollowedArm
        self._start(arm, features)

    def catch_up(self, arm: BoundedArm, features: FloatArray) -> None:
        """Take in the arm's new rewards, and pending picks."""
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
            late.append(late.row(beside.factor.row(i), beside.rows.view[i] @ self.q), s, ones)
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
        beside = arm.beside
        if v.shape[1]:
            self.late.add(v, beside.innovations.view[:, 0], beside.innovations.view[:, 1])
        self.late.told, self.late.assumed = len(beside), list(beside.assumed)

    def fit(self, prior: float) -> FloatArray:
        """Return the means at the points, less the prior."""
        fit, ones = self._fits
        return np.asarray(fit + self.late.fit - prior * (ones + self.late.ones))

    def variance(self) -> FloatArray:
        """Return |q|² − |v|² at the points."""
        return np.asarray(np.einsum("ij,ij->j", self.q, self.q) - self.late.explained)

    def _start(self, arm: BoundedArm, features: FloatArray) -> None:
        self._folded, self.late = arm.folded, FollowedArm()
        self.q, self._fits = np.empty((arm.folded.root.size, 0)), np.empty((2, 0))
        self.add(arm, features)


class BoundedFollower(Follower):
    """Follows the bounded model at points of shape (r, d)."""

    model: BoundedModel

    def __init__(self, model: BoundedModel, points: FloatArray | None = None) -> None:
        super().__init__(model, points)
        self._reference = np.empty(0, dtype=np.intp) if points is None else points
        self._dictionary: Dictionary | None = None
        self._whitened = Whitened(np.empty((0, 0)), np.empty(0))
        self._arms: list[_FollowedBoundedArm] = []

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
            self._arms.append(_FollowedBoundedArm(model.arm(number), self._whitened.features))

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


class JointFollower(Follower):
    """Follows reference points of look-aheads from reward to reward.

    u_a = M_a·k_a at a point gets one entry per reward, and no entry changes later. So a point once
    followed costs O(n) per reward instead of O(n²).
    """

    model: JointModel

    def __init__(self, model: JointModel, points: FloatArray | None = None) -> None:
        super().__init__(model, points)
        self._keys: list[bytes] = []
        self._contexts = np.empty((0, 0))
        self._rows = 0
        self._parts = np.empty((0, 0, 0))  # (arms, rows with some to spare, references)

    def look_ahead(
        self,
        context: FloatArray,
        arms: Sequence[int],
        reference: IntArray | FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> LookAhead:
        model, here = self.model, context[None]
        model.assume(NOTHING_PENDING)
        self._follow(self._contexts_of(reference).reshape(-1, len(context)))
        model.assume(pending)
        followed, known = self._parts[:, : self._rows], len(model)
        if model.rows > known:  # of picks still to come, which may come otherwise
            late = model.parts(self._contexts, first=known)
            followed = np.concatenate([followed, late], axis=1)
        at_context = model.mixed(model.parts(here), arms)
        solved = np.concatenate([model.mixed(followed, arms), at_context], axis=2)
        tried = at_context[:, :, 0]
        points = np.vstack([self._contexts, here])
        covariance = model.kernel(points, here)[:, :, None] * model.among(arms)
        covariance -= np.einsum("bnr,an->rab", solved, tried, optimize=True)
        own = covariance[-1].diagonal()
        move = covariance / model.pivots(here, own)[:, None]
        weights = model.weights()
        mean = model.prior() + np.einsum("n,bnr->rb", weights, solved[:, :known])
        return LookAhead(mean, move)

    def _follow(self, contexts: FloatArray) -> None:
        """Have exactly these points followed, up to the last reward."""
        keys = [row.tobytes() for row in contexts]
        model, rows = self.model, len(self.model)
        if len(self._parts) != model.n_arms or self._rows > rows:
            self._keys, self._rows, self._parts = [], 0, np.empty((model.n_arms, 0, 0))
        if keys != self._keys:
            self._exchange(keys, contexts)
        self._contexts = contexts
        if self._parts.shape[1] < rows:
            grown = np.empty((model.n_arms, 2 * rows, len(keys)))
            grown[:, : self._rows] = self._parts[:, : self._rows]
            self._parts = grown
        if self._rows < rows:
            self._parts[:, self._rows : rows] = model.parts(contexts, first=self._rows)
        self._rows = rows

    def _exchange(self, keys: list[bytes], contexts: FloatArray) -> None:
        """Follow other points; those followed before keep what was computed."""
        places = {key: place for place, key in enumerate(self._keys)}
        kept = [i for i, key in enumerate(keys) if key in places]
        new = [i for i, key in enumerate(keys) if key not in places]
        parts = np.empty((self.model.n_arms, max(self._rows, self._parts.shape[1]), len(keys)))
        if self._rows:
            old = [places[keys[i]] for i in kept]
            parts[:, : self._rows, kept] = self._parts[:, : self._rows, old]
            parts[:, : self._rows, new] = self.model.parts(contexts[new])[:, : self._rows]
        self._parts, self._keys = parts, keys


_MOST = 192  # contexts of a block
_NUMBERS = 2**17  # covariances of a block that a pick may change, about: what caches hold


class Batch:
    """The posterior of some arms at contexts, each of which is tried in order.

    A pick counts as an observation whose reward equals its expectation: means stay, and covariances
    C shrink. With c the covariances with the arm picked, at the context where it is picked,

        C −= c·cᵀ/(variance there + ridge)

    So covariances within a block of contexts, and with reference points of look-aheads, are
    computed at once, and every pick changes them by an outer product.

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
