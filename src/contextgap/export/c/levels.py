"""The levels of categories in C: a constant for each, and functions that find a text's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contextgap.export.c.literals import rows, string, string_bytes
from contextgap.export.c.naming import Identifiers, plain_word
from contextgap.tables.cells import Level
from contextgap.tables.columns import Category
from contextgap.tables.schema import TableSchema

_POINTER = 8
# Macros of the header, which no constant may be called.
_TAKEN = (
    *("ARMS", "BOUND_TOO_LARGE", "DEFAULT_ARM", "DIMENSION", "EXPORT_ID", "FALLBACK_ARM"),
    *("HAS_ELIGIBLE", "HAS_WIDTHS", "INPUT_NOT_FINITE", "LEVEL_UNKNOWN", "NO_ARM"),
    *("NO_FALLBACK", "NONE_ELIGIBLE"),
    *("OK", "OUTSIDE", "POLICY_H", "RESULT_NOT_FINITE"),
)


@dataclass(frozen=True)
class CategoryNames:
    """What a column of categories is called in C, and its levels.

    Parameters
    ----------
    place
        Which column.
    function
        Finds a text's code.
    enum
        The type of its levels.
    count
        How many levels there are.
    constants
        One for each level.
    texts
        What each level is called; None for a gap.
    """

    place: int
    function: str
    enum: str
    count: str
    constants: tuple[str, ...]
    texts: tuple[str | None, ...]


def category_names(table: TableSchema, prefix: str) -> list[CategoryNames]:
    """Return what all columns of categories are called, all names distinct."""
    upper = prefix.upper()
    macros = Identifiers({f"{upper}_{each}" for each in _TAKEN})
    functions = Identifiers(set())
    found = []
    for place, coding in enumerate(table.codings):
        if not isinstance(coding.kind, Category):
            continue
        word = (plain_word(coding.name) or f"column{place}").lower()
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
    return plain_word(level).upper() or f"LEVEL_{code}"


def declarations(names: Sequence[CategoryNames]) -> str:
    """Return the header's part: constants and prototypes."""
    parts = [_FIRST] if names else []
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
    return "".join(parts)


def definitions(names: Sequence[CategoryNames]) -> str:
    """Return the source's part: the texts of levels and the functions that find them."""
    if not names:
        return ""
    parts = [_FIND]
    for each in names:
        called = f"levels_{each.place}"
        texts = ("NULL" if text is None else string(text, "a level") for text in each.texts)
        size = max(1, len(each.texts))
        parts.append(
            f"static const char *const {called}[{size}] = {{\n{rows(texts, 1)}\n}};\n\n"
            f"int {each.function}(const char *text)\n{{\n"
            f"    return find_level({called}, {each.count}, text);\n}}\n\n"
        )
    return "".join(parts)


def level_bytes(table: TableSchema) -> int:
    """Return the bytes of all texts of levels, each of which a table points to."""
    total = 0
    for coding in table.codings:
        if isinstance(coding.kind, Category):
            texts: tuple[Level, ...] = coding.levels or (None,)
            total += sum(
                _POINTER + (string_bytes(text) if text is not None else 0) for text in texts
            )
    return total


def _in_comment(text: str | None) -> str:
    # A star would end the comment if a slash came next.
    return "a gap" if text is None else string(text, "a level").replace("*", "\\052")


_FIRST = """\
/* Codes of the levels of categories, and functions that return a text's code, -1 if it is no
 * level's. A null pointer is a gap, as NAN is in a row. Truth values are called "true" and
 * "false". */
"""
_FIND = """\
static bool same_text(const char *a, const char *b)
{
    size_t i = 0;
    if ((a == NULL) || (b == NULL)) {
        return a == b;
    }
    while ((a[i] != '\\0') && (a[i] == b[i])) {
        i++;
    }
    return a[i] == b[i];
}

static int find_level(const char *const *levels, int count, const char *text)
{
    for (int code = 0; code < count; code++) {
        if (same_text(levels[code], text)) {
            return code;
        }
    }
    return -1;
}

"""
