"""Features of arms, as users give them: a row for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.checks import finite_vector
from contextgap.base.labels import Label
from contextgap.models import Features
from contextgap.tables.schema import TableSchema
from contextgap.tables.table import Table

_HINT = 'features must map every arm to its numbers, such as {"A": [1.0, 0.2], "B": [2.0, 0.1]}'
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class ArmFeatures:
    """Features of arms, a row for each; ``table`` is how categories become numbers, if any."""

    names: tuple[str, ...]
    table: TableSchema | None
    rows: FloatArray

    @classmethod
    def of(cls, cells: Sequence[Sequence[Any]], names: Sequence[str]) -> Self:
        columns = [list(column) for column in zip(*cells, strict=True)]
        table = TableSchema.inferred(names, columns)
        if table is None:
            rows = np.array([finite_vector("features", row) for row in cells])
        else:
            rows, table = table.encode(columns, learning=True)
        check_size(rows)
        return cls(tuple(names), table, rows)

    @property
    def numbers(self) -> Features:
        return Features(self.rows, 0 if self.table is None else self.table.layout.categories)

    def with_arm(self, features: Any) -> Self:
        """Return the same with the features of a new arm, in the last row."""
        cells = _cells(features, self.names)
        if len(cells) != len(self.names):
            raise ValueError(
                f"features must be {len(self.names)} numbers, as for the other arms, "
                f"got {len(cells)}"
            )
        if self.table is None:
            row = finite_vector("features", cells)
            check_size(row)
            return replace(self, rows=np.vstack([self.rows, row]))
        try:
            row, table = self.table.encode_row(cells, learning=True)
        except (TypeError, ValueError) as error:
            raise type(error)(f"features {error}") from None
        return replace(self, rows=np.vstack([self.rows, row]), table=table)

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {"features": self.rows.tolist()}
        if self.table is None:
            described["feature_names"] = list(self.names)
        else:
            described["feature_columns"] = self.table.describe()
        return described

    @classmethod
    def restored(cls, header: Mapping[str, Any], labels: Sequence[Label]) -> ArmFeatures | None:
        found = read_features(header.get("features"), labels)
        if found is not None and "feature_names" in header:
            names = header["feature_names"]
            if [type(name) for name in names] != [str] * len(found.names):
                raise ValueError("the features of the arms are not as many as their names")
            found = replace(found, names=tuple(names))
        if found is not None and "feature_columns" in header:
            table = TableSchema.restored(header["feature_columns"])
            found = replace(found, table=table, names=table.columns)
            if table.dimension != found.rows.shape[1]:
                raise ValueError("the features of the arms are not what their columns say")
        return found


def read_features(features: Any, labels: Sequence[Label]) -> ArmFeatures | None:
    """Return one row per arm, from a mapping, a DataFrame or rows in their order; None for None."""
    if features is None:
        return None
    names: list[str] | None = None
    if isinstance(features, Table):
        rows = list(zip(*features.by_column, strict=True))
        names = None if features.names is None else list(features.names)
        names, features = (None, rows) if names is None else _by_arm(names, rows, labels)
    elif hasattr(features, "rows") and hasattr(features, "columns"):  # polars has no index
        names, features = _by_arm(list(features.columns), features.rows(), labels)
    elif hasattr(features, "index") and hasattr(features, "to_numpy"):
        if not features.index.is_unique:
            raise ValueError("features must have one row for each arm, got an arm twice")
        if not hasattr(features, "columns"):
            features = features.to_frame("0")
        names = [str(name) for name in features.columns]
        rows = features.astype(object).to_numpy().tolist()
        numbered = features.index.tolist() == list(range(len(rows)))
        if numbered and not set(labels) & set(features.index):
            names, features = _by_arm(names, rows, labels)
        else:
            features = dict(zip(features.index, rows, strict=True))
    if isinstance(features, Mapping):
        missing = [label for label in labels if label not in features]
        if missing or len(features) > len(labels):
            wrong = (
                f"{missing[0]!r} has none"
                if missing
                else f"{next(iter(set(features) - set(labels)))!r} is not an arm"
            )
            raise ValueError(f"{_HINT}; {wrong}")
        features = [features[label] for label in labels]
    if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray):
        raise TypeError(f"{_HINT}, got {type(features).__name__}")
    if len(features) != len(labels):
        raise ValueError(f"features must have a row for each of {len(labels)} arms")
    first = features[0]
    if isinstance(first, Mapping) or hasattr(first, "to_dict"):
        names = [str(name) for name in dict(first)]
    cells = [_cells(row, names) for row in features]
    if len({len(row) for row in cells}) != 1:
        raise ValueError("features must be equally many for all arms")
    try:
        return ArmFeatures.of(cells, names or [str(place) for place in range(len(cells[0]))])
    except (TypeError, ValueError) as error:
        text = str(error)
        raise type(error)(text if text.startswith("features") else f"features {text}") from None


def _by_arm(names: list[str], rows: list[Any], labels: Sequence[Label]) -> tuple[list[str], Any]:
    """Return names and rows of a table, by arm if a column holds the arms, which is no feature."""
    arms = {str(label): label for label in labels}
    for place, name in enumerate(names):
        column = [row[place] for row in rows]
        texts = all(isinstance(cell, str) for cell in column)
        if texts and set(column) == set(arms) and len(column) == len(arms) == len(labels):
            others = [[*row[:place], *row[place + 1 :]] for row in rows]
            features = {arms[cell]: row for cell, row in zip(column, others, strict=True)}
            return [other for other in names if other != name], features
    return names, rows


def _cells(features: Any, names: Sequence[str] | None) -> list[Any]:
    """Return the features of one arm; a number or a word alone counts as a row of one."""
    if hasattr(features, "index") and hasattr(features, "to_dict"):  # a Series
        features = {str(name): value for name, value in features.to_dict().items()}
    if isinstance(features, Mapping):
        lacking = [name for name in names or () if name not in features]
        if lacking:
            raise ValueError(f"features lack {lacking[0]!r} in {dict(features)}")
        return [features[name] for name in names or features]
    if isinstance(features, str) or np.ndim(features) == 0:
        return [features]
    cells = features.tolist() if isinstance(features, np.ndarray) else list(features)
    if not cells:
        raise ValueError("features must be at least one number for each arm")
    return cells


def check_size(rows: FloatArray) -> None:
    """Raise if numbers are so large that their squares are not."""
    if (np.abs(rows) > _LARGEST).any():
        raise ValueError(
            f"features must be at most {_LARGEST:g} in size, got {np.abs(rows).max():g}"
        )
