"""Kernels as graphs. Values have shape (support, batch): an arm's rows lie next to each other.

Squared distances are summed over differences, one dimension at a time: nothing larger than
(support, batch) is held. Expanding them into x² + y² − 2xy would be one matrix product, but it is
wrong by about 1e-16·x² where x is close to y, of which the root that Matérn kernels take makes
1e-8·x: as much as decisions and standard deviations are to agree to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.rule import ExportError
from contextgap.kernels import (
    Constant,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Product,
    Scaled,
    Sum,
)

_KNOWN = (Constant, Gaussian, Matern, Periodic, Linear, Polynomial, Sum, Product, Scaled)
# Below this a bandwidth's square is too close to zero; as the kernels themselves have it.
_TINY = 1e-20


def check_kernel(kernel: Kernel) -> None:
    """Raise ``ExportError`` if the kernel, or one inside it, has no graph."""
    # By exact type: a subclass may compute something else.
    if type(kernel) not in _KNOWN:
        can = ", ".join(kind.__name__ for kind in _KNOWN)
        raise ExportError(
            f"the kernel {type(kernel).__name__} cannot be exported to ONNX; "
            f"{can} and what they combine to can"
        )
    if isinstance(kernel, Sum | Product):
        check_kernel(kernel.left)
        check_kernel(kernel.right)
    if isinstance(kernel, Scaled):
        check_kernel(kernel.kernel)


class KernelGraph:
    """Kernels between the observed contexts ``support``, shape (n, d), and the graph's input.

    ``contexts`` names the transposed input, shape (d, batch), and ``ones`` a row of ones, shape
    (1, batch).
    """

    def __init__(self, graph: GraphBuilder, support: FloatArray) -> None:
        self._graph = graph
        self.support = support
        self.contexts = graph.node("Transpose", "contexts", perm=[1, 0])
        count = graph.rows(graph.node("Shape", "contexts"), 0, 1)
        one = graph.real([[1.0]])
        self.ones = graph.node("Expand", one, graph.stack([graph.whole([1]), count]))

    def values(self, kernel: Kernel) -> str:
        """Return the kernel between support and contexts, shape (n, batch)."""
        graph = self._graph
        if isinstance(kernel, Sum | Product):
            both = (self.values(side) for side in (kernel.left, kernel.right))
            return graph.node("Add" if isinstance(kernel, Sum) else "Mul", *both)
        if isinstance(kernel, Scaled):
            return self._scaled(kernel)
        if isinstance(kernel, Gaussian):
            return self._decay(self._scaled_distance(kernel))
        if isinstance(kernel, Matern):
            return self._matern(kernel)
        if isinstance(kernel, Periodic):
            return self._periodic(kernel)
        if isinstance(kernel, Linear):
            return self._linear(kernel)
        if isinstance(kernel, Polynomial):
            return self._power(kernel, self._linear(Linear()))
        return graph.node("MatMul", graph.real(np.ones((len(self.support), 1))), self.ones)

    def diagonal(self, kernel: Kernel) -> str:
        """Return k(x, x) of every context, shape (1, batch)."""
        graph = self._graph
        if isinstance(kernel, Sum | Product):
            both = (self.diagonal(side) for side in (kernel.left, kernel.right))
            return graph.node("Add" if isinstance(kernel, Sum) else "Mul", *both)
        if isinstance(kernel, Scaled):
            factor = graph.real(kernel.factor, "the kernel's factor")
            return graph.node("Mul", self.diagonal(kernel.kernel), factor)
        if isinstance(kernel, Linear):
            return graph.reduce("ReduceSumSquare", self._standardised(kernel), axis=0)
        if isinstance(kernel, Polynomial):
            return self._power(kernel, self.diagonal(Linear()))
        return self.ones

    def _scaled(self, kernel: Scaled) -> str:
        inner: Kernel = kernel.kernel
        factor = kernel.factor
        while isinstance(inner, Scaled):
            factor *= inner.factor
            inner = inner.kernel
        if isinstance(inner, Linear):
            # onnxruntime would join a product of matrices and a factor, and round the factor to
            # float.
            return self._linear(inner, factor)
        values = self.values(inner)
        return self._graph.node("Mul", values, self._graph.real(factor, "the kernel's factor"))

    def _matern(self, kernel: Matern) -> str:
        graph, squared = self._graph, self._scaled_distance(kernel)
        r = graph.node("Sqrt", graph.node("Mul", squared, graph.real(2 * kernel.smoothness)))
        r = graph.node("Min", r, graph.real(self._least_exponent(700.0)))
        decay = graph.node("Exp", graph.node("Neg", r))
        if kernel.smoothness == 0.5:
            return decay
        polynomial = graph.node("Add", r, graph.real(1.0))
        if kernel.smoothness == 2.5:
            third = graph.node("Div", graph.node("Mul", r, r), graph.real(3.0))
            polynomial = graph.node("Add", polynomial, third)
        return graph.node("Mul", polynomial, decay)

    def _periodic(self, kernel: Periodic) -> str:
        graph, period, bandwidth = self._graph, *map(self._each, (kernel.period, kernel.bandwidth))
        turn = graph.node("Mul", self.contexts, graph.real(2 * np.pi))
        angle = graph.node("Div", turn, graph.real(period[:, None], "the period"))
        radius = graph.real(1 / bandwidth[:, None], "1/bandwidth")
        circles = graph.stack(
            [graph.node("Mul", radius, graph.node(wave, angle)) for wave in ("Cos", "Sin")]
        )
        angles = 2 * np.pi * self.support / period
        support = np.hstack([np.cos(angles) / bandwidth, np.sin(angles) / bandwidth])
        return self._decay(self._squared_distance(support, circles))

    def _linear(self, kernel: Linear, factor: float = 1.0) -> str:
        support = self._graph.real(factor * kernel.standardised(self.support))
        return self._graph.node("MatMul", support, self._standardised(kernel))

    def _standardised(self, kernel: Linear) -> str:
        """The contexts minus a linear kernel's centre, over its unit."""
        if kernel.plain:
            return self.contexts
        graph = self._graph
        centre = graph.real(self._each(kernel.centre)[:, None], "the centre")
        unit = graph.real(self._each(kernel.unit)[:, None], "the unit")
        return graph.node("Div", graph.node("Sub", self.contexts, centre), unit)

    def _power(self, kernel: Polynomial, inner: str) -> str:
        graph = self._graph
        # Repeated squaring: shading languages, which some runtimes compile graphs to, leave Pow of
        # a negative number undefined.
        result, left = "", kernel.degree
        square = graph.node("Add", inner, graph.real(kernel.offset))
        while left:
            if left % 2:
                result = graph.node("Mul", result, square) if result else square
            left //= 2
            if left:
                square = graph.node("Mul", square, square)
        return result

    def _scaled_distance(self, kernel: Gaussian | Matern) -> str:
        """Squared distances in units of the bandwidth."""
        graph = self._graph
        if not isinstance(kernel.bandwidth, float):
            scale = np.asarray(kernel.bandwidth)
            column = graph.real(scale[:, None], "the bandwidth")
            contexts = graph.node("Div", self.contexts, column)
            return self._squared_distance(self.support / scale, contexts)
        squared = self._squared_distance(self.support, self.contexts)
        if kernel.bandwidth > _TINY:
            return graph.node("Mul", squared, graph.real(kernel.bandwidth**-2, "1/bandwidth²"))
        bandwidth = graph.real(kernel.bandwidth, "the bandwidth")
        return graph.node("Div", graph.node("Div", squared, bandwidth), bandwidth)

    def _squared_distance(self, support: FloatArray, contexts: str) -> str:
        """Squared distances from rows of ``support`` (n, d) to columns of ``contexts``."""
        graph, total = self._graph, ""
        for j in range(support.shape[1]):
            row = graph.rows(contexts, j, j + 1)
            difference = graph.node("Sub", row, graph.real(support[:, j : j + 1]))
            square = graph.node("Mul", difference, difference)
            total = graph.node("Add", total, square) if total else square
        return total

    def _decay(self, squared: str) -> str:
        """exp(−squared/2), no smaller than the kernels themselves let it be."""
        graph = self._graph
        exponent = graph.node("Mul", squared, graph.real(-0.5))
        floor = graph.real(-self._least_exponent(300.0))
        return graph.node("Exp", graph.node("Max", exponent, floor))

    def _least_exponent(self, exponent: float) -> float:
        """The kernel's own limit; for float32, whose smallest normal number is exp(−87.3), less."""
        return exponent if self._graph.dtype == np.float64 else min(exponent, 87.0)

    def _each(self, value: float | Sequence[float]) -> FloatArray:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), self.support.shape[1])
