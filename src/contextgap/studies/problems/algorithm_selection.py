"""Algorithm selection: which solver to run on which instance, and the usual summaries of that.

Raw features become contexts in the same way for a scenario's own instances and for new ones. Errors
about files name file, line and attribute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import lazy, study_import
from contextgap.studies.problems.problem import FixedData, Problem, centre_and_unit, indices
from contextgap.tables.files import read_names, read_path, read_sheet
from contextgap.tables.table import to_number

INSTANCE, REPETITION = "instance_id", "repetition"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Scenario(Problem):
    """Algorithms (the arms) on instances (the contexts), with performance in the field's own unit.

    Parameters
    ----------
    name, contexts, rewards, arms, ordered, columns, observations, schema
        As of ``Problem``.
    performance
        Of each algorithm on each instance, shape (n, A), lower is better: PAR10 or seconds, or
        the quality of solutions, negated where higher is better.
    cutoff
        Seconds after which runs were stopped; infinite where none is known.
    folds
        The number of each row's cross-validation fold, from 1; 0 where it has none.
    instances
        Names of the rows.
    feature_cost
        Seconds that computing each row's features took, 0 where it is not known; no part of
        ``performance``.
    runtime
        Whether performance is a time, so that a reward is −log10 of it.
    preparation
        How raw features become contexts, for instances to come; None where that is not known.

    Examples
    --------
    >>> scenario.arms, scenario.cutoff
    (('fast', 'sure'), 100.0)
    """

    performance: FloatArray
    cutoff: float
    folds: IntArray
    instances: tuple[str, ...]
    feature_cost: FloatArray = None  # type: ignore[assignment]  # as with a problem's arms
    runtime: bool = True
    preparation: Preparation | None = None

    _facts: ClassVar[Mapping[str, Any]] = {
        "performance": np.float64,
        "folds": np.intp,
        "feature_cost": np.float64,
        "instances": np.object_,
    }

    def __post_init__(self) -> None:
        shapes = np.shape(self.rewards), np.shape(self.performance)
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"performance must have the shape of rewards, {shapes[0]}, got {shapes[1]}"
            )
        if self.feature_cost is None:
            checks.settle(self, feature_cost=np.zeros(len(self.rewards)))
        super().__post_init__()
        checks.settle(self, instances=tuple(np.asarray(self.instances).tolist()))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        solvers: Sequence[str],
        *,
        cutoff: float | None = None,
        name: str = "table",
        folds: Any = None,
    ) -> Scenario:
        """Return the scenario of a table: a row per instance, its features and solvers' results.

        .. versionadded:: 0.3

        Parameters
        ----------
        frame
            A DataFrame, columns by name, or a .csv or .parquet file. All columns but those of
            solvers are features, text being categories; ``instance_id``, if it is there, has names.
        solvers
            The columns with what each solver reached. A cell that is missing was not run, and
            counts as a run that failed.
        cutoff
            Seconds after which runs were stopped: results are times then, lower is better, and one
            above the cutoff is a run that failed. None for scores, of which higher is better.
        name
            What to call it.
        folds
            The number of each row's cross-validation fold, from 1; dealt at random by default.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 2.0], "fast": [3, 80], "sure": [5, 6]})
        >>> len(cg.problems.Scenario.from_frame(frame, ["fast", "sure"], cutoff=100))
        2
        """
        relation = table_relation(frame, name)
        arms = tuple(read_names("solvers", solvers))
        if len(arms) < 2:
            raise ValueError(f"solvers must be at least two columns, got {list(arms)}")
        instances = relation.instances
        if len(set(instances)) < len(instances):
            raise ValueError(f"{relation.path}: {INSTANCE} must name every row differently")
        results = np.column_stack([relation.numbers(arm, text=False) for arm in arms])
        if cutoff is None:
            performance = 0.0 - results  # subtracted, not negated, to avoid -0
            worst = 0.0 if np.isnan(results).all() else np.nanmax(performance)
            performance = np.where(np.isnan(results), worst, performance)
        else:
            limit = checks.positive("cutoff", cutoff, "seconds after which runs were stopped")
            if (results < 0).any():
                row, column = np.argwhere(results < 0)[0].tolist()
                raise ValueError(f"{relation.place(row, arms[column])}: the time is negative")
            performance = np.where(results <= limit, results, PENALTY * limit)
        contexts, preparation = read_features(instances, relation.without(arms), None, {}, True)
        return cls(
            name=name,
            contexts=contexts,
            rewards=_rewards(performance, cutoff is not None),
            arms=arms,
            columns=preparation.columns,
            performance=performance,
            cutoff=math.inf if cutoff is None else float(cutoff),
            folds=np.zeros(len(instances), dtype=np.intp) if folds is None else folds,
            instances=instances,
            runtime=cutoff is not None,
            preparation=preparation,
        )


def single_best(scenario: Scenario) -> int:
    return int(scenario.performance.mean(axis=0).argmin())


def selected_performance(scenario: Scenario, arms: Any) -> FloatArray:
    """Return the performance of one pick per instance, an index 0..A-1, or of one for all."""
    picks = np.broadcast_to(np.asarray(arms), (len(scenario),)) if np.ndim(arms) == 0 else arms
    scenario.regret(picks)  # raises if these are not picks
    return np.asarray(scenario.performance[np.arange(len(scenario)), picks])


def closed_gap(scenario: Scenario, arms: Any, *, train: Scenario | None = None) -> float:
    """Return which share of the gap between single and virtual best solver the picks close.

    (SBS − selected) / (SBS − VBS) in mean performance: 1 for perfect picks, 0 for picks as good as
    the single best solver, negative for worse ones; NaN where there is no gap. The single best
    solver is chosen on ``train``, by default on the scenario.
    """
    single = selected_performance(scenario, single_best(scenario if train is None else train))
    gap = single.mean() - scenario.performance.min(axis=1).mean()
    if gap == 0:
        return math.nan
    return float((single.mean() - selected_performance(scenario, arms).mean()) / gap)


def folds(scenario: Scenario) -> Iterator[tuple[Scenario, Scenario]]:
    """Yield a training and a test part for each of the scenario's cross-validation folds.

    Instances without a fold are trained on and never tested. A scenario that has no folds at all
    is dealt into ten, always the same.
    """
    numbers = scenario.folds
    if not numbers.any():
        numbers = np.random.default_rng(0).permutation(len(scenario)) % 10 + 1
    present = np.unique(numbers[numbers > 0])
    if len(scenario) < 2 or (len(present) == 1 and (numbers > 0).all()):
        raise ValueError(f"{scenario.name!r} has one fold only, which leaves nothing to train on")
    for number in present:
        test = numbers == number
        yield scenario.take(~test), scenario.take(test)


PENALTY = 10.0  # PAR10: a run that did not finish counts ten times the cutoff
SHORTEST = 1e-3
"""Runtimes below this many seconds count as this many: solvers' clocks resolve no more."""

