"""Numbers and text as C literals that mean exactly what they meant in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextgap.base.labels import Label
from contextgap.export.rule import ExportError

_PLAIN = frozenset(range(0x20, 0x7F)) - {ord(c) for c in '"\\?'}
_LONGEST = 4095  # bytes of a string literal that every C99 compiler must accept


class Real:
    """The floating-point type of an export, ``float`` or ``double``."""

    def __init__(self, float32: bool) -> None:
        self.float32 = float32
        self.name = "float" if float32 else "double"
        self.dtype = np.dtype(np.float32 if float32 else np.float64)
        self.bytes = self.dtype.itemsize
        limits = np.finfo(np.float32) if float32 else np.finfo(np.float64)
        self.least, self.most = float(limits.tiny), float(limits.max)  # normal, positive, finite

    def rounded(self, values: Any, called: str, *, missing: bool = False) -> NDArray[Any]:
        """Return ``values`` in this type; what has no finite value is refused, or may be NaN."""
        with np.errstate(over="ignore", under="ignore"):
            array = np.asarray(values, dtype=np.float64).astype(self.dtype)
        if not (np.isfinite(array) | (missing & np.isnan(array))).all():
            raise ExportError(
                f"{called} cannot be exported: it holds numbers that no finite {self.name} is near"
            )
        # Subnormal numbers slow a processor down, or trap, and are worth nothing here.
        return np.where(np.abs(array) < self.least, self.dtype.type(0), array)

    def literal(self, value: float, called: str) -> str:
        """Return one number as a C literal."""
        return next(self.literals(self.rounded([value], called)))

    def literals(self, rounded: NDArray[Any]) -> Iterator[str]:
        """Return the literals of numbers that ``rounded`` gave."""
        numbers = rounded.ravel().tolist()
        if not self.float32:
            # The shortest text that reads back as the same double.
            return (repr(number) if number == number else "(double)NAN" for number in numbers)
        # Nine digits distinguish any two floats; the exponent keeps "1" from being an int.
        return (f"{number:.8e}f" if number == number else "NAN" for number in numbers)


def array(real: Real, name: str, values: Any, comment: str, *, missing: bool = False) -> str:
    """Return the definition of a constant array; C has no empty ones, so those get one zero."""
    rounded = real.rounded(values, name, missing=missing)
    declared = f"static const {real.name} {name}[{max(1, rounded.size)}]"
    return f"/* {comment} */\n{declared} = {{\n{rows(real.literals(rounded), 4)}\n}};\n"


def integers(name: str, kind: str, values: Iterable[int], comment: str) -> str:
    """Return the definition of a constant array of whole numbers."""
    numbers = [str(value) for value in values] or ["0"]
    declared = f"static const {kind} {name}[{len(numbers)}]"
    return f"/* {comment} */\n{declared} = {{\n{rows(numbers, 16)}\n}};\n"


def rows(items: Iterable[str], per_line: int) -> str:
    """Return items separated by commas, some per line."""
    listed = list(items) or ["0"]
    lines = (listed[i : i + per_line] for i in range(0, len(listed), per_line))
    return ",\n".join("    " + ", ".join(line) for line in lines)


def string(text: str, called: str) -> str:
    """Return text as a C string literal of its UTF-8 bytes, safe from escapes and trigraphs."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > _LONGEST:
        raise ExportError(
            f"{called} has {len(data)} bytes; C99 promises room for {_LONGEST}: shorten it"
        )
    # Octal escapes have at most three digits, so they cannot swallow what follows, as \x does.
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in data) + '"'


def string_bytes(text: str) -> int:
    """Return the bytes of text as a C string, with the zero at its end."""
    return len(text.encode("utf-8", "backslashreplace")) + 1


def label_text(label: Label) -> str:
    """Return what an arm is called: its label if that is text, else what Python prints for it."""
    return label if isinstance(label, str) else repr(label)


def column_names(columns: Sequence[str] | None, dimension: int) -> tuple[str, ...]:
    """Return the names of a context's numbers; without names they are called by position."""
    return tuple(columns or (f"context[{i}]" for i in range(dimension)))


def comment_text(text: str) -> str:
    """Return text that neither ends a comment nor looks like the start of one."""
    safe = "".join(c if c.isascii() and c.isprintable() and c not in '\\?"' else "." for c in text)
    return safe.replace("*/", "* /").replace("/*", "/ *")
