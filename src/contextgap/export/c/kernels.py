"""Kernels as expressions of the functions of ``runtime.c``, and the tables that they need.

They are those of ``contextgap.kernels``, clamped alike so that nothing underflows. Codes of
categories are the last numbers of a context.
"""

from __future__ import annotations

import math
import textwrap
from typing import Any, NamedTuple

import numpy as np

from contextgap import kernels
from contextgap.export.c.literals import Real, array
from contextgap.export.rule import ExportError, check_kernel


class _Node(NamedTuple):
    """k(x, y), and k(x, x), which is a number if it is constant."""

    value: str
    at_itself: str | float


def kernel_text(kernel: kernels.Kernel, dimension: int, real: Real, *, with_self: bool) -> str:
    """Return the macros, and tables, of any nesting of the library's own kernels."""
    check_kernel(kernel, "expressed in C")
    writer = _Writer(dimension, real)
    root = writer.visit(kernel)
    uses = [f"#define USES_{name.upper()}\n" for name in sorted(writer.used)]
    codes = ["#define HAS_CODES\n"] if writer.has_codes else []
    macros = [_macro("KERNEL(x, y)", root.value)]
    if with_self:
        macros.append(_macro("KERNEL_SELF(x)", writer.expression(root.at_itself)))
    return "".join([*uses, *codes, *macros]) + "".join(f"\n{table}" for table in writer.tables)


def _macro(name: str, expression: str) -> str:
    lines = textwrap.wrap(f"({expression})", 92, break_long_words=False, break_on_hyphens=False)
    return f"#define {name} \\\n    " + " \\\n    ".join(lines) + "\n"


class _Writer:
    """Collects the tables of a kernel expression and the functions it uses."""

    def __init__(self, dimension: int, real: Real) -> None:
        self.tables: list[str] = []
        self.used: set[str] = set()
        self.has_codes = False
        self._dimension = dimension
        self._real = real
        self._count = 0

    def visit(self, kernel: kernels.Kernel) -> _Node:
        if isinstance(kernel, kernels.Sum | kernels.Product):
            return self._pair(kernel)
        if isinstance(kernel, kernels.Scaled):
            return self._scaled(kernel)
        self._count += 1
        if isinstance(kernel, kernels.Gaussian):
            return _Node(self._call("decay", self._squared_distance(kernel, -0.5)), 1.0)
        if isinstance(kernel, kernels.Matern):
            squared = self._squared_distance(kernel, 2 * kernel.smoothness)
            return _Node(self._call("matern", squared, str(int(kernel.smoothness))), 1.0)
        if isinstance(kernel, kernels.Periodic):
            # The circles of the Python kernel cost two table entries per number; this costs none.
            rate = self._table("frequency", math.pi / self._each(kernel.period))
            size = self._table("roughness", 1 / self._each(kernel.bandwidth))
            squared = self._call("periodic_distance", "(x)", "(y)", rate, size)
            return _Node(self._call("decay", f"{squared} * -REAL_TWO"), 1.0)
        if isinstance(kernel, kernels.Constant):
            return _Node(self._call("constant", "(x)", "(y)"), 1.0)
        value = self._product(kernel)
        return _Node(value, value.replace("(y)", "(x)"))

    def expression(self, value: str | float) -> str:
        return value if isinstance(value, str) else self._real.literal(value, "the diagonal")

    def _pair(self, kernel: kernels.Sum | kernels.Product) -> _Node:
        a, b = self.visit(kernel.left), self.visit(kernel.right)
        sign = "+" if isinstance(kernel, kernels.Sum) else "*"
        value = f"({a.value} {sign} {b.value})"
        if isinstance(a.at_itself, float) and isinstance(b.at_itself, float):
            both = a.at_itself + b.at_itself if sign == "+" else a.at_itself * b.at_itself
            return _Node(value, both)
        sides = (self.expression(side.at_itself) for side in (a, b))
        return _Node(value, f"({f' {sign} '.join(sides)})")

    def _scaled(self, kernel: kernels.Scaled) -> _Node:
        inner = self.visit(kernel.kernel)
        factor = self._setting(kernel.factor, "a kernel's factor")
        value = f"({factor} * {inner.value})"
        if isinstance(inner.at_itself, float):
            return _Node(value, kernel.factor * inner.at_itself)
        return _Node(value, f"({factor} * {inner.at_itself})")

    def _product(self, kernel: kernels.Kernel) -> str:
        if isinstance(kernel, kernels.Polynomial):
            inner = self._call("product", "(x)", "(y)")
            offset = self._real.literal(kernel.offset, "offset")
            return self._call("power", f"{inner} + {offset}", str(kernel.degree))
        assert isinstance(kernel, kernels.Linear)
        if kernel.plain:
            return self._call("product", "(x)", "(y)")
        count, units = self._numbers(kernel.categories), 1 / self._each(kernel.unit)
        units[count:] *= math.sqrt(0.5)  # the corners of kernels.categories
        scale = self._table("scale", units)
        # Codes have no centre, so that of codes alone is never read.
        centre = self._table("centre", self._each(kernel.centre)[:count]) if count else scale
        return self._call("standardised_product", "(x)", "(y)", scale, centre, f"{count}U")

    def _squared_distance(self, kernel: kernels.Gaussian | kernels.Matern, times: float) -> str:
        """Return |x − y|²·times in units of the bandwidth."""
        bandwidth, count = kernel.bandwidth, self._numbers(kernel.categories)
        if not isinstance(bandwidth, float):
            scale = self._table("scale", 1 / self._each(bandwidth))
            squared = self._call("scaled_distance", "(x)", "(y)", scale, f"{count}U")
            return f"{squared} * {self._real.literal(times, 'a factor')}"
        squared = self._call("distance", "(x)", "(y)", f"{count}U")
        # The inverse square of a tiny bandwidth is infinite; dividing twice is not.
        if bandwidth > 1e-20 and abs(times) * bandwidth**-2 < self._real.most:
            return f"{squared} * {self._real.literal(times * bandwidth**-2, 'bandwidth')}"
        divisor = self._setting(bandwidth, "bandwidth")
        return f"(({squared} / {divisor}) / {divisor}) * {self._real.literal(times, 'a factor')}"

    def _call(self, function: str, *arguments: str) -> str:
        self.used.add(function)
        return f"{function}({', '.join(arguments)})"

    def _numbers(self, codes: int) -> int:
        """Return how many numbers come before so many codes."""
        self.has_codes |= codes > 0
        return self._dimension - codes

    def _setting(self, value: float, called: str) -> str:
        """Return a positive number as a literal, refusing one that rounds to zero."""
        if not self._real.rounded(value, called) > 0:
            raise ExportError(f"{called} {value!r} is too small for a {self._real.name}")
        return self._real.literal(value, called)

    def _each(self, value: Any) -> Any:
        return np.full(self._dimension, value, dtype=np.float64)

    def _table(self, what: str, values: Any) -> str:
        name = f"kernel_{self._count}_{what}"
        self.tables.append(array(self._real, name, values, "one per number of a context"))
        return name
