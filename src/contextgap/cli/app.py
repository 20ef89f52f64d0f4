"""All commands."""

from __future__ import annotations

import sys
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import contextgap

_PLACES = {
    "run": "studies.run_command",
    "compare": "studies.compare_command",
    "tune": "studies.tune_command",
    "reproduce": "studies.reproduce_command",
    "select": "selection.select_command",
    "plan": "studies.plan_command",
    "learn": "policies.learn_command",
    "recommend": "policies.recommend_command",
    "watch": "policies.watch_command",
    "init": "policies.init_command",
    "show": "policies.show_command",
    "export": "export.export_command",
    "verify": "export.verify_command",
    "campaign": "campaign.app",
    "database": "campaign.database_app",
    "serve": "campaign.serve_app",
}


class _Commands(UserDict[str, Any]):
    """Commands by name, loaded when first used."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(found := super().__getitem__(name), str):
            module, _, attribute = found.partition(".")
            place = getattr(import_module(f"contextgap.cli.{module}"), attribute)
            own = typer.Typer()
            if isinstance(place, typer.Typer):
                own.add_typer(place, name=name)
            else:
                from contextgap.cli.terminal import command

                own.command(name)(command(place))
            found = self[name] = typer.main.get_group(own).commands[name]
        return found


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": _Commands(_PLACES)})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read arguments; --quiet may stand anywhere among them."""
        own = args[: args.index("--")] if "--" in args else args
        if "--quiet" in own or "contextgap.cli.terminal" in sys.modules:  # which is slow to load
            from contextgap.cli.terminal import out

            out.quiet = "--quiet" in own
        rest = [each for each in own if each != "--quiet"] + args[len(own) :]
        return super().parse_args(ctx, rest)


def _new_name(option: str) -> str:
    if option != "gaps":
        return option
    from contextgap.cli.terminal import say_warning

    say_warning("--gaps is deprecated and now called --missing")
    return "missing"


app = typer.Typer(
    name="contextgap",
    cls=_Group,
    help="Learn which option is best for each input while mistakes are free; then decide alone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"token_normalize_func": _new_name},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contextgap {contextgap.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print only warnings, errors and JSON; may stand anywhere."),
    ] = False,
) -> None:
    """Learn which option is best for each input while mistakes are free; then decide alone."""
    del version, quiet  # handled before
