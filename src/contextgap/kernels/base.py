"""What every kernel offers, and how kernels combine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, cast

import numpy as np

from contextgap.base import checks, components
from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component


class Kernel(Component, ABC):
    """A symmetric positive semi-definite function of two contexts.

    Kernels add, multiply and scale: ``Gaussian(1.0) + 0.5 * Linear()``. A kernel of your own is a
    frozen dataclass with ``__call__`` and ``diagonal``; if its fields are plain values it can be
    saved too.

    See Also
    --------
    testing.check_kernel : Checks your own.

    Examples
    --------
    >>> kernel = cg.Gaussian(1.0) * 2.0 + cg.Linear()
    >>> kernel(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[2.]])
    """

    @abstractmethod
    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the matrix of kernel values between contexts of shapes (m, d) and (n, d)."""

    @abstractmethod
    def diagonal(self, contexts: FloatArray) -> FloatArray:
        """Return k(x, x) for every row x, shape (m,)."""

    def highest(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the highest value of each right context with any left one, shape (n,)."""
        return np.asarray(self(left, right).max(axis=0))

    def check_dimension(self, dimension: int) -> None:
        """Raise ``ValueError`` if contexts of this dimension do not suit the kernel."""

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        # Scaled reads the number: it knows that True is not one.
        return Scaled(self, cast(float, other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


@dataclass(frozen=True)
class Pair(Kernel):
    """Two kernels that are combined."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            checks.instance("a combined kernel's side", side, Kernel, "Gaussian(1.0)")

    def check_dimension(self, dimension: int) -> None:
        self.left.check_dimension(dimension)
        self.right.check_dimension(dimension)


@dataclass(frozen=True)
class Sum(Pair):
    """The sum of two kernels, written ``left + right``.

    Parameters
    ----------
    left, right
        The kernels to add.
    """

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        level = _level(self.right)  # the last part of most kernels that are learnt
        return self.left(left, right) + (self.right(left, right) if level is None else level)

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return self.left.diagonal(contexts) + self.right.diagonal(contexts)

    def highest(self, left: FloatArray, right: FloatArray) -> FloatArray:
        level = _level(self.right)
        if level is None:
            return super().highest(left, right)
        return self.left.highest(left, right) + level


@dataclass(frozen=True)
class Product(Pair):
    """The product of two kernels, written ``left * right``.

    Parameters
    ----------
    left, right
        The kernels to multiply.
    """

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.left(left, right) * self.right(left, right)

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return self.left.diagonal(contexts) * self.right.diagonal(contexts)


@dataclass(frozen=True)
class Scaled(Kernel):
    """A kernel times a positive number, written ``factor * kernel``.

    Parameters
    ----------
    kernel
        The kernel to scale.
    factor
        Positive; the prior variance of a kernel with unit diagonal.
    """

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        checks.instance("kernel", self.kernel, Kernel, "Gaussian(1.0)")
        factor = checks.positive("factor", self.factor, "it is a prior variance")
        object.__setattr__(self, "factor", factor)

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.factor * self.kernel(left, right)

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return self.factor * self.kernel.diagonal(contexts)

    def highest(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self.factor * self.kernel.highest(left, right)

    def check_dimension(self, dimension: int) -> None:
        self.kernel.check_dimension(dimension)


@dataclass(frozen=True)
class Constant(Kernel):
    """The kernel that is 1 everywhere: an arm's rewards have an unknown constant level.

    With ``Gaussian(1.0) + 4.0 * Constant()`` every arm has a level of its own, with a prior
    standard deviation of 2.

    Examples
    --------
    >>> kernel = cg.Gaussian(1.0) + 4.0 * cg.kernels.Constant()
    >>> kernel(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[5.]])
    """

    def __call__(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.ones((len(left), len(right)))

    def diagonal(self, contexts: FloatArray) -> FloatArray:
        return np.ones(len(contexts))


def _level(kernel: Kernel) -> float | None:
    """Return the value that a kernel has everywhere; None if it has several."""
    if type(kernel) is Scaled:
        inner = _level(kernel.kernel)
        return None if inner is None else kernel.factor * inner
    return 1.0 if type(kernel) is Constant else None


def read_kernel(kernel: Any) -> Kernel:
    """Return a kernel, or the one that "package.module:name" names."""
    return cast(Kernel, components.read("kernel", kernel, Kernel, "Gaussian(1.0)"))


def per_dimension(name: str, value: Any, hint: str) -> float | tuple[float, ...]:
    """Return a positive number, or a tuple of them, one per context dimension."""
    if isinstance(value, tuple) and value and all(type(x) is float and 0 < x < inf for x in value):
        return value  # as tuning gives them, thousands of times
    try:
        axes = np.ndim(value)
    except ValueError:
        axes = 2  # lists of different lengths
    if axes == 0:
        return checks.positive(name, value, hint)
    if axes != 1 or len(value) == 0:
        raise ValueError(f"{name} must be one number or one per dimension, got {value!r}")
    return tuple(checks.positive(f"{name}[{i}]", entry, hint) for i, entry in enumerate(value))


def check_count(name: str, value: Any, dimension: int) -> None:
    """Raise if a per-dimension setting does not have one entry per number of a context."""
    if isinstance(value, tuple) and len(value) != dimension:
        raise ValueError(
            f"{name} has {len(value)} entries but contexts have {dimension} numbers; "
            "give one number or one per dimension"
        )
