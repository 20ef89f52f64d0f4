"""Turns what requests say into what campaigns take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any

from fastapi import Request

from contextgap.base.components import UnknownComponentError, build
from contextgap.base.names import is_path
from contextgap.learner import Learner, StoppingRule
from contextgap.tables.table import read_json
from contextgap.team.campaign.wire import read_label
from contextgap.team.service import bodies
from contextgap.team.service.problems import RefusedError

_SETTINGS = [name for name in signature(Learner).parameters if name != "arms"]


def check_size(request: Request, *given: Any) -> int:
    """Return how many contexts a request has; raise if they or their cells are too many.

    They are taken from what the caller may send in a time.
    """
    service, count = request.scope["contextgap.service"], 0
    most = service.settings
    for value in given:
        if value is None:
            continue
        rows, cells = _size(value)
        if rows > most.rows:
            raise RefusedError(
                413, f"a request may have {most.rows} contexts, got {rows}; send several"
            )
        if cells > most.columns:
            raise RefusedError(413, f"a context may have {most.columns} cells, got {cells}")
        count += rows
    service.rows_rate.take(request.scope["contextgap.caller"].name, count)
    return count


def _size(value: Any) -> tuple[int, int]:
    """Return how many contexts there are in JSON values, and how many cells the longest has."""
    if type(value) is dict and type(value.get("table")) is dict:
        columns, rows = (value["table"].get(part) for part in ("columns", "rows"))
        count, cells = _size(rows) if type(rows) is list else (1, 1)
        return count, max(cells, len(columns) if type(columns) is list else 1)
    if type(value) is list:
        inside = [len(row) for row in value if type(row) in (list, dict)]
        return (len(value), max(inside)) if inside else (1, len(value))
    return 1, len(value) if type(value) is dict else 1


def check_arms(request: Request, count: int) -> None:
    """Raise if a campaign would have too many arms."""
    most = request.scope["contextgap.service"].settings.arms
    if count > most:
        raise RefusedError(413, f"a campaign may have {most} arms, got {count}")


def read_key(request: Request, body: bodies.Keyed) -> str | None:
    """Return the key of a request: in its body, or in its header."""
    header = request.scope["contextgap.caller"].headers.get("idempotency-key")
    if header is not None and body.key is not None and header != body.key:
        raise ValueError(f"key is {body.key!r} in the body and {header!r} in the header")
    return body.key if header is None else header


def read_lease(lease: float | str | None) -> float | None:
    """Return a lease as campaigns take it."""
    return math.inf if lease == "ever" else lease  # type: ignore[return-value]  # text is "ever"


def read_eligible_labels(arms: Any, called: str = "arms") -> Any:
    """Return eligible arms, or a list of them for each context."""
    if arms is None:
        return None
    if not isinstance(arms, list):
        raise TypeError(f"{called} must be a list of labels, got {arms!r}")
    return [
        [read_label(label, called) for label in entry]
        if isinstance(entry, list)
        else read_label(entry, called)
        for entry in arms
    ]


def read_tried(arms: Any) -> Any:
    """Return the arm tried, or one for each context."""
    if isinstance(arms, list):
        return [read_label(label, "arms") for label in arms]
    return None if arms is None else read_label(arms, "arms")


def read_goal(goal: bodies.Goal | None) -> StoppingRule | None:
    """Return when exploring may end."""
    if goal is None:
        return None
    reference = read_json(goal.reference, "reference")
    return StoppingRule(goal.tolerance, share=goal.share, reference=reference)


def read_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a learner; parts are built from their fields."""
    found = dict(settings)
    for name in found:
        if name not in _SETTINGS:
            raise ValueError(f"settings must be among {_SETTINGS}, got {name!r}")
    if isinstance(found.get("method"), str) and is_path(found["method"]):
        raise ValueError(
            f"method must be a name from METHODS, got {found['method']!r}: what a request names is "
            "not imported"
        )
    for name in ("kernel", "width", "method"):
        if isinstance(found.get(name), Mapping):
            found[name] = _built(name, found[name])
    if isinstance(found.get("columns"), Mapping):
        kinds = found["columns"].items()
        found["columns"] = {n: _built(n, k) if isinstance(k, Mapping) else k for n, k in kinds}
    features = found.get("features")
    if isinstance(features, Mapping) and "table" not in features:
        found["features"] = {label: read_json(row) for label, row in features.items()}
    elif features is not None:
        found["features"] = read_json(features, "features")
    return found


def tables_of(settings: Mapping[str, Any]) -> list[Any]:
    """Return the parts of settings whose size is to be checked before they are read."""
    features, columns = settings.get("features"), settings.get("columns")
    by_arm = isinstance(features, Mapping) and "table" not in features
    return [list(features.values()) if by_arm else features, columns]  # type: ignore[union-attr]  # a mapping


def _built(name: str, description: Mapping[str, Any]) -> Any:
    try:
        return build(description)
    except UnknownComponentError:
        kind = description.get("type")
        raise ValueError(f"{name} has the type {kind!r}, which this service does not know") from (
            None
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{name} cannot be made of {dict(description)!r}: {error}") from None
