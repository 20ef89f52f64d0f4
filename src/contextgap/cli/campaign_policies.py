"""Policies of a campaign: freeze one, and have one that was frozen again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from contextgap.base.files import check_output
from contextgap.cli.campaign import FILE, By, Key, Where, Which, opened, read_arm
from contextgap.cli.options import Json
from contextgap.cli.policies import print_policy
from contextgap.cli.terminal import print_json

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write it to this .cgap file.")
]


def freeze_command(
    name: Annotated[str, typer.Argument(help="A name for the policy.")],
    database: Where = FILE,
    campaign: Which = None,
    output: Output = None,
    fallback: Annotated[
        str | None, typer.Option(help="A safe arm, answered where too little is known.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="The safe arm is answered where bounds are above it.")
    ] = None,
    key: Key = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Freeze a policy, and keep it in the campaign."""
    with opened(database, campaign, by) as current:
        safe = None if fallback is None else read_arm(fallback, current)
        _check_file(output, database)  # first: what is frozen stays frozen
        current.freeze(name, fallback=safe, tolerance=tolerance, key=key)
        _give(current, name, output, json)


def policy_command(
    name: Annotated[str, typer.Argument(help="The name of a frozen policy.")],
    database: Where = FILE,
    campaign: Which = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Show a policy that was frozen before, or write it to a file again."""
    with opened(database, campaign) as current:
        _check_file(output, database)
        _give(current, name, output, json)


def _check_file(output: Path | None, database: str) -> None:
    """Raise if a policy cannot be written, or would replace the campaign's own database."""
    if output is not None:
        from contextgap.team.campaign.database import Database

        known = Database(database)
        check_output(output, [str(known.url.database)] if known.is_file else [])


def _give(campaign: Any, name: str, output: Path | None, json: bool) -> None:
    """Write a frozen policy to a file, if one is named, and show it."""
    policy = campaign.policy(name)
    if output is not None:
        policy.save(output)
    if json:
        known = next(each for each in campaign.policies() if each.name == name)
        print_json({**vars(known), "card": policy.card.describe()})
        return
    print_policy(f"policy {name}", policy)
