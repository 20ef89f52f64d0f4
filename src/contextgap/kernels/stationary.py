"""Kernels of the difference between two contexts."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.kernels.base import Kernel, check_count, per_dimension
from contextgap.kernels.categories import Categorical, Spread, deviations, unlike, weights
from contextgap.tables.contexts import ContextSchema

_HINT = "about the distance over which rewards change"
_TINY = 1e-20
# exp is much slower where it underflows, and subnormal numbers slow down everything computed from
# them, so values below 1e-130 become 1e-130.
_LOWEST = -300.0
_FEW = 256  # differences that are not worth loading scipy.spatial
_MANY = 2**14  # number of pairs from which a matrix product is faster
_WIDE = 12  # numbers per context from which it is worth losing some digits


def _ones(count: int) -> FloatArray:
    ones = np.empty(count)
    ones.fill(1.0)  # np.ones takes several times as long for a few
    return ones


def squared_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    """|left − right|² for all pairs."""
    if left.shape[1] == 1:  # twice as fast, and what a live loop in one dimension does most
        with np.errstate(over="ignore"):  # infinitely far apart is fine
            difference = left - right.T
            return np.square(difference, out=difference)
    few = left.shape[1] < 8 and len(left) * right.size <= _FEW
    if few and "scipy.spatial" not in sys.modules:
        with np.errstate(over="ignore"):
            difference = left[:, None] - right
            np.square(difference, out=difference)
            squared: FloatArray = difference.sum(axis=2)  # in order, as cdist: the same bits
            return squared
    return scipy_cdist()(left, right, "sqeuclidean")


@cache
def scipy_cdist() -> Callable[..., FloatArray]:
    """Return scipy's function, which is loaded when it is first needed: that takes long."""
    from scipy.spatial.distance import cdist

    return cdist


def _squared_distance(
    left: FloatArray, right: FloatArray, bandwidth: Any, times: float
) -> FloatArray:
    """Times · |left − right|² in units of the bandwidth, of numbers."""
    if not left.shape[1]:
        return np.zeros((len(left), len(right)))
    if isinstance(bandwidth, float):
        squared = squared_distances(left, right)
        if bandwidth > _TINY:
            squared *= times * bandwidth**-2
            return squared
        with np.errstate(over="ignore"):  # infinitely far apart is fine
            squared /= bandwidth
            squared /= bandwidth  # twice: the square of so little is zero
    else:
        scale = np.asarray(bandwidth)
        squared = squared_distances(left / scale, right / scale)
    squared *= times
    return squared


def _exponential(exponent: FloatArray) -> FloatArray:
    """exp(exponent), overwriting it."""
    np.maximum(exponent, _LOWEST, out=exponent)
    return np.exp(exponent, out=exponent)


