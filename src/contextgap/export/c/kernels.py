"""Kernels as C functions, one per node of the expression, with what each costs.

They are those of ``contextgap.kernels``, clamped alike so that nothing underflows: a Gaussian's
exponent at −300 (−85 in ``float``), a Matérn's distance at 700 (85 in ``float``). Codes of
categories, the last numbers of a context, are the same or not the same, whatever they are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from contextgap.export.c.layout import Operations
from contextgap.export.c.literals import Real, array
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

_KNOWN = (Gaussian, Matern, Periodic, Linear, Polynomial, Constant, Sum, Product, Scaled)
_TWO_CONTEXTS = "(const contextgap_real *x, const contextgap_real *y)"
_NUMBERS = """\
    for (size_t i = 0; i < {end}; i++) {{
{body}    }}
"""
_CODES = """\
    for (size_t i = {start}; i < {end}; i++) {{
        const bool differ = (x[i] < y[i]) || (x[i] > y[i]);
{body}    }}
"""
_SQUARE = """\
        const contextgap_real t = {difference};
        squared += t * t;
"""


class KernelSource(NamedTuple):
    """``kernel(x, y)`` and, if needed, ``kernel_diagonal(x)`` in C, with the cost of each."""

    code: str
    value: Operations
    diagonal: Operations


class _Node(NamedTuple):
    """A kernel's function; k(x, x), which is a number if it is constant; and what both cost."""

    function: str
    value: Operations
    at_itself: str | float
    diagonal: Operations


def kernel_source(
    kernel: Kernel,
    dimension: int,
    real: Real,
    *,
    with_diagonal: bool,
    dimension_name: str = "(size_t)CONTEXTGAP_DIMENSION",
) -> KernelSource:
    """Return any nesting of the library's own kernels in C, with k(x, x) where that is needed.

    ``dimension_name`` is what the code calls the number of numbers that kernels see.
    """
    writer = _Writer(dimension, real, dimension_name)
    root = writer.visit(kernel)
    writer.function("kernel", _TWO_CONTEXTS, f"    return {root.function}(x, y);\n")
    if with_diagonal:
        unused = "    (void)x;\n" if isinstance(root.at_itself, float) else ""
        body = f"{unused}    return {writer.expression(root.at_itself)};\n"
        writer.function("kernel_diagonal", "(const contextgap_real *x)", body)
    return KernelSource("\n".join(writer.parts), root.value, root.diagonal)


