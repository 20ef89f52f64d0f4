"""The generated part of the exported files, which a static one follows.

``policy.h`` says what the policy is and ends with ``runtime.h``; ``policy.c`` holds its tables and
ends with ``runtime.c``; ``selftest.c`` holds Python's answers and ends with ``selftest.c``. Kernels
are expressions of functions of ``runtime.c``, clamped as in ``contextgap.kernels``. Literals mean
exactly what they meant in Python. Other prefixes let several policies be linked together.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contextgap import kernels
from contextgap.base.checks import Label
from contextgap.export.rule import (
    Answers,
    DecisionRule,
    ExportError,
    check_kernel,
    has_unknown_level,
    is_near_tie,
    seen_ranges,
    spread_numbers,
)
from contextgap.insight.watch import Watch
from contextgap.policy.state import Status
from contextgap.tables.columns import MOST_LEVELS, Category, Cyclic, Date, Kind, TableSchema
from contextgap.tables.table import Level

if TYPE_CHECKING:
    from contextgap.export.c import Layout

POINTER = 8  # bytes, at most


class Real:
    def __init__(self, float32: bool) -> None:
        self.float32 = float32
        self.name = "float" if float32 else "double"
        self.dtype = np.dtype(np.float32 if float32 else np.float64)
        self.bytes = self.dtype.itemsize
        limits = np.finfo(np.float32) if float32 else np.finfo(np.float64)
        self.least, self.most = float(limits.tiny), float(limits.max)  # normal, positive, finite

    def rounded(self, values: Any, called: str, *, missing: bool = False) -> NDArray[Any]:
        """Return ``values`` in this type; only finite ones, or NaN if ``missing``."""
        with np.errstate(over="ignore", under="ignore"):
            array = np.asarray(values, dtype=np.float64).astype(self.dtype)
        if not (np.isfinite(array) | (missing & np.isnan(array))).all():
            raise ExportError(
                f"{called} cannot be exported: it holds numbers that no finite {self.name} is near"
            )
        # Subnormal numbers slow a processor down.
        return np.where(np.abs(array) < self.least, self.dtype.type(0), array)

    def literal(self, value: float, called: str) -> str:
        return next(self.literals(self.rounded([value], called)))

    def literals(self, rounded: NDArray[Any]) -> Iterator[str]:
        numbers = rounded.ravel().tolist()
        if not self.float32:
            # Shortest text of the same double.
            return (repr(number) if number == number else "(double)NAN" for number in numbers)
        # Nine digits, and an exponent, so that "1" is no int.
        return (f"{number:.8e}f" if number == number else "NAN" for number in numbers)


def string_bytes(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace")) + 1


def label_text(label: Label) -> str:
    """Return a label, or what Python prints for it."""
    return label if isinstance(label, str) else repr(label)


def column_names(columns: Sequence[str] | None, dimension: int) -> tuple[str, ...]:
    """Return names, or places, of a context's numbers."""
    return tuple(columns or (f"context[{i}]" for i in range(dimension)))


def level_bytes(table: TableSchema) -> int:
    total = 0
    for coding in table.codings:
        if isinstance(coding.kind, Category):
            total += POINTER * max(1, len(coding.levels))
            total += sum(string_bytes(text) for text in coding.levels if text is not None)
    return total


DEFAULT_PREFIX = "contextgap"
# C99 distinguishes functions by 31 characters, with "_recommend_".
_LONGEST_PREFIX = 20
_LONGEST_NAME = 63  # characters C99 distinguishes other names by
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord(c) for c in '"\\?'}
_LONGEST = 4095  # bytes of a literal in C99
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


