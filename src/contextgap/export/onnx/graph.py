"""Graphs put together node by node, and what they compute first: what kernels see, and kernels.

Values have shape (support, batch): an arm's rows lie next to each other. Squared distances are
summed over differences, one dimension at a time: nothing larger than (support, batch) is held.
Expanding them into x² + y² − 2xy would be one matrix product, but it is wrong by about 1e-16·x²
where x is close to y, of which the root that Matérn kernels take makes 1e-8·x: as much as decisions
and standard deviations are to agree to. Codes of categories, the last numbers of a context, are the
same or not the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from contextgap import kernels
from contextgap.base.arrays import FloatArray
from contextgap.base.names import study_import
from contextgap.export.rule import ExportError, How, SpreadNumber, spread_numbers
from contextgap.kernels.categories import weights
from contextgap.kernels.warped import Warp
from contextgap.tables.schema import TableSchema

# From here on axes of these operators are an input; before, an attribute.
_AXES_ARE_AN_INPUT = {"ReduceSum": 13, "ReduceSumSquare": 18, "ReduceMax": 18, "ReduceMin": 18}
# Below this a bandwidth's square is too close to zero; as the kernels themselves have it.
_TINY = 1e-20


class GraphBuilder:
    """Nodes and constants of a graph under construction.

    Asking twice for the same node or constant gives the same value, so parts need not know what
    others have computed already. All real numbers have one type, float64 or float32.
    """

    def __init__(self, dtype: DTypeLike, opset: int) -> None:
        self.dtype = np.dtype(dtype)
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.outputs: dict[str, Any] = {}
        self._onnx = study_import("onnx", extra="onnx")
        self._names: dict[Any, str] = {}

    def real(self, values: ArrayLike, setting: str | None = None) -> str:
        """Return a constant of the graph's real type; a ``setting`` must not round to zero."""
        exact = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore", under="ignore"):
            rounded = exact.astype(self.dtype)
        lost = ~np.isfinite(rounded) & np.isfinite(exact)
        if setting is not None:
            lost |= (rounded == 0) & (exact != 0)
        if lost.any():
            raise ExportError(
                f"{setting or 'a number of the policy'} is {exact[lost].flat[0]:g}, which "
                f"{self.dtype} cannot hold; export with float32=False"
            )
        return self._constant(rounded)

    def whole(self, values: ArrayLike) -> str:
        return self._constant(np.asarray(values, dtype=np.int64))

    def truth(self, values: ArrayLike) -> str:
        return self._constant(np.asarray(values, dtype=np.bool_))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        key = (operator, inputs, repr(sorted(attributes.items())))
        if key not in self._names:
            name = self._names[key] = f"{operator.lower()}{len(self._names)}"
            made = self._onnx.helper.make_node(operator, list(inputs), [name], name, **attributes)
            self.nodes.append(made)
        return self._names[key]

    def highest_two(self, table: str) -> str:
        """Return the two highest entries of every column, the highest first."""
        key = ("TopK", table)
        if key not in self._names:
            name = self._names[key] = f"topk{len(self._names)}"
            self.nodes.append(
                self._onnx.helper.make_node(
                    "TopK", [table, self.whole([2])], [name, f"{name}_places"], name, axis=0
                )
            )
        return self._names[key]

    def reduce(self, operator: str, table: str, axis: int) -> str:
        """Return a reduction along one axis, which stays with length 1."""
        if self.opset >= _AXES_ARE_AN_INPUT[operator]:
            return self.node(operator, table, self.whole([axis]), keepdims=1)
        return self.node(operator, table, axes=[axis], keepdims=1)

    def rows(self, table: str, start: int, stop: int) -> str:
        """Return rows ``start`` to ``stop`` − 1 of a table."""
        ends = (self.whole([start]), self.whole([stop]), self.whole([0]))
        return self.node("Slice", table, *ends)

    def stack(self, tables: list[str]) -> str:
        return tables[0] if len(tables) == 1 else self.node("Concat", *tables, axis=0)

    def cast(self, value: str, dtype: DTypeLike) -> str:
        return self.node("Cast", value, to=self.type_code(dtype))

    def output(self, name: str, value: str, dtype: DTypeLike, *shape: str | int) -> None:
        """Promise a value under a name of its own."""
        helper = self._onnx.helper
        self.nodes.append(helper.make_node("Identity", [value], [name], name))
        self.outputs[name] = helper.make_tensor_value_info(name, self.type_code(dtype), shape)

    def type_code(self, dtype: DTypeLike) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def prune(self) -> None:
        """Drop nodes and constants that no output needs."""
        needed, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = [tensor for tensor in self.initializers if tensor.name in needed]

    def _constant(self, array: NDArray[Any]) -> str:
        # A digest, since the largest constants are the inverse factors.
        digest = hashlib.blake2b(array.tobytes()).digest()
        key = ("constant", array.dtype.str, array.shape, digest)
        if key not in self._names:
            name = self._names[key] = f"constant{len(self._names)}"
            tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            tensor.dims[:] = array.shape  # ascontiguousarray makes a vector of a scalar
            self.initializers.append(tensor)
        return self._names[key]


