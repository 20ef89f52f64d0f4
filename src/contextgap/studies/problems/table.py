"""A user's own table: contexts and every arm's reward, in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label, read_labels
from contextgap.base.names import renamed
from contextgap.studies.problems.problem import FixedData, Problem, standardised
from contextgap.tables.columns import Columns, all_numbers
from contextgap.tables.contexts import read_columns
from contextgap.tables.files import check_missing, read_names, read_path, read_sheet


@renamed(gaps="missing")
@dataclass(frozen=True)
class Table(FixedData):
    r"""A CSV, TSV or Parquet file with context columns and one reward column per arm.

    Parameters
    ----------
    path
        The file; its suffix is .csv, .tsv, .parquet or .pq.
    context
        Columns that make up the context; by default all that are not in ``rewards``.
    exclude
        Columns that are not context, such as ids.
    kinds
        What columns hold that are not what they seem: ``{"hour": Cyclic(24), "shop": "category"}``.
    missing
        Columns of which later tables may lack cells, though this one lacks none.
    separator
        What separates the cells of a text file; by default inferred from its header.
    skip_missing
        Whether to leave out rows that lack a reward, which are an error otherwise.
    rewards
        Columns with the arms' rewards, one per arm.
    arms
        A label per reward column; by default the columns' names.
    ordered
        Whether the rows are in time order and must stay so.
    scale
        Whether to give each context column mean 0 and standard deviation 1 over all rows
        (constant columns become 0), which suits kernels with one bandwidth for all columns. The
        rewards play no part in it. Tables with text or missing values stay raw.

    Examples
    --------
    >>> with open("table.csv", "w") as file:
    ...     _ = file.write("x,left,right\n0.0,1,0\n1.0,0.5,2\n")
    >>> cg.problems.Table("table.csv", rewards=["left", "right"]).sample()
    Problem('table': 2 rows, 1 number per context, 2 arms (left, right))
    """

    path: str | Path
    _: KW_ONLY
    context: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    kinds: Mapping[str, Any] | None = None
    missing: Sequence[str] = ()
    separator: str | None = None
    skip_missing: bool = False
    rewards: Sequence[str]
    arms: Sequence[Label] | None = None
    ordered: bool = False
    scale: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", read_path(self.path))
        object.__setattr__(self, "rewards", read_names("rewards", self.rewards))
        if self.arms is not None:
            object.__setattr__(self, "arms", read_labels(self.arms))
        if self.exclude:
            object.__setattr__(self, "exclude", read_names("exclude", self.exclude))
        if self.kinds:
            object.__setattr__(self, "kinds", Columns(self.kinds))
        if self.missing:
            object.__setattr__(self, "missing", read_names("missing", self.missing))
        if self.context is None:
            return
        object.__setattr__(self, "context", read_names("context", self.context))
        both = [name for name in self.context if name in self.rewards]
        if both:
            raise ValueError(f"column {both[0]!r} cannot be both in context and in rewards")

    def load(self) -> Problem:
        """Return all rows of the file."""
        path = Path(self.path)
        sheet = read_sheet(path, self.separator)
        if missing := sheet.without(self.rewards):
            first = f"{path}, {sheet.places[missing[0]]}"
            check_missing(first, len(missing), len(sheet), self.skip_missing)
            sheet = sheet.drop(missing)
        rewards = np.column_stack([sheet.rewards(name) for name in self.rewards])
        for name in (*self.exclude, *(self.kinds or {}), *self.missing):
            sheet.cells_of(name)  # a name that is mistyped would do nothing
        wanted = self.context or sheet.others((*self.rewards, *self.exclude))
        columns = tuple(name for name in wanted if name not in self.exclude)
        if not columns:
            raise ValueError(f"{path}: every column is in rewards, which leaves none as context")
        table = sheet.table(columns, self.kinds)
        if self.kinds or self.missing:
            return self._problem(_encoded(table, self.kinds or {}, self.missing), rewards)
        contexts: Any = table
        if all(map(all_numbers, table.cells)):
            numbers = np.column_stack(table.cells)
            contexts = standardised(numbers) if self.scale else numbers
        return self._problem({"contexts": contexts, "columns": columns}, rewards)

    def _problem(self, contexts: dict[str, Any], rewards: FloatArray) -> Problem:
        return Problem(
            name=Path(self.path).stem,
            rewards=rewards,
            arms=tuple(self.rewards if self.arms is None else self.arms),
            ordered=self.ordered,
            **contexts,
        )


def _encoded(table: Any, kinds: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Any]:
    """Return contexts of columns that are not all what they seem, and how they were read."""
    given = {name: kind for name, kind in kinds.items() if name in table.names}
    columns = Columns.from_table(table, **given).with_missing(missing)
    intake = read_columns(columns).read(table, learning=True)
    return {"contexts": intake.rows, "schema": intake.schema}