_PENALTIES = {"par10": PENALTY, "raw": 1.0}


@dataclass(frozen=True)
class AlgorithmSelection(FixedData):
    """A scenario of the Algorithm Selection Library (ASlib): a folder of ARFF files.

    The arms are the algorithms, the rows the instances, the contexts their features. Where
    performance is a runtime t, the reward is −log10(t), with t not below ``SHORTEST``; where it is
    the quality of a solution, the reward is that quality, negated where lower is better.
    Repetitions are averaged before. A run that is missing counts as one that failed.

    Features that are the same for all instances are left out; very skewed ones become
    sign(x) · ln(1 + abs(x)); missing values get the median of those present. A column "... failed"
    says on which instances a step of the feature computation did not end well. The rewards play no
    part in any of this, but the features of all instances do, those to be tested on included. What
    computing the features costs is kept beside the performance, not added to it.

    Parameters
    ----------
    folder
        Where description.txt, algorithm_runs.arff and feature_values.arff are; and, if there are
        any, feature_runstatus.arff, feature_costs.arff and cv.arff.
    performance
        What a run that failed or exceeded the cutoff counts as: ten times the cutoff ("par10")
        or the cutoff ("raw"). Where performance is the quality of a solution this has no effect,
        and a run without a quality counts as the worst one seen.
    scale
        Whether to give each feature mean 0 and standard deviation 1 over all instances, which
        suits kernels with one bandwidth for all features.

    See Also
    --------
    problems.Scenario.from_frame : Reads a table of your own.

    Examples
    --------
    >>> scenarios = cg.problems.AlgorithmSelection("SAT11-RAND", performance="raw")
    >>> scenarios.performance
    'raw'
    """

    folder: str | Path
    _: KW_ONLY
    performance: str = "par10"
    scale: bool = True

    def __post_init__(self) -> None:
        checks.settle(self, folder=read_path(self.folder))
        if self.performance not in _PENALTIES:
            raise ValueError(
                f"performance must be one of {sorted(_PENALTIES)}, got {self.performance!r}"
            )

    def load(self) -> Scenario:
        folder = Path(self.folder)
        description = read_description(folder)
        values = read_relation(folder / "feature_values.arff")
        statuses = _read_optional(folder / "feature_runstatus.arff")
        parts = _read_optional(folder / "cv.arff")
        known = {name for table in (values, statuses, parts) if table for name in table.instances}
        instances, algorithms, performance = read_runs(
            read_relation(folder / "algorithm_runs.arff"),
            description,
            known,
            _PENALTIES[self.performance],
        )
        contexts, preparation = read_features(
            instances, values, statuses, description.steps, self.scale
        )
        costs: Any = _read_optional(folder / "feature_costs.arff")
        if costs is not None:  # of all steps of the feature computation
            steps = costs.others(INSTANCE, REPETITION)
            costs = np.nansum(mean_per_instance(costs, steps, instances), axis=1)
        return Scenario(
            name=description.name,
            contexts=contexts,
            rewards=_rewards(performance, description.runtime),
            arms=algorithms,
            columns=preparation.columns,
            performance=performance,
            cutoff=description.cutoff,
            folds=_fold_numbers(parts, instances),
            instances=instances,
            feature_cost=costs,
            runtime=description.runtime,
            preparation=preparation,
        )