def spread_rows(graph: GraphBuilder, rows: str, table: TableSchema) -> str:
    """Return what kernels see of ``rows``, shape (columns, batch), as a table (numbers, batch).

    What has no answer is NaN or infinite there.
    """
    numbers = spread_numbers(table)
    groups = [(how, [each for each in numbers if each.how is how]) for how in How]
    parts = [_part(graph, rows, how, own) for how, own in groups if own]
    # Numbers come out by what becomes of them; kernels have them by column.
    order = sorted(range(len(numbers)), key=lambda place: numbers[place].how.value)
    places = np.argsort(order)
    stacked = graph.stack(parts)
    if (places == np.arange(len(places))).all():
        return stacked
    return graph.node("Gather", stacked, graph.whole(places), axis=0)


def _part(graph: GraphBuilder, rows: str, how: How, numbers: list[SpreadNumber]) -> str:
    """Return the numbers that are made alike, shape (numbers, batch)."""
    sources = graph.whole([each.source for each in numbers])
    values = graph.node("Gather", rows, sources, axis=0)
    is_missing = graph.node("IsNaN", values)
    if how is How.IS_MISSING:
        return graph.cast(is_missing, graph.dtype)
    by = graph.real([[each.by] for each in numbers])
    found = values
    if how in (How.COSINE, How.SINE):
        # The remainder is exact, while float32 keeps little of a date in turns.
        turns = graph.node("Div", graph.node("Mod", values, by, fmod=1), by)
        angle = graph.node("Mul", turns, graph.real(2 * np.pi))
        found = graph.node("Cos" if how is How.COSINE else "Sin", angle)
    elif how is How.CODE:
        found = _known(graph, values, by, numbers)
    missing = graph.real([[each.missing] for each in numbers])
    return graph.node("Where", is_missing, missing, found)


def _known(graph: GraphBuilder, codes: str, by: str, numbers: list[SpreadNumber]) -> str:
    """Return codes, with those of no level made one; infinities stay."""
    whole = graph.node("Equal", codes, graph.node("Floor", codes))
    negative = graph.node("Less", codes, graph.real(0.0))
    is_level = graph.node("And", whole, graph.node("Less", codes, by))
    is_level = graph.node("And", is_level, graph.node("Not", negative))
    kept = graph.node("Or", is_level, graph.node("IsInf", codes))
    unknown = graph.real([[each.unknown] for each in numbers])
    return graph.node("Where", kept, codes, unknown)


