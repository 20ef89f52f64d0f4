"""A user's own table: contexts and every arm's reward, in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from contextgap.base.labels import Label, read_labels
from contextgap.problems.maker import FixedData, standardised
from contextgap.problems.problem import Problem
from contextgap.problems.sheet import read_names, read_path, read_sheet


@dataclass(frozen=True)
class Table(FixedData):
    """A CSV or Parquet file with context columns and one reward column per arm.

    Parameters
    ----------
    path
        The file; its suffix is .csv, .parquet or .pq.
    context
        Columns that make up the context; by default all that are not in ``rewards``.
    rewards
        Columns with the arms' rewards, one per arm.
    arms
        A label per reward column; by default the columns' names.
    ordered
        Whether the rows are in time order and must stay so.
    scale
        Whether to give each context column mean 0 and standard deviation 1 over all rows
        (constant columns become 0), which suits kernels with one bandwidth for all columns. The
        rewards play no part in it. Tables with text or gaps are left as they are.
    """

    path: str | Path
    _: KW_ONLY
    context: Sequence[str] | None = None
    rewards: Sequence[str]
    arms: Sequence[Label] | None = None
    ordered: bool = False
    scale: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", read_path(self.path))
        object.__setattr__(self, "rewards", read_names("rewards", self.rewards))
        if self.arms is not None:
            object.__setattr__(self, "arms", read_labels(self.arms))
        if self.context is None:
            return
        object.__setattr__(self, "context", read_names("context", self.context))
        both = [name for name in self.context if name in self.rewards]
        if both:
            raise ValueError(f"column {both[0]!r} cannot be both in context and in rewards")

    def load(self) -> Problem:
        """Return all rows of the file."""
        path = Path(self.path)
        sheet = read_sheet(path)
        rewards = sheet.numbers(self.rewards)
        columns = tuple(self.context or sheet.others(self.rewards))
        if not columns:
            raise ValueError(f"{path}: every column is in rewards, which leaves none as context")
        table = sheet.table(columns)
        plain = all(kind == "f" for kind in (table[name].dtype.kind for name in columns))
        if plain and not table.isna().any(axis=None):
            table = sheet.numbers(columns)
            table = standardised(table) if self.scale else table
        return Problem(
            name=path.stem,
            contexts=table,
            rewards=rewards,
            arms=tuple(self.rewards if self.arms is None else self.arms),
            ordered=self.ordered,
            columns=columns,
        )
