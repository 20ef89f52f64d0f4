"""Exact posteriors of arms that share what they learn.

All observations are one Gaussian process over pairs of a context and an arm, with covariance
k(x, x')·B[a, a'], where B says how alike arms are. With L·Lᵀ = K∘B + ridge·I over all n
observations, one matrix serves all arms: M = L⁻¹, its columns grouped by the arm that was observed.
The part of the context's kernel values that belongs to arm a gives u_a = M_a·k_a, and

    v_b = Σ_a B[b, a]·u_a        mean_b = m + v_b·(z − m·w)        std_b² = k(x, x) − v_b·v_b

so all arms together cost one read of M, n² numbers. An observation appends one row to L and to M,

    row of M = (−vᵀM, 1)/d        d = √(variance + ridge)

A new column of M is zero above the new row, so rows are only ever written at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray, Rows
from contextgap.base.components import lazy
from contextgap.kernels import Gaussian, Kernel
from contextgap.kernels.categories import Spread, deviations
from contextgap.models.arm import ROUNDING, factorised, new_rows, pivot, pivots, root
from contextgap.models.base import (
    MOST_POOLED,
    NOTHING_PENDING,
    History,
    KeepsHistory,
    LeftOut,
    Model,
    Pending,
    Pooled,
    Posterior,
    SharedSupport,
    Support,
    is_places,
)
from contextgap.models.factor import reserved
from contextgap.models.follower import JointFollower, starts_with
from contextgap.models.observations import Observations, check_floats
from contextgap.tables.columns import Layout

# Similarities of features do not fall below this: exports divide by them.
_LEAST = 1e-12


class Features(NamedTuple):
    """Features of arms, a row for each; the last ``categories`` of them are codes."""

    rows: FloatArray
    categories: int = 0

    def of(self, arms: Sequence[int]) -> Features:
        """Return the features of some arms."""
        return Features(self.rows[list(arms)], self.categories)

    @property
    def usual_bandwidths(self) -> FloatArray:
        """Bandwidths before any are learnt: √p standard deviations over arms."""
        count = self.rows.shape[1]
        if len(self.rows) < 2:
            return np.ones(count)
        spread = Spread.of([self.rows], Layout(tuple(range(count)), self.categories))
        return deviations(spread.columns(self.rows), spread.tied)


@dataclass(frozen=True)
class Alike:
    """Correlations of arms: B = sharing · F + (1 − sharing) · I.

    Without features F is 1 everywhere. With them F is a Gaussian kernel of the features: arms with
    the same features have the correlation ``sharing``, and distant ones have nothing in common.
    """

    sharing: float  # above 0 and below 1
    features: tuple[tuple[float, ...], ...] | None = None  # one tuple of numbers per arm
    bandwidths: tuple[float, ...] = ()  # of the features
    categories: int = 0  # how many features at the end are codes of categories

    def __post_init__(self) -> None:
        sharing = checks.positive("sharing", self.sharing, "a correlation such as 0.5")
        if sharing >= 1:
            raise ValueError(f"sharing must be below 1, got {self.sharing!r}")
        object.__setattr__(self, "sharing", sharing)
        widths = [checks.positive("bandwidths", width, "of features") for width in self.bandwidths]
        object.__setattr__(self, "bandwidths", tuple(widths))
        if self.features is None:
            return
        rows = tuple(tuple(checks.real("features", x) for x in row) for row in self.features)
        if any(len(row) != len(widths) for row in rows):
            raise ValueError(f"features must have {len(widths)} numbers per arm, one per bandwidth")
        object.__setattr__(self, "features", rows)

    @lazy
    def similar(self) -> FloatArray:
        """F, shape (arms, arms); a single 1 without features."""
        if self.features is None:
            return np.ones((1, 1))
        kernel = Gaussian(self.bandwidths, categories=self.categories)
        points = np.array(self.features).reshape(len(self.features), -1)
        return np.asarray(np.maximum(kernel(points, points), _LEAST))

    def matrix(self, n_arms: int) -> FloatArray:
        """Return B, shape (arms, arms)."""
        return np.asarray(self.sharing * self.similar + (1 - self.sharing) * np.eye(n_arms))

    def with_arm(self, features: Sequence[float] | None) -> Alike:
        """Return the correlations with one more arm."""
        if self.features is None or features is None:
            return self
        return replace(self, features=(*self.features, tuple(features)))

    def settings(self) -> dict[str, Any]:
        """Return everything as plain values."""
        if self.features is None:
            return {"sharing": self.sharing}
        codes = {"categories": self.categories} if self.categories else {}
        return {
            "sharing": self.sharing,
            "features": [list(row) for row in self.features],
            "bandwidths": list(self.bandwidths),
            **codes,
        }


_BLOCK = 2**21  # numbers of v held at once, for all arms together
_CHUNK = 512  # observations of a large batch taken in at once
_FIRST = 4096  # the same where nothing is known yet: one factorisation and one inversion
_ROWS = 256  # rows that are computed at once where there are many
_TINY = float(np.finfo(np.float64).tiny)


class GroupedInverse:
    """The inverse M of a growing Cholesky factor, its columns grouped by arm."""

    def __init__(self, n_arms: int) -> None:
        self.size = 0
        self.counts = [0] * n_arms
        self._written = 0  # rows that may hold something, also of a call that was interrupted
        self._groups = [np.zeros((16, 16)) for _ in range(n_arms)]

    def group(self, arm: int) -> FloatArray:
        """Return the columns of an arm's observations, shape (n, own)."""
        return self._groups[arm][: self.size, : self.counts[arm]]

    def add_arm(self) -> None:
        """Add a group without columns."""
        self.counts.append(0)
        self._groups.append(np.zeros((max(16, self.size), 16)))

    def extend(self, rows: FloatArray, corner: FloatArray, arms: IntArray) -> None:
        """Add the rows [Vᵀ, C] of L: rows holds Vᵀ, shape (new, n); corner, C, is spoilt."""
        first, end = self.size, self.size + len(rows)
        self._written = max(self._written, end)
        own = dtrtri(corner.T, lower=0, overwrite_c=1)[0].T
        for arm, count in enumerate(self.counts):
            below = -own @ (rows @ self.group(arm)) if count else 0.0
            self.reserve(arm, end, count)[first:end, :count] = below
        for arm in np.unique(arms).tolist():
            new, count = np.flatnonzero(arms == arm), self.counts[arm]
            group = self.reserve(arm, end, count + len(new))
            for start in range(0, len(rows), _ROWS):  # memory that stays zero is never touched
                part = own[start : start + _ROWS]
                some = new[: np.searchsorted(new, start + len(part))]
                place = slice(first + start, first + start + len(part))
                group[place, count : count + len(some)] = part.take(some, axis=1)
            self.counts[arm] = count + len(new)
        self.size = end

    def truncate(self, size: int, counts: Sequence[int]) -> None:
        """Forget all rows from ``size`` on, and the columns behind the first ``counts``."""
        written = max(self._written, self.size)
        for arm, count in enumerate(counts):
            group = self._groups[arm]
            group[size:written, count:] = 0.0  # a later column must be zero above its first row
        self.size, self.counts, self._written = size, list(counts), size

    def snapshot(self) -> GroupedInverse:
        """Return an inverse that stays as it is; rows are shared, not copied."""
        other = GroupedInverse(0)
        other.size, other.counts, other._groups = self.size, list(self.counts), list(self._groups)
        return other

    def reserve(self, arm: int, rows: int, columns: int) -> FloatArray:
        """Return a group with room for so many rows and columns."""
        self._groups[arm] = reserved(self._groups[arm], rows, columns)
        return self._groups[arm]


