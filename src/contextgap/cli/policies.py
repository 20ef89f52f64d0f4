"""What a policy holds, in words and for machines; the command show; contexts read for a policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from contextgap.base.components import Component
from contextgap.cli.options import Json, list_option
from contextgap.cli.terminal import (
    complaints,
    noting_warnings,
    out,
    print_json,
    print_table,
    say_warning,
)
from contextgap.insight.learnt import bandwidths_by_column
from contextgap.policy import Policy
from contextgap.policy.fallback import Fallback
from contextgap.tables.columns import Columns, Cyclic, Kind
from contextgap.tables.contexts import Encoded
from contextgap.tables.files import Sheet, read_sheet
from contextgap.tables.trials import check_columns

PolicyFile = Annotated[Path, typer.Argument(help="A policy's .cgap file.")]
ContextFile = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file of contexts that will be met.")
]
EligibleColumn = Annotated[
    list[str] | None,
    list_option("Columns with the arms eligible in each row, such as a|b; of several, all arms."),
]

CardRows = Annotated[
    int | None,
    typer.Option(
        help="Rewards predicted leave-one-out for the score card; by default 10 seconds' worth.",
        min=2,
    ),
]


def kind_of_bounds(probability: float | None) -> str:
    """Return in words how far bounds can be trusted."""
    if probability is None:
        return "heuristic"
    return f"holds with probability {probability:g}"


def show_command(policy: PolicyFile, json: Json = False) -> None:
    """Show what a policy file holds."""
    with complaints():
        rule = Policy.load(policy)
    if json:
        print_json(described(rule))
        return
    print_policy(str(policy), rule)


def described(policy: Policy) -> dict[str, Any]:
    """Return what a policy holds, for machines."""
    return {
        "arms": list(policy.arms),
        "observations": {str(arm): count for arm, count in policy.counts.items()},
        "method": policy.method.name,
        "kernel": policy.kernel.describe(),
        "ridge": policy.ridge,
        "width": policy.width.describe(),
        "prior_mean": policy.prior_mean,
        "dimension": policy.dimension,
        "columns": policy.columns,
        "kinds": policy.kinds and {name: each.describe() for name, each in policy.kinds.items()},
        "bandwidths": bandwidths_by_column(policy),
        "bounds": kind_of_bounds(policy.probability),
        "card": policy.card.describe() if has_card(policy) else None,
        "fallback": None if policy.fallback is None else _described_fallback(policy),
        "provenance": policy.provenance.describe(),
    }


def _described_fallback(policy: Policy) -> dict[str, Any]:
    """Return a fallback for machines, with what was seen in the words of the table."""
    fallback, table = cast(Fallback, policy.fallback), policy.state.schema.table
    described = fallback.describe()
    if table is None or not fallback.low:
        return described
    low, high = described.pop("low"), described.pop("high")
    return {**described, "seen": table.seen(low, high)}


def _short(part: Component) -> str:
    """A part as Python shows it, its numbers to four digits."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", str(part))


def print_policy(title: str, policy: Policy) -> None:
    """Print what a policy holds, and last how good it is."""
    print_settings(title, policy)
    print_card(policy)


def print_settings(title: str, policy: Policy) -> None:
    """Print what a policy holds, but for its score card."""
    bandwidths = bandwidths_by_column(policy)
    rows: list[list[Any]] = [
        ["deploys by", policy.state.rules.deployment],
        ["method", policy.method.name],
        ["kernel", _short(policy.kernel)],
        *([] if bandwidths is None else [["bandwidths", _in_words(bandwidths)]]),
        ["ridge", policy.ridge],
        ["width", _short(policy.width)],
        ["prior mean", policy.prior_mean],
        ["context", _columns_in_words(policy)],
        ["bounds", kind_of_bounds(policy.probability)],
    ]
    if policy.fallback is not None:
        safe, most = policy.fallback.arm, policy.fallback.tolerance
        when = "outside what was seen" if most is None else f"outside, or bound above {most:g}"
        rows.append(["fallback", f"{safe} ({when})"])
    made = policy.provenance
    if made.version is not None and made.created is not None:
        rows.append(["made by", f"contextgap {made.version}, {made.created:%Y-%m-%d %H:%M} UTC"])
    if made.data is not None:
        rows.append(["data", f"sha256 {made.data[:16]}…"])
    shown = [[name, f"{x:.4g}" if isinstance(x, float) else x] for name, x in rows]
    print_table(title, ["", "value"], shown)
    counts = policy.counts
    print_table("arms", ["arm", "observations"], [[str(arm), n] for arm, n in counts.items()])


