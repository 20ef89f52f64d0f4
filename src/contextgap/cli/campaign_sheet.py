"""The command that writes a batch of trials to fill in, and reads it back."""

from __future__ import annotations

import csv
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgap.cli.campaign import (
    FILE,
    By,
    Where,
    Which,
    app,
    described,
    opened,
    say_new_levels,
)
from contextgap.cli.options import Json
from contextgap.cli.terminal import err, out, print_json, print_table
from contextgap.tables.cells import is_empty, is_missing_number, no_number, to_number

if TYPE_CHECKING:
    from contextgap.tables.files import Sheet

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")  # how what is no plain text begins

ContextsFile = Annotated[
    Path | None, typer.Option(help="Try the first rows of this file, a context per row.")
]
PoolFile = Annotated[
    Path | None, typer.Option(help="Choose the contexts among those in this file.")
]


@app.command("sheet")
def sheet_command(
    count: Annotated[
        int | None, typer.Option("-n", help="How many new trials to ask for.", min=1)
    ] = None,
    database: Where = FILE,
    campaign: Which = None,
    contexts: ContextsFile = None,
    pool: PoolFile = None,
    once: Annotated[
        bool, typer.Option("--once", help="Never the same arm at the same context again.")
    ] = False,
    filled: Annotated[
        Path | None,
        typer.Option("--import", help="Tell the rewards in a sheet that was filled in."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what --import would tell.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before telling, on a terminal.")
    ] = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Write trials as a CSV sheet to fill in, or read a filled-in sheet back.

    With -n the sheet has new trials; without it, the open ones.

    Contexts of new trials come from --contexts, or are chosen from --pool.

    The default pool is the reference contexts of the campaign.
    """
    with opened(database, campaign, by) as current:
        if filled is not None and (count, contexts, pool) != (None, None, None):
            raise ValueError("--import tells rewards; -n, --contexts and --pool ask for new trials")
        if filled is None and (dry_run or yes):
            raise ValueError("--dry-run and --yes are about --import FILE")
        if count is None and (contexts, pool, once) != (None, None, False):
            raise ValueError("--contexts, --pool and --once need -n, how many trials to ask for")
        if filled is not None:
            _import(current, _read_filled(filled), dry_run, yes, json)
            return
        if count is None:
            trials = current.find_trials("open")
        else:
            trials = _ask(current, count, contexts, pool, once)
        if json:
            print_json([described(trial) for trial in trials])
        else:
            _write(trials)


def _ask(
    campaign: Any, count: int, contexts: Path | None, pool: Path | None, once: bool
) -> list[Any]:
    """Ask for new trials."""
    from contextgap.tables.files import read_sheet

    if contexts is not None and pool is not None:
        raise ValueError("give --contexts or --pool, not both")
    if contexts is not None and once:
        raise ValueError("--once is about contexts that are chosen: give --pool, not --contexts")
    if contexts is not None:
        table = _table(campaign, read_sheet(contexts))
        if len(table) < count:
            raise ValueError(f"{contexts} has {len(table)} contexts, fewer than {count}")
        before = campaign.learner()
        trials = list(campaign.ask(table[:count]))
        say_new_levels(before, trials)
        return trials
    if pool is None and campaign.goal is None:
        raise ValueError(
            "give --contexts with the contexts to try, or --pool to choose some from: the campaign "
            "has no reference contexts"
        )
    choices = campaign.goal.given if pool is None else _table(campaign, read_sheet(pool))
    return [campaign.ask(pool=choices, once=once) for _ in range(count)]


def _table(campaign: Any, sheet: Sheet) -> Any:
    """Return the contexts in a file, with the campaign's columns if these are known."""
    kinds = campaign.learner().columns
    return sheet.table(sheet.others([]) if kinds is None else list(kinds), kinds)


def _write(trials: list[Any]) -> None:
    from contextgap.team.campaign.values import context_cells

    cells = [context_cells(trial) for trial in trials]
    columns = list(dict.fromkeys(name for each in cells for name in each))
    writer = csv.writer(sys.stdout)
    writer.writerow(["trial", *map(_quoted, columns), "arm", "reward"])
    for trial, each in zip(trials, cells, strict=True):
        row = [each.get(name) for name in columns]
        shown = ["" if cell is None or cell != cell else _quoted(cell) for cell in row]
        writer.writerow([trial.id, *shown, _quoted(trial.arm), ""])


def _quoted(cell: Any) -> Any:
    """Return text that no spreadsheet takes for a formula: such text gets an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _unquoted(cell: Any) -> Any:
    quoted = isinstance(cell, str) and cell[:1] == "'" and cell[1:].startswith(_FORMULA)
    return cell[1:] if quoted else cell


def _read_filled(path: Path) -> Sheet:
    """Return a sheet that was filled in, without the apostrophes that it was written with."""
    from contextgap.tables.files import read_sheet

    sheet = read_sheet(path)
    cells = tuple([_unquoted(cell) for cell in column] for column in sheet.cells)
    return replace(sheet, columns=tuple(map(_unquoted, sheet.columns)), cells=cells)


def _import(campaign: Any, sheet: Sheet, dry_run: bool, yes: bool, json: bool) -> None:
    """Show what would be told, and tell it."""
    told, known = _read(campaign, sheet)
    if not json:
        rows = [[trial.id, trial.arm, trial.state, repr(reward)] for trial, reward in told]
        headers = ["trial", "arm", "state", "reward"]
        print_table(f"{len(told)} rewards to tell, {len(known)} told before", headers, rows)
    if told and not dry_run:
        if err.is_terminal and sys.stdin.isatty() and not yes and not json:
            typer.confirm("Tell these?", abort=True)
        campaign.tell([trial.id for trial, _ in told], [reward for _, reward in told])
    if json:
        found = [{"trial": trial.id, "reward": reward} for trial, reward in told]
        print_json({"told": found, "told_before": known, "dry_run": dry_run})
    elif not dry_run:
        out.print(f"told {len(told)} rewards")


def _read(campaign: Any, sheet: Sheet) -> tuple[list[tuple[Any, float]], list[int]]:
    """Return the trials with new rewards, and those whose reward was told before."""
    told, known = [], []
    seen: dict[int, str] = {}
    cells = zip(sheet.cells_of("trial"), sheet.cells_of("reward"), strict=True)
    for row, (number, cell) in enumerate(cells):
        if is_empty(cell):
            continue
        where = f"{sheet.path}, {sheet.places[row]}"
        reward = to_number(cell, decimal_comma=sheet.decimal_comma)
        if reward is None or not math.isfinite(reward):
            hint = "; write 1 for yes and 0 for no" if reward is None else ""
            raise ValueError(f"{where}, column 'reward': {no_number(cell)}{hint}")
        if not str(number).strip().isdecimal():
            raise ValueError(f"{where}, column 'trial': must be a trial's number, got {number!r}")
        try:
            trial = campaign.trial(int(number))
        except ValueError as error:  # there is no such trial
            raise ValueError(f"{where}: {error}") from None
        if trial.id in seen:
            raise ValueError(f"{where}: trial {trial.id} was in {seen[trial.id]} already")
        seen[trial.id] = sheet.places[row]
        _check_asked(trial, sheet, row)
        if trial.state in ("told", "retracted"):
            if trial.reward != reward:
                raise ValueError(
                    f"{where}: {trial.reward!r} was told for trial {trial.id}, not {reward!r}; "
                    "contextgap campaign correct changes it"
                )
            known.append(trial.id)
        else:
            told.append((trial, reward))
    return told, known


def _check_asked(trial: Any, sheet: Sheet, row: int) -> None:
    """Raise if a row has another arm or context than the trial was asked for."""
    from contextgap.team.campaign.values import context_cells

    where = f"{sheet.path}, {sheet.places[row]}"
    if "arm" in sheet.columns:
        arm = sheet.cells_of("arm")[row]
        if not is_empty(arm) and not _same(trial.arm, arm, sheet.decimal_comma):
            raise ValueError(f"{where}: trial {trial.id} is of {trial.arm!r}, not of {arm!r}")
    for name, asked in context_cells(trial).items():
        cell = sheet.cells_of(name)[row] if name in sheet.columns else None
        if not is_empty(cell) and not _same(asked, cell, sheet.decimal_comma):
            raise ValueError(
                f"{where}, column {name!r}: trial {trial.id} was asked for at {asked!r}, not at "
                f"{cell!r}; tell a reward at another context by contextgap campaign tell --arm "
                "--context, or leave the column out"
            )


def _same(asked: Any, cell: Any, decimal_comma: bool) -> bool:
    """Whether a cell of a sheet says what a trial was asked for."""
    if asked is None or asked != asked:
        return is_missing_number(cell)
    if isinstance(asked, bool):
        return str(cell).strip().lower() == str(asked).lower()
    if isinstance(asked, int | float):
        number = to_number(cell, decimal_comma=decimal_comma)
        # Spreadsheets save about nine digits.
        return number is not None and math.isclose(number, asked, rel_tol=1e-9, abs_tol=1e-9)
    return str(cell).strip() == str(asked).strip()