def _read_optional(path: Path) -> Relation | None:
    return read_relation(path) if path.exists() else None


def _rewards(performance: FloatArray, runtime: bool) -> FloatArray:
    # Subtracted, not negated, to avoid -0.
    return 0.0 - (np.log10(np.maximum(performance, SHORTEST)) if runtime else performance)


def _fold_numbers(parts: Relation | None, instances: Sequence[str]) -> IntArray:
    """Return the fold of each instance, by the first repetition of the cross-validation."""
    numbers = np.zeros(len(instances), dtype=np.intp)
    if parts is None:
        return numbers
    folds = parts.numbers("fold")
    repetitions = np.ones(len(folds))
    if REPETITION in parts.cells:
        repetitions = np.nan_to_num(parts.numbers(REPETITION), nan=1.0)
    places = {name: place for place, name in enumerate(instances)}
    for row in np.flatnonzero(repetitions == repetitions.min()):
        fold = folds[row]
        if not (fold >= 1 and fold == int(fold)):
            raise ValueError(
                f"{parts.place(int(row), 'fold')}: a whole number from 1 is needed, got {fold}"
            )
        if parts.instances[row] in places:
            numbers[places[parts.instances[row]]] = int(fold)
    return numbers


@dataclass(frozen=True)
class Feature:
    name: str
    choices: tuple[str, ...] | None  # names that stand for 0, 1, ...; None for numbers
    logarithm: bool  # whether a value x becomes sign(x) · ln(1 + abs(x))
    gap: float  # the number where the value is missing

    def of(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        column = unskewed(raw[self.name]) if self.logarithm else raw[self.name]
        return np.where(np.isnan(column), self.gap, column)


@dataclass(frozen=True)
class FailedStep:
    """A number of the context: 1 where a step of the feature computation failed, else 0."""

    name: str
    features: tuple[str, ...] | None  # it failed where all are missing; None: a column says so

    def of(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        if self.features is None:
            return raw[self.name]
        missing = [np.isnan(raw[name]) for name in self.features]
        return np.asarray(np.all(missing, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Preparation:
    features: tuple[Feature, ...]
    steps: tuple[FailedStep, ...]  # their numbers come behind those of the features
    centre: tuple[float, ...] | None = None  # what is subtracted from each number
    unit: tuple[float, ...] | None = None  # what it is then divided by

    @property
    def _parts(self) -> tuple[Feature | FailedStep, ...]:
        return (*self.features, *self.steps)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(part.name for part in self._parts)

    @property
    def needed(self) -> tuple[str, ...]:
        behind = [name for step in self.steps for name in step.features or [step.name]]
        return tuple(dict.fromkeys([*(feature.name for feature in self.features), *behind]))

    def contexts(self, raw: Mapping[str, FloatArray]) -> FloatArray:
        numbers = np.column_stack([part.of(raw) for part in self._parts])
        if self.centre is None or self.unit is None:
            return numbers
        return np.asarray((numbers - np.array(self.centre)) / np.array(self.unit))

    @classmethod
    def restored(cls, described: Mapping[str, Any]) -> Self:
        """Return a preparation from what JSON made of its ``dataclasses.asdict``."""

        def fixed(value: Any) -> Any:
            return tuple(value) if isinstance(value, list) else value

        features, steps = (
            [{key: fixed(value) for key, value in each.items()} for each in described[name]]
            for name in ("features", "steps")
        )
        return cls(
            tuple(Feature(**each) for each in features),
            tuple(FailedStep(**each) for each in steps),
            fixed(described["centre"]),
            fixed(described["unit"]),
        )


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
    names = values.others(INSTANCE, REPETITION)
    raw = dict(zip(names, mean_per_instance(values, names, instances).T, strict=True))
    if statuses is None:  # nothing says how steps ended: they failed where all features are missing
        provided = {step: tuple(n for n in listed if n in raw) for step, listed in steps.items()}
        failing = [FailedStep(f"{step} failed", own) for step, own in provided.items() if own]
    else:
        failures = _said_to_fail(instances, statuses)
        failing = [FailedStep(name, None) for name in failures]
        raw = failures | raw
    # Steps often need one another: one failure would count as often as there are steps behind it.
    # So steps count that failed on some instances only; of those that fail together, the first.
    kept: dict[bytes, FailedStep] = {}
    for each in failing:
        if each.name not in names and _varies(failed := each.of(raw)):
            kept.setdefault(failed.tobytes(), each)
    features = tuple(_feature(name, raw[name], values) for name in names if _varies(raw[name]))
    preparation = Preparation(features, tuple(kept.values()))
    if not preparation.columns:
        raise ValueError(f"{values.path}: no feature differs between instances")
    if scale:
        centre, unit = centre_and_unit(preparation.contexts(raw))
        preparation = replace(preparation, centre=tuple(centre.tolist()), unit=tuple(unit.tolist()))
    return preparation.contexts(raw), preparation


def mean_per_instance(
    relation: Relation, names: Sequence[str], instances: Sequence[str]
) -> FloatArray:
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


def _said_to_fail(instances: Sequence[str], statuses: Relation) -> dict[str, FloatArray]:
    """Return for each step on which instances it failed."""
    failures = {}
    for step in statuses.others(INSTANCE, REPETITION):
        ended = zip(statuses.instances, statuses.column(step), strict=True)
        # One repetition that went well is enough for values.
        fine = {name for name, status in ended if str(status).lower() == "ok"}
        failures[f"{step} failed"] = np.array([float(name not in fine) for name in instances])
    return failures


@dataclass(frozen=True, eq=False)
class Instances:
    names: tuple[str, ...]  # their instance_id, or else their number, from 1
    contexts: FloatArray  # their prepared features, shape (n, d)
    unused: tuple[str, ...]  # columns of the file that play no part


def read_instances(path: Path, preparation: Preparation) -> Instances:
    sheet, needed = read_sheet(path), preparation.needed
    said = [step.name for step in preparation.steps if step.features is None]
    if missing := [name for name in needed if name not in sheet.columns]:
        hint = f", and {len(missing) - 1} more of {len(needed)} columns" if missing[1:] else ""
        if missing[0] in said:
            hint = ": 1 where that step of the feature computation failed, 0 where it went well"
        raise ValueError(f"{sheet.path}: there is no column {missing[0]!r}{hint}")
    choices = {each.name: each.choices for each in preparation.features if each.choices}
    columns = dict(zip(sheet.columns, sheet.cells, strict=True))
    relation = _relation(sheet.path, columns, sheet.places, choices)
    for name in said:
        for row in np.flatnonzero(~np.isin(relation.numbers(name), [0, 1])).tolist():
            got = relation.column(name)[row]
            raise ValueError(f"{relation.place(row, name)}: 0 or 1 is needed, got {got!r}")
    names = tuple(dict.fromkeys(relation.instances))
    raw = dict(zip(needed, mean_per_instance(relation, needed, names).T, strict=True))
    # One repetition that went well is enough for values.
    raw |= {name: np.floor(raw[name]) for name in said}
    used = {*needed, INSTANCE, REPETITION}
    unused = tuple(column for column in sheet.columns if column not in used)
    return Instances(names, preparation.contexts(raw), unused)


def table_relation(table: Any, name: str) -> Relation:
    """Return a table with an instance in each row: a file, a frame, or columns by name."""
    if isinstance(table, str | Path):
        sheet = read_sheet(read_path(table))
        columns = dict(zip(sheet.columns, sheet.cells, strict=True))
        return _relation(sheet.path, columns, sheet.places)
    if not (hasattr(table, "columns") or isinstance(table, Mapping)):
        raise TypeError(f"frame must be a DataFrame, columns by name or a file, got {table!r}")
    columns = {str(each): list(table[each]) for each in getattr(table, "columns", table)}
    rows = len(next(iter(columns.values()), []))
    return _relation(Path(name), columns, [f"row {row}" for row in range(rows)])


def _relation(
    path: Path,
    columns: Mapping[str, Sequence[Any]],
    places: Sequence[str],
    choices: Mapping[str, tuple[str, ...]] | None = None,
) -> Relation:
    """Return a table whose instances are numbered from 1 if they have no names.

    Unless the ``choices`` of attributes are given, those of an attribute with text are its words.
    """
    cells = {name: tuple(map(_cell, column)) for name, column in columns.items()}
    cells.setdefault(INSTANCE, tuple(str(row) for row in range(1, len(places) + 1)))
    if choices is not None:
        return Relation(path, cells, choices, places)
    found = {}
    for name, column in cells.items():
        known = [cell for cell in column if cell is not None]
        if any(to_number(cell) is None for cell in known):
            found[name] = tuple(sorted({str(cell) for cell in known}))
            cells[name] = tuple(None if cell is None else str(cell) for cell in column)
    return Relation(path, cells, found, places)


def _cell(cell: Any) -> Any:
    text = cell.strip() if isinstance(cell, str) else cell
    missing = isinstance(text, float) and math.isnan(text)
    return None if missing or text in ("", "?") else text


@dataclass(frozen=True, eq=False)
class Relation:
    """A table with an instance in each row; an instance may have several rows."""

    path: Path
    cells: Mapping[str, tuple[Any, ...]]  # by attribute; None where a value is missing
    listed: Mapping[str, tuple[str, ...]]  # values of attributes that have no others
    places: Sequence[str]  # what errors call each row, such as "line 9"

    @lazy
    def instances(self) -> tuple[str, ...]:
        """Which instance each row is about."""
        return self.texts(INSTANCE)

    def column(self, name: str) -> tuple[Any, ...]:
        if name not in self.cells:
            raise ValueError(
                f"{self.path}: there is no attribute {name!r}; the attributes are "
                f"{list(self.cells)}"
            )
        return self.cells[name]

    def texts(self, name: str) -> tuple[str, ...]:
        column = self.column(name)
        if None in column:
            place = self.place(column.index(None), name)
            raise ValueError(f"{place}: a name is needed, the value is missing")
        return tuple(map(str, column))

    def numbers(self, name: str, *, text: bool = True) -> FloatArray:
        """Return floats, NaN where missing or infinite; names, unless forbidden, become places."""
        column, choices = self.column(name), self.choices(name) if text else None
        known = {choice: float(place) for place, choice in enumerate(choices or ())}
        wanted = "a number" if choices is None else f"one of {list(choices)}"
        numbers = np.full(len(column), math.nan)
        for row, cell in enumerate(column):
            if cell is None:
                continue
            number = to_number(cell) if choices is None else known.get(cell)
            if number is None:
                raise ValueError(f"{self.place(row, name)}: {wanted} is needed, got {cell!r}")
            if math.isfinite(number):
                numbers[row] = number
        return numbers

    def choices(self, name: str) -> tuple[str, ...] | None:
        """Return the names that are an attribute's values; None where these are numbers."""
        listed = self.listed.get(name, ())
        return None if all(to_number(choice) is not None for choice in listed) else listed

    def others(self, *names: str) -> tuple[str, ...]:
        return tuple(name for name in self.cells if name not in names)

    def without(self, names: Sequence[str]) -> Relation:
        return replace(self, cells={name: self.cells[name] for name in self.others(*names)})

    def place(self, row: int, name: str) -> str:
        return f"{self.path}, {self.places[row]}, attribute {name!r}"


def read_relation(path: Path) -> Relation:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file, which an ASlib scenario must have")
    # liac-arff wants blanks, not tabs, behind @attribute.
    lines = [
        line.replace("\t", " ") if line.lstrip().startswith("@") else line
        for line in _read_text(path).split("\n")
    ]
    loaded = _parse(path, lines)
    attributes, rows = loaded["attributes"], loaded["data"]
    if not rows:
        raise ValueError(f"{path}: there is no row behind @data")
    # Where the rows stand, by the parser's own rule of what a row is.
    start = next(n for n, line in enumerate(lines) if line.strip().upper().startswith("@DATA"))
    behind = enumerate(lines[start + 1 :], start + 2)
    places = [f"line {n}" for n, line in behind if line.strip() and line.strip()[0] != "%"]
    cells = zip((name for name, _ in attributes), zip(*rows, strict=True), strict=True)
    listed = {name: tuple(kind) for name, kind in attributes if isinstance(kind, list)}
    relation = Relation(path, dict(cells), listed, places)
    relation.column(INSTANCE)
    return relation


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error.reason})") from None


def _parse(path: Path, lines: Sequence[str]) -> Any:
    arff = study_import("arff", extra="aslib")
    try:
        return arff.load(iter(lines))
    except arff.ArffException as error:
        try:
            problem = str(error)
        except (TypeError, ValueError):  # liac-arff formats a message that has the file's % in it
            problem = type(error).__name__
        raise ValueError(f"{path}, line {error.line}: not ARFF ({problem})") from None
    except ValueError as error:
        raise ValueError(f"{path}: not ARFF ({error})") from None


_FILE = "description.txt"
_TYPES = ("runtime", "solution_quality")
# Older descriptions leave the question mark bare, which YAML takes for the start of a key.
_BARE_MARK = re.compile(r"^([^#\n]*(?::|-)[ \t]+)\?[ \t\r]*$", re.MULTILINE)
# ... and have one entry per feature step, "feature_step Static: a, b", instead of a tree.
_STEP_ENTRY = re.compile(r"feature_step[ _](.+)")


@dataclass(frozen=True)
class Description:
    """What a description file says; of several performance measures, the first counts."""

    path: Path
    name: str
    measure: str  # the column of the runs with the performance
    runtime: bool  # else a solution quality
    maximize: bool
    cutoff: float  # seconds after which runs were stopped; infinite where not given
    steps: Mapping[str, tuple[str, ...]]  # of the feature computation: what each provides


def read_description(folder: Path) -> Description:
    path = folder / _FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: there is no such file; an ASlib scenario is a folder with description.txt "
            "and several .arff files"
        )
    entries = _read_yaml(path)
    measures = _listed(entries.get("performance_measures"))
    if not measures:
        raise ValueError(f"{path}: performance_measures must name a column of the runs, got none")
    kind = _first(entries, "performance_type", "runtime").lower()
    if kind not in _TYPES:
        raise ValueError(f"{path}: performance_type must be one of {_TYPES}, got {kind!r}")
    said = _first(entries, "maximize", "false")
    if said.lower() not in ("true", "false"):
        raise ValueError(f"{path}: maximize must be true or false, got {said!r}")
    maximize = said.lower() == "true"
    if kind == "runtime" and maximize:
        raise ValueError(f"{path}: maximize must be false where performance_type is runtime")
    given: Any = entries.get("algorithm_cutoff_time")
    cutoff = math.inf
    if not _is_missing(given):
        try:
            cutoff = float(given)
        except (TypeError, ValueError):
            cutoff = math.nan
    if not cutoff > 0:
        raise ValueError(
            f"{path}: algorithm_cutoff_time must be a positive number of seconds, got {given!r}"
        )
    return Description(
        path=path,
        name=str(entries.get("scenario_id") or folder.resolve().name),
        measure=measures[0],
        runtime=kind == "runtime",
        maximize=maximize,
        cutoff=cutoff,
        steps=_read_steps(entries),
    )


def _read_yaml(path: Path) -> dict[str, Any]:
    yaml = study_import("yaml", extra="aslib")
    try:
        entries = yaml.safe_load(_BARE_MARK.sub(r"\1null", _read_text(path)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        problem = getattr(error, "problem", None) or error
        raise ValueError(f"{path}{place}: not YAML ({problem})") from None
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: entries such as 'scenario_id: ...' are needed, got {entries!r}")
    return entries


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in ("", "?"))


def _listed(value: Any) -> tuple[str, ...]:
    """Return what may be a list, one value, or several with commas between them."""
    if isinstance(value, str):
        value = value.split(",")
    values = value if isinstance(value, list) else [value]
    return tuple(str(entry).strip() for entry in values if not _is_missing(entry))


def _first(entries: dict[str, Any], name: str, default: str) -> str:
    return (*_listed(entries.get(name)), default)[0]


def _read_steps(entries: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    tree = entries.get("feature_steps")
    steps = {
        str(name): _listed(step.get("provides") if isinstance(step, dict) else step)
        for name, step in (tree.items() if isinstance(tree, dict) else ())
    }
    for name, value in entries.items():
        if entry := _STEP_ENTRY.fullmatch(str(name)):
            steps[entry[1].strip()] = _listed(value)
    return steps


def read_runs(
    relation: Relation, description: Description, known: Container[str], penalty: float
) -> tuple[tuple[str, ...], tuple[str, ...], FloatArray]:
    """Return instances and algorithms, in the order of their first run, and their performance.

    Lower performance is better; unfinished runs count as ``penalty`` times the cutoff.
    """
    for row, name in enumerate(relation.instances):
        if name not in known:
            raise ValueError(
                f"{relation.place(row, INSTANCE)}: the instance {name!r} is unknown; "
                "neither features nor cross-validation folds mention it"
            )
    names = relation.texts("algorithm")
    instances = tuple(dict.fromkeys(relation.instances))
    algorithms = tuple(dict.fromkeys(names))
    if len(algorithms) < 2:
        raise ValueError(f"{relation.path}: runs of at least two algorithms are needed")
    if description.runtime:
        values, failure = _runtimes(relation, description, penalty)
    else:
        values, failure = _qualities(relation, description)
    cells = indices(relation.instances, instances) * len(algorithms) + indices(names, algorithms)
    size = len(instances) * len(algorithms)
    total = np.bincount(cells, values, size)
    count = np.bincount(cells, minlength=size)
    if math.isinf(failure) and not count.all():
        raise ValueError(_no_cutoff(description, "some algorithms were not run on all instances"))
    mean = np.where(count > 0, total / np.maximum(count, 1), failure)
    return instances, algorithms, mean.reshape(len(instances), len(algorithms))


def _measured(relation: Relation, description: Description) -> FloatArray:
    if description.measure not in relation.cells:
        raise ValueError(
            f"{description.path}: performance_measures names {description.measure!r}, which is no "
            f"attribute of {relation.path}; those are {list(relation.cells)}"
        )
    return relation.numbers(description.measure)


def _runtimes(
    relation: Relation, description: Description, penalty: float
) -> tuple[FloatArray, float]:
    seconds = _measured(relation, description)
    finished = np.array([str(status).lower() == "ok" for status in relation.column("runstatus")])
    for problem, wrong in (("missing", np.isnan(seconds)), ("negative", seconds < 0)):
        bad = np.flatnonzero(finished & wrong)
        if bad.size:
            raise ValueError(
                f"{relation.place(int(bad[0]), description.measure)}: the runtime is {problem}, "
                "but the run's status is ok"
            )
    # A crash after a second is not a fast run: failed runs count by the cutoff, not their time.
    finished &= ~(seconds > description.cutoff)
    failure = penalty * description.cutoff
    if math.isinf(failure) and not finished.all():
        row = int(np.flatnonzero(~finished)[0])
        raise ValueError(
            _no_cutoff(description, f"the run in {relation.places[row]} of {relation.path} ")
            + "did not finish"
        )
    return np.where(finished, seconds, failure), failure


def _no_cutoff(description: Description, why: str) -> str:
    return f"{description.path}: algorithm_cutoff_time is needed, since {why}"


def _qualities(relation: Relation, description: Description) -> tuple[FloatArray, float]:
    """Return the quality per run, lower is better, and what a run without one counts as."""
    quality = _measured(relation, description)
    present = ~np.isnan(quality)
    if not present.any():
        raise ValueError(f"{relation.path}: all values of {description.measure!r} are missing")
    # Subtracted, not negated, to avoid -0.
    quality = 0.0 - quality if description.maximize else quality
    worst = float(quality[present].max())
    return np.where(present, quality, worst), worst
