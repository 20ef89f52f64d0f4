"""A graph put together node by node, each value known by its name."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from contextgap.base.names import study_import
from contextgap.export.rule import ExportError

# From here on axes of these operators are an input; before, an attribute.
_AXES_ARE_AN_INPUT = {"ReduceSum": 13, "ReduceSumSquare": 18, "ReduceMax": 18, "ReduceMin": 18}


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
        """Return a constant of 64-bit integers."""
        return self._constant(np.asarray(values, dtype=np.int64))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Return the value of an operator with one output."""
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
        """Return tables one below the other."""
        return tables[0] if len(tables) == 1 else self.node("Concat", *tables, axis=0)

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Return a value converted to another type."""
        return self.node("Cast", value, to=self.type_code(dtype))

    def output(self, name: str, value: str, dtype: DTypeLike, *shape: str | int) -> None:
        """Promise a value under a name of its own."""
        helper = self._onnx.helper
        self.nodes.append(helper.make_node("Identity", [value], [name], name))
        self.outputs[name] = helper.make_tensor_value_info(name, self.type_code(dtype), shape)

    def type_code(self, dtype: DTypeLike) -> int:
        """Return what ONNX calls a type."""
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
