"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from contextgap.cli.terminal import say_warning
from contextgap.methods.method import METHODS


def names_in(texts: Iterable[str] | None) -> list[str] | None:
    """Return the names in comma-separated lists, one after the other."""
    if texts is None:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def list_option(text: str, *flags: str) -> Any:
    """Return an option with this help that takes a comma-separated list and may be repeated.

    Its parameter is a ``list[str]`` of names, or None.
    """
    return typer.Option(*flags, callback=names_in, metavar="A,B", help=text)


def new_name(option: str) -> str:
    """Return the name of an option, which may be given by its old one."""
    if option != "gaps":
        return option
    say_warning("--gaps is deprecated and now called --missing")
    return "missing"


ProblemName = Annotated[
    str,
    typer.Argument(
        help="bench, sinusoids, spacecraft, digits, wine, breast_cancer, iris, openml:NAME, or "
        "your own file (.csv, .tsv, .parquet, .mat) or package.module:problem"
    ),
]
Context = Annotated[list[str] | None, list_option("Context columns of a file, comma-separated.")]
Rewards = Annotated[list[str] | None, list_option("Reward columns of a file, one per arm.")]
Noise = Annotated[list[str] | None, list_option("Noise columns of a sensor log.")]
Ordered = Annotated[bool, typer.Option(help="The file's rows are in time order.")]
Rows = Annotated[int | None, typer.Option(help="How many rows to use.", min=6)]
Explore = Annotated[int | None, typer.Option(help="Exploration steps.", min=1)]
Evaluate = Annotated[int | None, typer.Option(help="Rows to evaluate deployment on.", min=1)]
Methods = Annotated[
    list[str],
    list_option(
        f"Comma-separated: auto for the default, {', '.join(METHODS)}, or your own as "
        "package.module:name."
    ),
]
KernelName = Annotated[
    str | None,
    typer.Option(help="Your own as package.module:name, in place of Gaussian ones."),
]
Seed = Annotated[int, typer.Option(help="Of data and methods.", min=0)]
Jobs = Annotated[int, typer.Option(help="Worker processes.", min=1)]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, for its workers.")]
GridSize = Annotated[int, typer.Option(help="Bandwidths and ridges tried when tuning.", min=1)]
Exclude = Annotated[
    list[str] | None,
    list_option("Columns that are not context, such as ids, comma-separated."),
]
CategoryColumns = Annotated[
    list[str] | None,
    list_option("Columns of numbers that are only names, such as codes.", "--category"),
]
CyclicColumns = Annotated[
    list[str] | None,
    list_option(
        "Columns that come back to where they began: hour=24; dates: when=day+week.", "--cyclic"
    ),
]
Missing = Annotated[
    list[str] | None,
    list_option("Columns that may lack values later, though the file has them all."),
]
Separator = Annotated[
    str | None,
    typer.Option(help="Between the cells of a text file; told from its header if left out."),
]
SkipMissing = Annotated[
    bool, typer.Option("--skip-missing", help="Leave out rows without a reward.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

CORES = os.cpu_count() or 1
