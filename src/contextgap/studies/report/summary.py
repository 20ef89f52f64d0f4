"""Summaries over repetitions of what a comparison recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Curve:
    """One method's statistic, over repetitions, after each number of exploration steps.

    ``std`` is the sample standard deviation and ``error`` the standard error of the mean; neither
    is a number where there was only one repetition.
    """

    steps: IntArray
    mean: FloatArray
    std: FloatArray
    error: FloatArray


def curves(records: DataFrame, statistic: str) -> dict[str, Curve]:
    """Return every method's curve, in the order of the records."""
    check_columns("records", records, ("method", "seed", "checkpoint", statistic))
    check_single("records", records, ("study", "scale"))
    return {
        str(method): _curve(rows, statistic)
        for method, rows in records.groupby("method", sort=False)
    }


def _curve(rows: DataFrame, statistic: str) -> Curve:
    found = rows.groupby("checkpoint")[statistic].agg(["mean", "std", "sem"])
    return Curve(
        found.index.to_numpy(dtype=np.intp),
        found["mean"].to_numpy(dtype=float),
        found["std"].to_numpy(dtype=float),
        found["sem"].to_numpy(dtype=float),
    )


def check_columns(name: str, table: DataFrame, columns: Iterable[str]) -> None:
    """Raise ``ValueError`` unless the table has rows and these columns."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(
            f"{name} must have the column {missing[0]!r}, as experiments.compare makes it; "
            f"it has {list(table.columns)}"
        )
    if not len(table):
        raise ValueError(f"{name} must have rows, got an empty table")


def check_single(name: str, table: DataFrame, columns: Iterable[str]) -> None:
    """Raise ``ValueError`` where a mean over repetitions would mix unlike runs."""
    for column in columns:
        if column in table.columns and table[column].nunique() > 1:
            values = table[column].unique().tolist()
            raise ValueError(
                f"{name} must be of one {column}, got {values}; "
                f"select one, such as {name}[{name}.{column} == {values[0]!r}]"
            )
