"""The problems that commands name, and the options on their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from contextgap.base import names
from contextgap.cli.options import (
    CategoryColumns,
    CyclicColumns,
    Evaluate,
    Exclude,
    Explore,
    Missing,
    Separator,
    SkipMissing,
    given_kinds,
    list_option,
)
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
from contextgap.tables.files import read_sheet

Context = Annotated[list[str] | None, list_option("Context columns of a file, comma-separated.")]
Rewards = Annotated[list[str] | None, list_option("Reward columns of a file, one per arm.")]
Noise = Annotated[list[str] | None, list_option("Noise columns of a sensor log.")]
Ordered = Annotated[bool, typer.Option(help="The file's rows are in time order.")]
Rows = Annotated[int | None, typer.Option(help="How many rows to use.", min=6)]

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


@dataclass(frozen=True)
class _Own(FixedData):
    """A problem that exists already."""

    problem: Problem

    def load(self) -> Problem:
        return self.problem
