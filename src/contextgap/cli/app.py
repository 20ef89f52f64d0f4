"""All commands."""

from __future__ import annotations

from typing import Annotated

import typer

import contextgap
from contextgap.cli import (
    campaign,
    campaign_sheet,
    export,
    learn,
    policies,
    recommend,
    run,
    selection,
    serve,
    studies,
    theory,
)
from contextgap.cli.options import new_name

app = typer.Typer(
    name="contextgap",
    help="Learn which option is best for each input while mistakes are free; then decide alone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"token_normalize_func": new_name},
)
app.command("run")(run.run_command)
app.command("compare")(studies.compare_command)
app.command("tune")(studies.tune_command)
app.command("reproduce")(studies.reproduce_command)
app.command("select")(selection.select_command)
app.command("plan")(theory.plan_command)
app.command("learn")(learn.learn_command)
app.command("recommend")(recommend.recommend_command)
app.command("show")(policies.show_command)
app.command("export")(export.export_command)
app.command("verify")(export.verify_command)
campaign.app.command("sheet")(campaign_sheet.sheet_command)
app.add_typer(campaign.app, name="campaign")
app.add_typer(campaign.database_app, name="database")
app.add_typer(serve.app, name="serve")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contextgap {contextgap.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learn which option is best for each input while mistakes are free; then decide alone."""
    del version  # handled by its callback
