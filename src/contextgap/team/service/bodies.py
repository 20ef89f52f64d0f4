"""What requests may say: fields, their types, and what they mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from contextgap.team.service.problems import UNKNOWN_FIELD, RefusedError, first_error

_CELL: dict[str, Any] = {
    "description": "A number, text, true or false; null for a gap; a date as {date: ...}.",
    "anyOf": [
        {"type": "number"},
        {"type": "string"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "object", "properties": {"date": {"type": "string", "format": "date"}}},
        {"type": "object", "properties": {"time": {"type": "string", "format": "date-time"}}},
    ],
}
_ONE = {
    "anyOf": [
        {"type": "object", "additionalProperties": _CELL},
        {"type": "array", "items": _CELL},
    ]
}
_SEVERAL = {
    "anyOf": [
        {"type": "array", "items": _ONE},
        {
            "type": "object",
            "required": ["table"],
            "properties": {
                "table": {
                    "type": "object",
                    "required": ["columns", "rows"],
                    "properties": {
                        "columns": {"type": "array", "items": {"type": "string"}},
                        "rows": {"type": "array", "items": {"type": "array", "items": _CELL}},
                        "levels": {"type": "array", "items": {"type": "string"}},
                    },
                }
            },
        },
    ]
}
_LABEL = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]}
_LABELS = {"type": "array", "items": _LABEL}

# Read by the campaign itself, whose errors say more than a schema's.
OneContext = Annotated[Any, WithJsonSchema(_ONE)]
Contexts = Annotated[Any, WithJsonSchema({"anyOf": [*_ONE["anyOf"], *_SEVERAL["anyOf"]]})]
Table = Annotated[Any, WithJsonSchema(_SEVERAL)]
Label = Annotated[Any, WithJsonSchema(_LABEL)]
Labels = Annotated[Any, WithJsonSchema(_LABELS)]
Eligible = Annotated[Any, WithJsonSchema({"anyOf": [_LABELS, {"type": "array", "items": _LABELS}]})]
Numbers = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}),
]
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

    @classmethod
    def read(cls, content: Any) -> Self:
        """Return a request from its JSON; raise if it is not as documented."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise RefusedError(422, first_error(error.errors()), error="ValueError") from None

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

    @classmethod
    def documented(cls, *names: str) -> dict[str, Any]:
        """Return what the OpenAPI document says of a request that is read by ``read``.

        ``names`` are those in its path.
        """
        schema = cls.model_json_schema(ref_template="#/components/schemas/{model}")
        content = {"application/json": {"schema": schema}}
        path = {"in": "path", "required": True, "schema": {"type": "string"}}
        return {
            "parameters": [{"name": name, **path} for name in names],
            "requestBody": {"required": True, "content": content},
        }


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

    trial: Annotated[
        Any,
        WithJsonSchema(
            {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
        ),
    ] = Field(None, description="The trial's number, or several.")
    reward: Numbers = Field(None, description="The reward, or one for each.")
    contexts: Contexts = Field(None, description="For outside data: where it was tried.")
    arms: Annotated[Any, WithJsonSchema({"anyOf": [_LABEL, _LABELS]})] = Field(
        None, description="For outside data: what was tried."
    )
    eligible: Eligible = Field(None, description="For outside data: what could have been tried.")


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


class Freeze(Keyed):
    """Freeze a policy."""

    name: str = Field(description="The policy's name, new in this campaign.")
    fallback: Label = Field(None, description="A safe arm, answered where too little is known.")
    tolerance: float | None = Field(None, description="The largest bound it is not for.")


class Tune(Keyed):
    """Learn the hyperparameters again."""

    criterion: str = Field("evidence", description='"evidence" or "loo".')


class AddArm(Keyed):
    """Add an arm."""

    arm: Label = Field(description="A new label.")
    features: OneContext = Field(None, description="Its features, where arms have them.")


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
