"""What requests may say: fields, their types and meaning, and what campaigns take instead."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from contextgap.base.components import UnknownComponentError, build
from contextgap.base.names import is_path
from contextgap.learner import Learner
from contextgap.tables.table import read_json
from contextgap.team.campaign.codec import read_label
from contextgap.team.service.access import RefusedError
from contextgap.team.service.routing import UNKNOWN_FIELD, StrictRequest

_SETTINGS = [name for name in signature(Learner).parameters if name != "arms"]
_CELL: dict[str, Any] = {
    "description": "A number, text, true or false; null if missing; a date as {date: ...}.",
    "anyOf": [
        {"type": "number"},
        {"type": "string"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "object", "properties": {"date": {"type": "string", "format": "date"}}},
        {"type": "object", "properties": {"time": {"type": "string", "format": "date-time"}}},
    ],
}


def _or_several(one: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [one, {"type": "array", "items": one}]}


_NAMED = {"type": "object", "additionalProperties": _CELL}
_ROW = {"type": "array", "items": _CELL}
_ONE = {"anyOf": [_NAMED, _ROW]}
_NAMES = {"type": "array", "items": {"type": "string"}}
_CELLS = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {"columns": _NAMES, "rows": {"type": "array", "items": _ROW}, "levels": _NAMES},
}
_TABLE = {"type": "object", "required": ["table"], "properties": {"table": _CELLS}}
_SEVERAL = {"anyOf": [{"type": "array", "items": _ONE}, _TABLE]}
_LABEL = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]}
_LABELS = {"type": "array", "items": _LABEL}

# Read by the campaign itself, whose errors say more than a schema's.
OneContext = Annotated[Any, WithJsonSchema(_ONE)]
Contexts = Annotated[Any, WithJsonSchema({"anyOf": [*_ONE["anyOf"], *_SEVERAL["anyOf"]]})]
Table = Annotated[Any, WithJsonSchema(_SEVERAL)]
Label = Annotated[Any, WithJsonSchema(_LABEL)]
Labels = Annotated[Any, WithJsonSchema(_LABELS)]
Eligible = Annotated[Any, WithJsonSchema(_or_several(_LABELS))]
Tried = Annotated[Any, WithJsonSchema(_or_several(_LABEL))]
Trials = Annotated[Any, WithJsonSchema(_or_several({"type": "integer"}))]
Numbers = Annotated[Any, WithJsonSchema(_or_several({"type": "number"}))]
Flags = Annotated[Any, WithJsonSchema(_or_several({"type": "boolean"}))]
Lease = Annotated[
    float | Literal["ever"],
    Field(description='Seconds that a pick counts as pending, or "ever".'),
]
Key = Annotated[
    str | None,
    Field(description="Names the request: sent again with the same key, nothing happens again."),
]


class Body(BaseModel):
    """A request; other fields than these are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, content: Any) -> Any:
        fields = cls.model_fields
        for name in content if isinstance(content, dict) else ():
            if name not in fields:
                said = {"field": name, "fields": ", ".join(fields)}
                raise PydanticCustomError(
                    UNKNOWN_FIELD, "is not a field of this request; its fields are {fields}", said
                )
        return content


class Keyed(Body):
    """A request that changes something."""

    key: Key = None


class Ask(Keyed):
    """Ask for arms to try."""

    contexts: Contexts = Field(None, description="One context, or several as a batch.")
    pool: Table = Field(None, description="Instead: contexts one of which may be chosen.")
    arms: Eligible = Field(None, description="The eligible arms; all by default.")
    once: bool = Field(False, description="From a pool: never a context and an arm again.")
    lease: Lease | None = None


class Tell(Keyed):
    """Tell rewards of trials, or of outside data."""

    trial: Trials = Field(None, description="The trial's number, or several.")
    reward: Numbers = Field(None, description="The reward, or one for each.")
    contexts: Contexts = Field(None, description="For outside data: where it was tried.")
    arms: Tried = Field(None, description="For outside data: what was tried.")
    eligible: Eligible = Field(None, description="For outside data: what could have been tried.")
    noise: Numbers = Field(None, description="The standard error of the reward, or one for each.")
    cost: Numbers = Field(None, description="What the trial cost, or one for each.")
    censored: Flags = Field(
        None,
        description="Whether the true reward is at most, or the true cost at least, the given one.",
    )