@dataclass(frozen=True)
class Stationary(Categorical):
    """A kernel of the distance between two contexts in units of the bandwidth.

    The bandwidth is one number, or one per dimension. Codes of categories that differ are at
    distance 1.
    """

    bandwidth: float | Sequence[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bandwidth", per_dimension("bandwidth", self.bandwidth, _HINT))

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return _ones(len(contexts))

    def check_dimension(self, dimension: int) -> None:
        super().check_dimension(dimension)
        check_count("bandwidth", self.bandwidth, dimension)

    @abstractmethod
    def at_distances(self, squared: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values at squared distances, and −2 · their derivatives by them.

        Distances are in units of the bandwidth, and are overwritten. The derivatives times
        (x_j − y_j)²/bandwidth_j² are those with respect to ln bandwidth_j.
        """

    def _squared_distance(
        self, left: FloatArray, right: FloatArray, times: float = 1.0
    ) -> FloatArray:
        """Times · |left − right|² in units of the bandwidth."""
        if not self.categories:
            return _squared_distance(left, right, self.bandwidth, times)
        numbers = left.shape[1] - self.categories
        squared = _squared_distance(
            left[:, :numbers], right[:, :numbers], self._bandwidth_of(numbers), times
        )
        squared += times * self._unlike(left, right)
        return squared

    def _bandwidth_of(self, numbers: int) -> Any:
        """Return the bandwidth of the numbers before the codes."""
        return self.bandwidth if isinstance(self.bandwidth, float) else self.bandwidth[:numbers]

    def _unlike(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the squared distances between codes, in units of the bandwidth."""
        codes = slice(-self.categories, None)
        weight = weights(self.bandwidth, self.categories)
        return unlike(left[:, codes], right[:, codes], weight)


@dataclass(frozen=True)
class Gaussian(Stationary):
    """The Gaussian kernel exp(−|x − y|² / (2 bandwidth²)).

    Parameters
    ----------
    bandwidth
        One number, or one per dimension.
    categories
        How many numbers at the end of a context are codes of categories. Two codes that differ are
        at distance 1, in units of their bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(2.0)(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.6065]])
    """

    @classmethod
    def from_contexts(cls, sample: Any, spread: float = 1.0) -> Self:
        """Choose bandwidths from unlabelled contexts, so that inputs need no scaling by hand.

        Each bandwidth is spread · √d · (standard deviation of its column): two contexts drawn from
        the sample then have a correlation of about exp(−1/spread²), whatever d and the units are. A
        constant column counts as having standard deviation 1. For tables with categories the
        kernel knows which numbers are codes.

        Parameters
        ----------
        sample
            Contexts, shape (n, d), or a DataFrame.
        spread
            Larger for smoother functions.

        Examples
        --------
        >>> np.round(cg.Gaussian.from_contexts(contexts).bandwidth, 1)
        array([0.8, 0.9])
        """
        spread = checks.positive("spread", spread, "1 suits most problems")
        intake = ContextSchema().read(sample, called="sample", learning=True)
        rows = intake.rows
        if len(rows) < 2:
            raise ValueError(f"sample must hold at least 2 contexts, got {len(rows)}")
        columns = Spread.of([rows], intake.schema.layout)
        bandwidth = spread * deviations(columns.columns(rows), columns.tied)
        if columns.tied is not None:
            bandwidth = bandwidth[np.asarray(columns.tied)]
        return columns.of_codes(cls(tuple(bandwidth.tolist())))

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        exponent = self._exponent_by_product(left, right)
        if exponent is None:
            return _exponential(self._squared_distance(left, right, -0.5))
        np.clip(exponent, _LOWEST, 0.0, out=exponent)  # rounding may have left it above 0
        return np.exp(exponent, out=exponent)

    def highest(self, left: FloatArray, right: FloatArray) -> FloatArray:
        exponent = self._exponent_by_product(left, right)
        if exponent is None:
            exponent = self._squared_distance(left, right, -0.5)
        return _exponential(np.minimum(exponent.max(axis=0), 0.0))

    def _exponent_by_product(self, left: FloatArray, right: FloatArray) -> FloatArray | None:
        """−|x − y|²/2 as x·y − |x|²/2 − |y|²/2, one matrix product; None where inaccurate."""
        # The error is about 1e-16·|x|², which a Gaussian passes on unchanged (a Matérn kernel takes
        # the root), so contexts must be near their centre.
        if len(left) * len(right) < _MANY:
            return None
        if self.categories:
            numbers = left.shape[1] - self.categories
            if not numbers:
                return None
            other = Gaussian(self._bandwidth_of(numbers))
            exponent = other._exponent_by_product(left[:, :numbers], right[:, :numbers])
            return None if exponent is None else exponent - 0.5 * self._unlike(left, right)
        with np.errstate(over="ignore", invalid="ignore"):  # infinitely far apart is fine
            scale, centre = np.asarray(self.bandwidth), right.mean(axis=0)
            x, y = (left - centre) / scale, (right - centre) / scale
            x_squared, y_squared = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
        nearest = 1e4 if left.shape[1] >= _WIDE else 200.0
        if not max(x_squared.max(), y_squared.max()) <= nearest:
            return None
        x = np.column_stack([x, -0.5 * x_squared, _ones(len(x))])
        y = np.column_stack([y, _ones(len(y)), -0.5 * y_squared])
        return np.asarray(x @ y.T)

    def at_distances(self, squared: FloatArray) -> tuple[FloatArray, FloatArray]:
        squared *= -0.5
        values = _exponential(squared)
        return values, values


@dataclass(frozen=True)
class Matern(Stationary):
    """The Matérn kernel: rougher functions than the Gaussian's.

    With r the distance in bandwidths: exp(−r) for smoothness 1/2, (1 + √3 r) exp(−√3 r) for 3/2
    and (1 + √5 r + 5r²/3) exp(−√5 r) for 5/2.

    Parameters
    ----------
    bandwidth
        One number, or one per dimension.
    smoothness
        0.5, 1.5 or 2.5; functions are differentiable fewer times than that.
    categories
        How many numbers at the end of a context are codes of categories, as for ``Gaussian``.

    Examples
    --------
    >>> kernel = cg.Matern(1.0, smoothness=1.5)
    >>> kernel(np.zeros((1, 1)), np.ones((1, 1))).round(3)
    array([[0.483]])
    """

    smoothness: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.smoothness, Real) or self.smoothness not in (0.5, 1.5, 2.5):
            raise ValueError(f"smoothness must be 0.5, 1.5 or 2.5, got {self.smoothness!r}")
        object.__setattr__(self, "smoothness", float(self.smoothness))

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        r = self._stretched(self._squared_distance(left, right))
        return self._values(r, np.exp(-r))

    def at_distances(self, squared: FloatArray) -> tuple[FloatArray, FloatArray]:
        r = self._stretched(squared)
        decay = np.exp(-r)
        if self.smoothness == 0.5:
            # Infinite where r = 0, but there it multiplies a difference of 0.
            return decay, np.divide(decay, r, out=np.zeros_like(r), where=r > 0)
        steepness = 1 + r
        steepness *= decay
        if self.smoothness == 1.5:
            decay *= 3
            return steepness, decay
        r *= r
        r *= decay
        r /= 3
        r += steepness
        steepness *= 5 / 3
        return r, steepness

    def _values(self, r: FloatArray, decay: FloatArray) -> FloatArray:
        if self.smoothness == 0.5:
            return decay
        if self.smoothness == 1.5:
            return (1 + r) * decay
        return (1 + r + r**2 / 3) * decay

    def _stretched(self, squared: FloatArray) -> FloatArray:
        # exp(−700) is next to the smallest float; the distance itself may be infinite.
        return np.minimum(np.sqrt(2 * self.smoothness * squared), 700.0)


@dataclass(frozen=True)
class Periodic(Kernel):
    """The periodic kernel exp(−2 Σ_j sin²(π (x_j − y_j) / period_j) / bandwidth_j²).

    Parameters
    ----------
    period
        One number, or one per dimension.
    bandwidth
        One number, or one per dimension; in units of the sine, not of the context.

    Examples
    --------
    >>> kernel = cg.Periodic(period=24.0, bandwidth=1.0)
    >>> kernel(np.zeros((1, 1)), np.full((1, 1), 24.0))
    array([[1.]])
    """

    period: float | Sequence[float]
    bandwidth: float | Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", per_dimension("period", self.period, "in context units"))
        bandwidth = per_dimension("bandwidth", self.bandwidth, "about 1 suits a smooth wave")
        object.__setattr__(self, "bandwidth", bandwidth)

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        # sin²(u − v) = |(cos 2u, sin 2u) − (cos 2v, sin 2v)|² / 4: a Gaussian on the circle.
        squared = squared_distances(self._on_circles(left), self._on_circles(right))
        return _exponential(np.multiply(squared, -0.5, out=squared))

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return _ones(len(contexts))

    def check_dimension(self, dimension: int) -> None:
        check_count("period", self.period, dimension)
        check_count("bandwidth", self.bandwidth, dimension)

    def _on_circles(self, contexts: FloatArray) -> FloatArray:
        angle = 2 * np.pi * contexts / np.asarray(self.period)
        radius = 1 / np.asarray(self.bandwidth)
        return np.hstack([radius * np.cos(angle), radius * np.sin(angle)])