def _in_words(bandwidths: dict[str, list[float]]) -> str:
    """Return bandwidths by column; the last is that of missing values, where there may be any."""
    listed = ((name, ", ".join(f"{x:.4g}" for x in own)) for name, own in bandwidths.items())
    return "; ".join(f"{name} {numbers}" for name, numbers in listed)


def _columns_in_words(policy: Policy) -> str:
    if policy.kinds is None:
        return f"{policy.dimension} numbers"
    if policy.state.schema.table is None:
        return ", ".join(policy.kinds)
    return ", ".join(f"{name}: {_kind_in_words(kind)}" for name, kind in policy.kinds.items())


def _kind_in_words(kind: Kind) -> str:
    name = type(kind).__name__.lower()
    if isinstance(kind, Cyclic):
        name = f"{name} {kind.period:g}"
    return f"{name} with missing values" if kind.missing else name


def has_card(policy: Policy) -> bool:
    """Whether there are rewards enough to leave one out."""
    return sum(policy.counts.values()) > 1


def print_card(policy: Policy) -> None:
    """Print the score card and its warnings, if there are rewards enough for one."""
    if not has_card(policy):
        return
    card = policy.card
    print_table("score card", ["", "value"], card.rows())
    out.print(card.basis, soft_wrap=False)
    for warning in card.warnings:
        say_warning(warning, out)


def read_contexts(policy: Policy, path: Path) -> Any:
    """Return the contexts in a file, checked as the policy's own."""
    sheet = read_sheet(path)
    encoded_in(sheet, policy)
    return _table(sheet, policy)


def encoded_in(sheet: Sheet, policy: Policy) -> Encoded:
    """Return a table's contexts as a policy's kernel takes them; errors name the file."""
    table = _table(sheet, policy)
    try:
        return Encoded(policy.state.read(table)[0], policy.state.schema)
    except (TypeError, ValueError) as error:
        raise ValueError(sheet.located(error)) from None


def read_features(path: Path, arm: str) -> dict[str, dict[str, Any]]:
    """Return the features of arms in a file by the texts in its column ``arm``."""
    sheet = read_sheet(path)
    names = [name for name in sheet.columns if name != arm]
    arms = [str(cell).strip() for cell in sheet.cells_of(arm)]
    if not names:
        raise ValueError(f"{path}: no column is left as a feature beside {arm!r}")
    if len(set(arms)) < len(arms):
        twice = next(each for each in arms if arms.count(each) > 1)
        raise ValueError(f"{path}: the arm {twice!r} is there twice; it has one row of features")
    return dict(zip(arms, sheet.table(names), strict=True))


def described_table(
    sheet: Sheet,
    names: Sequence[str],
    kinds: Mapping[str, Kind],
    missing: Sequence[str] = (),
) -> tuple[Any, Columns | None]:
    """Return columns of a table, and what they hold; None unless the user said something of it."""
    check_columns([*kinds, *missing], names)
    table = sheet.table(names, kinds)
    if not kinds and not missing:
        return table, None
    return table, Columns.from_table(table, **kinds).with_missing(missing)


def context_columns(
    sheet: Sheet, exclude: Sequence[str] | None, columns: Sequence[str] | None = None
) -> list[str]:
    """Return ``columns``, or all, but those excluded; a name that is mistyped is an error."""
    for name in exclude or ():
        sheet.cells_of(name)
    with noting_warnings():
        names = [each for each in columns or sheet.others(()) if each not in (exclude or ())]
    if not names:
        raise ValueError(f"{sheet.path}: no column is left as context")
    return names


def _table(sheet: Sheet, policy: Policy) -> Any:
    known = policy.state.schema.table
    if policy.columns is None:
        raise ValueError(
            f"{sheet.path}: columns have names, {', '.join(sheet.columns)}, but the policy was "
            "learnt from numbers without names; in Python, give it theirs in the order learnt and "
            "save it: policy.with_columns([...]).save(...)"
        )
    if known is not None:
        return sheet.table(list(policy.columns), known.kinds)
    return sheet.numbers(list(policy.columns))
