"""The command that makes a policy from logged trials."""

from __future__ import annotations

import gzip
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base.files import check_output
from contextgap.beliefs import PosteriorWidth
from contextgap.cli.options import (
    AnySeed,
    Bandwidth,
    ColumnOptions,
    Dask,
    Most,
    SafeArm,
    Separator,
    SkipMissing,
    cluster,
    list_option,
)
from contextgap.cli.policies import (
    CardRows,
    EligibleColumn,
    described,
    print_card,
    print_settings,
    read_features,
)
from contextgap.cli.terminal import noting_warnings, out, phases, print_table
from contextgap.kernels import Gaussian
from contextgap.learner.bulk import SAMPLE, columns_for, learn_trials, partitions_of
from contextgap.methods.method import METHODS
from contextgap.models import POINTS
from contextgap.tables.files import VOWPAL, Trials, files_named, read_blocks, suffix_of


def learn_command(
    log: Annotated[
        list[str],
        typer.Argument(
            help=".csv, .tsv, .parquet or .jsonl files, Vowpal Wabbit's .vw and .dsjson, .gz of "
            'these, or "logs/*.parquet"; - for the standard input. A trial per row.'
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Policy file to write.")],
    arm: Annotated[str, typer.Option(help="Column with the arm tried.")] = "arm",
    reward: Annotated[str, typer.Option(help="Column with the reward it gave.")] = "reward",
    context: Annotated[
        list[str] | None,
        list_option("Context columns, comma-separated; all others by default."),
    ] = None,
    *,
    columns: ColumnOptions,
    separator: Separator = None,
    skip_missing: SkipMissing = False,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="The reward is a cost, to be kept low.")
    ] = False,
    method: Annotated[
        str, typer.Option(help=f"The method whose deployment rule is used: {', '.join(METHODS)}.")
    ] = "auto",
    bandwidth: Bandwidth = None,
    ridge: Annotated[
        float | None, typer.Option(help="Variance of the noise; learnt by default.")
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Half width of intervals in standard deviations.")
    ] = 2.0,
    propensity: Annotated[
        str | None,
        typer.Option(help="Column with the probability with which the logged arm was chosen."),
    ] = None,
    censored: Annotated[
        str | None,
        typer.Option(help="Column with 1 where the true cost is higher, or the true reward lower."),
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help="Column with what the trial cost, for the score card.")
    ] = None,
    eligible: EligibleColumn = None,
    arm_features: Annotated[
        Path | None,
        typer.Option(help="File with a row of features for each arm, in a column named as --arm."),
    ] = None,
    fallback: SafeArm = None,
    tolerance: Most = None,
    points: Annotated[
        int,
        typer.Option(help="Inducing points where trials are many; 0 for exact beliefs.", min=0),
    ] = POINTS,
    card_rows: CardRows = None,
    seed: AnySeed = 0,
    dask: Dask = None,
) -> Iterator[Any]:
    """Make a policy from logged trials."""
    with from_standard_input(log) as files:
        check_output(output, [*files, *([] if arm_features is None else [arm_features])])
        if all(suffix_of(path) in VOWPAL for path in files):  # their columns are known
            propensity = propensity or "propensity"
            listed = all("eligible" in next(read_blocks(path)).columns for path in files)
            eligible = eligible or (["eligible"] if listed else None)
        trials = Trials(
            arm=arm,
            reward=reward,
            context=None if context is None else tuple(context),
            exclude=tuple(columns.exclude or ()),
            propensity=propensity,
            censored=censored,
            cost=cost,
            eligible=tuple(eligible or ()),
            kinds=columns.kinds,
            missing=tuple(columns.missing or ()),
        )
        how = {"width": PosteriorWidth(scale), "seed": seed, "points": points or None}
        how |= {"reward": "minimize"} if minimize else {}
        partitions = partitions_of(files, separator)
        quick = sum(each.size for each in partitions) <= SAMPLE
        remote = nullcontext() if dask is None else cluster(dask)
        with phases(quiet=quick) as watch, remote as client, noting_warnings():
            learnt = learn_trials(
                partitions,
                trials,
                method,
                lambda table: how | _settings(table, trials, bandwidth, ridge),
                points=points or None,
                skip_missing=skip_missing,
                features=None if arm_features is None else read_features(arm_features, arm),
                fallback=fallback,
                tolerance=tolerance,
                card_rows=card_rows,
                executor=client,
                progress=watch,
                prefix="--",
            )
        policy, tuning = learnt.policy, learnt.tuning
        policy.save(output)
    described_tuning = None if tuning is None else tuning.describe()
    yield {**described(policy), "tuning": described_tuning, "policy": str(output)}
    names = Path(log[0]).name if len(log) == 1 else f"{len(log)} files"
    names = "the standard input" if log == ["-"] else names
    print_settings(f"learnt from {learnt.rows} trials in {names}", policy)
    if tuning is not None:
        rows = []
        for each in tuning.candidates:
            mark = "chosen" if each.name == tuning.chosen else ""
            rows.append([each.name, each.advantage, f"{100 * each.explained:.1f} %", mark])
        print_table("models tried", ["model", "nats", "explained", ""], rows)
        out.print(f"{tuning.chosen}: {tuning.reason}", soft_wrap=False)
    print_card(policy)
    out.print(f"policy: {output}")


@contextmanager
def from_standard_input(log: list[str]) -> Iterator[list[Path]]:
    """Give the files that are named; one for what comes from the standard input, if that is."""
    if log != ["-"]:
        yield files_named(log)
        return
    given = sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"standard-input{_kind_of(given)}")
        path.write_bytes(given)
        yield [path]


def _kind_of(given: bytes) -> str:
    """Return the suffix of a log, inferred from its beginning."""
    if given[:2] == b"\x1f\x8b":
        return f"{_kind_of(gzip.decompress(given))}.gz"
    if given[:4] == b"PAR1":
        return ".parquet"
    first = given.lstrip().partition(b"\n")[0]
    if first.startswith(b"{"):
        return ".dsjson" if b'"_label_cost"' in first else ".jsonl"
    return ".vw" if re.match(rb"(shared|[0-9]+:\S+:\S+|)\s*\|", first) else ".csv"


def _settings(
    table: Any, trials: Trials, bandwidth: float | None, ridge: float | None
) -> dict[str, Any]:
    """Return the user's settings with defaults filled in; no kernel if all is to be learnt."""
    how = columns_for(table, trials)
    if bandwidth is None and ridge is None:
        return how
    if how:
        raise ValueError(
            "hyperparameters are learnt where columns are named by --category, --cyclic or "
            "--missing; leave out --bandwidth and --ridge"
        )
    kernel = Gaussian.from_contexts(table)
    if bandwidth is not None:
        kernel = replace(kernel, bandwidth=bandwidth)
    return {"kernel": kernel, "ridge": ridge, "prior_mean": "auto"}
