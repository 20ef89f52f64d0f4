"""Kernels as graphs: one function per kind, each calling itself for the kernels inside.

Values have shape (support, batch), so that an arm's rows lie next to each other.

Squared distances are summed over differences, one dimension at a time: nothing larger than
(support, batch) is held. Expanding them into x² + y² − 2xy would be one matrix product, but it is
wrong by about 1e-16·x² where x is close to y, of which the root that Matérn kernels take makes
1e-8·x: as much as decisions and standard deviations are to agree to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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

# Below this a bandwidth's square is too close to zero; as the kernels themselves have it.
_TINY = 1e-20


class Sides(NamedTuple):
    """What a kernel compares.

    Parameters
    ----------
    support
        Observed contexts, shape (n, d).
    contexts
        Name of the transposed input, shape (d, batch).
    ones
        Name of a row of ones, shape (1, batch).
    """

    support: FloatArray
    contexts: str
    ones: str


def kernel_values(graph: GraphBuilder, kernel: Kernel, sides: Sides) -> str:
    """Return the kernel between support and contexts, shape (n, batch)."""
    return _function(_VALUES, kernel)(graph, kernel, sides)


def kernel_diagonal(graph: GraphBuilder, kernel: Kernel, sides: Sides) -> str:
    """Return k(x, x) of every context, shape (1, batch)."""
    return _function(_DIAGONALS, kernel)(graph, kernel, sides)


def check_kernel(kernel: Kernel) -> None:
    """Raise ``ExportError`` if the kernel, or one inside it, has no graph."""
    _function(_VALUES, kernel)
    if isinstance(kernel, Sum | Product):
        check_kernel(kernel.left)
        check_kernel(kernel.right)
    if isinstance(kernel, Scaled):
        check_kernel(kernel.kernel)


_Emit = Callable[[GraphBuilder, Any, Sides], str]


def _function(functions: dict[type[Kernel], _Emit], kernel: Kernel) -> _Emit:
    # By exact type: a subclass may compute something else.
    if type(kernel) not in functions:
        can = ", ".join(kind.__name__ for kind in functions)
        raise ExportError(
            f"the kernel {type(kernel).__name__} cannot be exported to ONNX; "
            f"{can} and what they combine to can"
        )
    return functions[type(kernel)]


def _gaussian(graph: GraphBuilder, kernel: Gaussian, sides: Sides) -> str:
    return _decay(graph, _scaled_distance(graph, kernel, sides))


def _matern(graph: GraphBuilder, kernel: Matern, sides: Sides) -> str:
    squared = _scaled_distance(graph, kernel, sides)
    r = graph.node("Sqrt", graph.node("Mul", squared, graph.real(2 * kernel.smoothness)))
    r = graph.node("Min", r, graph.real(_least_exponent(graph, 700.0)))
    decay = graph.node("Exp", graph.node("Neg", r))
    if kernel.smoothness == 0.5:
        return decay
    polynomial = graph.node("Add", r, graph.real(1.0))
    if kernel.smoothness == 2.5:
        third = graph.node("Div", graph.node("Mul", r, r), graph.real(3.0))
        polynomial = graph.node("Add", polynomial, third)
    return graph.node("Mul", polynomial, decay)


def _periodic(graph: GraphBuilder, kernel: Periodic, sides: Sides) -> str:
    d = sides.support.shape[1]
    period, bandwidth = (
        np.broadcast_to(np.asarray(value, dtype=np.float64), d)
        for value in (kernel.period, kernel.bandwidth)
    )
    turn = graph.node("Mul", sides.contexts, graph.real(2 * np.pi))
    angle = graph.node("Div", turn, graph.real(period[:, None], "the period"))
    radius = graph.real(1 / bandwidth[:, None], "1/bandwidth")
    circles = graph.stack(
        [graph.node("Mul", radius, graph.node(wave, angle)) for wave in ("Cos", "Sin")]
    )
    angles = 2 * np.pi * sides.support / period
    support = np.hstack([np.cos(angles) / bandwidth, np.sin(angles) / bandwidth])
    return _decay(graph, _squared_distance(graph, support, circles))


def _linear(graph: GraphBuilder, kernel: Linear, sides: Sides, factor: float = 1.0) -> str:
    support = graph.real(factor * kernel.standardised(sides.support))
    return graph.node("MatMul", support, _standardised(graph, kernel, sides))


def _standardised(graph: GraphBuilder, kernel: Linear, sides: Sides) -> str:
    """The contexts minus a linear kernel's centre, over its unit."""
    if kernel.plain:
        return sides.contexts
    d = sides.support.shape[1]
    centre, unit = (
        graph.real(np.broadcast_to(np.asarray(value, dtype=np.float64), d)[:, None], called)
        for value, called in ((kernel.centre, "the centre"), (kernel.unit, "the unit"))
    )
    return graph.node("Div", graph.node("Sub", sides.contexts, centre), unit)


def _polynomial(graph: GraphBuilder, kernel: Polynomial, sides: Sides) -> str:
    return _power(graph, kernel, _linear(graph, Linear(), sides))


def _sum(graph: GraphBuilder, kernel: Sum, sides: Sides) -> str:
    both = (kernel_values(graph, side, sides) for side in (kernel.left, kernel.right))
    return graph.node("Add", *both)


