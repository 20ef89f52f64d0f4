"""The parts of a kernel that tuning learns: bandwidths, a linear trend, and the arms' levels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Constant, Kernel, Linear
from contextgap.kernels.base import Scaled, Sum
from contextgap.kernels.stationary import Stationary


@dataclass(frozen=True)
class Terms:
    """A kernel without its overall factor: main + slope · trend + offset · 1.

    Only a main part with bandwidths can have a linear trend beside it; trend and offset are None
    where the kernel has no such part. ``tied`` says which bandwidth each column has; None if each
    has its own, or all have the same.
    """

    main: Kernel
    trend: Linear | None = None
    slope: float = 1.0
    offset: float | None = None
    tied: tuple[int, ...] | None = None

    @classmethod
    def of(cls, kernel: Kernel, tied: tuple[int, ...] | None = None) -> Terms:
        """Return a kernel's terms."""
        parts = _addends(kernel)
        levels = [factor for part, factor in parts if isinstance(part, Constant)]
        others = [(part, factor) for part, factor in parts if not isinstance(part, Constant)]
        if not others:
            return cls(Constant(), tied=tied)
        main, weight = others[0]
        trend, slope = None, 1.0
        if len(others) == 2 and isinstance(main, Stationary) and isinstance(others[1][0], Linear):
            trend, slope = others[1][0], others[1][1] / weight
        elif len(others) > 1:
            main, weight = others[0][1] * others[0][0], 1.0
            for part, factor in others[1:]:
                main = main + factor * part
        return cls(main, trend, slope, sum(levels) / weight if levels else None, tied)

    def scaled(self, factor: float) -> Kernel:
        """Return factor · (main + slope · trend + offset · 1)."""
        kernel: Kernel = factor * self.main
        if self.trend is not None:
            kernel = kernel + (factor * self.slope) * self.trend
        if self.offset is not None:
            kernel = kernel + (factor * self.offset) * Constant()
        return kernel

    @property
    def bandwidths(self) -> FloatArray:
        """The bandwidths that can be learnt; none if the main part has no bandwidth."""
        if not isinstance(self.main, Stationary):
            return np.empty(0)
        values = np.atleast_1d(np.asarray(self.main.bandwidth, dtype=np.float64))
        if self._untied:
            return values
        return values[np.unique(np.asarray(self.tied), return_index=True)[1]]

    def with_bandwidths(self, bandwidths: FloatArray) -> Terms:
        """Return the terms with other bandwidths; a single number stays a single number."""
        if not isinstance(self.main, Stationary):
            return self
        if isinstance(self.main.bandwidth, float):
            return replace(self, main=replace(self.main, bandwidth=float(bandwidths[0])))
        values = bandwidths if self._untied else bandwidths[np.asarray(self.tied)]
        return replace(self, main=replace(self.main, bandwidth=tuple(values.tolist())))

    def column_of(self, dimension: int) -> IntArray:
        """Return which of the bandwidths every column has."""
        if isinstance(self.main, Stationary) and isinstance(self.main.bandwidth, float):
            return np.zeros(dimension, dtype=np.intp)
        return np.arange(dimension) if self.tied is None else np.asarray(self.tied)

    @property
    def _untied(self) -> bool:
        single = isinstance(self.main, Stationary) and isinstance(self.main.bandwidth, float)
        return single or self.tied is None


def _addends(kernel: Kernel, factor: float = 1.0) -> list[tuple[Kernel, float]]:
    """Return the kernels that a kernel is the sum of, each with its factor."""
    if isinstance(kernel, Scaled):
        return _addends(kernel.kernel, factor * kernel.factor)
    if isinstance(kernel, Sum):
        return [*_addends(kernel.left, factor), *_addends(kernel.right, factor)]
    return [(kernel, factor)]
