"""The command that makes a policy from logged trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base.columns import Columns, Kind
from contextgap.cli.options import CategoryColumns, CyclicColumns, Exclude, Gaps, Json, Separator
from contextgap.cli.policies import EligibleColumn, described, print_policy
from contextgap.cli.problems import (
    eligible_arms,
    given_kinds,
    read_trials,
    split,
)
from contextgap.cli.terminal import complaints, noting_warnings, out, print_json, print_table
from contextgap.kernels import Gaussian
from contextgap.learner import Learner
from contextgap.methods import METHODS
from contextgap.models import POINTS
from contextgap.problems.blocks import read_sheet
from contextgap.tuning import Tuning
from contextgap.widths import PosteriorWidth


def learn_command(
    log: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file, one trial per row.")],
    arm: Annotated[str, typer.Option(help="Column with the arm tried.")],
    reward: Annotated[str, typer.Option(help="Column with the reward it gave.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Policy file to write.")],
    context: Annotated[
        str | None, typer.Option(help="Context columns, comma-separated; all others by default.")
    ] = None,
    exclude: Exclude = None,
    category: CategoryColumns = None,
    cyclic: CyclicColumns = None,
    gaps: Gaps = None,
    separator: Separator = None,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="The reward is a cost, to be kept low.")
    ] = False,
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
    eligible: EligibleColumn = None,
    fallback: Annotated[
        str | None, typer.Option(help="A safe arm, answered where too little is known.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="The largest regret bound that the safe arm is not for.")
    ] = None,
    points: Annotated[
        int,
        typer.Option(help="Support points where trials are many; 0 for exact beliefs.", min=0),
    ] = POINTS,
    seed: Annotated[int, typer.Option(help="For rules that draw at random.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Make a policy from logged trials."""
    with complaints():
        sheet = read_sheet(log, separator)
        left_out = [*(split(exclude) or []), *([] if eligible is None else [eligible])]
        outcome = arm, reward, propensity
        with noting_warnings():
            columns, arms, rewards = read_trials(sheet, split(context), left_out, *outcome)
        labels = tuple(sorted(set(arms)))
        among = None if eligible is None else eligible_arms(sheet, eligible, labels)
        safe = _safe_arm(fallback, tolerance, labels)
        given = given_kinds(category, cyclic, columns)
        table = sheet.table(columns, given)
        chances = None if propensity is None else sheet.numbers([propensity])[:, 0]
        try:
            how = _settings(table, given, split(gaps) or [], bandwidth, ridge)
            how |= {"width": PosteriorWidth(scale), "seed": seed, "points": points or None}
            how |= {"reward": "minimize"} if minimize else {}
            learner = Learner(labels, method=method, **how)
            with noting_warnings():
                learner.fit(table, arms, rewards, eligible=among)
            card = learner.score(chances, **safe) if len(arms) > 1 else None
            policy = learner.freeze(card, **safe)
        except (TypeError, ValueError) as error:
            raise ValueError(sheet.located(error)) from None
        policy.save(output)
    if json:
        tuning = None if learner.tuning is None else learner.tuning.describe()
        print_json({**described(policy), "tuning": tuning, "policy": str(output)})
        return
    print_policy(f"learnt from {len(arms)} trials in {log.name}", policy)
    if learner.tuning is not None:
        _print_tuning(learner.tuning)
    out.print(f"policy: {output}", soft_wrap=True)


def _safe_arm(
    fallback: str | None, tolerance: float | None, labels: tuple[Any, ...]
) -> dict[str, Any]:
    """Return the safe arm and when it is answered, as ``freeze`` takes them."""
    if fallback is None:
        if tolerance is not None:
            raise ValueError("--tolerance says when --fallback is answered; give that too")
        return {}
    by_text = {str(label): label for label in labels}
    if fallback not in by_text:
        raise ValueError(f"--fallback must be one of {list(by_text)}, got {fallback!r}")
    return {"fallback": by_text[fallback], "tolerance": tolerance}


def _settings(
    table: Any,
    given: Mapping[str, Kind],
    gaps: Sequence[str],
    bandwidth: float | None,
    ridge: float | None,
) -> dict[str, Any]:
    """Return the user's settings with defaults filled in; no kernel if all is to be learnt."""
    how = {}
    if given or gaps:
        how["columns"] = Columns.from_table(table, **given).with_gaps(gaps)
    if bandwidth is None and ridge is None:
        return how
    if how:
        raise ValueError(
            "scales are learnt where columns are named by --category, --cyclic or --gaps; leave "
            "out --bandwidth and --ridge"
        )
    kernel = Gaussian.from_contexts(table)
    if bandwidth is not None:
        kernel = replace(kernel, bandwidth=bandwidth)
    return {"kernel": kernel, "ridge": ridge, "prior_mean": "auto"}


def _print_tuning(tuning: Tuning) -> None:
    rows = []
    for each in tuning.candidates:
        mark = "chosen" if each.name == tuning.chosen else ""
        rows.append([each.name, each.advantage, f"{100 * each.explained:.1f} %", mark])
    print_table("models tried", ["model", "nats", "explained", ""], rows)
    out.print(f"{tuning.chosen}: {tuning.reason}", markup=False)
