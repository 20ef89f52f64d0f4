"""Commands that make and use policies: learn, recommend, show."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from contextgap.base.columns import Category, Columns, Cyclic, Kind, TableSchema
from contextgap.base.components import Component
from contextgap.base.saving import whole_file
from contextgap.cli.problems import read_trials, split
from contextgap.cli.terminal import (
    complaints,
    noting_warnings,
    out,
    print_json,
    print_table,
    say_warning,
)
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.methods import METHODS
from contextgap.policy import Card, Policy
from contextgap.problems.sheet import Sheet, read_sheet, to_number
from contextgap.tuning import Tuning
from contextgap.widths import PosteriorWidth

PolicyFile = Annotated[Path, typer.Argument(help="A .cgap file that learn or run wrote.")]
ContextFile = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file of contexts that will be met.")
]
Separator = Annotated[
    str | None, typer.Option(help="Between the cells of a text file; a comma, in .tsv a tab.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def learn_command(
    log: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file, one trial per row.")],
    arm: Annotated[str, typer.Option(help="Column with the arm tried.")],
    reward: Annotated[str, typer.Option(help="Column with the reward it gave.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Policy file to write.")],
    context: Annotated[
        str | None, typer.Option(help="Context columns, comma-separated; all others by default.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(help="Columns that are not context, such as ids.")
    ] = None,
    category: Annotated[
        str | None, typer.Option(help="Columns of numbers that are only names, such as codes.")
    ] = None,
    cyclic: Annotated[
        str | None, typer.Option(help="Columns that come back to where they began: hour=24.")
    ] = None,
    separator: Separator = None,
    method: Annotated[
        str, typer.Option(help=f"Its deployment rule is used: {', '.join(METHODS)}.")
    ] = "auto",
    bandwidth: Annotated[
        float | None, typer.Option(help="Of a Gaussian kernel; learnt if left out.")
    ] = None,
    ridge: Annotated[float | None, typer.Option(help="Learnt if left out.")] = None,
    scale: Annotated[float, typer.Option(help="Width of the intervals, in deviations.")] = 2.0,
    propensity: Annotated[
        str | None,
        typer.Option(help="Column with the probability with which the logged arm was chosen."),
    ] = None,
    seed: Annotated[int, typer.Option(help="For rules that draw at random.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Make a policy from logged trials."""
    with complaints():
        sheet = read_sheet(log, separator)
        outcome = arm, reward, propensity
        columns, arms, rewards = read_trials(sheet, split(context), split(exclude), *outcome)
        given = _given_kinds(split(category) or [], split(cyclic) or [], columns)
        table = sheet.table(columns, given)
        chances = None if propensity is None else sheet.numbers([propensity])[:, 0]
        try:
            how = _settings(table, given, bandwidth, ridge)
            learner = Learner(
                sorted(set(arms)), method=method, width=PosteriorWidth(scale), seed=seed, **how
            )
            with noting_warnings():
                learner.fit(table, arms, rewards)
            policy = learner.freeze(learner.score(chances) if len(arms) > 1 else None)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{log}: {error}") from None
        policy.save(output)
    if json:
        tuning = None if learner.tuning is None else learner.tuning.describe()
        print_json({**_describe(policy), "tuning": tuning, "policy": str(output)})
        return
    _print_policy(f"learnt from {len(arms)} trials in {log.name}", policy)
    if learner.tuning is not None:
        _print_tuning(learner.tuning)
    out.print(f"policy: {output}", soft_wrap=True)


def _given_kinds(category: list[str], cyclic: list[str], columns: list[str]) -> dict[str, Kind]:
    """Return the kinds of columns that the user named."""
    given: dict[str, Kind] = {name: Category() for name in category}
    for each in cyclic:
        name, equals, period = each.partition("=")
        if not equals or to_number(period) is None:
            raise ValueError(f"--cyclic must be such as hour=24, got {each!r}")
        given[name] = Cyclic(float(period))
    for name in given:
        if name not in columns:
            raise ValueError(f"there is no context column {name!r}; there are {columns}")
    return given


