"""Problems by the name or file a user gives on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextgap.base import names
from contextgap.cli.terminal import noting_warnings
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

_SIMULATED: dict[str, Maker] = {
    "bench": MagnetometerBench(),
    "sinusoids": Sinusoids(),
    "spacecraft": Spacecraft(),
}
BUNDLED = (*_SIMULATED, "digits", "wine", "breast_cancer", "iris")


def read_problem(
    name: str,
    context: Sequence[str] | None = None,
    rewards: Sequence[str] | None = None,
    noise: Sequence[str] | None = None,
    ordered: bool = False,
    rows: int | None = None,
    seed: int = 0,
    *,
    exclude: Sequence[str] | None = None,
    category: Sequence[str] | None = None,
    cyclic: Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
    skip_missing: bool = False,
) -> Problem:
    """Return a bundled problem, ``openml:NAME``, a problem of the user's own, or the one in a file.

    ``context``, ``rewards`` and ``noise`` are columns of a file. A file with
    ``rewards`` is a table, otherwise a sensor log; ``ordered`` says that a table's rows are in time
    order. All that comes last is about tables: what to leave out, what columns hold, and what
    separates cells.
    """
    if name in _SIMULATED:
        return _SIMULATED[name].sample(6000 if rows is None else rows, seed=seed)
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
            context=context,
            rewards=rewards,
            exclude=exclude or (),
            kinds=given_kinds(category, cyclic),
            missing=missing or (),
            separator=separator,
            skip_missing=skip_missing,
            ordered=ordered,
        )
        with noting_warnings():
            return table.sample(rows, seed=seed)
    given: dict[str, Any] = {
        "exclude": exclude,
        "category": category,
        "cyclic": cyclic,
        "missing": missing,
    }
    given |= {"separator": separator, "skip-missing": skip_missing or None}
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
    return SensorLog(path, noise=noise, telemetry=context).sample(rows)


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
