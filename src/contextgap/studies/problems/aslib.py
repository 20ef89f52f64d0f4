"""Reads the files of an ASlib scenario; every error names file, line and attribute."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.base.descriptors import lazy
from contextgap.base.names import study_import
from contextgap.studies.problems.problem import indices
from contextgap.tables.cells import to_number

INSTANCE, REPETITION = "instance_id", "repetition"


@dataclass(frozen=True, eq=False)
class Relation:
    """A table with an instance in each row; an instance may have several rows."""

    path: Path
    cells: Mapping[str, tuple[Any, ...]]  # by attribute; None where a value is missing
    listed: Mapping[str, tuple[str, ...]]  # values of attributes that have no others
    places: Sequence[str]  # what errors call each row, such as "line 9"

    @property
    def names(self) -> list[str]:
        """The attributes."""
        return list(self.cells)

    @lazy
    def instances(self) -> tuple[str, ...]:
        """Which instance each row is about."""
        return self.texts(INSTANCE)

    def column(self, name: str) -> tuple[Any, ...]:
        """Return an attribute's raw values."""
        if name not in self.cells:
            raise ValueError(
                f"{self.path}: there is no attribute {name!r}; the attributes are {self.names}"
            )
        return self.cells[name]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return an attribute whose values are names, none of them missing."""
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
        """Return the names of all attributes but these."""
        return tuple(name for name in self.cells if name not in names)

    def without(self, names: Sequence[str]) -> Relation:
        """Return the table without some attributes."""
        return replace(self, cells={name: self.cells[name] for name in self.others(*names)})

    def place(self, row: int, name: str) -> str:
        """Return what to call a cell in an error."""
        return f"{self.path}, {self.places[row]}, attribute {name!r}"


def read_relation(path: Path) -> Relation:
    """Return the table in an ARFF file that has an attribute ``instance_id``."""
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
    """Return the description in a scenario's folder."""
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
    return Description(
        path=path,
        name=str(entries.get("scenario_id") or folder.resolve().name),
        measure=measures[0],
        runtime=kind == "runtime",
        maximize=maximize,
        cutoff=_cutoff(path, entries.get("algorithm_cutoff_time")),
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


def _cutoff(path: Path, value: Any) -> float:
    if _is_missing(value):
        return math.inf
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds > 0:
        raise ValueError(
            f"{path}: algorithm_cutoff_time must be a positive number of seconds, got {value!r}"
        )
    return seconds


def _read_steps(entries: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    steps = {}
    tree = entries.get("feature_steps")
    if isinstance(tree, dict):
        for name, step in tree.items():
            provides = step.get("provides") if isinstance(step, dict) else step
            steps[str(name)] = _listed(provides)
    for name, value in entries.items():
        entry = _STEP_ENTRY.fullmatch(str(name))
        if entry is not None:
            steps[entry[1].strip()] = _listed(value)
    return steps


PENALTY = 10.0  # PAR10: a run that did not finish counts ten times the cutoff


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
    if description.measure not in relation.names:
        raise ValueError(
            f"{description.path}: performance_measures names {description.measure!r}, which is no "
            f"attribute of {relation.path}; those are {relation.names}"
        )
    return relation.numbers(description.measure)


def _runtimes(
    relation: Relation, description: Description, penalty: float
) -> tuple[FloatArray, float]:
    """Return seconds per run, and what an unfinished run counts as."""
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
