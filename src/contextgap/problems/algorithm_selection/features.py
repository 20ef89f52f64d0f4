"""Turns instance features into contexts, without gaps, skewed or constant columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray
from contextgap.problems.algorithm_selection.relation import INSTANCE, REPETITION, Relation

_LARGE_SKEW = 2.0  # the exponential distribution's


def read_features(
    instances: Sequence[str],
    values: Relation,
    statuses: Relation | None,
    steps: Mapping[str, Sequence[str]],
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return one context per instance, averaged over repetitions, and its columns' names.

    ``statuses`` says how each step of the feature computation ended, and ``steps`` which features
    each step provides.
    """
    names = values.others((INSTANCE, REPETITION))
    table = mean_per_instance(values, names, instances)
    columns = {
        name: _imputed(_unskewed(column))
        for name, column in zip(names, table.T, strict=True)
        if _varies(column)
    }
    gaps = {name: np.isnan(column) for name, column in zip(names, table.T, strict=True)}
    columns |= _failed_steps(_failures(instances, statuses, steps, gaps), taken=names)
    if not columns:
        raise ValueError(f"{values.path}: no feature differs between instances")
    return np.column_stack(list(columns.values())), tuple(columns)


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


def _unskewed(column: FloatArray) -> FloatArray:
    """Return sign · ln(1 + |x|) where the values are very skewed and that makes them less so."""
    skew = _skew(column)
    if skew <= _LARGE_SKEW:
        return column
    compressed: FloatArray = np.sign(column) * np.log1p(np.abs(column))
    return compressed if _skew(compressed) < skew else column


def _skew(column: FloatArray) -> float:
    """Return the size of the third standardised moment of the present values."""
    present = column[~np.isnan(column)]
    # Cubes of large features overflow; in units of the largest they cannot.
    centred = (present - present.mean()) / max(np.abs(present).max(), np.finfo(float).tiny)
    spread = centred.std()
    return abs(float((centred**3).mean() / spread**3)) if spread > 0 else 0.0


def _imputed(column: FloatArray) -> FloatArray:
    return np.where(np.isnan(column), np.nanmedian(column), column)


def _failures(
    instances: Sequence[str],
    statuses: Relation | None,
    steps: Mapping[str, Sequence[str]],
    gaps: Mapping[str, NDArray[np.bool_]],
) -> dict[str, NDArray[np.bool_]]:
    """Return for each step on which instances it failed."""
    if statuses is None:
        # Without information on how steps ended, a step failed where all its features are missing.
        provided = {
            step: [gaps[name] for name in listed if name in gaps] for step, listed in steps.items()
        }
        return {step: np.all(columns, axis=0) for step, columns in provided.items() if columns}
    failures = {}
    for step in statuses.others((INSTANCE, REPETITION)):
        ended = zip(statuses.instances, statuses.column(step), strict=True)
        # One repetition that went well is enough for values.
        fine = {name for name, status in ended if str(status).lower() == "ok"}
        failures[step] = np.array([name not in fine for name in instances])
    return failures


def _failed_steps(
    failures: Mapping[str, NDArray[np.bool_]], taken: Sequence[str]
) -> dict[str, FloatArray]:
    """Return a column per step that failed on some instances; steps that fail together share one.

    Steps often need one another: without sharing, one failure would count as many times as there
    are steps behind it.
    """
    columns: dict[bytes, tuple[str, FloatArray]] = {}
    for step, failed in failures.items():
        name = f"{step} failed"
        if failed.any() and not failed.all() and name not in taken:
            columns.setdefault(failed.tobytes(), (name, failed.astype(np.float64)))
    return dict(columns.values())
