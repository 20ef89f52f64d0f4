"""One arm of the bounded model: a factor of fixed size and the last rows beside it.

With φ = L⁻¹k_Z(x), δ = max(k(x, x) − |φ|², 0) and w = 1/(ridge + δ) at every observed context, an
arm is a linear regression on φ in which every reward has a noise of its own, ridge + δ (Snelson and
Ghahramani, "Sparse Gaussian Processes using Pseudo-inputs", 2006, known as FITC); where a reward
was told with noise, that is added, and takes the ridge's place together with it. Keep R with
RᵀR = I + Σ w·φφᵀ and z = R⁻ᵀ Σ w·φ·y. At a context, q = R⁻ᵀφ gives

    mean = q·z        std² = δ + |q|²

A new row is not folded into R at once, which would cost O(m²) and spoil R's cache lines, but kept
beside it: with V the rows √w·q of up to 64 new observations, C·Cᵀ = I + V·Vᵀ and innovations
s = C⁻¹(√w·y − V·z),

    v = C⁻¹Vq        mean = q·z + v·s        std² = δ + |q|² − |v|²

Rounding: R changes by orthogonal transformations only, so its relative error grows with the number
of folds times the unit roundoff at most, however ill-conditioned it is; z goes through the same
transformations, and no sum of rewards is ever solved with. |v|² is subtracted from |q|², and 64
rows cannot explain so much of |q|² that more than two or three digits cancel. C's pivots are at
least 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtpmqrt, dtpqrt, dtrtri

from contextgap.base.arrays import FloatArray, Rows
from contextgap.base.components import lazy
from contextgap.models.arm import MEAN_ROUNDING, new_rows, root
from contextgap.models.base import Posterior, Predictor
from contextgap.models.dictionary import Statistics
from contextgap.models.factor import PanelFactor, Triangle
from contextgap.models.observations import check_floats

if TYPE_CHECKING:
    from contextgap.models.bounded import BoundedModel

FOLD = 64  # rows kept beside the factor
_BLOCK = 32  # columns that LAPACK transforms at once


class Folded(NamedTuple):
    """The part of an arm that is in its factor; never changed, only replaced."""

    root: Triangle  # Rᵀ
    # R⁻ᵀ Σ w·φ·y and R⁻ᵀ Σ w·φ, shape (2, m): the second is for the prior mean, which may change.
    fit: FloatArray
    unexplained: float  # Σ ln(1 + δ/ridge)


class Beside:
    """The rows that are not folded in yet, and pending picks, which never are."""

    def __init__(self, size: int) -> None:
        self.scaled = Rows(size)  # √w·φ
        self.rows = Rows(size)  # V: √w·q
        self.told = Rows(2)  # √w·y and √w
        self.innovations = Rows(2)  # s, and the same for rewards that are all 1
        self.factor = PanelFactor()  # C
        self.gain = 0.0
        self.unexplained = 0.0
        self.assumed: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self.told)

    def solved(self, q: FloatArray) -> FloatArray:
        """Return C⁻¹Vq, pending picks included."""
        v = np.asarray(self.rows.view @ q)
        self.factor.solve(v)
        return v

    def solved_many(self, q: FloatArray, assumed: bool = True) -> FloatArray:
        """Return C⁻¹Vq for the columns of q."""
        v = self.rows.view[: None if assumed else len(self)] @ q
        self.factor.solve_many(v)
        return np.asarray(v)

    def truncate(self, size: int) -> None:
        """Forget pending picks and all rows from ``size`` on."""
        for each in (self.scaled, self.rows, self.told, self.innovations):
            each.truncate(size)
        self.factor.truncate(size)
        self.assumed = []


class BoundedArm:
    """The posterior of one arm, given φ and δ, from ``size`` inducing points."""

    def __init__(self, ridge: float, size: int) -> None:
        self.ridge = ridge
        self.folded = Folded(Triangle.of(np.eye(size)), np.zeros((2, size)), 0.0)
        self.beside = Beside(size)
        self._log_determinant = 0.0

    @property
    def gain_bracket(self) -> tuple[float, float]:
        """Bounds on the exact ½ ln det(I + K/ridge).

        With Q = ΦᵀΦ, E = K − Q, which has the diagonal δ, and D = I + diag(δ)/ridge, the lower one
        is ½ ln det(I + D⁻¹Q/ridge) and follows from K ≥ Q and D ≥ I. The upper one adds ln det D:
        det(I + K/ridge) ≤ det(I + Q/ridge)·det(I + E/ridge), of which the first is at most
        det(D + Q/ridge) = det D·det(I + D⁻¹Q/ridge) and the second at most det D, by Hadamard.
        """
        least = self._log_determinant + self.beside.gain
        return least, least + self.folded.unexplained + self.beside.unexplained

    def solve(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q and v at one context."""
        q = self.folded.root.solve(features)
        return q, self.beside.solved(q)

    def solve_many(self, features: FloatArray, assumed: bool) -> tuple[FloatArray, FloatArray]:
        """Return q and v at contexts, as columns."""
        q = features.copy()
        self.folded.root.solve_many(q)
        return q, self.beside.solved_many(q, assumed)

    def mean(self, q: FloatArray, v: FloatArray, prior: float) -> FloatArray:
        """Return the mean less the prior; v may have entries of pending picks."""
        fit, late = self.folded.fit[0], self.beside.innovations.view[:, 0]
        if prior != 0:
            fit = fit - prior * self.folded.fit[1]
            late = late - prior * self.beside.innovations.view[:, 1]
        return np.asarray(fit @ q + late @ v[: len(late)])

    def observe(
        self,
        features: FloatArray,
        residual: float,
        solved: Any,
        reward: float,
        noise: float = 0.0,
    ) -> None:
        """Take in one reward, with noise besides the ridge, at a context with these q and v."""
        self.retract()
        beside, told = self.beside, np.array([reward, 1.0])
        q, v = solved[0], solved[1][: len(beside)]
        expected = self.folded.fit @ q + v @ beside.innovations.view
        weight, pivot = self._append(features, residual + noise, q, v)
        beside.told.append(weight * told)
        beside.innovations.append(weight * (told - expected) / pivot)
        beside.gain += math.log(pivot)
        beside.unexplained += math.log1p(residual / (self.ridge + noise))
        if len(beside) == FOLD:
            self._set_folded(self.all_folded())

    def assume(self, context: FloatArray, features: FloatArray, residual: float) -> None:
        """Count an observation whose reward is not known yet."""
        self._append(features, residual, *self.solve(features))
        self.beside.assumed.append(context)

    def assume_many(
        self, contexts: Sequence[FloatArray], features: FloatArray, residual: FloatArray
    ) -> None:
        """Count many, with features as columns."""
        q, v = self.solve_many(features, assumed=True)
        weights, beside = 1.0 / np.sqrt(self.ridge + residual), self.beside
        q *= weights
        rows = new_rows(v * weights, q.T @ q, np.ones(len(contexts)))
        beside.scaled.extend((features * weights).T)
        beside.rows.extend(q.T)
        for n, row in enumerate(rows, len(v)):
            beside.factor.append(row[:n], float(row[n]))
        beside.assumed.extend(contexts)

    def retract(self) -> None:
        """Forget pending picks."""
        if self.beside.assumed:
            self.beside.truncate(len(self.beside))

    def absorb(self, statistics: Statistics) -> None:
        """Take in many rewards at once."""
        folded = self.all_folded()
        upper = folded.root.transposed()
        lower = cholesky(upper.T @ upper + statistics.gram, lower=True)
        moments = folded.fit @ upper + statistics.moments
        root = Triangle.of(lower)
        fit = np.stack([root.solve(each) for each in moments])
        unexplained = folded.unexplained + statistics.unexplained
        self._set_folded(Folded(root, fit, unexplained))

    def all_folded(self) -> Folded:
        """Return what R and z are with all rows folded in; changes nothing."""
        folded, beside, count = self.folded, self.beside, len(self.beside)
        if not count or not folded.root.size:
            return folded._replace(unexplained=folded.unexplained + beside.unexplained)
        scaled = np.array(beside.scaled.view[:count], order="F")  # a copy, which is overwritten
        upper, reflectors, triangles, _ = dtpqrt(
            0,
            min(_BLOCK, folded.root.size),
            folded.root.transposed(),
            scaled,
            overwrite_a=1,
            overwrite_b=1,
        )
        told = np.asfortranarray(beside.told.view)
        fit, _, _ = dtpmqrt(0, reflectors, triangles, folded.fit.T, told, trans="T")
        # Householder's diagonal may be negative; exports, and logarithms, want it positive.
        sign = np.where(upper.diagonal() < 0, -1.0, 1.0)
        upper *= sign[:, None]
        root = Triangle.of_transposed(upper)
        return Folded(root, fit.T * sign, folded.unexplained + beside.unexplained)

    def mark(self) -> tuple[Folded, Beside, int, float, float, float]:
        """Return what ``rewind`` needs."""
        beside = self.beside
        sums = beside.gain, beside.unexplained, self._log_determinant
        return self.folded, beside, len(beside), *sums

    def rewind(self, mark: tuple[Folded, Beside, int, float, float, float]) -> None:
        """Undo all observations since ``mark``."""
        self.folded, self.beside, size, gain, unexplained, self._log_determinant = mark
        self.beside.truncate(size)
        self.beside.gain, self.beside.unexplained = gain, unexplained

    def snapshot(self) -> BoundedArm:
        """Return a copy that later observations do not change."""
        return self.restored(self.ridge, self.folded.root.size, self.arrays())

    def arrays(self) -> dict[str, FloatArray]:
        """Return the state as arrays, for a file; pending picks are left out."""
        self.retract()
        beside, folded = self.beside, self.folded
        return {
            "root": folded.root.packed,
            "fit": folded.fit,
            "scaled": beside.scaled.view,
            "rows": beside.rows.view,
            "told": beside.told.view,
            "innovations": beside.innovations.view,
            "corner": beside.factor.packed(),
            "sums": np.array([folded.unexplained, beside.unexplained]),
        }

    @classmethod
    def restored(cls, ridge: float, size: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the arm that ``arrays`` was called on; raise ``ValueError`` if it is invalid."""
        late = len(arrays["told"])
        if late >= FOLD:
            raise ValueError(f"an arm has {late} rows beside its factor, more than it may have")
        for name, shape in _shapes(size, late).items():
            check_floats(arrays[name], shape)
        other = cls(ridge, size)
        folded_sum, beside_sum = arrays["sums"].tolist()
        folded = Folded(Triangle(arrays["root"], size), arrays["fit"], folded_sum)
        if size and folded.root.diagonal.min() <= 0:
            raise ValueError("a factor's diagonal is not positive")
        other._set_folded(folded)
        beside = other.beside
        for name in ("scaled", "rows", "told", "innovations"):
            setattr(beside, name, Rows.of(arrays[name]))
        beside.factor = PanelFactor.from_packed(arrays["corner"], late)
        beside.unexplained = beside_sum
        for pivot in beside.factor.diagonal.tolist():  # in order, so that no bit differs
            beside.gain += math.log(pivot)
        return other

    def _append(
        self, features: FloatArray, noise: float, q: FloatArray, v: FloatArray
    ) -> tuple[float, float]:
        """Add a row to V and C, with noise besides the ridge; return √w and the pivot."""
        weight = 1.0 / math.sqrt(self.ridge + noise)
        left = max(float(q @ q - v @ v), 0.0)
        pivot = math.sqrt(1.0 + weight**2 * left)
        self.beside.scaled.append(weight * features)
        self.beside.rows.append(weight * q)
        self.beside.factor.append(weight * v, pivot)
        return weight, pivot

    def _set_folded(self, folded: Folded) -> None:
        self.folded, self.beside = folded, Beside(folded.root.size)
        self._log_determinant = float(np.log(folded.root.diagonal).sum())  # ½ ln det RᵀR


def _shapes(size: int, late: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an arm's arrays in files, with so many rows beside the factor."""
    return {
        "root": (size * (size + 1) // 2,),
        "fit": (2, size),
        "scaled": (late, size),
        "rows": (late, size),
        "told": (late, 2),
        "innovations": (late, 2),
        "corner": (late * (late + 1) // 2,),
        "sums": (2,),
    }


ARRAYS = tuple(_shapes(0, 0))  # of an arm in files


def squares(columns: FloatArray) -> FloatArray:
    """Return the sum of squares of every column."""
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


_PANEL = 64  # rows of an inverse that are used at once; of what is above its diagonal, few
_NUMBERS = 2**23  # numbers held at once
# Contexts, for each number that one of them takes, from which on preparing inverses pays.
_MANY = 4


class _Inverses:
    """T⁻¹ of some lower triangles of the same size, in panels of rows one above the other."""

    def __init__(self, triangles: Sequence[Triangle]) -> None:
        inverses = [dtrtri(each.transposed())[0].T for each in triangles]
        size = triangles[0].size
        self._count = len(triangles)
        self._panels = [
            np.vstack([each[first : first + _PANEL, : first + _PANEL] for each in inverses])
            for first in range(0, size, _PANEL)
        ]

    def times(self, columns: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield rows of T⁻¹·columns: which, and their values for every T."""
        for place, panel in enumerate(self._panels):
            end = panel.shape[1]
            product = panel @ columns[:end]
            yield slice(place * _PANEL, end), product.reshape(self._count, -1, columns.shape[1])


class _Prepared(NamedTuple):
    """What posteriors are computed from: all rows of all arms folded in."""

    prior: float
    fits: FloatArray  # R⁻ᵀ Σ w·φ·(y − prior), a row for each arm
    like: Posterior  # whose means and deviations are to be replaced
    lower: _Inverses
    roots: _Inverses


class BoundedPredictor(Predictor):
    """Posteriors by products with inverses, and means by products with kernel values.

    A triangular solve and a product with the inverse of the triangle take the same operations. But
    all arms ask about the same φ, so their inverses, one above the other, make one large product of
    it; and numpy lets other threads run during a product, which scipy does not during a solve.
    q = R⁻ᵀφ by the inverse of Rᵀ is as accurate as by a solve, since RᵀR is at least I, and φ by
    the inverse of L since every diagonal entry of L is above a tenth of √ridge.
    """

    model: BoundedModel

    def posterior(self, contexts: FloatArray, among: int = 0) -> Posterior:
        """Return what ``BoundedModel.posterior`` does, to rounding."""
        enough = among >= _MANY * self.model.numbers_per_context
        if not enough or not len(self.model.dictionary):
            return self.model.posterior(contexts, self.arms)
        mean, variance = np.empty((2, len(self.arms), len(contexts)))
        size = max(64, _NUMBERS // (2 * len(self.model.dictionary) + len(self.arms) * _PANEL))
        for first in range(0, len(contexts), size):
            block = slice(first, first + size)
            mean[:, block], variance[:, block] = self._block(contexts[block])
        return self._prepared.like._replace(mean=mean.T.copy(), std=root(variance.T.copy()))

    def means(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prior's mean plus kernel values times weights."""
        model, (weights, largest) = self.model, self._weights
        if len(model.dictionary):
            mean = model.kernel(contexts, model.dictionary.points) @ weights
            mean += model.prior()
        else:
            mean = np.full((len(contexts), len(self.arms)), model.prior())
        deviation = np.sqrt(np.maximum(model.kernel.diagonal(contexts), 0.0))
        return mean, MEAN_ROUNDING * (abs(model.prior()) + largest * deviation)

    @lazy
    def _weights(self) -> tuple[FloatArray, float]:
        """Weights of kernel values, a column for each arm, and a bound on a mean's terms' sizes."""
        model = self.model
        weights = np.stack([model.weights(arm) for arm in self.arms], axis=1)
        if not len(model.dictionary):
            return weights, 0.0
        # |k(x, y)|² ≤ k(x, x)·k(y, y) bounds the terms of a mean, whose rounding could decide.
        own = float(model.kernel.diagonal(model.dictionary.points).max())
        return weights, float(np.abs(weights).sum(axis=0).max()) * math.sqrt(own)

    @lazy
    def _prepared(self) -> _Prepared:
        model, prior = self.model, self.model.prior()
        folded = [model.arm(arm).all_folded() for arm in self.arms]
        fits = np.stack([arm.fit[0] - prior * arm.fit[1] for arm in folded])
        lower, roots = _Inverses([model.dictionary.factor]), _Inverses([arm.root for arm in folded])
        like = model.posterior(model.dictionary.points[:0], self.arms)
        return _Prepared(prior, fits, like, lower, roots)

    def _block(self, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances, arms by contexts."""
        model, (prior, fits, _, lower, roots) = self.model, self._prepared
        values = np.ascontiguousarray(model.kernel(model.dictionary.points, contexts))
        features = np.empty_like(values)
        for rows, (product,) in lower.times(values):
            features[rows] = product
        residual = np.maximum(model.kernel.diagonal(contexts) - squares(features), 0.0)
        mean = np.full((len(fits), len(contexts)), prior)
        variance = np.tile(residual, (len(fits), 1))
        for rows, q in roots.times(features):
            mean += (fits[:, None, rows] @ q)[:, 0]
            variance += np.einsum("aij,aij->aj", q, q)
        return mean, variance