def _product(graph: GraphBuilder, kernel: Product, sides: Sides) -> str:
    both = (kernel_values(graph, side, sides) for side in (kernel.left, kernel.right))
    return graph.node("Mul", *both)


def _scaled(graph: GraphBuilder, kernel: Scaled, sides: Sides) -> str:
    inner: Kernel = kernel.kernel
    factor = kernel.factor
    while isinstance(inner, Scaled):
        factor *= inner.factor
        inner = inner.kernel
    if type(inner) is Linear:
        # onnxruntime would join a product of matrices and a factor, and round the factor to float.
        return _linear(graph, inner, sides, factor)
    values = kernel_values(graph, inner, sides)
    return graph.node("Mul", values, graph.real(factor, "the kernel's factor"))


def _one(_: GraphBuilder, __: Kernel, sides: Sides) -> str:
    return sides.ones


def _constant(graph: GraphBuilder, _: Constant, sides: Sides) -> str:
    return graph.node("MatMul", graph.real(np.ones((len(sides.support), 1))), sides.ones)


def _linear_diagonal(graph: GraphBuilder, kernel: Linear, sides: Sides) -> str:
    return graph.reduce("ReduceSumSquare", _standardised(graph, kernel, sides), axis=0)


def _polynomial_diagonal(graph: GraphBuilder, kernel: Polynomial, sides: Sides) -> str:
    return _power(graph, kernel, _linear_diagonal(graph, Linear(), sides))


def _sum_diagonal(graph: GraphBuilder, kernel: Sum, sides: Sides) -> str:
    both = (kernel_diagonal(graph, side, sides) for side in (kernel.left, kernel.right))
    return graph.node("Add", *both)


def _product_diagonal(graph: GraphBuilder, kernel: Product, sides: Sides) -> str:
    both = (kernel_diagonal(graph, side, sides) for side in (kernel.left, kernel.right))
    return graph.node("Mul", *both)


def _scaled_diagonal(graph: GraphBuilder, kernel: Scaled, sides: Sides) -> str:
    factor = graph.real(kernel.factor, "the kernel's factor")
    return graph.node("Mul", kernel_diagonal(graph, kernel.kernel, sides), factor)


_VALUES: dict[type[Kernel], _Emit] = {
    Constant: _constant,
    Gaussian: _gaussian,
    Matern: _matern,
    Periodic: _periodic,
    Linear: _linear,
    Polynomial: _polynomial,
    Sum: _sum,
    Product: _product,
    Scaled: _scaled,
}
_DIAGONALS: dict[type[Kernel], _Emit] = {
    Constant: _one,
    Gaussian: _one,
    Matern: _one,
    Periodic: _one,
    Linear: _linear_diagonal,
    Polynomial: _polynomial_diagonal,
    Sum: _sum_diagonal,
    Product: _product_diagonal,
    Scaled: _scaled_diagonal,
}


def _power(graph: GraphBuilder, kernel: Polynomial, inner: str) -> str:
    shifted = graph.node("Add", inner, graph.real(kernel.offset))
    # Repeated squaring: shading languages, which some runtimes compile graphs to, leave Pow of a
    # negative number undefined.
    result, square, left = "", shifted, kernel.degree
    while left:
        if left % 2:
            result = graph.node("Mul", result, square) if result else square
        left //= 2
        if left:
            square = graph.node("Mul", square, square)
    return result


def _scaled_distance(graph: GraphBuilder, kernel: Gaussian | Matern, sides: Sides) -> str:
    """Squared distances in units of the bandwidth."""
    if not isinstance(kernel.bandwidth, float):
        scale = np.asarray(kernel.bandwidth)
        column = graph.real(scale[:, None], "the bandwidth")
        contexts = graph.node("Div", sides.contexts, column)
        return _squared_distance(graph, sides.support / scale, contexts)
    squared = _squared_distance(graph, sides.support, sides.contexts)
    if kernel.bandwidth > _TINY:
        return graph.node("Mul", squared, graph.real(kernel.bandwidth**-2, "1/bandwidth²"))
    bandwidth = graph.real(kernel.bandwidth, "the bandwidth")
    return graph.node("Div", graph.node("Div", squared, bandwidth), bandwidth)


def _squared_distance(graph: GraphBuilder, support: FloatArray, contexts: str) -> str:
    """Squared distances from rows of ``support`` (n, d) to columns of ``contexts`` (d, batch)."""
    total = ""
    for j in range(support.shape[1]):
        row = graph.rows(contexts, j, j + 1)
        difference = graph.node("Sub", row, graph.real(support[:, j : j + 1]))
        square = graph.node("Mul", difference, difference)
        total = graph.node("Add", total, square) if total else square
    return total


def _decay(graph: GraphBuilder, squared: str) -> str:
    """exp(−squared/2), no smaller than the kernels themselves let it be."""
    exponent = graph.node("Mul", squared, graph.real(-0.5))
    floor = graph.real(-_least_exponent(graph, 300.0))
    return graph.node("Exp", graph.node("Max", exponent, floor))


def _least_exponent(graph: GraphBuilder, exponent: float) -> float:
    """The kernel's own limit; for float32, whose smallest normal number is exp(−87.3), less."""
    return exponent if graph.dtype == np.float64 else min(exponent, 87.0)
