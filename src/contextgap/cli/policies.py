"""Commands that make and use policies: learn, recommend, show."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component
from contextgap.base.saving import whole_file
from contextgap.cli.problems import read_trials, split
from contextgap.cli.terminal import complaints, out, print_json, print_table, say_warning
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.methods import METHODS
from contextgap.policy import Card, Policy
from contextgap.problems.extras import study_import
from contextgap.problems.sheet import Sheet, read_sheet
from contextgap.tuning import Tuning
from contextgap.widths import PosteriorWidth

PolicyFile = Annotated[Path, typer.Argument(help="A .cgap file that learn or run wrote.")]
ContextFile = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file of contexts that will be met.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def learn_command(
    log: Annotated[Path, typer.Argument(help="A .csv or .parquet file, one trial per row.")],
    arm: Annotated[str, typer.Option(help="Column with the arm tried.")],
    reward: Annotated[str, typer.Option(help="Column with the reward it gave.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Policy file to write.")],
    context: Annotated[
        str | None, typer.Option(help="Context columns, comma-separated; all others by default.")
    ] = None,
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
        sheet, columns, arms, rewards = read_trials(log, split(context), arm, reward, propensity)
        contexts = sheet.numbers(columns)
        chances = None if propensity is None else sheet.numbers([propensity])[:, 0]
        labels, how = sorted(set(arms)), _settings(contexts, bandwidth, ridge)
        learner = Learner(labels, method=method, width=PosteriorWidth(scale), seed=seed, **how)
        table = study_import("pandas").DataFrame(contexts, columns=columns)
        try:
            learner.fit(table, arms, rewards)
            policy = learner.freeze(learner.score(chances) if len(arms) > 1 else None)
        except ValueError as error:
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


def _settings(contexts: FloatArray, bandwidth: float | None, ridge: float | None) -> dict[str, Any]:
    """Return the user's settings with defaults filled in; empty if all are to be learnt."""
    if bandwidth is None and ridge is None:
        return {}
    kernel = Gaussian.from_contexts(contexts) if bandwidth is None else Gaussian(bandwidth)
    return {"kernel": kernel, "ridge": ridge, "prior_mean": "auto"}


def recommend_command(
    policy: PolicyFile,
    contexts: Annotated[Path, typer.Argument(help="A .csv or .parquet file, a context per row.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write; stdout if left out.")
    ] = None,
    bounds: Annotated[
        bool, typer.Option(help="Whether to bound each arm's regret, which takes longer.")
    ] = True,
    json: Json = False,
) -> None:
    """Recommend an arm for every row; the file's own columns are kept."""
    with complaints():
        rule = Policy.load(policy)
        sheet = read_sheet(contexts)
        rows = sheet.numbers(list(rule.columns or sheet.columns))
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
        ["context", ", ".join(policy.columns or [f"{policy.dimension} numbers"])],
        ["bounds", kind_of_bounds(policy.probability)],
    ]
    shown = [[name, f"{x:.4g}" if isinstance(x, float) else x] for name, x in rows]
    print_table(title, ["", "value"], shown)
    counts = policy.counts
    print_table("arms", ["arm", "observations"], [[str(arm), n] for arm, n in counts.items()])
    if has_card(policy):
        print_card(policy.card)


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


def read_contexts(policy: Policy, path: Path) -> FloatArray:
    """Return the contexts in a file, checked as the policy's own."""
    sheet = read_sheet(path)
    rows = sheet.numbers(list(policy.columns or sheet.columns))
    if not len(rows):
        raise ValueError(f"{path} holds no contexts")
    return policy._read(rows)[0]
