"""Commands that use policies: recommend and show."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from typing import IO, Annotated, Any, cast

import numpy as np
import typer

from contextgap.base.columns import Cyclic, Kind
from contextgap.base.components import Component
from contextgap.base.saving import whole_file
from contextgap.cli.options import Json, Separator
from contextgap.cli.problems import eligible_arms
from contextgap.cli.tables import contexts_in
from contextgap.cli.terminal import (
    complaints,
    out,
    print_json,
    print_table,
    say_warning,
)
from contextgap.insight.bandwidths import bandwidths_by_column
from contextgap.policy import Card, Policy, Status
from contextgap.policy.fallback import Fallback
from contextgap.problems.sheet import Sheet, read_sheet

PolicyFile = Annotated[Path, typer.Argument(help="A .cgap file that learn or run wrote.")]
ContextFile = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file of contexts that will be met.")
]
EligibleColumn = Annotated[
    str | None, typer.Option(help="Column with the arms eligible in each row, such as a|b.")
]


def recommend_command(
    policy: PolicyFile,
    contexts: Annotated[
        Path, typer.Argument(help="A .csv, .tsv or .parquet file, a context per row.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write; stdout if left out.")
    ] = None,
    bounds: Annotated[
        bool, typer.Option(help="Whether to bound each arm's regret, which takes longer.")
    ] = True,
    eligible: EligibleColumn = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Recommend an arm for every row; the file's own columns are kept."""
    with complaints():
        rule = Policy.load(policy)
        sheet = read_sheet(contexts, separator)
        rows = contexts_in(sheet, rule)
        among = None if eligible is None else eligible_arms(sheet, eligible, rule.arms)
        arms = rule.recommend(rows, arms=among).tolist()
        answers = [{"arm": arm if isinstance(arm, int) else str(arm)} for arm in arms]
        if rule.fallback is not None:
            for answer, status in zip(answers, rule.status(rows, arms=among), strict=True):
                answer |= {"status": Status(status).name.lower()}
        kind = "left out"
        if bounds:
            certificate = rule.certificate(rows, arms=among)
            kind = kind_of_bounds(certificate.probability)
            for answer, bound in zip(answers, certificate.bound.tolist(), strict=True):
                answer |= {"regret_bound": bound, "bound": kind}
        if json:
            print_json(answers)
            return
        if output is None:
            _write_csv(sys.stdout, sheet, answers)
            return
        with whole_file(output, text=True) as file:
            _write_csv(file, sheet, answers)
    chosen, counts = np.unique([str(answer["arm"]) for answer in answers], return_counts=True)
    print_table(
        f"{len(answers)} recommendations",
        ["arm", "times"],
        list(zip(chosen.tolist(), counts.tolist(), strict=True)),
    )
    out.print(f"bounds: {kind}\nwritten to {output}", soft_wrap=True)


def _write_csv(file: IO[str], sheet: Sheet, answers: list[dict[str, Any]]) -> None:
    """Write the original table with the answers as further columns."""
    added = list(answers[0])
    while set(added) & set(sheet.columns):  # a log has the arm that was tried
        added = [f"recommended_{name}" for name in added]
    writer = csv.writer(file)
    writer.writerow([*sheet.columns, *added])
    for row, answer in zip(zip(*sheet.cells, strict=True), answers, strict=True):
        writer.writerow([*row, *answer.values()])


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
    }


def _described_fallback(policy: Policy) -> dict[str, Any]:
    """Return a fallback for machines, with what was seen in the words of the table."""
    fallback, table = cast(Fallback, policy.fallback), policy._schema.table
    described = fallback.describe()
    if table is None or not fallback.low:
        return described
    low, high = described.pop("low"), described.pop("high")
    return {**described, "seen": table.seen(low, high)}


def _short(part: Component) -> str:
    """A part as Python shows it, its numbers to four digits."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", str(part))


def print_policy(title: str, policy: Policy) -> None:
    """Print what a policy holds."""
    scales = bandwidths_by_column(policy)
    rows: list[list[Any]] = [
        ["deploys by", type(policy.method.recommender).__name__],
        ["method", policy.method.name],
        ["kernel", _short(policy.kernel)],
        *([] if scales is None else [["bandwidths", _in_words(scales)]]),
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
    shown = [[name, f"{x:.4g}" if isinstance(x, float) else x] for name, x in rows]
    print_table(title, ["", "value"], shown)
    counts = policy.counts
    print_table("arms", ["arm", "observations"], [[str(arm), n] for arm, n in counts.items()])
    if has_card(policy):
        print_card(policy.card)


def _in_words(bandwidths: dict[str, list[float]]) -> str:
    """Return bandwidths by column; where there may be gaps, the last is that of gaps."""
    listed = ((name, ", ".join(f"{x:.4g}" for x in own)) for name, own in bandwidths.items())
    return "; ".join(f"{name} {numbers}" for name, numbers in listed)


def _columns_in_words(policy: Policy) -> str:
    if policy.kinds is None:
        return f"{policy.dimension} numbers"
    if policy._schema.table is None:
        return ", ".join(policy.kinds)
    return ", ".join(f"{name}: {_kind_in_words(kind)}" for name, kind in policy.kinds.items())


def _kind_in_words(kind: Kind) -> str:
    name = type(kind).__name__.lower()
    if isinstance(kind, Cyclic):
        name = f"{name} {kind.period:g}"
    return f"{name} with gaps" if kind.gaps else name


def has_card(policy: Policy) -> bool:
    """Whether there are rewards enough to leave one out."""
    return sum(policy.counts.values()) > 1


def print_card(card: Card) -> None:
    """Print a score card and its warnings."""
    print_table("score card", ["", "value"], card.rows())
    out.print(f"from {card.looked_at} of {card.rewards} rewards, each left out in turn")
    for warning in card.warnings:
        say_warning(warning, out)
