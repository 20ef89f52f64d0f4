"""A table's columns in C: how a row with one number per column becomes what kernels see."""

from __future__ import annotations

import math
from typing import NamedTuple

from contextgap.export.c.filling import fill
from contextgap.export.c.layout import Operations
from contextgap.export.c.levels import category_names, declarations, definitions
from contextgap.export.c.literals import Real, array, column_names, comment_text, integers
from contextgap.export.c.naming import named
from contextgap.export.columns import How, spread_numbers
from contextgap.export.rule import DecisionRule
from contextgap.tables.columns import Category, Cyclic, Date, Kind
from contextgap.tables.schema import MOST_LEVELS, TableSchema


class Words(NamedTuple):
    """What the code of a rule is called, and says, where columns have types or not."""

    dimension: str
    linkage: str
    decide: str
    recommend_checked: str
    answered: str
    returned: str
    if_failed: str
    if_unknown: str
    not_finite: str
    sines: str


PLAIN = Words(
    dimension="(size_t)CONTEXTGAP_DIMENSION",
    linkage="",
    decide="contextgap_decide",
    recommend_checked="contextgap_recommend_checked",
    answered="finite context",
    returned="CONTEXTGAP_OK or why the arm is\n * CONTEXTGAP_DEFAULT_ARM",
    if_failed="If the result is not CONTEXTGAP_OK, the arm\n * is CONTEXTGAP_DEFAULT_ARM",
    if_unknown="where nothing can be computed",
    not_finite="the context has an infinity or a NaN",
    sines="sin",
)
TYPED = PLAIN._replace(
    dimension="NUMBERS_SEEN",
    linkage="static ",
    decide="decide_spread",
    recommend_checked="recommend_spread",
    answered="row, as long as it is answered",
    returned="CONTEXTGAP_OK, CONTEXTGAP_LEVEL_UNKNOWN or why the\n * arm is CONTEXTGAP_DEFAULT_ARM",
    if_failed="If the result is neither\n"
    " * CONTEXTGAP_OK nor CONTEXTGAP_LEVEL_UNKNOWN, the arm is\n * CONTEXTGAP_DEFAULT_ARM",
    not_finite="an infinity, or a NaN where there is no gap",
    sines="sin and cos",
)
_UNKNOWN = """\
#define CONTEXTGAP_LEVEL_UNKNOWN 3     /* decided, as for a level that was never met */
"""


def words_of(table: TableSchema | None) -> Words:
    """Return what the code of a rule is called."""
    return PLAIN if table is None else TYPED


def row_layout(rule: DecisionRule, prefix: str) -> str:
    """Return the lines of the header's comment that say what each number of a row is."""
    names = [comment_text(name) for name in column_names(rule.columns, rule.inputs)]
    if rule.table is not None:
        functions = {each.place: each.function for each in category_names(rule.table, prefix)}
        for place, coding in enumerate(rule.table.codings):
            gap = "; NAN for a gap" if coding.kind.missing else ""
            names[place] += f": {_meaning(coding.kind, functions.get(place, ''))}{gap}"
    return "\n".join(f" *   [{i}] {name}" for i, name in enumerate(names))


def _meaning(kind: Kind, function: str) -> str:
    if isinstance(kind, Category):
        return f"a code, see {function}"
    if isinstance(kind, Cyclic):
        return f"a number, the same again after {kind.period:g}"
    return "days since 1970-01-01 00:00 UTC" if isinstance(kind, Date) else "a number"


def header_parts(rule: DecisionRule, prefix: str) -> dict[str, str]:
    """Return what the header says about columns with types; nothing, where there are none."""
    if rule.table is None:
        return {"unknown_status": "", "levels": ""}
    names = category_names(rule.table, prefix)
    found = declarations(names)
    return {
        "unknown_status": named(_UNKNOWN, prefix),
        "levels": f"\n{found}" if found else "",
    }


def source_macros(rule: DecisionRule, real: Real) -> str:
    """Return the macros that the source needs for columns with types."""
    if rule.table is None:
        return ""
    turn = real.literal(2 * math.pi, "a turn")
    return (
        f"#define REAL_COS cos{real.suffix}\n"
        f"#define REAL_MOD fmod{real.suffix}\n"
        f"#define TURN {turn}\n"
        f"#define MOST_LEVELS {real.literal(MOST_LEVELS, 'levels')}\n"
        f"#define NUMBERS_SEEN {rule.dimension}U\n"
    )


def source_part(rule: DecisionRule, real: Real, prefix: str) -> str:
    """Return the functions that make of a row what kernels see, and those that users call."""
    if rule.table is None:
        return ""
    numbers = spread_numbers(rule.table)
    tables = [
        integers(
            "spread_how", "unsigned char", (n.how.value for n in numbers), "what becomes of it"
        ),
        integers("spread_source", "unsigned short", (n.source for n in numbers), "which column"),
        array(
            real,
            "spread_missing",
            [n.missing for n in numbers],
            "in place of a gap; NAN if there must be none",
            gaps=True,
        ),
        array(real, "spread_by", [n.by for n in numbers], "period, or number of levels"),
    ]
    texts = definitions(category_names(rule.table, prefix))
    return fill("columns.c", prefix, tables=named("\n".join(tables), prefix), levels=texts)


def spread_cost(table: TableSchema | None) -> Operations:
    """Return what making of a row what kernels see costs: of circles, a remainder and a turn."""
    circles = 0
    if table is not None:
        circles = sum(n.how in (How.COSINE, How.SINE) for n in spread_numbers(table))
    return circles * Operations(multiplications=1, divisions=2, sin=1)
