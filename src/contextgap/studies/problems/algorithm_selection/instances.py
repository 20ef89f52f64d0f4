"""Reads the features of new instances, and prepares them as those of the scenario were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.algorithm_selection.features import mean_per_instance
from contextgap.studies.problems.algorithm_selection.preparation import Preparation
from contextgap.studies.problems.algorithm_selection.relation import INSTANCE, REPETITION, Relation
from contextgap.tables.files import Sheet, read_sheet


@dataclass(frozen=True, eq=False)
class Instances:
    """New instances.

    Parameters
    ----------
    names
        What they are called: their ``instance_id``, or else their number, from 1.
    contexts
        Their prepared features, shape (n, d).
    unused
        Columns of the file that play no part.
    """

    names: tuple[str, ...]
    contexts: FloatArray
    unused: tuple[str, ...]


def read_instances(path: Path, preparation: Preparation) -> Instances:
    """Return the instances in a CSV or Parquet file of raw features, named as in the scenario.

    Rows with the same ``instance_id`` are repetitions, and averaged. A cell that is empty, "?" or
    not finite is a gap.
    """
    sheet = read_sheet(path)
    _check_columns(sheet, preparation)
    relation = _relation(sheet, preparation)
    said = [step.name for step in preparation.steps if step.features is None]
    for name in said:
        _check_said(relation, name)
    names = tuple(dict.fromkeys(relation.instances))
    table = mean_per_instance(relation, preparation.needed, names)
    raw = dict(zip(preparation.needed, table.T, strict=True))
    # One repetition that went well is enough for values.
    raw |= {name: np.floor(raw[name]) for name in said}
    used = {*preparation.needed, INSTANCE, REPETITION}
    unused = tuple(column for column in sheet.columns if column not in used)
    return Instances(names, preparation.contexts(raw), unused)


def _check_columns(sheet: Sheet, preparation: Preparation) -> None:
    missing = [name for name in preparation.needed if name not in sheet.columns]
    if not missing:
        return
    said = {step.name for step in preparation.steps if step.features is None}
    hint = ""
    if missing[0] in said:
        hint = ": 1 where that step of the feature computation failed, 0 where it went well"
    elif len(missing) > 1:
        hint = f", and {len(missing) - 1} more of {len(preparation.needed)} columns"
    raise ValueError(f"{sheet.path}: there is no column {missing[0]!r}{hint}")


def _relation(sheet: Sheet, preparation: Preparation) -> Relation:
    choices = {feature.name: feature.choices for feature in preparation.features}
    names, cells = list(sheet.columns), [tuple(map(_cell, column)) for column in sheet.cells]
    if INSTANCE not in names:
        names.append(INSTANCE)
        cells.append(tuple(str(row) for row in range(1, len(sheet.places) + 1)))
    values = tuple(choices.get(name) for name in names)
    return Relation(sheet.path, tuple(names), values, tuple(cells), tuple(sheet.places))


def _cell(cell: Any) -> Any:
    text = cell.strip() if isinstance(cell, str) else cell
    return None if text in ("", "?") else text


def _check_said(relation: Relation, name: str) -> None:
    wrong = np.flatnonzero(~np.isin(relation.numbers(name), [0, 1]))
    if wrong.size:
        row = int(wrong[0])
        got = relation.column(name)[row]
        raise ValueError(f"{relation.place(row, name)}: 0 or 1 is needed, got {got!r}")