def _settings(
    table: Any, given: Mapping[str, Kind], bandwidth: float | None, ridge: float | None
) -> dict[str, Any]:
    """Return the user's settings with defaults filled in; no kernel if all is to be learnt."""
    how = {"columns": Columns.from_table(table, **given)} if given else {}
    if bandwidth is None and ridge is None:
        return how
    if given:
        raise ValueError(
            "scales are learnt where columns are named by --category or --cyclic; leave out "
            "--bandwidth and --ridge"
        )
    kernel = Gaussian.from_contexts(table)
    if bandwidth is not None:
        kernel = replace(kernel, bandwidth=bandwidth)
    return {"kernel": kernel, "ridge": ridge, "prior_mean": "auto"}


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
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Recommend an arm for every row; the file's own columns are kept."""
    with complaints():
        rule = Policy.load(policy)
        sheet = read_sheet(contexts, separator)
        rows = _contexts_in(sheet, rule)
        arms = rule.recommend(rows).tolist()
        answers = [{"arm": arm if isinstance(arm, int) else str(arm)} for arm in arms]
        kind = "left out"
        if bounds:
            certificate = rule.certificate(rows)
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
    if set(added) & set(sheet.columns):  # a log has the arm that was tried
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
        print_json(_describe(rule))
        return
    _print_policy(str(policy), rule)


def _describe(policy: Policy) -> dict[str, Any]:
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
        "bounds": kind_of_bounds(policy.probability),
        "card": policy.card.describe() if has_card(policy) else None,
    }


def _short(part: Component) -> str:
    """A part as Python shows it, its numbers to four digits."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", str(part))


def _print_policy(title: str, policy: Policy) -> None:
    rows: list[list[Any]] = [
        ["deploys by", type(policy.method.recommender).__name__],
        ["method", policy.method.name],
        ["kernel", _short(policy.kernel)],
        ["ridge", policy.ridge],
        ["width", _short(policy.width)],
        ["prior mean", policy.prior_mean],
        ["context", _columns_in_words(policy)],
        ["bounds", kind_of_bounds(policy.probability)],
    ]
    shown = [[name, f"{x:.4g}" if isinstance(x, float) else x] for name, x in rows]
    print_table(title, ["", "value"], shown)
    counts = policy.counts
    print_table("arms", ["arm", "observations"], [[str(arm), n] for arm, n in counts.items()])
    if has_card(policy):
        print_card(policy.card)


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


def _print_tuning(tuning: Tuning) -> None:
    rows = []
    for each in tuning.candidates:
        mark = "chosen" if each.name == tuning.chosen else ""
        rows.append([each.name, each.advantage, f"{100 * each.explained:.1f} %", mark])
    print_table("models tried", ["model", "nats", "explained", ""], rows)
    out.print(f"{tuning.chosen}: {tuning.reason}", markup=False)


def read_contexts(policy: Policy, path: Path) -> Any:
    """Return the contexts in a file, checked as the policy's own."""
    return _contexts_in(read_sheet(path), policy)


def _contexts_in(sheet: Sheet, policy: Policy) -> Any:
    """Return a table's contexts as a policy takes them; errors name the file."""
    columns, known = list(policy.columns or sheet.columns), policy._schema.table
    rows = sheet.numbers(columns) if known is None else _with_levels(sheet, known)
    if not len(rows):
        raise ValueError(f"{sheet.path} holds no contexts")
    try:
        policy._read(rows)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{sheet.path}: {error}") from None
    return rows


def _with_levels(sheet: Sheet, known: TableSchema) -> Any:
    """Return a table with the levels of categories that its text stands for."""
    table = sheet.table(known.columns, known.kinds)
    for coding in known.codings:
        levels = [each for each in coding.levels if each is not None and not isinstance(each, str)]
        if levels:  # text files have no numbers and truth values
            by_text = {str(each).lower(): each for each in levels}
            table[coding.name] = [
                by_text.get(str(each).lower(), each) for each in table[coding.name]
            ]
    return table
