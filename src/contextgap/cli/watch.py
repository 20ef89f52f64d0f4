"""The command that says whether new contexts are still like those that a policy was learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base.names import study_import
from contextgap.cli.options import Json, Separator
from contextgap.cli.policies import EligibleColumn, PolicyFile
from contextgap.cli.tables import encoded_in
from contextgap.cli.terminal import complaints, out, print_json
from contextgap.insight import plot
from contextgap.insight.watch import Watch
from contextgap.policy import Policy
from contextgap.tables.files import files_named, read_blocks
from contextgap.tables.trials import eligible_arms

_ALARM = 3


def watch_command(
    policy: PolicyFile,
    contexts: Annotated[
        list[str],
        typer.Argument(help='.csv, .tsv or .parquet files, or "logs/*.csv"; a context per row.'),
    ],
    failure_probability: Annotated[
        float, typer.Option(help="Accepted probability of a false alarm in a whole deployment.")
    ] = 0.05,
    block: Annotated[
        int,
        typer.Option(help="Consecutive rows that form one unit, for rows in time order.", min=1),
    ] = 1,
    eligible: EligibleColumn = None,
    figure: Annotated[Path | None, typer.Option(help="A .png or .svg file to draw.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="A .cgap file: go on with the watch in it, if there is one; keep it."),
    ] = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Test whether contexts are like those learnt from; exit status 3 if they are not."""
    with complaints():
        rule = Policy.load(policy)
        watch = rule.watch(failure_probability, block=block)
        if state is not None and state.exists():
            watch = Watch.load(state, rule)
            if (watch.failure_probability, watch.block) != (failure_probability, block):
                raise ValueError(
                    f"the watch in {state} has failure probability {watch.failure_probability:g} "
                    f"and blocks of {watch.block} rows"
                )
        unknown: set[str] = set()
        for file in files_named(contexts):
            for sheet in read_blocks(file, separator):
                among = eligible and eligible_arms(sheet, eligible, rule.arms, unknown)
                watch.see(encoded_in(sheet, rule), eligible=among)
        if state is not None:
            watch.save(state)
        if figure is not None:
            study_import("matplotlib").use("Agg")
            drawn: Any = plot.watch(watch)[0].figure
            drawn.savefig(figure)
    report = watch.report()
    if json:
        print_json(report.describe())
    else:
        out.print(str(report), markup=False, highlight=False, soft_wrap=True)
    if report.alarm is not None:
        raise typer.Exit(_ALARM)