def _warped(graph: GraphBuilder, contexts: str, warp: Warp) -> str:
    """Return contexts with their skewed numbers on a logarithmic scale, shape (numbers, batch)."""
    skewed = np.array(warp.unit)[:, None] > 0
    unit = graph.real(np.where(skewed, np.array(warp.unit)[:, None], 1.0), "unit")
    away = graph.node("Sub", contexts, graph.real(np.array(warp.centre)[:, None]))
    size = graph.node("Div", graph.node("Abs", away), unit)
    log = graph.node("Log", graph.node("Add", size, graph.real(1.0)))
    signed = graph.node("Mul", graph.node("Sign", away), log)
    return graph.node("Where", graph.truth(skewed), signed, contexts)


class KernelGraph:
    """Kernels between the observed contexts ``support``, shape (n, d), and the graph's input.

    ``contexts`` names what kernels see of the input, transposed, shape (d, batch), and ``ones`` a
    row of ones, shape (1, batch). ``table`` says how the input's columns become what kernels see,
    ``warp`` what becomes of these numbers before.
    """

    def __init__(
        self,
        graph: GraphBuilder,
        support: FloatArray,
        table: TableSchema | None = None,
        warp: Warp | None = None,
    ) -> None:
        self._graph = graph
        self.support = support if warp is None else warp(support)
        self.contexts = graph.node("Transpose", "contexts", perm=[1, 0])
        if table is not None:
            self.contexts = spread_rows(graph, self.contexts, table)
        self._warped = self.contexts if warp is None else _warped(graph, self.contexts, warp)
        count = graph.rows(graph.node("Shape", "contexts"), 0, 1)
        one = graph.real([[1.0]])
        self.ones = graph.node("Expand", one, graph.stack([graph.whole([1]), count]))

    def values(self, kernel: kernels.Kernel) -> str:
        """Return the kernel between support and contexts, shape (n, batch)."""
        graph = self._graph
        if isinstance(kernel, kernels.Sum | kernels.Product):
            both = (self.values(side) for side in (kernel.left, kernel.right))
            return graph.node("Add" if isinstance(kernel, kernels.Sum) else "Mul", *both)
        if isinstance(kernel, kernels.Scaled):
            return self._scaled(kernel)
        if isinstance(kernel, kernels.Gaussian):
            return self._decay(self._scaled_distance(kernel))
        if isinstance(kernel, kernels.Matern):
            return self._matern(kernel)
        if isinstance(kernel, kernels.Periodic):
            return self._periodic(kernel)
        if isinstance(kernel, kernels.Linear):
            return self._linear(kernel)
        if isinstance(kernel, kernels.Polynomial):
            return self._power(kernel, self._linear(kernels.Linear()))
        return self._constant(1.0)

    def diagonal(self, kernel: kernels.Kernel) -> str:
        """Return k(x, x) of every context, shape (1, batch)."""
        graph = self._graph
        if isinstance(kernel, kernels.Sum | kernels.Product):
            both = (self.diagonal(side) for side in (kernel.left, kernel.right))
            return graph.node("Add" if isinstance(kernel, kernels.Sum) else "Mul", *both)
        if isinstance(kernel, kernels.Scaled):
            factor = graph.real(kernel.factor, "the kernel's factor")
            return graph.node("Mul", self.diagonal(kernel.kernel), factor)
        if isinstance(kernel, kernels.Linear):
            return self._linear_diagonal(kernel)
        if isinstance(kernel, kernels.Polynomial):
            return self._power(kernel, self.diagonal(kernels.Linear()))
        return self.ones

    def _scaled(self, kernel: kernels.Scaled) -> str:
        inner: kernels.Kernel = kernel.kernel
        factor = kernel.factor
        while isinstance(inner, kernels.Scaled):
            factor *= inner.factor
            inner = inner.kernel
        # onnxruntime would join a product of matrices and a factor, and round the factor to float.
        if isinstance(inner, kernels.Linear):
            return self._linear(inner, factor)
        if isinstance(inner, kernels.Constant):
            return self._constant(factor)
        values = self.values(inner)
        return self._graph.node("Mul", values, self._graph.real(factor, "the kernel's factor"))

    def _constant(self, factor: float) -> str:
        column = np.full((len(self.support), 1), factor)
        return self._graph.node(
            "MatMul", self._graph.real(column, "the kernel's factor"), self.ones
        )

    def _matern(self, kernel: kernels.Matern) -> str:
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

    def _periodic(self, kernel: kernels.Periodic) -> str:
        graph, period, bandwidth = self._graph, *map(self._each, (kernel.period, kernel.bandwidth))
        turn = graph.node("Mul", self._warped, graph.real(2 * np.pi))
        angle = graph.node("Div", turn, graph.real(period[:, None], "the period"))
        radius = graph.real(1 / bandwidth[:, None], "1/bandwidth")
        circles = graph.stack(
            [graph.node("Mul", radius, graph.node(wave, angle)) for wave in ("Cos", "Sin")]
        )
        angles = 2 * np.pi * self.support / period
        support = np.hstack([np.cos(angles) / bandwidth, np.sin(angles) / bandwidth])
        return self._decay(self._squared_distance(support, circles))

    def _linear(self, kernel: kernels.Linear, factor: float = 1.0) -> str:
        graph, parts = self._graph, []
        if self.support.shape[1] > kernel.categories:
            support = graph.real(factor * kernel.standardised(self.support))
            parts.append(graph.node("MatMul", support, self._standardised(kernel)))
        if kernel.categories:
            level = 0.5 * factor * weights(kernel.unit, kernel.categories)
            parts.append(self._codes(level, np.zeros(len(level))))
        return self._sum(parts)

    def _linear_diagonal(self, kernel: kernels.Linear) -> str:
        graph, parts = self._graph, []
        if self.support.shape[1] > kernel.categories:
            standardised = self._standardised(kernel)
            parts.append(graph.reduce("ReduceSumSquare", standardised, axis=0))
        if kernel.categories:
            level = 0.5 * float(weights(kernel.unit, kernel.categories).sum())
            parts.append(graph.node("Mul", self.ones, graph.real(level)))
        return self._sum(parts)

    def _standardised(self, kernel: kernels.Linear) -> str:
        """The contexts minus a linear kernel's centre, over its unit; codes are left out."""
        if kernel.plain:
            return self._warped
        graph, count = self._graph, self.support.shape[1] - kernel.categories
        centre = graph.real(self._each(kernel.centre)[:count, None], "the centre")
        unit = graph.real(self._each(kernel.unit)[:count, None], "the unit")
        numbers = graph.rows(self._warped, 0, count) if kernel.categories else self._warped
        return graph.node("Div", graph.node("Sub", numbers, centre), unit)

    def _power(self, kernel: kernels.Polynomial, inner: str) -> str:
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

    def _scaled_distance(self, kernel: kernels.Gaussian | kernels.Matern) -> str:
        """Squared distances in units of the bandwidth."""
        graph, codes = self._graph, kernel.categories
        if not isinstance(kernel.bandwidth, float):
            scale = np.asarray(kernel.bandwidth)
            column = graph.real(scale[:, None], "the bandwidth")
            contexts = graph.node("Div", self._warped, column)
            unlike = weights(kernel.bandwidth, codes) if codes else np.empty(0)
            return self._squared_distance(self.support / scale, contexts, unlike)
        squared = self._squared_distance(self.support, self._warped, np.ones(codes))
        if kernel.bandwidth > _TINY:
            return graph.node("Mul", squared, graph.real(kernel.bandwidth**-2, "1/bandwidth²"))
        bandwidth = graph.real(kernel.bandwidth, "the bandwidth")
        return graph.node("Div", graph.node("Div", squared, bandwidth), bandwidth)

    def _squared_distance(
        self, support: FloatArray, contexts: str, unlike: FloatArray | None = None
    ) -> str:
        """Squared distances of rows and columns; ``unlike`` of codes that differ, by category."""
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
            row = graph.rows(self._warped, first + j, first + j + 1)
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
