"""What the exported files and the names in them are called: a prefix, and levels of categories.

The static files have the prefix ``contextgap``. Another one lets several policies be linked into
one program.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from contextgap.export.c.literals import rows, string, string_bytes
from contextgap.tables.cells import Level
from contextgap.tables.columns import Category
from contextgap.tables.schema import TableSchema

DEFAULT_PREFIX = "contextgap"
# C99 distinguishes names of functions by 31 characters, of which "_recommend_" takes the rest.
_LONGEST_PREFIX = 20
_LONGEST_NAME = 63  # characters by which C99 distinguishes other names
_POINTER = 8
# Macros of the header, which no constant may be called.
_TAKEN = (
    *("ARMS", "BOUND_TOO_LARGE", "DEFAULT_ARM", "DIMENSION", "EXPORT_ID", "FALLBACK_ARM"),
    *("FLOAT32", "HAS_COLUMNS", "HAS_ELIGIBLE", "HAS_WIDTHS", "INPUT_NOT_FINITE", "INTERFACE_H"),
    *("LEVEL_UNKNOWN", "NO_ARM", "NO_FALLBACK", "NONE_ELIGIBLE", "OK", "OUTSIDE", "POLICY_H"),
    *("RESULT_NOT_FINITE", "WATCH_BETS", "WATCH_BINS", "WATCH_BLOCK", "WATCH_COLUMNS"),
    *("WATCH_FAILURE", "WATCH_H", "WATCH_STATISTICS"),
)


class FileNames(NamedTuple):
    """The names of an export's three files."""

    header: str
    source: str
    self_test: str

    @classmethod
    def of(cls, prefix: str) -> FileNames:
        """Return the names of the files of an export with this prefix."""
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
        """Return a name made of these parts, with a number at its end if it was given before."""
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
    """What a column of categories is called in C, and its levels."""

    place: int  # of the column
    function: str  # finds a text's code
    enum: str  # the type of the levels
    count: str  # how many levels there are
    constants: tuple[str, ...]  # one for each level
    texts: tuple[str | None, ...]  # what each level is called; None for a missing value


def category_names(table: TableSchema, prefix: str) -> list[CategoryNames]:
    """Return what all columns of categories are called, all names distinct."""
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
        lines = [
            f"    {name} = {code}{',' if code < last else ''} /* {_in_comment(text)} */\n"
            for code, (name, text) in enumerate(zip(each.constants, each.texts, strict=True))
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
            texts: tuple[Level, ...] = coding.levels or (None,)
            total += _POINTER * len(texts)
            total += sum(string_bytes(text) for text in texts if text is not None)
    return total


def _in_comment(text: str | None) -> str:
    # A star would end the comment if a slash came next.
    return "a missing value" if text is None else string(text, "a level").replace("*", "\\052")


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
