"""Problems by the name or file a user gives on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base import names
from contextgap.base.columns import Category, Cyclic, Date, Kind
from contextgap.base.columns.kinds import CYCLES
from contextgap.cli.terminal import noting_warnings
from contextgap.problems import (
    Classification,
    FixedData,
    Maker,
    Problem,
    SensorLog,
    Sinusoids,
    Spacecraft,
    Table,
)
from contextgap.problems.blocks import read_sheet
from contextgap.problems.cells import to_number
from contextgap.problems.sheet import Sheet

BUNDLED = ("sinusoids", "spacecraft", "digits", "wine", "breast_cancer", "iris")


def read_problem(
    name: str,
    context: str | None = None,
    rewards: str | None = None,
    noise: str | None = None,
    ordered: bool = False,
    rows: int | None = None,
    seed: int = 0,
    *,
    exclude: str | None = None,
    category: str | None = None,
    cyclic: str | None = None,
    gaps: str | None = None,
    separator: str | None = None,
) -> Problem:
    """Return a bundled problem, ``openml:NAME``, a problem of the user's own, or the one in a file.

    ``context``, ``rewards`` and ``noise`` are comma-separated columns of a file. A file with
    ``rewards`` is a table, otherwise a sensor log; ``ordered`` says that a table's rows are in time
    order. All that comes last is about tables: what to leave out, what columns hold, and what
    separates cells.
    """
    if name == "sinusoids":
        return Sinusoids().sample(6000 if rows is None else rows, seed=seed)
    if name == "spacecraft":
        return Spacecraft().sample(6000 if rows is None else rows, seed=seed)
    if name in BUNDLED:
        return Classification(name).sample(rows, seed=seed)
    if name.startswith("openml:"):
        return Classification(name.removeprefix("openml:")).sample(rows, seed=seed)
    if names.is_path(name):
        own = names.read("problem", name, (Problem, Maker), "Sinusoids()")
        return (_Own(own) if isinstance(own, Problem) else own).sample(rows, seed=seed)
    path = Path(name)
    if not path.suffix:
        raise ValueError(
            f"there is no problem {name!r}; bundled are {', '.join(BUNDLED)}; "
            "openml:NAME fetches one; your own are in a .csv, .parquet or .mat file, or at "
            f"{names.FORM}"
        )
    if rewards is not None:
        table = Table(
            path,
            context=split(context),
            rewards=split(rewards) or [],
            exclude=split(exclude) or (),
            kinds=given_kinds(category, cyclic),
            gaps=split(gaps) or (),
            separator=separator,
            ordered=ordered,
        )
        with noting_warnings():
            return table.sample(rows, seed=seed)
    given = {"exclude": exclude, "category": category, "cyclic": cyclic, "gaps": gaps}
    given |= {"separator": separator}
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"--{option} is for tables; name every arm's reward by --rewards")
    if noise is None and path.suffix != ".mat":
        columns = read_sheet(path).columns
        if not any(name.startswith("noise") for name in columns):
            raise ValueError(
                f"{path}: name the columns with every arm's reward by --rewards, or those with the "
                f"sensors' noise by --noise; the columns are {', '.join(columns)}"
            )
    return SensorLog(path, noise=split(noise), telemetry=split(context)).sample(rows)


@dataclass(frozen=True)
class _Own(FixedData):
    """A problem that exists already."""

    problem: Problem

    def load(self) -> Problem:
        return self.problem


def split(listed: str | None) -> list[str] | None:
    """Return the names in a comma-separated list."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def given_kinds(
    category: str | None, cyclic: str | None, columns: Sequence[str] | None = None
) -> dict[str, Kind]:
    """Return the kinds of the columns that the user named, which must be among ``columns``."""
    given: dict[str, Kind] = {name: Category() for name in split(category) or []}
    for each in split(cyclic) or []:
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
    for name in given:
        if columns is not None and name not in columns:
            raise ValueError(f"there is no context column {name!r}; there are {list(columns)}")
    return given


def read_trials(
    sheet: Sheet,
    context: list[str] | None,
    exclude: list[str] | None,
    arm: str,
    reward: str,
    propensity: str | None = None,
) -> tuple[list[str], list[Any], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return a log's context columns, the arm tried and the reward of every row."""
    outcome = [arm, reward] if propensity is None else [arm, reward, propensity]
    for name in exclude or []:
        sheet.cells_of(name)  # a name that is mistyped excludes nothing
    columns = [name for name in context or sheet.others(outcome) if name not in (exclude or [])]
    both = [name for name in columns if name in outcome]
    if both:
        raise ValueError(f"column {both[0]!r} cannot be context and outcome at once")
    if not columns:
        raise ValueError(
            f"{sheet.path}: no column is left as context beside {', '.join(map(repr, outcome))}"
        )
    arms = [str(cell).strip() for cell in sheet.cells_of(arm)]
    for place, label in zip(sheet.places, arms, strict=True):
        if label in ("", "None", "NaN", "nan"):
            raise ValueError(f"{sheet.path}, {place}, column {arm!r}: the arm tried is missing")
    return columns, _whole_numbers(arms), sheet.rewards(reward)


def _whole_numbers(arms: list[str]) -> list[Any]:
    """Return arms as ints if all of them are, as they would be written, and as text otherwise."""
    if all(arm.lstrip("-").isdecimal() and str(int(arm)) == arm for arm in set(arms)):
        return [int(arm) for arm in arms]
    return list(arms)


def eligible_arms(sheet: Sheet, column: str, arms: Sequence[Any]) -> list[list[Any]]:
    """Return the arms eligible in each row of a table, whose cells are such as a|b.

    Arms that were never tried are passed over.
    """
    by_text, found = {str(arm): arm for arm in arms}, []
    for place, cell in zip(sheet.places, sheet.cells_of(column), strict=True):
        listed = [each.strip() for each in ("" if cell is None else str(cell)).split("|")]
        found.append([by_text[each] for each in listed if each in by_text])
        if not found[-1]:
            raise ValueError(
                f"{sheet.path}, {place}, column {column!r}: none of the arms {list(by_text)} is "
                f"eligible, got {cell!r}"
            )
    return found
