"""Options that several commands share, and the problems that they name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from contextgap.base import names
from contextgap.cli.terminal import noting_warnings, say_warning
from contextgap.methods.method import METHODS
from contextgap.studies.problems import (
    Classification,
    FixedData,
    MagnetometerBench,
    Maker,
    Problem,
    SensorLog,
    Sinusoids,
    Spacecraft,
    Table,
)
from contextgap.tables.cells import to_number
from contextgap.tables.columns import CYCLES, Category, Cyclic, Date, Kind
from contextgap.tables.files import read_sheet


def names_in(texts: Iterable[str] | None) -> list[str] | None:
    """Return the names in comma-separated lists, one after the other."""
    if texts is None:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def numbers_in(option: str, texts: Sequence[str], such_as: str) -> list[float]:
    """Return the numbers that an option lists."""
    try:
        return [float(text) for text in texts]
    except ValueError:
        shown = ",".join(texts)
        raise ValueError(f"{option} must be numbers such as {such_as}, got {shown!r}") from None


def list_option(text: str, *flags: str) -> Any:
    """Return an option that takes a comma-separated list of names and may be repeated."""
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
    str | None, typer.Option(help="Your own as package.module:name, in place of Gaussian ones.")
]
Seed = Annotated[int, typer.Option(help="Of data and methods.", min=0)]
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
    typer.Option(help="Between the cells of a text file; inferred from its header if left out."),
]
SkipMissing = Annotated[
    bool, typer.Option("--skip-missing", help="Leave out rows without a reward.")
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Do finished parts again; after a change of your code.")
]
Results = Annotated[Path, typer.Option("--out", help="Folder for results.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

CORES = os.cpu_count() or 1
_SIMULATED: dict[str, Maker] = {
    "bench": MagnetometerBench(),
    "sinusoids": Sinusoids(),
    "spacecraft": Spacecraft(),
}
BUNDLED = (*_SIMULATED, "digits", "wine", "breast_cancer", "iris")


@dataclass(frozen=True)
class ProblemOptions:
    """The options on data that run, compare and tune share; only tables need most of them."""

    context: Context = None
    rewards: Rewards = None
    noise: Noise = None
    exclude: Exclude = None
    category: CategoryColumns = None
    cyclic: CyclicColumns = None
    missing: Missing = None
    separator: Separator = None
    skip_missing: SkipMissing = False
    ordered: Ordered = False
    rows: Rows = None
    explore: Explore = None
    evaluate: Evaluate = None

    def read(self, name: str, seed: int) -> Problem:
        """Return a bundled problem, ``openml:NAME``, one of the user's own, or that in a file."""
        if name in _SIMULATED:
            return _SIMULATED[name].sample(6000 if self.rows is None else self.rows, seed=seed)
        if name in BUNDLED or name.startswith("openml:"):
            return Classification(name.removeprefix("openml:")).sample(self.rows, seed=seed)
        if names.is_path(name):
            own = names.read("problem", name, (Problem, Maker), "Sinusoids()")
            return (_Own(own) if isinstance(own, Problem) else own).sample(self.rows, seed=seed)
        path = Path(name)
        if not path.suffix:
            raise ValueError(
                f"there is no problem {name!r}; bundled are {', '.join(BUNDLED)}; "
                "openml:NAME fetches one; your own are in a .csv, .parquet or .mat file, or at "
                f"{names.FORM}"
            )
        if self.rewards is not None:
            with noting_warnings():
                return self._table(path, self.rewards).sample(self.rows, seed=seed)
        return self._sensor_log(path).sample(self.rows)

    def _table(self, path: Path, rewards: Sequence[str]) -> Table:
        return Table(
            path,
            context=self.context,
            rewards=rewards,
            exclude=self.exclude or (),
            kinds=given_kinds(self.category, self.cyclic),
            missing=self.missing or (),
            separator=self.separator,
            skip_missing=self.skip_missing,
            ordered=self.ordered,
        )

    def _sensor_log(self, path: Path) -> SensorLog:
        for name in ("exclude", "category", "cyclic", "missing", "separator", "skip_missing"):
            if getattr(self, name):
                option = name.replace("_", "-")
                raise ValueError(f"--{option} is for tables; name every arm's reward by --rewards")
        if self.noise is None and path.suffix != ".mat":
            columns = read_sheet(path).columns
            if not any(name.startswith("noise") for name in columns):
                raise ValueError(
                    f"{path}: name the columns with every arm's reward by --rewards, or those with "
                    f"the sensors' noise by --noise; the columns are {', '.join(columns)}"
                )
        return SensorLog(path, noise=self.noise, telemetry=self.context)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options, whose fields typer sees in their place."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    shown: list[inspect.Parameter] = []
    for name, given in inspect.signature(command).parameters.items():
        entries = [(name, hints[name], given.default)]
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            types = get_type_hints(hints[name], include_extras=True)
            entries = [(each.name, types[each.name], each.default) for each in fields(hints[name])]
        shown += [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=usual)
            for each, kind, usual in entries
        ]

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # as inspect reads
    called.__annotations__ = {each.name: each.annotation for each in shown}
    return called


@dataclass(frozen=True)
class _Own(FixedData):
    """A problem that exists already."""

    problem: Problem

    def load(self) -> Problem:
        return self.problem


def given_kinds(category: Sequence[str] | None, cyclic: Sequence[str] | None) -> dict[str, Kind]:
    """Return the kinds of the columns that the user named."""
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
