"""Kernels as graphs. Values have shape (support, batch): an arm's rows lie next to each other.

Squared distances are summed over differences, one dimension at a time: nothing larger than
(support, batch) is held. Expanding them into x² + y² − 2xy would be one matrix product, but it is
wrong by about 1e-16·x² where x is close to y, of which the root that Matérn kernels take makes
1e-8·x: as much as decisions and standard deviations are to agree to. Codes of categories, the last
numbers of a context, are the same or not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.onnx.columns import spread_rows
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
from contextgap.kernels.categories import weights
from contextgap.tables.schema import TableSchema

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

    ``contexts`` names what kernels see of the input, transposed, shape (d, batch), and ``ones`` a
    row of ones, shape (1, batch). ``table`` says how the input's columns become what kernels see.
    """

    def __init__(
        self, graph: GraphBuilder, support: FloatArray, table: TableSchema | None = None
    ) -> None:
        self._graph = graph
        self.support = support
        self.contexts = graph.node("Transpose", "contexts", perm=[1, 0])
        if table is not None:
            self.contexts = spread_rows(graph, self.contexts, table)
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
        return self._constant(1.0)

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
            return self._linear_diagonal(kernel)
        if isinstance(kernel, Polynomial):
            return self._power(kernel, self.diagonal(Linear()))
        return self.ones

    def _scaled(self, kernel: Scaled) -> str:
        inner: Kernel = kernel.kernel
        factor = kernel.factor
        while isinstance(inner, Scaled):
            factor *= inner.factor
            inner = inner.kernel
        # onnxruntime would join a product of matrices and a factor, and round the factor to float.
        if isinstance(inner, Linear):
            return self._linear(inner, factor)
        if isinstance(inner, Constant):
            return self._constant(factor)
        values = self.values(inner)
        return self._graph.node("Mul", values, self._graph.real(factor, "the kernel's factor"))

    def _constant(self, factor: float) -> str:
        column = np.full((len(self.support), 1), factor)
        return self._graph.node(
            "MatMul", self._graph.real(column, "the kernel's factor"), self.ones
        )

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
        graph, parts = self._graph, []
        if self.support.shape[1] > kernel.categories:
            support = graph.real(factor * kernel.standardised(self.support))
            parts.append(graph.node("MatMul", support, self._standardised(kernel)))
        if kernel.categories:
            level = 0.5 * factor * weights(kernel.unit, kernel.categories)
            parts.append(self._codes(level, np.zeros(len(level))))
        return self._sum(parts)

    def _linear_diagonal(self, kernel: Linear) -> str:
        graph, parts = self._graph, []
        if self.support.shape[1] > kernel.categories:
            standardised = self._standardised(kernel)
            parts.append(graph.reduce("ReduceSumSquare", standardised, axis=0))
        if kernel.categories:
            level = 0.5 * float(weights(kernel.unit, kernel.categories).sum())
            parts.append(graph.node("Mul", self.ones, graph.real(level)))
        return self._sum(parts)

    def _standardised(self, kernel: Linear) -> str:
        """The contexts minus a linear kernel's centre, over its unit; codes are left out."""
        if kernel.plain:
            return self.contexts
        graph, count = self._graph, self.support.shape[1] - kernel.categories
        centre = graph.real(self._each(kernel.centre)[:count, None], "the centre")
        unit = graph.real(self._each(kernel.unit)[:count, None], "the unit")
        numbers = graph.rows(self.contexts, 0, count) if kernel.categories else self.contexts
        return graph.node("Div", graph.node("Sub", numbers, centre), unit)

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
        graph, codes = self._graph, kernel.categories
        if not isinstance(kernel.bandwidth, float):
            scale = np.asarray(kernel.bandwidth)
            column = graph.real(scale[:, None], "the bandwidth")
            contexts = graph.node("Div", self.contexts, column)
            unlike = weights(kernel.bandwidth, codes) if codes else np.empty(0)
            return self._squared_distance(self.support / scale, contexts, unlike)
        squared = self._squared_distance(self.support, self.contexts, np.ones(codes))
        if kernel.bandwidth > _TINY:
            return graph.node("Mul", squared, graph.real(kernel.bandwidth**-2, "1/bandwidth²"))
        bandwidth = graph.real(kernel.bandwidth, "the bandwidth")
        return graph.node("Div", graph.node("Div", squared, bandwidth), bandwidth)

    def _squared_distance(
        self, support: FloatArray, contexts: str, unlike: FloatArray | None = None
    ) -> str:
        """Squared distances from rows of ``support`` (n, d) to columns of ``contexts``.

        ``unlike`` says how far apart codes are that differ, squared, for every category.
        """
        codes = 0 if unlike is None else len(unlike)
        squares = self._squares(support[:, : support.shape[1] - codes], contexts)
        if unlike is None or not codes:
            return self._sum(squares)
        return self._sum([*squares, self._codes(np.zeros(codes), unlike)])

    def _squares(self, support: FloatArray, contexts: str) -> Iterator[str]:
        graph = self._graph
        for j, column in enumerate(support.T):
            difference = graph.node(
                "Sub", graph.rows(contexts, j, j + 1), graph.real(column[:, None])
            )
            yield graph.node("Mul", difference, difference)

    def _codes(self, same: FloatArray, differ: FloatArray) -> str:
        """The sum over all categories of one number where codes are the same, else of another."""
        graph, parts = self._graph, []
        first = self.support.shape[1] - len(same)
        for j, (equal, unlike) in enumerate(zip(same.tolist(), differ.tolist(), strict=True)):
            row = graph.rows(self.contexts, first + j, first + j + 1)
            own = graph.real(self.support[:, first + j, None])
            where = graph.node("Equal", row, own)
            parts.append(graph.node("Where", where, graph.real(equal), graph.real(unlike)))
        return self._sum(parts)

    def _sum(self, parts: Iterable[str]) -> str:
        return reduce(lambda total, part: self._graph.node("Add", total, part), parts)

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
