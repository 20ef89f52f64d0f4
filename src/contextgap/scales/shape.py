"""A kernel as what can be learnt about it: bandwidths, and how much arms differ as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contextgap.arrays import FloatArray
from contextgap.kernels import Constant, Kernel
from contextgap.kernels.base import Scaled, Sum
from contextgap.kernels.stationary import Stationary


@dataclass(frozen=True)
class Shape:
    """A kernel without its overall factor: wave + offset · 1.

    Parameters
    ----------
    kernel
        The part that depends on the contexts.
    offset
        The constant part, in units of the other; None if the kernel has none.
    """

    kernel: Kernel
    offset: float | None = None

    @classmethod
    def of(cls, kernel: Kernel) -> Shape:
        """Return a kernel's shape."""
        if isinstance(kernel, Sum):
            (left, factor), (right, offset) = _unscaled(kernel.left), _unscaled(kernel.right)
            if isinstance(right, Constant) and not isinstance(left, Constant):
                return cls(left, offset / factor)
        return cls(_unscaled(kernel)[0])

    def scaled(self, factor: float) -> Kernel:
        """Return factor · (kernel + offset · 1)."""
        if self.offset is None:
            return factor * self.kernel
        return factor * self.kernel + (factor * self.offset) * Constant()

    @property
    def bandwidths(self) -> FloatArray:
        """The bandwidths that can be learnt; none if the kernel is not one of distances."""
        if not isinstance(self.kernel, Stationary):
            return np.empty(0)
        return np.atleast_1d(np.asarray(self.kernel.bandwidth, dtype=np.float64))

    def with_bandwidths(self, bandwidths: FloatArray) -> Shape:
        """Return the shape with other bandwidths; a single one stays a single one."""
        if not isinstance(self.kernel, Stationary):
            return self
        values = tuple(bandwidths.tolist())
        single = isinstance(self.kernel.bandwidth, float)
        return replace(self, kernel=replace(self.kernel, bandwidth=values[0] if single else values))


def _unscaled(kernel: Kernel) -> tuple[Kernel, float]:
    if isinstance(kernel, Scaled):
        inner, factor = _unscaled(kernel.kernel)
        return inner, factor * kernel.factor
    return kernel, 1.0
