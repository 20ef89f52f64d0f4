"""A scenario's description.txt: what was measured, and how."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextgap.base.names import study_import

_FILE = "description.txt"
_TYPES = ("runtime", "solution_quality")
# Older descriptions leave the question mark bare, which YAML takes for the start of a key.
_BARE_MARK = re.compile(r"^([^#\n]*(?::|-)[ \t]+)\?[ \t\r]*$", re.MULTILINE)
# ... and have one entry per feature step, "feature_step Static: a, b", instead of a tree.
_STEP_ENTRY = re.compile(r"feature_step[ _](.+)")


@dataclass(frozen=True)
class Description:
    """What a scenario's description file says; of several performance measures, the first counts.

    ``measure`` is the column of the runs with the performance, which is a runtime or else a
    solution quality. ``cutoff`` is the seconds after which runs were stopped, infinite where not
    given, and ``steps`` maps each step of the feature computation to the features it provides.
    """

    path: Path
    name: str
    measure: str
    runtime: bool
    maximize: bool
    cutoff: float
    steps: Mapping[str, tuple[str, ...]]


def read_description(folder: Path) -> Description:
    """Return the description in a scenario's folder."""
    path = folder / _FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file; {_what_a_scenario_is()}")
    entries = _read_yaml(path)
    measures = _listed(entries.get("performance_measures"))
    if not measures:
        raise ValueError(f"{path}: performance_measures must name a column of the runs, got none")
    kind = _first(entries, "performance_type", "runtime").lower()
    if kind not in _TYPES:
        raise ValueError(f"{path}: performance_type must be one of {_TYPES}, got {kind!r}")
    maximize = _truth(path, "maximize", _first(entries, "maximize", "false"))
    if kind == "runtime" and maximize:
        raise ValueError(f"{path}: maximize must be false where performance_type is runtime")
    return Description(
        path=path,
        name=str(entries.get("scenario_id") or folder.resolve().name),
        measure=measures[0],
        runtime=kind == "runtime",
        maximize=maximize,
        cutoff=_seconds(path, "algorithm_cutoff_time", entries.get("algorithm_cutoff_time")),
        steps=_read_steps(entries),
    )


def _what_a_scenario_is() -> str:
    return "an ASlib scenario is a folder with description.txt and several .arff files"


def _read_yaml(path: Path) -> dict[str, Any]:
    yaml = study_import("yaml", extra="aslib")
    try:
        text = _BARE_MARK.sub(r"\1null", path.read_text(encoding="utf-8-sig"))
        entries = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error.reason})") from None
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


def _truth(path: Path, name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{path}: {name} must be true or false, got {value!r}")
    return value.lower() == "true"


def _seconds(path: Path, name: str, value: Any) -> float:
    if _is_missing(value):
        return math.inf
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds > 0:
        raise ValueError(f"{path}: {name} must be a positive number of seconds, got {value!r}")
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
