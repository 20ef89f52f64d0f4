"""What the user sees: tables, progress, errors."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any

import typer

from contextgap.base.display import ProgressBar

_LONG = 10.0  # seconds


class _Console:
    """A console of rich, which is slow to load, when first used."""

    quiet = False  # whether nobody wants to see what is printed

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
        """Print text as it is unless told otherwise, and unless nobody wants to see it."""
        if not self.quiet:
            self._console.print(*things, markup=markup, soft_wrap=soft_wrap, **how)


out = _Console(stderr=False)
# Progress and errors go to the error stream, so that output can be piped.
err = _Console(stderr=True)


def command_line() -> str:
    return shlex.join(["contextgap", *sys.argv[1:]])


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(plain(value), indent=1, allow_nan=False) + "\n")
    sys.stdout.flush()  # a service goes on, and a program waits for its address


def plain(value: Any) -> Any:
    """A value in JSON's own types; what is not a number there, such as NaN, becomes null."""
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
    """Print a table; numbers to three digits and right, text folded last if ``unbroken``."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    for place, header in enumerate(headers):
        numeric = header in right or any(isinstance(row[place], int | float) for row in rows)
        # Not cut off: the end of a long name may be all that distinguishes it.
        table.add_column(
            header,
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=header in unbroken,
        )
    for row in rows:
        # Escaped: units in brackets, as in "speed [rpm]", are not markup.
        table.add_row(*(f"{x:.3g}" if isinstance(x, float) else escape(str(x)) for x in row))
    out.print(table, soft_wrap=False)


class Phases:
    """The progress of each phase of a long piece of work, and the seconds that each took."""

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
        """Begin a phase; return what to call with the numbers of finished and of all pieces."""
        self._begun.append((phase, time.perf_counter()))
        if self._quiet:
            return lambda done, total: None  # noqa: ARG005  # nothing is shown
        return ProgressBar(phase) if sys.stderr.isatty() else _lines(phase)


def _lines(phase: str) -> Callable[[int, int], None]:
    """Return what writes to a log, now and then, how far a phase is."""
    begun = said = time.perf_counter()

    def say(done: int, total: int) -> None:
        nonlocal said
        now = time.perf_counter()
        # Ever more rarely: a day of work must not fill the log.
        if 0 < done < total and now - said >= max(_LONG, (now - begun) / 10):
            said = now
            left = (now - begun) * (total - done) / done
            err.print(f"{phase}: {done} of {total}, about {left:.0f} s left")

    return say


@contextmanager
def phases(quiet: bool = False) -> Iterator[Phases]:
    """Show progress while the block runs, unless ``quiet``: bars in a terminal, else lines."""
    try:
        yield Phases(quiet)
    except BaseException:
        if err.is_terminal and not quiet:
            err.print()  # ends the line of a bar
        raise


class Forecast:
    """Says how long work on rows takes, if long, when so many first pieces are done."""

    def __init__(self, total: int, pieces: int) -> None:
        self._total, self._left, self._start = total, pieces, time.perf_counter()

    def __call__(self, done: int) -> None:
        self._left -= 1
        if self._left == 0:
            seconds = (time.perf_counter() - self._start) * self._total / max(done, 1)
            if seconds > _LONG and not out.quiet:
                err.print(f"{self._total:,} rows: about {seconds:.0f} s")


@contextmanager
def complaints(resume: str | None = None) -> Iterator[None]:
    """Turn errors a user can fix into one line and exit code 2, and Ctrl-C into exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        err.print("[yellow]interrupted[/yellow]", markup=True)
        if resume:
            err.print(resume)
        raise typer.Exit(130) from None
    except BrokenPipeError:  # the reader, such as head, has seen enough
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

    Python's ``some_name=True`` becomes ``--some-name`` if the command has that. An option that it
    does not have is that of the command that makes the policy or campaign, which is named.
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
    """Print the warnings of a block, one line for each that says something else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say_warning(message)
