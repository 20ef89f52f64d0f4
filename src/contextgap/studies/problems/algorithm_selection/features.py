"""How raw features become contexts: fitted to a scenario, then applied to new instances alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.algorithm_selection.files import INSTANCE, REPETITION, Relation
from contextgap.studies.problems.problem import centre_and_unit
from contextgap.tables.cells import to_number
from contextgap.tables.files import Sheet, read_path, read_sheet


@dataclass(frozen=True)
class Feature:
    """A number of the context that is made from one feature."""

    name: str
    choices: tuple[str, ...] | None  # names that stand for 0, 1, ...; None for numbers
    logarithm: bool  # whether a value x becomes sign(x) · ln(1 + abs(x))
    gap: float  # the number where the value is missing

    def of(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        """Return the number for every instance, from raw columns with NaN for missing values."""
        column = unskewed(raw[self.name]) if self.logarithm else raw[self.name]
        return np.where(np.isnan(column), self.gap, column)


@dataclass(frozen=True)
class FailedStep:
    """A number of the context: 1 where a step of the feature computation failed, else 0."""

    name: str
    features: tuple[str, ...] | None  # it failed where all are missing; None: a column says so

    def of(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        """Return the number for every instance, from raw columns with NaN for missing values."""
        if self.features is None:
            return raw[self.name]
        missing = [np.isnan(raw[name]) for name in self.features]
        return np.asarray(np.all(missing, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Preparation:
    """How raw features become the numbers of a context."""

    features: tuple[Feature, ...]
    steps: tuple[FailedStep, ...]  # their numbers come behind those of the features
    centre: tuple[float, ...] | None = None  # what is subtracted from each number
    unit: tuple[float, ...] | None = None  # what it is then divided by

    @property
    def _parts(self) -> tuple[Feature | FailedStep, ...]:
        return (*self.features, *self.steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of a context's numbers."""
        return tuple(part.name for part in self._parts)

    @property
    def needed(self) -> tuple[str, ...]:
        """The raw columns that contexts are made from."""
        behind = [name for step in self.steps for name in step.features or [step.name]]
        return tuple(dict.fromkeys([*(feature.name for feature in self.features), *behind]))

    def contexts(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        """Return one context per instance, from raw columns with NaN where a value is missing."""
        numbers = np.column_stack([part.of(raw) for part in self._parts])
        if self.centre is None or self.unit is None:
            return numbers
        return np.asarray((numbers - np.array(self.centre)) / np.array(self.unit))

    @classmethod
    def restored(cls, described: Mapping[str, Any]) -> Self:
        """Return a preparation from what JSON made of its ``dataclasses.asdict``."""

        def fixed(value: Any) -> Any:
            return tuple(value) if isinstance(value, list) else value

        def parts(kind: Any, name: str) -> tuple[Any, ...]:
            entries = described[name]
            return tuple(kind(**{key: fixed(entry[key]) for key in entry}) for entry in entries)

        centre, unit = fixed(described["centre"]), fixed(described["unit"])
        return cls(parts(Feature, "features"), parts(FailedStep, "steps"), centre, unit)


def unskewed(column: FloatArray) -> FloatArray:
    """Return sign(x) · ln(1 + abs(x))."""
    return np.asarray(np.sign(column) * np.log1p(np.abs(column)))


_LARGE_SKEW = 2.0  # the exponential distribution's


def read_features(
    instances: Sequence[str],
    values: Relation,
    statuses: Relation | None,
    steps: Mapping[str, Sequence[str]],
    scale: bool,
) -> tuple[FloatArray, Preparation]:
    """Return one context per instance, averaged over repetitions, and how it was made."""
    names = values.others((INSTANCE, REPETITION))
    raw = dict(zip(names, mean_per_instance(values, names, instances).T, strict=True))
    if statuses is None:
        failing = _missing(steps, raw)
    else:
        failures = _said_to_fail(instances, statuses)
        failing = [FailedStep(name, None) for name in failures]
        raw = failures | raw
    features = tuple(_feature(name, raw[name], values) for name in names if _varies(raw[name]))
    preparation = Preparation(features, _telling(failing, raw, taken=names))
    if not preparation.columns:
        raise ValueError(f"{values.path}: no feature differs between instances")
    if scale:
        centre, unit = centre_and_unit(preparation.contexts(raw))
        preparation = replace(preparation, centre=tuple(centre.tolist()), unit=tuple(unit.tolist()))
    return preparation.contexts(raw), preparation


def mean_per_instance(
    relation: Relation, names: Sequence[str], instances: Sequence[str]
) -> FloatArray:
    """Return attributes averaged over the rows of each instance, NaN where none has a value."""
    places = {name: place for place, name in enumerate(instances)}
    rows = np.array([places.get(name, -1) for name in relation.instances])
    table = np.full((len(instances), len(names)), math.nan)
    for number, name in enumerate(names):
        column = relation.numbers(name)
        used = (rows >= 0) & ~np.isnan(column)
        count = np.bincount(rows[used], minlength=len(instances))
        total = np.bincount(rows[used], column[used], len(instances))
        table[count > 0, number] = total[count > 0] / count[count > 0]
    return table


def _varies(column: FloatArray) -> bool:
    present = column[~np.isnan(column)]
    return bool(present.size) and bool(present.min() < present.max())


def _feature(name: str, column: FloatArray, values: Relation) -> Feature:
    """Return how a feature is used: by its logarithm if it is very skewed and that helps."""
    skew = _skew(column)
    logarithm = skew > _LARGE_SKEW and _skew(unskewed(column)) < skew
    gap = float(np.nanmedian(unskewed(column) if logarithm else column))
    return Feature(name, values.choices(name), logarithm, gap)


def _skew(column: FloatArray) -> float:
    """Return the size of the third standardised moment of the present values."""
    present = column[~np.isnan(column)]
    # Cubes of large features overflow; in units of the largest they cannot.
    centred = (present - present.mean()) / max(np.abs(present).max(), np.finfo(float).tiny)
    spread = centred.std()
    return abs(float((centred**3).mean() / spread**3)) if spread > 0 else 0.0


def _missing(steps: Mapping[str, Sequence[str]], raw: Mapping[str, FloatArray]) -> list[FailedStep]:
    """Return steps that, as nothing says how they ended, failed where all features are missing."""
    provided = {step: tuple(n for n in listed if n in raw) for step, listed in steps.items()}
    return [FailedStep(f"{step} failed", names) for step, names in provided.items() if names]


def _said_to_fail(instances: Sequence[str], statuses: Relation) -> dict[str, FloatArray]:
    """Return for each step on which instances it failed."""
    failures = {}
    for step in statuses.others((INSTANCE, REPETITION)):
        ended = zip(statuses.instances, statuses.column(step), strict=True)
        # One repetition that went well is enough for values.
        fine = {name for name, status in ended if str(status).lower() == "ok"}
        failures[f"{step} failed"] = np.array([float(name not in fine) for name in instances])
    return failures


def _telling(
    steps: Iterable[FailedStep], raw: Mapping[str, FloatArray], taken: Sequence[str]
) -> tuple[FailedStep, ...]:
    """Return steps that failed on some instances only; of those that fail together, the first."""
    # Steps often need one another: one failure would count as often as there are steps behind it.
    kept: dict[bytes, FailedStep] = {}
    for step in steps:
        if step.name not in taken and _varies(failed := step.of(raw)):
            kept.setdefault(failed.tobytes(), step)
    return tuple(kept.values())


@dataclass(frozen=True, eq=False)
class Instances:
    """New instances."""

    names: tuple[str, ...]  # their instance_id, or else their number, from 1
    contexts: FloatArray  # their prepared features, shape (n, d)
    unused: tuple[str, ...]  # columns of the file that play no part


def read_instances(path: Path, preparation: Preparation) -> Instances:
    """Return the instances in a file of raw features; rows with one id are averaged."""
    sheet = read_sheet(path)
    _check_columns(sheet, preparation)
    relation = _relation(sheet, preparation)
    said = [step.name for step in preparation.steps if step.features is None]
    for name in said:
        for row in np.flatnonzero(~np.isin(relation.numbers(name), [0, 1])).tolist():
            got = relation.column(name)[row]
            raise ValueError(f"{relation.place(row, name)}: 0 or 1 is needed, got {got!r}")
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


def table_relation(table: Any, name: str) -> Relation:
    """Return a table with an instance in each row: a file, a frame, or columns by name."""
    if isinstance(table, str | Path):
        sheet = read_sheet(read_path(table))
        path, names, cells = sheet.path, list(sheet.columns), [list(each) for each in sheet.cells]
        places = list(sheet.places)
    elif hasattr(table, "columns") or isinstance(table, Mapping):
        path, names = Path(name), list(table.columns if hasattr(table, "columns") else table)
        cells = [list(table[each]) for each in names]
        places = [f"row {row}" for row in range(len(cells[0]) if cells else 0)]
    else:
        raise TypeError(f"frame must be a DataFrame, columns by name or a file, got {table!r}")
    cells = [[_cell(cell) for cell in column] for column in cells]
    if INSTANCE not in names:
        names, cells = [*names, INSTANCE], [*cells, [str(row + 1) for row in range(len(places))]]
    texts = [{str(cell) for cell in column if to_number(cell) is None} for column in cells]
    values = [
        tuple(sorted({str(cell) for cell in column if cell is not None}))
        if text - {"None"}
        else None
        for text, column in zip(texts, cells, strict=True)
    ]
    read = [
        [None if cell is None else str(cell) for cell in column] if own else column
        for own, column in zip(values, cells, strict=True)
    ]
    return Relation(
        path, tuple(map(str, names)), tuple(values), tuple(map(tuple, read)), tuple(places)
    )


def _cell(cell: Any) -> Any:
    text = cell.strip() if isinstance(cell, str) else cell
    missing = isinstance(text, float) and math.isnan(text)
    return None if missing or text in ("", "?") else text
