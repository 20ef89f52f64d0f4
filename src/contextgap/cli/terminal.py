"""Options that several commands share, and what the user sees: tables, progress, errors."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import shlex
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_type_hints

import typer

from contextgap.base.components import study_import
from contextgap.base.display import ProgressBar
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
    value: Any
    status: int


def command(function: Callable[..., Iterator[Any] | None]) -> Callable[..., None]:
    """Return a command for typer, which sees the fields of dataclasses of options in their place.

    A generator yields the answer for programs, an ``Answer`` if it may fail, and then prints it for
    people, unless ``--json`` is given. Errors that a user can fix become one line.
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
    exclude: Exclude = None
    category: CategoryColumns = None
    cyclic: CyclicColumns = None
    missing: Missing = None

    @property
    def kinds(self) -> dict[str, Kind]:
        return given_kinds(self.category, self.cyclic)


class Commands(typer.Typer):
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


LONG = 10.0  # seconds


class _Console:
    """A console of rich, loaded when first used."""

    quiet = False

    def __init__(self, *, stderr: bool) -> None:
        self._stderr = stderr

    @cached_property
    def _console(self) -> Any:
        from rich.console import Console

        # No emoji: ":X:" in a user's label or path is that and nothing else.
        return Console(stderr=self._stderr, highlight=False, emoji=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._console, name)

    def print(self, *things: Any, markup: bool = False, soft_wrap: bool = True, **how: Any) -> None:
        """Print text, without markup unless told otherwise."""
        if not self.quiet:
            self._console.print(*things, markup=markup, soft_wrap=soft_wrap, **how)


out = _Console(stderr=False)
# So that output can be piped.
err = _Console(stderr=True)


def command_line() -> str:
    return shlex.join(["contextgap", *sys.argv[1:]])


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(plain(value), indent=1, allow_nan=False) + "\n")
    sys.stdout.flush()  # a service goes on


def plain(value: Any) -> Any:
    """A value in JSON's own types; NaN becomes null."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def print_table(
    title: str,
    headers: Sequence[str],
    rows: Sequence[Sequence[Any]],
    unbroken: Sequence[str] = (),
    right: Sequence[str] = (),
) -> None:
    """Print a table, numbers to three digits."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    for place, header in enumerate(headers):
        numeric = header in right or any(isinstance(row[place], int | float) for row in rows)
        # Not cut off: names may differ at their ends.
        table.add_column(
            header,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=header in unbroken,
        )
    for row in rows:
        # Units in brackets are no markup.
        table.add_row(*(f"{x:.3g}" if isinstance(x, float) else escape(str(x)) for x in row))
    out.print(table, soft_wrap=False)


class Phases:
    """Progress of phases, and the seconds of each."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet or out.quiet
        self._begun = [("reading", time.perf_counter())]

    def seconds(self) -> dict[str, float]:
        ends = [start for _, start in self._begun[1:]] + [time.perf_counter()]
        spent: dict[str, float] = {}
        for (phase, start), end in zip(self._begun, ends, strict=True):
            spent[phase] = spent.get(phase, 0.0) + end - start
        return spent

    def __call__(self, phase: str) -> Callable[[int, int], None]:
        """Begin a phase; return what takes how many pieces are done, and of how many."""
        self._begun.append((phase, time.perf_counter()))
        if self._quiet:
            return lambda done, total: None  # noqa: ARG005  # nothing is shown
        return ProgressBar(phase) if sys.stderr.isatty() else _lines(phase)


def _lines(phase: str) -> Callable[[int, int], None]:
    begun = said = time.perf_counter()

    def say(done: int, total: int) -> None:
        nonlocal said
        now = time.perf_counter()
        # Ever more rarely: a day of work must not fill the log.
        if 0 < done < total and now - said >= max(LONG, (now - begun) / 10):
            said = now
            left = (now - begun) * (total - done) / done
            err.print(f"{phase}: {done} of {total}, about {left:.0f} s left")

    return say


@contextmanager
def phases(quiet: bool = False) -> Iterator[Phases]:
    """Show progress: bars in a terminal, else lines."""
    try:
        yield Phases(quiet)
    except BaseException:
        if err.is_terminal and not quiet:
            err.print()  # ends the line of a bar
        raise


@contextmanager
def complaints(resume: str | None = None) -> Iterator[None]:
    """Turn errors a user can fix into a line and exit code 2, Ctrl-C into 130."""
    try:
        yield
    except KeyboardInterrupt:
        err.print("[yellow]interrupted[/yellow]", markup=True)
        if resume:
            err.print(resume)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except MemoryError as error:
        say_error(f"out of memory: {error}")
        raise typer.Exit(2) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        say_error(error)
        raise typer.Exit(2) from None


def say_error(error: Any) -> None:
    err.print("[red]error:[/red]", end=" ", markup=True)
    err.print(_in_options(str(error)))


def _in_options(text: str) -> str:
    """Return a message with the options of the command that was called.

    Python's ``some_name=True`` becomes ``--some-name``, with the command that makes the policy or
    campaign before it if the option is that command's.
    """
    # Later versions of typer have their own copy of click.
    home = typer.main if hasattr(typer.main, "get_current_context") else import_module("click")
    context: Any = vars(home)["get_current_context"](silent=True)
    if context is None:
        return text
    own = _options(context.command)
    campaign = context.parent is not None and context.parent.info_name == "campaign"
    if campaign:
        text = text.replace("correct(trial, reward, why)", "contextgap campaign correct")
    words = ("campaign", "create") if campaign else ("learn",)
    maker = context.find_root().command
    for word in words:
        maker = getattr(maker, "commands", {}).get(word)
    others = _options(maker) - own

    def named(found: re.Match[str]) -> str:
        name = found[0].removesuffix("=True").replace("_", "-")
        option = name if name.startswith("--") else f"--{name}"
        if option in own:
            return option
        return f"contextgap {' '.join(words)} {option}" if option in others else found[0]

    return re.sub(r"(?<![\w-])--[a-z][a-z-]*|\b[a-z]+_[a-z_]+=True\b", named, text)


def _options(command: Any) -> set[str]:
    return {name for each in getattr(command, "params", ()) for name in each.opts}


def say_warning(warning: Any, console: _Console = err) -> None:
    console.print("[yellow]warning:[/yellow]", end=" ", markup=True)
    console.print(_in_options(str(warning)))


@contextmanager
def noting_warnings() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say_warning(message)
