"""Graphs put together node by node, and what they compute first: what kernels see, and kernels.

Values have shape (support, batch). Squared distances are summed over differences, one dimension at
a time; x² + y² − 2xy would be wrong by about 1e-16·x² where x is close to y, of which the root of
Matérn kernels makes 1e-8·x. Codes of categories, the last numbers of a context, are the same or
not the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from contextgap import kernels
from contextgap.base.arrays import FloatArray
from contextgap.base.components import study_import
from contextgap.export.rule import ExportError, How, SpreadNumber, spread_numbers
from contextgap.kernels.categories import Warp, weights
from contextgap.tables.columns import TableSchema

# Where the axes of an operator become an input.
_AXES_ARE_AN_INPUT = {"ReduceSum": 13, "ReduceSumSquare": 18, "ReduceMax": 18, "ReduceMin": 18}
# Bandwidths with too small a square, as for kernels.
_TINY = 1e-20


Operand: TypeAlias = Union["Value", ArrayLike]


def _operator(name: str) -> Callable[[Value, Operand], Value]:
    def applied(value: Value, other: Operand) -> Value:
        return value.node(name, other if isinstance(other, Value) else value.graph.real(other))

    return applied


@dataclass(frozen=True, eq=False)
class Value:
    """A computed value; arithmetic adds nodes, and constants for numbers."""

    graph: GraphBuilder
    name: str

    __add__, __sub__ = _operator("Add"), _operator("Sub")
    __mul__, __truediv__, __matmul__ = _operator("Mul"), _operator("Div"), _operator("MatMul")
    __lt__, __le__, __gt__ = _operator("Less"), _operator("LessOrEqual"), _operator("Greater")
    __and__, __or__, equals = _operator("And"), _operator("Or"), _operator("Equal")

    def __neg__(self) -> Value:
        return self.node("Neg")

    def __invert__(self) -> Value:
        return self.node("Not")

    def __getitem__(self, rows: slice) -> Value:
        return self.node("Slice", [rows.start], [rows.stop], [0])

    @property
    def transposed(self) -> Value:
        return self.node("Transpose", perm=[1, 0])

    @property
    def row(self) -> Value:
        """All entries one after the other."""
        return self.node("Reshape", [-1])

    def node(self, operator: str, *others: Operand, **attributes: Any) -> Value:
        return self.graph.node(operator, self, *others, **attributes)

    def where(self, yes: Operand, no: Operand) -> Value:
        return self.node("Where", yes, no)

    def cast(self, dtype: DTypeLike) -> Value:
        return self.node("Cast", to=self.graph.type_code(dtype))

    def over_rows(self, operator: str) -> Value:
        """Return a reduction of columns, shape (1, batch)."""
        if self.graph.opset >= _AXES_ARE_AN_INPUT[operator]:
            return self.node(operator, [0], keepdims=1)
        return self.node(operator, axes=[0], keepdims=1)


class GraphBuilder:
    """Nodes and constants of a graph under construction.

    Asking twice for the same node or constant gives the same value. Real numbers have one type.
    """

    def __init__(self, dtype: DTypeLike, opset: int) -> None:
        self.dtype = np.dtype(dtype)
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.outputs: dict[str, Any] = {}
        self._onnx = study_import("onnx", extra="onnx")
        self._names: dict[Any, str] = {}

    def input(self, name: str) -> Value:
        return Value(self, name)

    def real(self, values: ArrayLike, setting: str | None = None) -> Value:
        """Return a real constant; a ``setting`` must not round to zero."""
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

    def constant(self, values: ArrayLike) -> Value:
        given = np.asarray(values)
        if given.dtype.kind == "f":
            return self.real(given)
        return self._constant(given if given.dtype == np.bool_ else given.astype(np.int64))

    def node(self, operator: str, *inputs: Operand, outputs: int = 1, **attributes: Any) -> Value:
        values = [each if isinstance(each, Value) else self.constant(each) for each in inputs]
        given = [each.name for each in values]
        key = (operator, *given, repr(sorted(attributes.items())))
        if key not in self._names:
            name = self._names[key] = f"{operator.lower()}{len(self._names)}"
            made = [name, *(f"{name}_{place}" for place in range(1, outputs))]
            self.nodes.append(
                self._onnx.helper.make_node(operator, given, made, name, **attributes)
            )
        return Value(self, self._names[key])

    def stack(self, tables: Sequence[Value]) -> Value:
        return tables[0] if len(tables) == 1 else self.node("Concat", *tables, axis=0)

    def output(self, name: str, value: Value, dtype: DTypeLike, *shape: str | int) -> None:
        helper = self._onnx.helper
        self.nodes.append(helper.make_node("Identity", [value.name], [name], name))
        self.outputs[name] = helper.make_tensor_value_info(name, self.type_code(dtype), shape)

    def type_code(self, dtype: DTypeLike) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def prune(self) -> None:
        needed, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = [tensor for tensor in self.initializers if tensor.name in needed]

    def _constant(self, array: NDArray[Any]) -> Value:
        # A digest, since the largest constants are the inverse factors.
        digest = hashlib.blake2b(array.tobytes()).digest()
        key = ("constant", array.dtype.str, array.shape, digest)
        if key not in self._names:
            name = self._names[key] = f"constant{len(self._names)}"
            tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            tensor.dims[:] = array.shape  # of a scalar, no vector
            self.initializers.append(tensor)
        return Value(self, self._names[key])


def spread_rows(graph: GraphBuilder, rows: Value, table: TableSchema) -> Value:
    """Return what kernels see of ``rows``, shape (numbers, batch); NaN for no answer."""
    numbers = spread_numbers(table)
    groups = [(how, [each for each in numbers if each.how is how]) for how in How]
    stacked = graph.stack([_part(graph, rows, how, own) for how, own in groups if own])
    # Kernels have them by column.
    order = sorted(range(len(numbers)), key=lambda place: numbers[place].how.value)
    places = np.argsort(order)
    if (places == np.arange(len(places))).all():
        return stacked
    return stacked.node("Gather", places, axis=0)


def _part(graph: GraphBuilder, rows: Value, how: How, numbers: list[SpreadNumber]) -> Value:
    values = rows.node("Gather", [each.source for each in numbers], axis=0)
    is_missing = values.node("IsNaN")
    if how is How.IS_MISSING:
        return is_missing.cast(graph.dtype)
    by = graph.real([[each.by] for each in numbers])
    found = values
    if how in (How.COSINE, How.SINE):
        # The remainder is exact; float32 keeps little of a date in turns.
        angle = values.node("Mod", by, fmod=1) / by * (2 * np.pi)
        found = angle.node("Cos" if how is How.COSINE else "Sin")
    elif how is How.CODE:  # unknown ones become one
        whole = values.equals(values.node("Floor"))
        negative = values < 0.0
        is_level = whole & (values < by) & ~negative
        kept = is_level | values.node("IsInf")
        found = kept.where(values, graph.real([[each.unknown] for each in numbers]))
    return is_missing.where(graph.real([[each.missing] for each in numbers]), found)


def _warped(graph: GraphBuilder, contexts: Value, warp: Warp) -> Value:
    skewed = np.array(warp.unit)[:, None] > 0
    unit = graph.real(np.where(skewed, np.array(warp.unit)[:, None], 1.0), "unit")
    away = contexts - np.array(warp.centre)[:, None]
    log = (away.node("Abs") / unit + 1.0).node("Log")
    return graph.node("Where", skewed, away.node("Sign") * log, contexts)


class KernelGraph:
    """Kernels between the observed contexts ``support``, shape (n, d), and the graph's input.

    ``contexts`` is what kernels see of the input, transposed, and ``ones`` a row of ones.
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
        rows = graph.input("contexts")
        self.contexts = rows.transposed
        if table is not None:
            self.contexts = spread_rows(graph, self.contexts, table)
        self._warped = self.contexts if warp is None else _warped(graph, self.contexts, warp)
        count = rows.node("Shape")[0:1]
        one = graph.real([[1.0]])
        self.ones = one.node("Expand", graph.stack([graph.constant([1]), count]))

    def values(self, kernel: kernels.Kernel) -> Value:
        if isinstance(kernel, kernels.Sum | kernels.Product):
            left, right = self.values(kernel.left), self.values(kernel.right)
            return left + right if isinstance(kernel, kernels.Sum) else left * right
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

    def diagonal(self, kernel: kernels.Kernel) -> Value:
        if isinstance(kernel, kernels.Sum | kernels.Product):
            left, right = self.diagonal(kernel.left), self.diagonal(kernel.right)
            return left + right if isinstance(kernel, kernels.Sum) else left * right
        if isinstance(kernel, kernels.Scaled):
            factor = self._graph.real(kernel.factor, "the kernel's factor")
            return self.diagonal(kernel.kernel) * factor
        if isinstance(kernel, kernels.Linear):
            return self._linear_diagonal(kernel)
        if isinstance(kernel, kernels.Polynomial):
            return self._power(kernel, self.diagonal(kernels.Linear()))
        return self.ones

    def _scaled(self, kernel: kernels.Scaled) -> Value:
        inner: kernels.Kernel = kernel.kernel
        factor = kernel.factor
        while isinstance(inner, kernels.Scaled):
            factor *= inner.factor
            inner = inner.kernel
        # onnxruntime would round the factor of a product of matrices to float.
        if isinstance(inner, kernels.Linear):
            return self._linear(inner, factor)
        if isinstance(inner, kernels.Constant):
            return self._constant(factor)
        return self.values(inner) * self._graph.real(factor, "the kernel's factor")

    def _constant(self, factor: float) -> Value:
        column = np.full((len(self.support), 1), factor)
        return self._graph.real(column, "the kernel's factor") @ self.ones

    def _matern(self, kernel: kernels.Matern) -> Value:
        r = (self._scaled_distance(kernel) * (2 * kernel.smoothness)).node("Sqrt")
        r = r.node("Min", self._least_exponent(700.0))
        decay = (-r).node("Exp")
        if kernel.smoothness == 0.5:
            return decay
        polynomial = r + 1.0
        if kernel.smoothness == 2.5:
            polynomial += r * r / 3.0
        return polynomial * decay

    def _periodic(self, kernel: kernels.Periodic) -> Value:
        graph, period, bandwidth = self._graph, *map(self._each, (kernel.period, kernel.bandwidth))
        angle = self._warped * (2 * np.pi) / graph.real(period[:, None], "the period")
        radius = graph.real(1 / bandwidth[:, None], "1/bandwidth")
        circles = graph.stack([radius * angle.node(wave) for wave in ("Cos", "Sin")])
        angles = 2 * np.pi * self.support / period
        support = np.hstack([np.cos(angles) / bandwidth, np.sin(angles) / bandwidth])
        return self._decay(self._squared_distance(support, circles, np.empty(0)))

    def _linear(self, kernel: kernels.Linear, factor: float = 1.0) -> Value:
        parts = []
        if self.support.shape[1] > kernel.categories:
            support = self._graph.real(factor * kernel.standardised(self.support))
            parts.append(support @ self._standardised(kernel))
        if kernel.categories:
            level = 0.5 * factor * weights(kernel.unit, kernel.categories)
            parts.append(self._codes(level, np.zeros(len(level))))
        return reduce(add, parts)

    def _linear_diagonal(self, kernel: kernels.Linear) -> Value:
        parts = []
        if self.support.shape[1] > kernel.categories:
            parts.append(self._standardised(kernel).over_rows("ReduceSumSquare"))
        if kernel.categories:
            parts.append(self.ones * (0.5 * weights(kernel.unit, kernel.categories).sum()))
        return reduce(add, parts)

    def _standardised(self, kernel: kernels.Linear) -> Value:
        """The contexts minus the centre, over the unit, without codes."""
        if kernel.plain:
            return self._warped
        graph, count = self._graph, self.support.shape[1] - kernel.categories
        centre = graph.real(self._each(kernel.centre)[:count, None], "the centre")
        unit = graph.real(self._each(kernel.unit)[:count, None], "the unit")
        return ((self._warped[0:count] if kernel.categories else self._warped) - centre) / unit

    def _power(self, kernel: kernels.Polynomial, inner: Value) -> Value:
        # Repeated squaring: some runtimes leave Pow of a negative number undefined.
        result, left, square = None, kernel.degree, inner + kernel.offset
        while True:
            if left % 2:
                result = result * square if result else square
            left //= 2
            if not left:
                return result or square
            square *= square

    def _scaled_distance(self, kernel: kernels.Gaussian | kernels.Matern) -> Value:
        graph, codes = self._graph, kernel.categories
        if not isinstance(kernel.bandwidth, float):
            scale = np.asarray(kernel.bandwidth)
            contexts = self._warped / graph.real(scale[:, None], "the bandwidth")
            unlike = weights(kernel.bandwidth, codes) if codes else np.empty(0)
            return self._squared_distance(self.support / scale, contexts, unlike)
        squared = self._squared_distance(self.support, self._warped, np.ones(codes))
        if kernel.bandwidth > _TINY:
            return squared * graph.real(kernel.bandwidth**-2, "1/bandwidth²")
        bandwidth = graph.real(kernel.bandwidth, "the bandwidth")
        return squared / bandwidth / bandwidth

    def _squared_distance(self, support: FloatArray, contexts: Value, unlike: FloatArray) -> Value:
        """Squared distances; ``unlike`` are those of codes that differ."""
        columns = enumerate(support[:, : support.shape[1] - len(unlike)].T)
        differences = (contexts[j : j + 1] - column[:, None] for j, column in columns)
        codes = [self._codes(np.zeros(len(unlike)), unlike)] if len(unlike) else []
        # One by one, so that few are held.
        found: Value = reduce(add, chain((each * each for each in differences), codes))
        return found

    def _codes(self, same: FloatArray, differ: FloatArray) -> Value:
        """The sum over categories of one number where codes are the same, else of another."""
        parts, first = [], self.support.shape[1] - len(same)
        for j, (equal, unlike) in enumerate(
            zip(same.tolist(), differ.tolist(), strict=True), first
        ):
            is_same = self._warped[j : j + 1].equals(self.support[:, j, None])
            parts.append(is_same.where(equal, unlike))
        return reduce(add, parts)

    def _decay(self, squared: Value) -> Value:
        """exp(−squared/2), limited as in the kernels."""
        return (squared * -0.5).node("Max", -self._least_exponent(300.0)).node("Exp")

    def _least_exponent(self, exponent: float) -> float:
        """The kernel's limit; for float32, with exp(−87.3) its smallest, less."""
        return exponent if self._graph.dtype == np.float64 else min(exponent, 87.0)

    def _each(self, value: float | Sequence[float]) -> FloatArray:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), self.support.shape[1])