class Retract(Keyed):
    """Take a reward back."""

    why: str = Field(description="The reason, for those who read the log.")


class Correct(Retract):
    """Replace a reward."""

    reward: Annotated[Any, WithJsonSchema({"type": "number"})] = Field(
        description="The right reward."
    )


class Recommend(Body):
    """Ask for arms to deploy."""

    contexts: Contexts = Field(description="One context, or several.")
    arms: Eligible = Field(None, description="The eligible arms; all by default.")


class Audit(Body):
    """Ask which rows to measure."""

    contexts: Contexts = Field(description="Contexts that the policy met recently.")
    k: int = Field(20, description="How many rows to draw.", ge=1, le=10_000)
    costs: list[float] | None = Field(None, description="What each costs to measure.")
    against: bool = Field(False, description="Whether to measure the best single arm, too.")


class Audited(Body):
    """Tell rewards measured in deployment."""

    contexts: Contexts = Field(description="Where they were measured.")
    arms: list[Label] = Field(description="The arm of each.")
    rewards: list[float] = Field(description="What each gave.")
    weights: list[float] | None = Field(None, description="Those of the audit.")


class Freeze(Keyed):
    """Freeze a policy."""

    name: str = Field(description="The policy's name, new in this campaign.")
    fallback: Label = Field(
        None, description="A safe arm, for contexts where regret bounds are too large."
    )
    tolerance: float | None = Field(None, description="The largest bound it is not for.")


class Tune(Keyed):
    """Learn the hyperparameters again."""

    criterion: str = Field("evidence", description='"evidence" or "loo".')


class AddArm(Keyed):
    """Add an arm."""

    arm: Label = Field(description="A new label.")
    features: OneContext = Field(None, description="Its features, where arms have them.")
    cost: float | None = Field(None, description="What a trial costs, where that is known of arms.")


class RemoveArm(Keyed):
    """Never choose an arm again."""

    arm: Label = Field(description="One of the arms.")


class Goal(Body):
    """When exploring may end."""

    tolerance: float
    share: float = 0.95
    reference: Table = Field(description="Contexts like those to deploy on.")


class Create(Keyed):
    """Begin a campaign."""

    name: str = Field(description="A name for the campaign.")
    arms: Annotated[Any, WithJsonSchema({"anyOf": [_LABELS, {"type": "integer"}]})] = Field(
        description="The arms to choose from, or how many."
    )
    goal: Goal | None = None
    lease: Lease = 604_800.0
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of Learner: method, seed, reward, kernel and so on; parts such as "
        'kernels by their fields: {"type": "Gaussian", "bandwidth": 0.5}.',
    )


def check_size(request: StrictRequest, *given: Any) -> int:
    """Return how many contexts a request has, taken from the caller's; raise if too many."""
    most, count = request.service.settings, 0
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
    request.service.rows_rate.take(request.caller.name, count)
    return count


def _size(value: Any) -> tuple[int, int]:
    if type(value) is dict and type(value.get("table")) is dict:
        columns, rows = (value["table"].get(part) for part in ("columns", "rows"))
        count, cells = _size(rows) if type(rows) is list else (1, 1)
        return count, max(cells, len(columns) if type(columns) is list else 1)
    if type(value) is list:
        inside = [len(row) for row in value if type(row) in (list, dict)]
        return (len(value), max(inside)) if inside else (1, len(value))
    return 1, len(value) if type(value) is dict else 1


def check_arms(request: StrictRequest, count: int) -> None:
    most = request.service.settings.arms
    if count > most:
        raise RefusedError(413, f"a campaign may have {most} arms, got {count}")


def read_lease(lease: float | str | None) -> float | None:
    return math.inf if lease == "ever" else lease  # type: ignore[return-value]  # text is "ever"


def read_eligible_labels(arms: Any, called: str = "arms") -> Any:
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
    if isinstance(arms, list):
        return [read_label(label, "arms") for label in arms]
    return None if arms is None else read_label(arms, "arms")


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
        read = read_json(features, "features")
        found["features"] = list(read) if isinstance(features, list) else read
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