def array(real: Real, name: str, values: Any, comment: str, *, missing: bool = False) -> str:
    """Define a constant array, of at least one number."""
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
    """Return a C string literal of UTF-8 bytes, safe from escapes and trigraphs."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > _LONGEST:
        raise ExportError(
            f"{called} has {len(data)} bytes; C99 promises room for {_LONGEST}: shorten it"
        )
    # Octal escapes have three digits at most, and swallow nothing.
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in data) + '"'


def comment_text(text: str) -> str:
    """Return text that leaves comments whole."""
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
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be text, got {prefix!r}")
    if not re.fullmatch(f"[a-z][a-z0-9_]{{0,{_LONGEST_PREFIX - 1}}}", prefix):
        raise ValueError(
            f"prefix must be at most {_LONGEST_PREFIX} of a-z, 0-9 and _, a letter first, "
            f"got {prefix!r}"
        )
    return prefix


def static_file(name: str, prefix: str = DEFAULT_PREFIX) -> str:
    """Return a file of C with the names of a policy."""
    text = (files("contextgap.export.c") / name).read_text("utf-8")
    return text.replace("contextgap_", f"{prefix}_").replace("CONTEXTGAP_", f"{prefix.upper()}_")


def _identifiers(taken: set[str]) -> Callable[..., str]:
    """Return what makes names in C, each once."""

    def new(*parts: str) -> str:
        whole = "_".join(parts)
        name, turn = whole[:_LONGEST_NAME], 1
        while name in taken:
            turn += 1
            name = f"{whole[: _LONGEST_NAME - len(str(turn)) - 1]}_{turn}"
        taken.add(name)
        return name

    return new


def _plain_word(text: str) -> str:
    """Return letters and digits, with _ between; perhaps none."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9]+", "_", ascii_text).strip("_")


@dataclass(frozen=True)
class CategoryNames:
    place: int
    function: str  # finds a text's code
    enum: str  # the type of the levels
    count: str  # how many levels there are
    constants: tuple[str, ...]  # one for each level
    texts: tuple[str | None, ...]  # None for a missing value


