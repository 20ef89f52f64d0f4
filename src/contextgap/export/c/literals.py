"""Numbers, text and names as C has them: literals, a prefix, files, and levels of categories.

Literals mean exactly what they meant in Python. The static files have the prefix ``contextgap``.
Another one lets several policies be linked into one program.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contextgap.base.checks import Label
from contextgap.export.rule import ExportError
from contextgap.tables.columns import Category, TableSchema
from contextgap.tables.table import Level

DEFAULT_PREFIX = "contextgap"
# C99 distinguishes names of functions by 31 characters, of which "_recommend_" takes the rest.
_LONGEST_PREFIX = 20
_LONGEST_NAME = 63  # characters by which C99 distinguishes other names
POINTER = 8  # bytes, where pointers are largest
# Macros of the header, which no constant may be called.
_TAKEN = (
    *("ARMS", "BOUND_TOO_LARGE", "DEFAULT_ARM", "DIMENSION", "EXPORT_ID", "FALLBACK_ARM"),
    *("FLOAT32", "HAS_COLUMNS", "HAS_ELIGIBLE", "HAS_WIDTHS", "INPUT_NOT_FINITE", "INTERFACE_H"),
    *("LEVEL_UNKNOWN", "NO_ARM", "NO_FALLBACK", "NONE_ELIGIBLE", "OK", "OUTSIDE", "POLICY_H"),
    *("RESULT_NOT_FINITE", "WATCH_BETS", "WATCH_BINS", "WATCH_BLOCK", "WATCH_COLUMNS"),
    *("WATCH_FAILURE", "WATCH_H", "WATCH_STATISTICS"),
)
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord(c) for c in '"\\?'}
_LONGEST = 4095  # bytes of a string literal that every C99 compiler must accept
_LEVELS = """\
/* Codes of the levels of categories, and functions that return a text's code, -1 if it is no
 * level's. A null pointer is a missing value, as NAN is in a row. Truth values are called "true"
 * and "false". */
"""
_C_LINKAGE = """\
#ifdef __cplusplus
extern "C" {
#endif
"""
_C_LINKAGE_END = """\
#ifdef __cplusplus
}
#endif
"""
_FIND_LEVEL = """\
#define HAS_LEVELS
static int find_level(const char *const *levels, int count, const char *text);
"""


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
        return next(self.literals(self.rounded([value], called)))

    def literals(self, rounded: NDArray[Any]) -> Iterator[str]:
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
    numbers = [str(value) for value in values] or ["0"]
    declared = f"static const {kind} {name}[{len(numbers)}]"
    return f"/* {comment} */\n{declared} = {{\n{rows(numbers, 16)}\n}};\n"


def rows(items: Iterable[str], per_line: int) -> str:
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


class FileNames(NamedTuple):
    header: str
    source: str
    self_test: str

    @classmethod
    def of(cls, prefix: str) -> FileNames:
        return cls(f"{prefix}_policy.h", f"{prefix}_policy.c", f"{prefix}_selftest.c")


def check_prefix(prefix: str) -> str:
    """Return a prefix if names in C may begin with it, or raise."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be text, got {prefix!r}")
    if not re.fullmatch(f"[a-z][a-z0-9_]{{0,{_LONGEST_PREFIX - 1}}}", prefix):
        raise ValueError(
            f"prefix must be at most {_LONGEST_PREFIX} of a-z, 0-9 and _, a letter first, "
            f"got {prefix!r}"
        )
    return prefix


def static_file(name: str, prefix: str = DEFAULT_PREFIX) -> str:
    """Return the C of ``runtime.c`` and its like, with the names of a policy."""
    text = (files("contextgap.export.c") / name).read_text("utf-8")
    return text.replace("contextgap_", f"{prefix}_").replace("CONTEXTGAP_", f"{prefix.upper()}_")


class _Identifiers:
    """Names in C made from a user's text, each given once."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken)

    def new(self, *parts: str) -> str:
        whole = "_".join(parts)
        name, turn = whole[:_LONGEST_NAME], 1
        while name in self._taken:
            turn += 1
            name = f"{whole[: _LONGEST_NAME - len(str(turn)) - 1]}_{turn}"
        self._taken.add(name)
        return name


def _plain_word(text: str) -> str:
    """Return the letters and digits of a text, with _ for all that is between; perhaps none."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9]+", "_", ascii_text).strip("_")


@dataclass(frozen=True)
class CategoryNames:
    place: int  # of the column
    function: str  # finds a text's code
    enum: str  # the type of the levels
    count: str  # how many levels there are
    constants: tuple[str, ...]  # one for each level
    texts: tuple[str | None, ...]  # what each level is called; None for a missing value


def category_names(table: TableSchema, prefix: str) -> list[CategoryNames]:
    upper = prefix.upper()
    macros = _Identifiers({f"{upper}_{each}" for each in _TAKEN})
    functions = _Identifiers(set())
    found = []
    for place, coding in enumerate(table.codings):
        if not isinstance(coding.kind, Category):
            continue
        word = (_plain_word(coding.name) or f"column{place}").lower()
        function = functions.new(prefix, "encode", word)
        own = function.removeprefix(f"{prefix}_encode_")
        count = macros.new(upper, own.upper(), "LEVELS")
        constants = [
            macros.new(upper, own.upper(), _level_word(level, code))
            for code, level in enumerate(coding.levels)
        ]
        enum = f"{prefix}_level_of_{own}"
        found.append(CategoryNames(place, function, enum, count, tuple(constants), coding.levels))
    return found


def _level_word(level: Level, code: int) -> str:
    if level is None:
        return "GAP"
    if level[:1] == "-" and level[1:2].isdecimal():
        level = f"minus_{level}"
    return _plain_word(level).upper() or f"LEVEL_{code}"


def declarations(names: Sequence[CategoryNames]) -> str:
    """Return the header's part: constants and prototypes."""
    parts = []
    for each in names:
        last = len(each.constants) - 1
        # A star would end the comment if a slash came next.
        said = [
            "a missing value" if text is None else string(text, "a level").replace("*", "\\052")
            for text in each.texts
        ]
        lines = [
            f"    {name} = {code}{',' if code < last else ''} /* {text} */\n"
            for code, (name, text) in enumerate(zip(each.constants, said, strict=True))
        ]
        if each.constants:
            parts.append(f"enum {each.enum} {{\n{''.join(lines)}}};\n")
        parts.append(f"#define {each.count} {len(each.texts)}\n")
        parts.append(f"int {each.function}(const char *text);\n")
    return f"{_LEVELS}{_C_LINKAGE}{''.join(parts)}{_C_LINKAGE_END}" if parts else ""


def definitions(names: Sequence[CategoryNames]) -> str:
    """Return the source's part: the texts of levels and the functions that find them."""
    parts = []
    for each in names:
        called = f"levels_{each.place}"
        texts = ("NULL" if text is None else string(text, "a level") for text in each.texts)
        parts.append(
            f"static const char *const {called}[{max(1, len(each.texts))}] = {{\n"
            f"{rows(texts, 1)}\n}};\n\n"
            f"int {each.function}(const char *text)\n{{\n"
            f"    return find_level({called}, {each.count}, text);\n}}\n"
        )
    return "\n".join([_FIND_LEVEL, *parts]) if parts else ""


def level_bytes(table: TableSchema) -> int:
    """Return the bytes of all texts of levels, each of which a table points to."""
    total = 0
    for coding in table.codings:
        if isinstance(coding.kind, Category):
            total += POINTER * max(1, len(coding.levels))
            total += sum(string_bytes(text) for text in coding.levels if text is not None)
    return total
