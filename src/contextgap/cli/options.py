"""Options that several commands share."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_type_hints

import typer

from contextgap.base.components import study_import
from contextgap.cli.terminal import complaints, print_json
from contextgap.methods.method import METHODS
from contextgap.tables.columns import CYCLES, Category, Cyclic, Date, Kind
from contextgap.tables.table import to_number


def names_in(texts: Iterable[str] | None) -> list[str] | None:
    if texts is None:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def numbers_in(option: str, texts: Sequence[str], such_as: str) -> list[float]:
    try:
        return [float(text) for text in texts]
    except ValueError:
        shown = ",".join(texts)
        raise ValueError(f"{option} must be numbers such as {such_as}, got {shown!r}") from None


def list_option(text: str, *flags: str) -> Any:
    """Return an option that takes a comma-separated list of names and may be repeated."""
    return typer.Option(*flags, callback=names_in, metavar="A,B", help=text)


ProblemName = Annotated[
    str,
    typer.Argument(
        help="bench, sinusoids, spacecraft, digits, wine, breast_cancer, iris, openml:NAME, or "
        "your own file (.csv, .tsv, .parquet, .mat) or package.module:problem"
    ),
]
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
    str | None, typer.Option(help="A kernel of your own, as package.module:name.")
]
Seed = Annotated[int, typer.Option(help="Seed of data and methods.", min=0)]
AnySeed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Bandwidth = Annotated[
    float | None, typer.Option(help="Bandwidth of a Gaussian kernel; learnt by default.")
]
SafeArm = Annotated[
    str | None, typer.Option(help="A safe arm, for contexts where regret bounds are too large.")
]
Most = Annotated[
    float | None, typer.Option(help="The regret bound above which the safe arm is recommended.")
]
Jobs = Annotated[int, typer.Option(help="Worker processes.", min=1)]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, for its workers.")]
GridSize = Annotated[int, typer.Option(help="Bandwidths and ridges tried when tuning.", min=1)]
Exclude = Annotated[
    list[str] | None, list_option("Columns that are not context, such as ids, comma-separated.")
]
CategoryColumns = Annotated[
    list[str] | None,
    list_option("Columns of numbers that are only names, such as codes.", "--category"),
]
CyclicColumns = Annotated[
    list[str] | None,
    list_option("Columns with a period: hour=24; cycles of dates: when=day+week.", "--cyclic"),
]
Missing = Annotated[
    list[str] | None,
    list_option("Columns whose values may be missing later, though none is missing here."),
]
Separator = Annotated[
    str | None,
    typer.Option(help="Between the cells of a text file; inferred from its header if left out."),
]
SkipMissing = Annotated[
    bool, typer.Option("--skip-missing", help="Leave out rows without a reward.")
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Recompute finished parts, after a change of your code.")
]
Results = Annotated[Path, typer.Option("--out", help="Folder for results.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

CORES = os.cpu_count() or 1


class Answer(NamedTuple):
    """What a command answers programs, where its exit status is not 0."""

    value: Any
    status: int


def command(function: Callable[..., Iterator[Any] | None]) -> Callable[..., None]:
    """Return a command for typer, which sees the fields of dataclasses of options in their place.

    A generator yields the answer for programs, an ``Answer`` if it may fail, and then prints it for
    people. It gets the option ``--json``, with which the latter is left out, and errors that a user
    can fix become one line.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    entries: list[tuple[str, Any, Any]] = []
    for name, given in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            types = get_type_hints(hints[name], include_extras=True)
            entries += [
                (each.name, types[each.name], each.default) for each in fields(groups[name])
            ]
        else:
            entries.append((name, hints[name], given.default))
    answers = inspect.isgeneratorfunction(function)
    if answers:
        entries.append(("json", Json, False))

    @wraps(function)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        if not answers:
            function(**given)
            return
        json, steps = given.pop("json"), cast("Iterator[Any]", function(**given))
        with complaints():
            found = next(steps)
        value, status = found if isinstance(found, Answer) else (found, 0)
        if json:
            print_json(value)
        else:
            deque(steps, maxlen=0)
        if status:
            raise typer.Exit(status)

    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=usual)
        for name, kind, usual in entries
    ]
    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # as inspect reads
    called.__annotations__ = {each.name: each.annotation for each in shown}
    return called


@dataclass(frozen=True)
class ColumnOptions:
    """The options that say what is in the columns of a table."""

    exclude: Exclude = None
    category: CategoryColumns = None
    cyclic: CyclicColumns = None
    missing: Missing = None

    @property
    def kinds(self) -> dict[str, Kind]:
        return given_kinds(self.category, self.cyclic)


class Commands(typer.Typer):
    """Commands below one name."""

    def __init__(self, about: str) -> None:
        super().__init__(help=about, no_args_is_help=True, pretty_exceptions_enable=False)

    def add(self, name: str, **how: Any) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: self.command(name, **how)(command(function))


def given_kinds(category: Sequence[str] | None, cyclic: Sequence[str] | None) -> dict[str, Kind]:
    given: dict[str, Kind] = {name: Category() for name in category or []}
    for each in cyclic or []:
        name, _, period = each.partition("=")
        cycles = [cycle.strip() for cycle in period.split("+")]
        if set(cycles) <= set(CYCLES):
            given[name.strip()] = Date(tuple(cycles))
        elif to_number(period) is not None:
            given[name.strip()] = Cyclic(float(period))
        else:
            raise ValueError(
                f"--cyclic must be such as hour=24, or when=day+week for dates, got {each!r}"
            )
    return given


@contextmanager
def cluster(dask: str) -> Iterator[Any]:
    with study_import("distributed", "dask").Client(dask) as client:
        yield client
