"""Options that several commands share."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from contextgap.methods import METHODS

ProblemName = Annotated[
    str,
    typer.Argument(
        help="bench, sinusoids, spacecraft, digits, wine, breast_cancer, iris, openml:NAME, or "
        "your own file (.csv, .tsv, .parquet, .mat) or package.module:problem"
    ),
]
Context = Annotated[str | None, typer.Option(help="Context columns of a file, comma-separated.")]
Rewards = Annotated[str | None, typer.Option(help="Reward columns of a file, one per arm.")]
Noise = Annotated[str | None, typer.Option(help="Noise columns of a sensor log.")]
Ordered = Annotated[bool, typer.Option(help="The file's rows are in time order.")]
Rows = Annotated[int | None, typer.Option(help="How many rows to use.", min=6)]
Explore = Annotated[int | None, typer.Option(help="Exploration steps.", min=1)]
Evaluate = Annotated[int | None, typer.Option(help="Rows to evaluate deployment on.", min=1)]
Methods = Annotated[
    str,
    typer.Option(
        help=f"Comma-separated: auto for the default, {', '.join(METHODS)}, or your own as "
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
    str | None, typer.Option(help="Columns that are not context, such as ids, comma-separated.")
]
CategoryColumns = Annotated[
    str | None,
    typer.Option("--category", help="Columns of numbers that are only names, such as codes."),
]
CyclicColumns = Annotated[
    str | None,
    typer.Option(
        "--cyclic",
        help="Columns that come back to where they began: hour=24; dates: when=day+week.",
    ),
]
Gaps = Annotated[
    str | None, typer.Option(help="Columns that may have gaps later, though the file has none.")
]
Separator = Annotated[
    str | None,
    typer.Option(help="Between the cells of a text file; told from its header if left out."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

CORES = os.cpu_count() or 1
