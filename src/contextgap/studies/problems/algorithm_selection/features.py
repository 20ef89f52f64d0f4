"""Turns instance features into contexts, without gaps, skewed or constant columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.algorithm_selection.preparation import (
    FailedStep,
    Feature,
    Preparation,
    unskewed,
)
from contextgap.studies.problems.algorithm_selection.relation import INSTANCE, REPETITION, Relation
from contextgap.studies.problems.maker import scales

_LARGE_SKEW = 2.0  # the exponential distribution's


def read_features(
    instances: Sequence[str],
    values: Relation,
    statuses: Relation | None,
    steps: Mapping[str, Sequence[str]],
    scale: bool,
) -> tuple[FloatArray, Preparation]:
    """Return one context per instance, averaged over repetitions, and how it was made.

    ``statuses`` says how each step of the feature computation ended, ``steps`` which features each
    step provides, and ``scale`` whether all numbers get mean 0 and standard deviation 1.
    """
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
        centre, unit = scales(preparation.contexts(raw))
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
    """Return steps that failed on some instances only; of those that fail together, the first.

    Steps often need one another: without sharing, one failure would count as many times as there
    are steps behind it.
    """
    kept: dict[bytes, FailedStep] = {}
    for step in steps:
        if step.name not in taken and _varies(failed := step.of(raw)):
            kept.setdefault(failed.tobytes(), step)
    return tuple(kept.values())