def category_names(table: TableSchema, prefix: str) -> list[CategoryNames]:
    upper = prefix.upper()
    static = [static_file(name, prefix) for name in ("runtime.h", "runtime.c")]
    macros = re.findall(rf"\b{upper}_\w+", "".join([*static, _HEADER.replace("{upper}", upper)]))
    new_macro = _identifiers({*macros, f"{upper}_EXPORT_ID"})
    new_function = _identifiers(set())
    found = []
    for place, coding in enumerate(table.codings):
        if not isinstance(coding.kind, Category):
            continue
        word = (_plain_word(coding.name) or f"column{place}").lower()
        function = new_function(prefix, "encode", word)
        own = function.removeprefix(f"{prefix}_encode_")
        count = new_macro(upper, own.upper(), "LEVELS")
        constants = [
            new_macro(upper, own.upper(), _level_word(level, code))
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
    parts = []
    for each in names:
        last = len(each.constants) - 1
        # Or a slash after a star would end the comment.
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


# Replaced by the export's id; as it is not printable, no text of users holds it.
EXPORT_ID = "\0id\0"
STATUSES = {
    Status.RECOMMENDED: 0,
    Status.BOUND_TOO_LARGE: 4,
    Status.OUTSIDE: 5,
    Status.NO_FALLBACK: 6,
}
LEVEL_UNKNOWN = 3
_HEADER = """\
/* A frozen decision rule, exported by contextgap {version}. Generated; do not edit.
 *
 * Rule: {recommender}, {arms} arms, {points} observations in the tables, kernel
 * {kernel}
{about} *
 * Context: {inputs} numbers, in this order:
{columns}
 *
 * Memory:
 *   ROM {rom_bytes} bytes of constants, of which {number_bytes} are numbers and the rest
 *       labels, names and indices, with 8-byte pointers and size_t; code comes on top
 *   RAM {ram_bytes} bytes of arrays on the stack during a call of {prefix}_decide, of which
 *       {prefix}_decision is the caller's
 *
 * {precision}
 */
#ifndef {upper}_POLICY_H
#define {upper}_POLICY_H

{macros}
/* {default_meaning} */
#define {upper}_DEFAULT_ARM {default_arm}
{fallback}
{levels}#endif

"""
_SOURCE = """\
/* Generated by contextgap {version}; do not edit. See {prefix}_policy.h.
 *
 * First the tables of this policy, then the runtime, which is the same in every export. */
#include "{prefix}_policy.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

"""
_SELF_TEST = """\
/* Generated by contextgap {version}; do not edit. */
#include "{prefix}_policy.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

"""
_SAME_EXPORT = """\
#if {upper}_EXPORT_ID != 0x{id}UL
#error "{prefix}_policy.h and {name} are of different exports"
#endif

"""
_BEST_ON_AVERAGE = (
    "The arm for contexts at which nothing can be computed: the one with the highest mean, "
    "averaged over all observed contexts."
)


def header(
    rule: DecisionRule,
    layout: Layout,
    default_arm: int,
    precision: str,
    prefix: str,
    eligible: bool,
    watch: Watch | None = None,
) -> str:
    upper = prefix.upper()
    macros = {
        "EXPORT_ID": f"0x{EXPORT_ID}UL /* the three files belong together */",
        "ARMS": layout.arms,
        "DIMENSION": rule.inputs,
        "FLOAT32": int(layout.real.float32),
        "HAS_WIDTHS": int(layout.form.has_widths),
        "HAS_COLUMNS": int(rule.table is not None),
    }
    if eligible:
        macros["HAS_ELIGIBLE"] = 1
    if watch is not None:
        macros["WATCH_FAILURE"] = repr(watch.failure_probability)
        macros["WATCH_COLUMNS"] = len(watch.scores.columns)
        macros["WATCH_BLOCK"] = f"{watch.block}U"
    meaning, fallback = _BEST_ON_AVERAGE, ""
    if rule.fallback is not None:
        bound = (
            f"its certificate exceeds {rule.tolerance:g}, " if rule.tolerance is not None else ""
        )
        meaning = (
            f"The safe arm, in place of the recommended one where {bound}a number that kernels see "
            "lies outside the observed range, or nothing can be computed."
        )
        fallback = f"#define {upper}_FALLBACK_ARM {rule.fallback.column}\n"
    interface = static_file("runtime.h", prefix)
    if watch is None:  # then nothing of it is there
        own = rf"#ifdef {upper}_WATCH_FAILURE\n.*?\n#endif\n\n"
        interface = re.sub(own, "", interface, flags=re.DOTALL)
    levels = "" if rule.table is None else declarations(category_names(rule.table, prefix))
    return (
        _filled(
            _HEADER,
            prefix,
            recommender=type(rule.recommender).__name__,
            arms=layout.arms,
            points=layout.points,
            kernel=_wrapped(comment_text(str(rule.kernel))),
            about="".join(f" * {_wrapped(each)}\n" for each in _about(rule, layout)),
            inputs=rule.inputs,
            columns=_row_layout(rule, prefix),
            number_bytes=layout.number_bytes,
            rom_bytes=layout.rom_bytes,
            ram_bytes=layout.ram_bytes,
            precision=_wrapped(precision),
            macros=_macros({f"{upper}_{name}": value for name, value in macros.items()}),
            default_meaning=_wrapped(meaning),
            default_arm=default_arm,
            fallback=fallback,
            levels=f"{levels}\n" if levels else "",
        )
        + interface
    )


def _about(rule: DecisionRule, layout: Layout) -> list[str]:
    found = []
    if rule.costs:
        found.append("The learner observed costs: means are minus the expected costs.")
    if layout.form.looks_back:
        chosen = "A certificate is the arm's gap at the step that it was chosen for"
        found.append(f"{chosen}{'' if rule.fallback is None else ', the fallback its last'}.")
    if layout.form.has_widths:
        promise = "Certificates are heuristic: the width promises nothing."
        if rule.probability is not None:
            promise = f"All certificates hold at once with probability {rule.probability:g}."
        found.append(promise)
    return found


def _row_layout(rule: DecisionRule, prefix: str) -> str:
    names = [comment_text(name) for name in column_names(rule.columns, rule.inputs)]
    if rule.table is not None:
        functions = {each.place: each.function for each in category_names(rule.table, prefix)}
        for place, coding in enumerate(rule.table.codings):
            missing = "; NAN if missing" if coding.kind.missing else ""
            names[place] += f": {_meaning(coding.kind, functions.get(place, ''))}{missing}"
    return "\n".join(f" *   [{i}] {name}" for i, name in enumerate(names))


def _meaning(kind: Kind, function: str) -> str:
    if isinstance(kind, Category):
        return f"a code, see {function}"
    if isinstance(kind, Cyclic):
        return f"a number, the same again after {kind.period:g}"
    return "days since 1970-01-01 00:00 UTC" if isinstance(kind, Date) else "a number"


def tables(rule: DecisionRule, layout: Layout, prefix: str, watch: Watch | None = None) -> str:
    """Return what comes before the runtime in ``policy.c``."""
    upper, real = prefix.upper(), layout.real
    columns = column_names(rule.columns, rule.inputs)
    labels = (string(label_text(a), f"the label of arm {i}") for i, a in enumerate(rule.labels))
    parts = [
        _macros(_sizes_and_rules(rule, layout)),
        _kernel_text(rule.inner_kernel, rule.dimension, real),
        _texts(f"{prefix}_labels[{upper}_ARMS]", labels),
        _texts(
            f"{prefix}_columns[{upper}_DIMENSION]",
            (string(name, f"column {i}") for i, name in enumerate(columns)),
        ),
        *_warp(rule, real),
        *_numbers(rule, layout),
        *_indices(rule, layout),
        *_columns(rule, real, prefix),
        *([] if watch is None else _watched(watch, real)),
    ]
    head = _filled(_SOURCE + _SAME_EXPORT, prefix, name=f"{prefix}_policy.c")
    return head + "\n".join(part for part in parts if part)


def _sizes_and_rules(rule: DecisionRule, layout: Layout) -> dict[str, object]:
    shared, real = rule.shared is not None, layout.real
    macros: dict[str, object] = {
        "RULE": f"RULE_{rule.compares.upper()}",
        "POINTS": "POINTS_SHARED" if shared else f"POINTS_{'COMMON' if rule.common else 'OWN'}",
        "HAS_WEIGHTS": int(layout.form.mean_from_weights),
        "NUMBERS": f"{rule.dimension}U",
        "PRIOR": real.literal(rule.prior, "the prior mean"),
    }
    if layout.form.has_widths:
        macros["SOLVED"] = f"{layout.solved_entries}U"
        if shared:
            macros["ALIKE_COLUMNS"] = f"{layout.columns}U"
    if layout.form.looks_back:
        # Steps of retired arms change nothing.
        first = int((rule.pulls[: rule.first_step] >= 0).sum())
        macros |= {"FIRST_STEP": f"{first}L", "STEPS": f"{layout.points}L"}
    if rule.tolerance is not None:
        macros["TOLERANCE"] = real.literal(rule.tolerance, "the fallback's tolerance")
    if rule.table is not None:
        macros["MOST_LEVELS"] = real.literal(MOST_LEVELS, "levels")
    return macros


def _numbers(rule: DecisionRule, layout: Layout) -> list[str]:
    form, shared = layout.form, rule.shared
    every: Sequence[Any] = rule.arms if shared is None else [shared]
    first = every[:1] if rule.common else every  # whose points are written
    points = "inducing points" if rule.common else "observed contexts, arm after arm"
    vectors = [("support", [rule.warped(each.support) for each in first], points)]
    if form.mean_from_weights:
        weights = [each.weights for each in every]
        vectors.append(("weights", weights, "mean = prior + weights . k, arm after arm"))
    else:
        innovations = [each.innovations for each in every]
        vectors.append(("innovations", innovations, "mean = prior + innovations . v"))
    if form.has_widths:
        factors = [each.factor for each in first]
        vectors.append(("factor", factors, "lower triangles of factors, by rows"))
        if rule.common:
            added = [each.added for each in every]
            vectors.append(("added", added, "those of the factors that add variance"))
        full = form.looks_back
        reach = [np.atleast_1d(each.reach)[0 if full else -1 :] for each in every]
        after = " after 0, 1, ... observations" if full else ""
        vectors.append(("reach", reach, f"half width over standard deviation{after}"))
        if shared is not None:
            unlike = 2 - 2 * shared.among
            vectors.append(("alike", [shared.alike], "correlations of arms with those observed"))
            vectors.append(("unlike", [unlike], "of two arms: variance of their difference over k"))
    if rule.fallback is not None:
        low, high = seen_ranges(rule.fallback, rule, layout.real.dtype)
        vectors.append(("seen_low", [low], "the lowest of each number in the observed range"))
        vectors.append(("seen_high", [high], "the highest"))
    return [
        array(layout.real, name, np.concatenate([np.ravel(part) for part in parts]), said)
        for name, parts, said in vectors
    ]


def _indices(rule: DecisionRule, layout: Layout) -> list[str]:
    kind = layout.index_type[0]
    if not layout.form.looks_back:
        sizes = layout.sizes if rule.shared is None and not rule.common else layout.sizes[:1]
        found = [integers("sizes", "size_t", sizes, "points, of each arm or of all")]
        if rule.shared is not None and layout.form.has_widths:
            whose = rule.shared.whose.tolist()
            found.append(integers("whose", kind, whose, "the column of alike of each point"))
        return found
    points, entries = (
        [0, *np.cumsum(sizes)[:-1].tolist()]
        for sizes in (layout.sizes, [size * (size + 1) // 2 for size in layout.sizes])
    )
    pulls = rule.pulls[rule.pulls >= 0].tolist()
    return [
        integers("first_point", "size_t", points, "where each arm's points start"),
        integers("first_entry", "size_t", entries, "where each arm's factor starts"),
        integers("pulls", kind, pulls, "the arm observed at each step"),
    ]


def _warp(rule: DecisionRule, real: Real) -> list[str]:
    if rule.warp is None:
        return []
    unit = real.rounded(rule.warp.unit, "unit")
    if (unit == 0).sum() > rule.warp.unit.count(0.0):
        raise ExportError(f"a unit of {rule.kernel} is too small for a {real.name}")
    return [
        "#define HAS_WARP\n",
        array(real, "warp_centre", rule.warp.centre, "where logarithmic scales begin"),
        array(real, "warp_unit", rule.warp.unit, "their units; 0 if the number stays"),
    ]


def _columns(rule: DecisionRule, real: Real, prefix: str) -> list[str]:
    if rule.table is None:
        return []
    numbers = spread_numbers(rule.table)
    how, source = [n.how.value for n in numbers], [n.source for n in numbers]
    instead = "in place of a missing value; NAN if there must be none"
    missing = [n.missing for n in numbers]
    return [
        integers("spread_how", "unsigned char", how, "what becomes of it"),
        integers("spread_source", "unsigned short", source, "which column"),
        array(real, "spread_missing", missing, instead, missing=True),
        array(real, "spread_by", [n.by for n in numbers], "period, or number of levels"),
        definitions(category_names(rule.table, prefix)),
    ]


def _watched(watch: Watch, real: Real) -> list[str]:
    scores, ranks, double = watch.scores, watch.ranks, Real(False)
    points, kernel = scores.points, watch.policy.kernel
    seen = kernel.warp(points) if isinstance(kernel, kernels.Warped) else points
    sizes = {"WATCH_POINTS": f"{len(points)}U", "WATCH_SALT": f"UINT64_C({watch.salt})"}
    return [
        _macros(sizes),
        array(real, "watch_points", seen.ravel(), "what distances are measured to"),
        array(real, "watch_self", kernel.diagonal(points), "k(x, x) of each"),
        array(double, "watch_surprise", scores.surprise, "of every arm"),
        integers("watch_columns", "unsigned short", scores.columns.tolist(), "bet on"),
        array(double, "watch_edges", ranks.edges.ravel(), "where bins of scores end"),
        integers("watch_counts", "uint32_t", ranks.counts.ravel().tolist(), "scores of the log"),
    ]


def self_test(
    rule: DecisionRule, layout: Layout, expected: Answers, tolerance: float, prefix: str
) -> str:
    """Return the text of ``selftest.c``."""
    real, fallback = layout.real, rule.fallback
    near = is_near_tie(fallback, expected, np.full(len(expected.arm), tolerance)).astype(int)
    # The last of three bad inputs is NaN.
    kinds = [3] * rule.inputs
    if rule.table is not None:
        kinds = [2 if coding.kind.missing else 3 for coding in rule.table.codings]
    statuses = expected.status.copy()
    for python, ours in STATUSES.items():
        statuses[expected.status == python] = ours
    unknown = has_unknown_level(rule.table, expected.contexts)
    statuses[(expected.status == Status.RECOMMENDED) & unknown] = LEVEL_UNKNOWN
    parts = [
        _macros(
            {
                "COUNT": len(expected.arm),
                "TOLERANCE": real.literal(tolerance, "the tolerance"),
                "REAL_MAX": "FLT_MAX" if real.float32 else "DBL_MAX",
            }
        ),
        array(real, "contexts", expected.contexts, "one after the other", missing=True),
        array(real, "means", expected.mean, "of every arm"),
        integers("arms", "int", expected.arm.tolist(), "answered"),
        integers("near_tie", "unsigned char", near.tolist(), "whether rounding may decide"),
        integers("statuses", "int", statuses.tolist(), "returned"),
        integers("bad_kinds", "int", kinds, "of bad input: 3 with NaN, 2 without"),
    ]
    if layout.form.has_widths:
        parts.append(array(real, "widths", 2 * expected.half_width, "full ones, of every arm"))
        parts.append(array(real, "gaps", expected.gap, "of every arm"))
        parts.append(array(real, "certificates", expected.certificate, "of the arm answered"))
    head = _filled(_SELF_TEST + _SAME_EXPORT, prefix, name=f"{prefix}_selftest.c")
    return head + "\n".join(parts) + "\n" + static_file("selftest.c", prefix)


def _filled(template: str, prefix: str, **values: object) -> str:
    from contextgap import __version__

    names = {"prefix": prefix, "upper": prefix.upper(), "version": __version__, "id": EXPORT_ID}
    return template.format(**names, **values)


def _macros(values: Mapping[str, object]) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in values.items())


def _texts(declared: str, texts: Iterable[str]) -> str:
    return f"const char *const {declared} = {{\n{rows(texts, 1)}\n}};\n"


def _wrapped(text: str) -> str:
    return "\n * ".join(textwrap.wrap(text, 92, break_long_words=False))


def _kernel_text(kernel: kernels.Kernel, dimension: int, real: Real) -> str:
    check_kernel(kernel, "expressed in C")
    writer = _Writer(dimension, real)
    value = writer.visit(kernel)
    uses = [f"#define USES_{name.upper()}\n" for name in sorted(writer.used)]
    codes = ["#define HAS_CODES\n"] if writer.has_codes else []
    lines = textwrap.wrap(f"({value})", 92, break_long_words=False, break_on_hyphens=False)
    macro = "#define KERNEL(x, y) \\\n    " + " \\\n    ".join(lines) + "\n"
    return "".join([*uses, *codes, macro, *(f"\n{table}" for table in writer.tables)])


class _Writer:
    def __init__(self, dimension: int, real: Real) -> None:
        self.tables: list[str] = []
        self.used: set[str] = set()
        self.has_codes = False
        self._dimension = dimension
        self._real = real
        self._count = 0

    def visit(self, kernel: kernels.Kernel) -> str:
        if isinstance(kernel, kernels.Sum | kernels.Product):
            left, right = self.visit(kernel.left), self.visit(kernel.right)
            return f"({left} {'+' if isinstance(kernel, kernels.Sum) else '*'} {right})"
        if isinstance(kernel, kernels.Scaled):
            inner = self.visit(kernel.kernel)
            factor = self._setting(kernel.factor, "a kernel's factor")
            return f"({factor} * {inner})"
        self._count += 1
        if isinstance(kernel, kernels.Gaussian):
            return self._call("decay", self._squared_distance(kernel, -0.5))
        if isinstance(kernel, kernels.Matern):
            squared = self._squared_distance(kernel, 2 * kernel.smoothness)
            return self._call("matern", squared, str(int(kernel.smoothness)))
        if isinstance(kernel, kernels.Periodic):
            # Cheaper than the circles of the Python kernel.
            rate = self._table("frequency", math.pi / self._each(kernel.period))
            size = self._table("roughness", 1 / self._each(kernel.bandwidth))
            squared = self._call("periodic_distance", "(x)", "(y)", rate, size)
            return self._call("decay", f"{squared} * -REAL_TWO")
        if isinstance(kernel, kernels.Constant):
            return self._call("constant", "(x)", "(y)")
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
        # Codes have no centre.
        centre = self._table("centre", self._each(kernel.centre)[:count]) if count else scale
        return self._call("standardised_product", "(x)", "(y)", scale, centre, f"{count}U")

    def _squared_distance(self, kernel: kernels.Gaussian | kernels.Matern, times: float) -> str:
        bandwidth, count = kernel.bandwidth, self._numbers(kernel.categories)
        if not isinstance(bandwidth, float):
            scale = self._table("scale", 1 / self._each(bandwidth))
            squared = self._call("scaled_distance", "(x)", "(y)", scale, f"{count}U")
            return f"{squared} * {self._real.literal(times, 'a factor')}"
        squared = self._call("distance", "(x)", "(y)", f"{count}U")
        # Inverse squares of tiny bandwidths are infinite.
        if bandwidth > 1e-20 and abs(times) * bandwidth**-2 < self._real.most:
            return f"{squared} * {self._real.literal(times * bandwidth**-2, 'bandwidth')}"
        divisor = self._setting(bandwidth, "bandwidth")
        return f"(({squared} / {divisor}) / {divisor}) * {self._real.literal(times, 'a factor')}"

    def _call(self, function: str, *arguments: str) -> str:
        self.used.add(function)
        return f"{function}({', '.join(arguments)})"

    def _numbers(self, codes: int) -> int:
        self.has_codes |= codes > 0
        return self._dimension - codes

    def _setting(self, value: float, called: str) -> str:
        if not self._real.rounded(value, called) > 0:
            raise ExportError(f"{called} {value!r} is too small for a {self._real.name}")
        return self._real.literal(value, called)

    def _each(self, value: Any) -> Any:
        return np.full(self._dimension, value, dtype=np.float64)

    def _table(self, what: str, values: Any) -> str:
        name = f"kernel_{self._count}_{what}"
        self.tables.append(array(self._real, name, values, "one per number of a context"))
        return name