class _Writer:
    """Collects the functions of a kernel expression, inner ones first."""

    def __init__(self, dimension: int, real: Real, dimension_name: str) -> None:
        self.parts: list[str] = []
        self._count = 0
        self._dimension = dimension
        self._dimension_name = dimension_name
        self._real = real
        self._floor = real.literal(-85 if real.float32 else -300, "an exponent")
        self._farthest = real.literal(85 if real.float32 else 700, "a distance")

    def function(self, name: str, arguments: str, body: str) -> None:
        self.parts.append(f"static contextgap_real {name}{arguments}\n{{\n{body}}}\n")

    def visit(self, kernel: Kernel) -> _Node:
        # By exact type: a subclass may compute anything.
        if type(kernel) not in _KNOWN:
            can = ", ".join(kind.__name__ for kind in _KNOWN)
            raise ExportError(
                f"the kernel {type(kernel).__name__} cannot be expressed in C; {can} and "
                "combinations of them can"
            )
        if isinstance(kernel, Sum):
            return self._pair(kernel.left, kernel.right, "+", Operations(additions=1))
        if isinstance(kernel, Product):
            return self._pair(kernel.left, kernel.right, "*", Operations(multiplications=1))
        if isinstance(kernel, Scaled):
            return self._scaled(kernel)
        if isinstance(kernel, Gaussian):
            return self._gaussian(kernel)
        if isinstance(kernel, Matern):
            return self._matern(kernel)
        if isinstance(kernel, Periodic):
            return self._periodic(kernel)
        if isinstance(kernel, Constant):
            name = self._define("    (void)x;\n    (void)y;\n    return REAL_ONE;\n")
            return self._stationary(name, Operations())
        return self._dot(kernel)

    def expression(self, value: str | float) -> str:
        return value if isinstance(value, str) else self._real.literal(value, "the diagonal")

    def _pair(self, left: Kernel, right: Kernel, sign: str, one: Operations) -> _Node:
        a, b = self.visit(left), self.visit(right)
        name = self._define(f"    return {a.function}(x, y) {sign} {b.function}(x, y);\n")
        value = a.value + b.value + one
        if isinstance(a.at_itself, float) and isinstance(b.at_itself, float):
            both = a.at_itself + b.at_itself if sign == "+" else a.at_itself * b.at_itself
            return _Node(name, value, both, Operations())
        expression = f"({self.expression(a.at_itself)} {sign} {self.expression(b.at_itself)})"
        return _Node(name, value, expression, a.diagonal + b.diagonal + one)

    def _scaled(self, kernel: Scaled) -> _Node:
        inner, one = self.visit(kernel.kernel), Operations(multiplications=1)
        factor = self._setting(kernel.factor, "a kernel's factor")
        name = self._define(f"    return {factor} * {inner.function}(x, y);\n")
        if isinstance(inner.at_itself, float):
            return _Node(name, inner.value + one, kernel.factor * inner.at_itself, Operations())
        diagonal = f"({factor} * {inner.at_itself})"
        return _Node(name, inner.value + one, diagonal, inner.diagonal + one)

    def _gaussian(self, kernel: Gaussian) -> _Node:
        loop, squared, cost = self._squared_distance(kernel, -0.5)
        name = self._define(f"{loop}{self._decay(squared)}")
        return self._stationary(name, cost + Operations(exp=1))

    def _matern(self, kernel: Matern) -> _Node:
        loop, squared, cost = self._squared_distance(kernel, 2 * kernel.smoothness)
        three = self._real.literal(3, "a number")
        shape, more = {
            0.5: ("", Operations()),
            1.5: ("(REAL_ONE + r) * ", Operations(1, 1)),
            2.5: (f"(REAL_ONE + r + ((r * r) / {three})) * ", Operations(2, 2, 1)),
        }[kernel.smoothness]
        name = self._define(
            f"{loop}"
            f"    contextgap_real r = REAL_SQRT({squared});\n"
            f"    r = (r > {self._farthest}) ? {self._farthest} : r;\n"
            f"    return {shape}REAL_EXP(-r);\n"
        )
        return self._stationary(name, cost + more + Operations(sqrt=1, exp=1))

    def _periodic(self, kernel: Periodic) -> _Node:
        # The circles of the Python kernel cost two table entries per number; this costs none.
        rate = self._table("frequency", math.pi / self._each(kernel.period))
        size = self._table("roughness", 1 / self._each(kernel.bandwidth))
        sine = f"{size}[i] * REAL_SIN({rate}[i] * (x[i] - y[i]))"
        loop = self._loops("squared", _SQUARE.format(difference=sine))
        name = self._define(loop + self._decay("squared * -REAL_TWO"))
        d = self._dimension
        cost = Operations(additions=2 * d, multiplications=3 * d + 1, sin=d, exp=1)
        return self._stationary(name, cost)

    def _dot(self, kernel: Kernel) -> _Node:
        codes = kernel.categories if isinstance(kernel, Linear) else 0
        d = self._dimension - codes
        addend, cost, same = "x[i] * y[i]", Operations(d, d), ""
        if isinstance(kernel, Linear) and not kernel.plain:
            units = 1 / self._each(kernel.unit)
            units[d:] *= math.sqrt(0.5)  # the corners of kernels.categories
            scale = self._table("scale", units)
            centre = self._table("centre", self._each(kernel.centre)[:d]) if d else ""
            sides = (f"({side}[i] - {centre}[i]) * {scale}[i]" for side in "xy")
            addend = " * ".join(f"({side})" for side in sides)
            cost = Operations(3 * d + codes, 3 * d + codes)
            same = (
                f"        const contextgap_real t = differ ? REAL_ZERO : {scale}[i];\n"
                "        sum += t * t;\n"
            )
        body = self._loops("sum", f"        sum += {addend};\n", codes, same)
        if isinstance(kernel, Polynomial):
            body += f"    sum += {self._real.literal(kernel.offset, 'offset')};\n"
            body += "    contextgap_real power = sum;\n"
            steps = "".join("sm" if bit == "1" else "s" for bit in f"{kernel.degree:b}"[1:])
            for step in steps:
                body += f"    power *= {'power' if step == 's' else 'sum'};\n"
            cost += Operations(additions=1, multiplications=len(steps))
        result = "power" if isinstance(kernel, Polynomial) else "sum"
        name = self._define(f"{body}    return {result};\n")
        return _Node(name, cost, f"{name}(x, x)", cost)

    def _stationary(self, name: str, cost: Operations) -> _Node:
        return _Node(name, cost, 1.0, Operations())

    def _define(self, body: str) -> str:
        self._count += 1
        name = f"kernel_{self._count}"
        self.function(name, _TWO_CONTEXTS, body)
        return name

    def _squared_distance(
        self, kernel: Gaussian | Matern, times: float
    ) -> tuple[str, str, Operations]:
        """Return the loops, |x − y|²·times in units of the bandwidth, and what they cost."""
        bandwidth, codes = kernel.bandwidth, kernel.categories
        d = self._dimension - codes
        if not isinstance(bandwidth, float):
            scale = self._table("scale", 1 / self._each(bandwidth))
            square = _SQUARE.format(difference=f"(x[i] - y[i]) * {scale}[i]")
            apart = _SQUARE.format(difference=f"differ ? {scale}[i] : REAL_ZERO")
            cost = Operations(2 * d + codes, 2 * d + codes + 1)
            loop = self._loops("squared", square, codes, apart)
            return loop, f"squared * {self._real.literal(times, 'a factor')}", cost
        square = _SQUARE.format(difference="x[i] - y[i]")
        apart = "        squared += differ ? REAL_ONE : REAL_ZERO;\n"
        loop = self._loops("squared", square, codes, apart)
        cost = Operations(2 * d + codes, d + 1)
        # The inverse square of a tiny bandwidth is infinite; dividing twice is not.
        if bandwidth > 1e-20 and abs(times) * bandwidth**-2 < self._real.most:
            inverse = self._real.literal(times * bandwidth**-2, "bandwidth")
            return loop, f"squared * {inverse}", cost
        divisor = self._setting(bandwidth, "bandwidth")
        squared = f"squared / {divisor} / {divisor} * {self._real.literal(times, 'a factor')}"
        return loop, squared, cost + Operations(divisions=2)

    def _loops(self, total: str, numbers: str, codes: int = 0, differ: str = "") -> str:
        """Return loops over a context's numbers and over its codes that add to a total."""
        text, count = f"    contextgap_real {total} = REAL_ZERO;\n", self._dimension - codes
        if count:  # compilers warn of a loop that never runs
            text += _NUMBERS.format(
                end=f"{count}U" if codes else self._dimension_name, body=numbers
            )
        if codes:
            text += _CODES.format(start=f"{count}U", end=self._dimension_name, body=differ)
        return text

    def _decay(self, exponent: str) -> str:
        return (
            f"    const contextgap_real exponent = {exponent};\n"
            f"    return REAL_EXP((exponent < {self._floor}) ? {self._floor} : exponent);\n"
        )

    def _setting(self, value: float, called: str) -> str:
        """Return a positive number as a literal, refusing one that rounds to zero."""
        if not self._real.rounded(value, called) > 0:
            raise ExportError(f"{called} {value!r} is too small for a {self._real.name}")
        return self._real.literal(value, called)

    def _each(self, value: Any) -> Any:
        return np.full(self._dimension, value, dtype=np.float64)

    def _table(self, what: str, values: Any) -> str:
        name = f"kernel_{self._count + 1}_{what}"
        self.parts.append(array(self._real, name, values, "one per number of a context"))
        return name