class JointModel(Model, KeepsHistory):
    """Exact posteriors of arms that are ``Alike``, updated in O(n²) per observation of any arm."""

    kind = "joint"
    related = True
    shares = True

    def __init__(
        self,
        kernel: Kernel,
        ridge: float,
        n_arms: int,
        prior_mean: float | str = 0.0,
        **alike: Any,
    ) -> None:
        super().__init__(kernel, ridge, n_arms, prior_mean)
        self.alike = Alike(**{"sharing": 0.5, **alike})
        if self.alike.features is not None and len(self.alike.features) != n_arms:
            raise ValueError(f"features must be those of {n_arms} arms")
        self._inverse = GroupedInverse(n_arms)
        self._z, self._w = Rows(), Rows()
        self._gain = 0.0
        # Picks that are counted as made: by arm, and in the order of their rows.
        self._assumed: dict[int, list[FloatArray]] = {}
        self._late: list[tuple[FloatArray, int]] = []
        # What was computed for the last single context: tell usually follows ask.
        self._asked: tuple[tuple[bytes, int], FloatArray] | None = None

    def settings(self) -> dict[str, Any]:
        return self.alike.settings()

    def information_gain(self, arms: Sequence[int]) -> FloatArray:
        """Return ½ ln det(I + K∘B/ridge) of all observations, for each arm."""
        return np.full(len(arms), self._gain)

    def add_arm(self, features: Sequence[float] | None = None) -> None:
        """Add an arm without observations, about which the others say something."""
        self.alike = self.alike.with_arm(features)
        self.observed.add_arm()
        self._inverse.add_arm()
        self._asked = None

    def observe(self, context: FloatArray, arm: int, reward: float, noise: float = 0.0) -> None:
        own = np.array([noise]) if noise else None
        self.observe_many(context[None], np.array([arm]), np.array([reward]), own)

    def observe_many(
        self,
        contexts: FloatArray,
        arms: IntArray,
        rewards: FloatArray,
        noise: FloatArray | None = None,
    ) -> None:
        self.assume(NOTHING_PENDING)
        variances = np.full(len(arms), self.ridge) if noise is None else self.ridge + noise
        end = 0
        while end < len(arms):
            most = min(_CHUNK, 4 * _BLOCK // (self.n_arms * len(self))) if len(self) else _FIRST
            chunk = slice(end, end + max(16, most))
            end = chunk.stop
            rows = self._new_rows(contexts[chunk], arms[chunk], variances[chunk])
            n, new = len(self), len(rows)
            lower = rows[:, n:]
            targets = np.stack([rewards[chunk], np.ones(new)], axis=1)
            known = np.stack([self._z.view, self._w.view], axis=1)
            left = targets - rows[:, :n] @ known
            z, w = (left / lower if new == 1 else solve_triangular(lower, left, lower=True)).T
            self._z.extend(z)
            self._w.extend(w)
            # As from a file, which has M, to the last bit.
            for entry, own in zip(lower.diagonal().tolist(), variances[chunk], strict=True):
                self._gain -= math.log(1.0 / entry) + 0.5 * math.log(own)
            self._inverse.extend(rows[:, :n], lower, arms[chunk])
            own_noise = None if noise is None else noise[chunk]
            self.observed.extend(contexts[chunk], arms[chunk], rewards[chunk], own_noise)

    def mark(self) -> tuple[int, list[int], float]:
        return len(self), [self.observed.count(arm) for arm in range(self.n_arms)], self._gain

    def rewind(self, mark: tuple[int, list[int], float]) -> None:
        size, counts, self._gain = mark
        self._inverse.truncate(size, counts)
        self._z.truncate(size)
        self._w.truncate(size)
        self.observed.truncate(size)
        self._assumed, self._late, self._asked = {}, [], None

    def posterior(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Posterior:
        self.assume(pending)
        points = np.atleast_2d(contexts)
        found = self.posterior_from(self._solved(points, arms), points, arms)
        if contexts.ndim == 2:
            return found
        mean, std, covariance = found.mean[0], found.std[0], np.asarray(found.covariance)[0]
        return found._replace(mean=mean, std=std, covariance=covariance)

    def posterior_from(
        self,
        solved: Iterable[tuple[slice, FloatArray]],
        points: FloatArray,
        arms: Sequence[int],
    ) -> Posterior:
        """Return the posterior at points, given blocks of them and v of each arm there."""
        mean = np.empty((len(points), len(arms)))
        covariance = np.empty((len(points), len(arms), len(arms)))
        prior, weights, among = self.prior(), self.weights(), self.among(arms)
        for rows, v in solved:
            by_point = np.moveaxis(v, 2, 0)  # (points, arms, rows of M)
            mean[rows] = prior + by_point[..., : len(weights)] @ weights
            prior_variance = self.kernel.diagonal(points[rows])[:, None, None]
            covariance[rows] = prior_variance * among - by_point @ by_point.swapaxes(1, 2)
        return self._posterior(mean, covariance, self.information_gain(arms))

    def moves(
        self,
        contexts: FloatArray,
        arm: int,
        points: FloatArray,
        pending: Pending = NOTHING_PENDING,
    ) -> FloatArray:
        self.assume(pending)
        every = range(self.n_arms)
        tried = np.concatenate([v[0] for _, v in self._solved(contexts, [arm])], axis=1)
        prior_variance = self.kernel.diagonal(contexts)
        steps = self.pivots(contexts, prior_variance - np.einsum("nm,nm->m", tried, tried))
        alike = self._alike(np.array(every), np.array([arm]))[:, 0]
        moves = self.kernel(points, contexts)[..., None] * alike
        for rows, v in self._solved(points, every):
            moves[rows] -= np.einsum("bnp,nm->pmb", v, tried)
        return np.asarray(moves / steps[:, None])

    def pooled(
        self, contexts: FloatArray, arms: Sequence[int], pending: Pending = NOTHING_PENDING
    ) -> Pooled:
        numbers = self.n_arms * self.rows * len(contexts)
        return (JointPooled if numbers <= MOST_POOLED else Pooled)(self, contexts, arms, pending)

    def follow(self, points: FloatArray | None = None) -> JointFollower:
        return JointFollower(self, points)

    def history(self, contexts: FloatArray, arms: Sequence[int], since: int) -> History:
        self.assume(NOTHING_PENDING)
        prior, n, weights = self.prior(), len(self), self.weights()
        mean = np.full((n - since + 1, len(contexts), len(arms)), prior)
        covariance = np.empty((*mean.shape, len(arms)))
        among = self.among(arms)
        for rows, v in self._solved(contexts, arms):
            by_step = np.moveaxis(v, 0, 2)  # (rows of M, points, arms)
            moved = np.cumsum(by_step * weights[:, None, None], axis=0)
            spent = np.cumsum(by_step[..., None] * by_step[..., None, :], axis=0)
            covariance[:, rows] = self.kernel.diagonal(contexts[rows])[:, None, None] * among
            first = 1 if since == 0 else 0  # before the first observation nothing has moved
            mean[first:, rows] += moved[max(since, 1) - 1 :]
            covariance[first:, rows] -= spent[max(since, 1) - 1 :]
        diagonal = np.array([1.0 / entry for entry in self._diagonal()])
        halves = 0.5 * np.log(self.ridge + self.observed.noise)
        gains = np.concatenate([[0.0], np.cumsum(np.log(diagonal) - halves)])
        whole = self._posterior(mean, covariance, gains[since:, None])
        states = [
            whole._replace(mean=whole.mean[..., i], std=whole.std[..., i], covariance=None)
            for i in range(len(arms))
        ]
        steps = np.tile(np.arange(n - since + 1)[:, None], (1, len(arms)))
        return History(states, steps, covariance)

    def left_out(self, places: IntArray, visits: IntArray, arms: Sequence[int]) -> LeftOut:
        # With c the diagonal of C⁻¹ = MᵀM, α = C⁻¹(y − m) and q = k_bᵀC⁻¹e_i, leaving out
        # observation i moves the mean of arm b by −q·α_i/c_i and its variance by q²/c_i. Where k
        # visits that always observed the same are left out together, c_i becomes 1/ridge −
        # k·(1/ridge − c_i) and both changes are k-fold.
        log = self.observed
        posterior = self.posterior(log.contexts[places], arms)
        covariance = np.asarray(posterior.covariance)
        whole = self._whole()
        own = whole[:, places]
        precision = np.einsum("ni,ni->i", own, own)
        solved = self.weights() @ own
        noise = self.ridge + log.noise[places]
        known = np.maximum(1.0 / noise - precision, 0.0)
        left = np.where(visits == 1, precision, 1.0 / noise - visits * known)
        left = np.maximum(left, _TINY)
        for rows, v in self._solved(log.contexts[places], arms):
            told = np.einsum("bni,ni->ib", v, own[:, rows])
            share = (visits[rows] / left[rows])[:, None]
            posterior.mean[rows] -= told * solved[rows, None] * share
            covariance[rows] += told[:, :, None] * told[:, None] * share[..., None]
        gain = self.information_gain(arms)
        return LeftOut(self._posterior(posterior.mean, covariance, gain), solved / left)

    def cavities(self, places: IntArray) -> tuple[FloatArray, FloatArray]:
        own = self._whole()[:, places]
        precision = np.einsum("ni,ni->i", own, own)
        mean = self.observed.rewards[places] - (self.weights() @ own) / precision
        noise = self.ridge + self.observed.noise[places]
        return mean, np.maximum(1.0 / precision - noise, 0.0)

    def sums(
        self, contexts: FloatArray, arms: Sequence[int], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        self.assume(NOTHING_PENDING)
        chosen = np.asarray(arms, dtype=np.intp)
        gram = self.kernel(contexts, contexts)
        between = self.among(arms)
        variance = np.einsum("kxb,xy,kyc,bc->k", weights, gram, weights, between, optimize=True)
        if not len(self):
            return variance, np.zeros((len(weights), 0))
        spread = weights @ self._alike(chosen, self.observed.arms)  # (k, contexts, observations)
        right = np.einsum("nx,kxn->nk", self.kernel(self.observed.contexts, contexts), spread)
        whole = self._whole()
        v = whole @ right
        return np.maximum(variance - np.einsum("nk,nk->k", v, v), 0.0), v.T @ whole

    def support_sizes(self, arms: Sequence[int]) -> list[int]:
        return [len(self)] * len(arms)

    def supports(self, arms: Sequence[int]) -> list[Support]:
        # With s how alike an arm is to those observed, v = L⁻¹·diag(s)·k: the factor to solve with
        # is diag(s)⁻¹·L.
        self.assume(NOTHING_PENDING)
        whole, n = self._whole(), len(self)
        lower = self._lower(whole)
        weights = self.weights() @ whole
        found = []
        for arm in arms:
            alike = self._alike(np.array([arm]), self.observed.arms)[0]
            packed = (lower / alike[:, None])[np.tril_indices(n)]
            points = self.observed.contexts
            found.append(Support(points, alike * weights, ((1, packed),), self._gain))
        return found

    def shared_support(self, arms: Sequence[int]) -> SharedSupport:
        self.assume(NOTHING_PENDING)
        log = self.observed
        chosen = np.asarray(arms, dtype=np.intp)
        return SharedSupport(
            points=log.contexts,
            whose=log.arms,
            alike=self._alike(chosen, np.arange(self.n_arms)),
            among=self.among(arms),
            factor=self._lower(self._whole())[np.tril_indices(len(self))],
            innovations=self.weights(),
            information_gain=self._gain,
        )

    def snapshot(self) -> Self:
        other = type(self)(self.kernel, self.ridge, 0, self.prior_mean)
        other.alike, other.observed = self.alike, self.observed.snapshot()
        other._inverse = self._inverse.snapshot()
        other._inverse.size = len(self)
        other._inverse.counts = [self.observed.count(arm) for arm in range(self.n_arms)]
        other._z, other._w, other._gain = Rows.of(self._z.view), Rows.of(self._w.view), self._gain
        return other

    def arrays(self) -> dict[str, NDArray[Any]]:
        self.assume(NOTHING_PENDING)
        groups = {f"inverse{arm}": self._inverse.group(arm) for arm in range(self.n_arms)}
        return {**self.observed.arrays(), **groups, "z": self._z.view, "w": self._w.view}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.observed = Observations.restored(arrays, self.n_arms)
        n = len(self)
        for name in ("z", "w"):
            check_floats(arrays[name], (n,))
        self._z, self._w = Rows.of(arrays["z"]), Rows.of(arrays["w"])
        inverse = GroupedInverse(self.n_arms)
        inverse.size, inverse.counts = n, [self.observed.count(arm) for arm in range(self.n_arms)]
        for arm, count in enumerate(inverse.counts):
            check_floats(arrays[f"inverse{arm}"], (n, count))
            inverse.reserve(arm, n, count)[:n, :count] = arrays[f"inverse{arm}"]
        self._inverse, self._gain = inverse, 0.0
        diagonal = self._diagonal()
        if n and diagonal.min() <= 0:
            raise ValueError("an inverse's diagonal is not positive")
        noise = self.ridge + self.observed.noise
        # One by one in order of arrival, so that no bit differs.
        for entry, own in zip(diagonal.tolist(), noise.tolist(), strict=True):
            self._gain -= math.log(entry) + 0.5 * math.log(own)

    def _posterior(self, mean: FloatArray, covariance: FloatArray, gain: FloatArray) -> Posterior:
        std = root(np.diagonal(covariance, axis1=-2, axis2=-1).copy())
        pairs = self.n_arms * (self.n_arms + 1) // 2
        return Posterior(mean, std, gain, self.ridge, 1, covariance, pairs)

    def among(self, arms: Sequence[int]) -> FloatArray:
        """Return how alike some arms are, shape (arms, arms)."""
        chosen = np.asarray(arms, dtype=np.intp)
        return self._alike(chosen, chosen)

    def _alike(self, one: IntArray, two: IntArray) -> FloatArray:
        return self.alike.matrix(self.n_arms)[one[:, None], two]

    def _seen(self) -> tuple[FloatArray, IntArray]:
        """Contexts and arms of all rows, assumed ones after the others."""
        log = self.observed
        if not self._late:
            return log.contexts, log.arms
        late = np.array([context for context, _ in self._late])
        contexts = np.vstack([log.contexts.reshape(-1, late.shape[1]), late])
        return contexts, np.append(log.arms, [arm for _, arm in self._late])

    @property
    def rows(self) -> int:
        """How many rows M has: observations, and picks assumed to be made."""
        return self._inverse.size

    def weights(self) -> FloatArray:
        """Return what v is multiplied with in a mean."""
        return np.asarray(self._z.view - self.prior() * self._w.view)

    def pivots(self, contexts: FloatArray, variance: FloatArray) -> FloatArray:
        """Return √(variance + ridge) of rewards to come, as the factor would have it."""
        return pivots(variance, self.ridge, self.kernel.diagonal(contexts), self.rows)

    def parts(self, points: FloatArray, first: int = 0) -> FloatArray:
        """Return rows of u_a = M_a·k_a for every arm, shape (all arms, rows, points)."""
        single = len(points) == 1 and first == 0
        key = (points.tobytes(), self._inverse.size) if single else None
        asked = self._asked  # once: another thread may replace it meanwhile
        if asked is not None and asked[0] == key:
            return asked[1]
        contexts, whose = self._seen()
        parts = np.zeros((self.n_arms, len(whose) - first, len(points)))
        if len(whose):
            values = self.kernel(contexts, points)
            for arm in range(self.n_arms):
                own = whose == arm if self._late else self.observed.places(arm)
                parts[arm] = self._inverse.group(arm)[first:] @ values[own]
        if key is not None:
            self._asked = key, parts
        return parts

    def _solved(
        self, points: FloatArray, arms: Sequence[int]
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of points, and v of each arm there, shape (arms, rows, points)."""
        size = max(1, _BLOCK // max(1, self._inverse.size * self.n_arms))
        for first in range(0, len(points), size):
            rows = slice(first, min(first + size, len(points)))
            yield rows, self.mixed(self.parts(points[rows]), arms)

    def mixed(self, parts: FloatArray, arms: Sequence[int] | IntArray) -> FloatArray:
        """Return v_b = Σ_a B[b, a]·u_a for some arms b."""
        own = (1 - self.alike.sharing) * parts[list(arms)]
        if self.alike.features is None:
            return np.asarray(self.alike.sharing * parts.sum(axis=0) + own)
        common = self.alike.sharing * self.alike.similar[list(arms)]
        return np.tensordot(common, parts, axes=1) + own

    def _new_rows(self, contexts: FloatArray, arms: IntArray, noise: FloatArray) -> FloatArray:
        """Rows to add to L, [Vᵀ, C]."""
        if len(arms) == 1:  # most rows come alone: without what many need
            v = self.mixed(self.parts(contexts), arms)[0, :, 0]
            prior_variance = float(self.kernel.diagonal(contexts)[0])
            left = prior_variance - float(v @ v)
            step = pivot(left, float(noise[0]), prior_variance, len(v))
            return np.append(v, step)[None]
        if not self._inverse.size:
            corner = self._lower_half(contexts, arms)
            if factorised(corner, noise, ROUNDING * (len(arms) + 1) * corner.diagonal().max()):
                return corner
        parts = self.parts(contexts)
        v = np.empty(parts.shape[1:])
        for arm in np.unique(arms).tolist():
            own = arms == arm
            v[:, own] = self.mixed(parts[:, :, own], [arm])[0]
        gram = self.kernel(contexts, contexts) * self._alike(arms, arms)
        return new_rows(v, gram, noise)

    def _lower_half(self, contexts: FloatArray, arms: IntArray) -> FloatArray:
        """K∘B with zeros above the diagonal; in blocks, since fresh memory takes long to touch."""
        half, alike = np.zeros((len(arms), len(arms))), self.alike.matrix(self.n_arms)
        for first in range(0, len(arms), _ROWS):
            own = slice(first, min(first + _ROWS, len(arms)))
            values = self.kernel(contexts[own], contexts[: own.stop])
            values = values * alike[:, arms[: own.stop]][arms[own]]
            half[own, :first] = values[:, :first]
            half[own, own] = np.tril(values[:, first:])
        return half

    def assume(self, pending: Pending) -> None:
        """Count exactly the pending picks as made."""
        known = self._assumed
        if not all(starts_with(pending.get(arm, ()), known[arm]) for arm in known):
            counts = [self.observed.count(arm) for arm in range(self.n_arms)]
            self._inverse.truncate(len(self), counts)
            self._assumed, self._late, self._asked = {}, [], None
        for arm, waiting in pending.items():
            late = waiting[len(self._assumed.get(arm, ())) :]
            if late:
                contexts, arms, n = np.array(late), np.full(len(late), arm), self._inverse.size
                rows = self._new_rows(contexts, arms, np.full(len(late), self.ridge))
                self._inverse.extend(rows[:, :n], rows[:, n:], arms)
                self._assumed.setdefault(arm, []).extend(late)
                self._late += [(context, arm) for context in late]

    def _whole(self) -> FloatArray:
        """M with columns in order of arrival."""
        whole = np.empty((len(self), len(self)))
        for arm in range(self.n_arms):
            whole[:, self.observed.places(arm)] = self._inverse.group(arm)[: len(self)]
        return whole

    def _lower(self, whole: FloatArray) -> FloatArray:
        """L, from M."""
        n = len(whole)
        return np.asarray(solve_triangular(whole, np.eye(n), lower=True)) if n else whole

    def _diagonal(self) -> FloatArray:
        """The diagonal of M, in order of arrival."""
        diagonal = np.empty(len(self))
        for arm in range(self.n_arms):
            places = self.observed.places(arm)
            diagonal[places] = self._inverse.group(arm)[places, np.arange(len(places))]
        return diagonal


class JointPooled(Pooled):
    """Solves once for all arms, and computes kernel values at the same references once."""

    model: JointModel
    _reference: IntArray | FloatArray | None = None
    _at: tuple[FloatArray, FloatArray]

    @lazy
    def posterior(self) -> Posterior:
        everything = slice(0, len(self.contexts))
        return self.model.posterior_from([(everything, self._solved)], self.contexts, self.arms)

    def covariances(self, arm: int, reference: IntArray | FloatArray) -> FloatArray:
        model = self.model
        if reference is not self._reference:
            points = self.at(reference)
            v = self._solved[:, :, reference] if is_places(reference) else self._v(points)
            self._at = model.kernel(points, self.contexts), v.transpose(0, 2, 1)
            self._reference = reference
        values, at = self._at
        found = -at @ self._solved[arm]  # (arms, references, contexts)
        found += values * model.among(self.arms)[arm][:, None, None]
        return np.moveaxis(found, 0, 2)

    @property
    def floors(self) -> FloatArray:
        prior_variance = self.model.kernel.diagonal(self.contexts)
        floors = ROUNDING * (self.model.rows + 1) * prior_variance
        return np.repeat(floors[:, None], len(self.arms), axis=1)

    @lazy
    def _solved(self) -> FloatArray:
        self.model.assume(self.pending)
        return self._v(self.contexts)

    def _v(self, points: FloatArray) -> FloatArray:
        """Return v of each arm, shape (arms, rows of M, points)."""
        return self.model.mixed(self.model.parts(points), self.arms)
