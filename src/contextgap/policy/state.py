"""What learner and policy files have in common, checked as strictly as user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contextgap.base import checks, components
from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label, Restored, decode_label, encode_label, read_labels
from contextgap.beliefs.widths import Width
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.models import Model, describe_model, restored_model
from contextgap.policy.card import Card
from contextgap.policy.fallback import Fallback
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.schema import TableSchema

if TYPE_CHECKING:
    from contextgap.export.compression import CompressionReport


@dataclass(frozen=True)
class Rules:
    """The settings that learner and policy share; ``burn_in`` counts pulls per arm.

    ``hindsight`` says whether kernel, ridge or prior mean were chosen after seeing rewards, so that
    bounds are no longer guaranteed. ``costs`` says that users tell costs, to be kept low; inside,
    a reward is minus a cost.
    """

    method: Method
    width: Width
    burn_in: int
    hindsight: bool = False
    costs: bool = False

    @property
    def probability(self) -> float | None:
        """The probability with which intervals hold, if beliefs are exact and were fixed before.

        None if they were not, and where picks depend on rewards although the width's guarantee
        needs that they do not.
        """
        if self.hindsight or (self.method.adaptive and not self.width.adaptive):
            return None
        return self.width.probability

    @property
    def deployment(self) -> str:
        """The deployment rule in words; where costs are told, it sees minus the cost."""
        name = type(self.method.recommender).__name__
        return f"{name} of minus the cost" if self.costs else name

    @property
    def sign(self) -> float:
        """What turns rewards as users tell them into rewards, and back."""
        return -1.0 if self.costs else 1.0


@dataclass(frozen=True)
class PolicyState:
    """All that makes up a policy; replace parts with ``dataclasses.replace``.

    Parameters
    ----------
    model
        The posterior of every arm that ever was in use.
    labels
        The label of each of the model's arms.
    active
        The model's indices of the arms in use.
    rules
        The exploration and deployment rules.
    schema
        How contexts are read.
    seed
        Of recommenders that draw at random.
    fallback
        The safe arm, and when it is answered; None if there is none.
    card
        The score card, once it was computed.
    compression
        What compression cost; None if the policy was not compressed.
    """

    model: Model
    labels: tuple[Label, ...]
    active: tuple[int, ...]
    rules: Rules
    schema: ContextSchema
    seed: int
    fallback: Fallback | None = None
    card: Card | None = None
    compression: CompressionReport | None = None

    @property
    def arms(self) -> tuple[Label, ...]:
        """The labels of the arms in use."""
        return tuple(self.labels[i] for i in self.active)

    def read(self, contexts: Any) -> tuple[FloatArray, bool]:
        """Return contexts as the rows that kernels take, and whether it was a single context."""
        intake = self.schema.read(contexts)
        self.model.kernel.check_dimension(intake.rows.shape[1])
        return intake.rows, intake.single


def read_costs(reward: Any) -> bool:
    """Return whether rewards are costs."""
    if reward not in ("maximize", "minimize"):
        raise ValueError(f'reward must be "maximize" or "minimize", got {reward!r}')
    return bool(reward == "minimize")


def read_truth(name: str, value: Any) -> bool:
    """Return a truth value; 0 or an empty list is refused."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def read_seed(value: Any) -> int:
    """Return a seed of 64 bits."""
    seed = checks.whole("seed", value, least=0)
    if seed >= 2**64:
        raise ValueError("seed is too large")
    return seed


def file_version(model: Model, schema: ContextSchema, rules: Rules, *, newer: bool) -> int:
    """Return the format version that a file needs.

    ``newer`` says whether it holds more that release 0.1 would pass over.
    """
    log = model.observed
    newer = newer or log.has_eligible or log.has_propensities
    newer = newer or schema.table is not None or rules.costs
    return max(model.file_version, 2 if newer else 1)


def describe_rules(rules: Rules) -> dict[str, Any]:
    """Return the rules as plain values for a file's header."""
    return {
        "method": rules.method.describe(),
        "width": rules.width.describe(),
        "burn_in": rules.burn_in,
        "hindsight": rules.hindsight,
        **({"costs": True} if rules.costs else {}),
    }


def restore_rules(header: dict[str, Any]) -> Rules:
    """Reverse ``describe_rules``."""
    method, width = components.build(header["method"]), components.build(header["width"])
    if not (isinstance(method, Method) and isinstance(width, Width)):
        raise ValueError("method or width has the wrong type")
    burn_in = checks.whole("burn_in", header["burn_in"], least=0)
    hindsight = read_truth("hindsight", header["hindsight"])
    return Rules(method, width, burn_in, hindsight, read_truth("costs", header.get("costs", False)))


def describe_state(
    model: Model, labels: tuple[Label, ...], active: tuple[int, ...], schema: ContextSchema
) -> dict[str, Any]:
    """Return everything learnt except the arrays, as plain values for a file's header."""
    return {
        "model": describe_model(model),
        "kernel": model.kernel.describe(),
        "ridge": model.ridge,
        "prior_mean": model.prior_mean,
        "arms": [encode_label(label) for label in labels],
        "active": list(active),
        "dimension": schema.dimension,
        "columns": _described_columns(schema),
    }


def restore_state(
    header: dict[str, Any], arrays: dict[str, Any]
) -> tuple[Model, tuple[Label, ...], tuple[int, ...], ContextSchema]:
    """Reverse ``describe_state``, arrays included."""
    kernel = components.build(header["kernel"])
    if not isinstance(kernel, Kernel):
        raise ValueError("the kernel has the wrong type")
    labels, active = _restore_arms(header["arms"], header["active"])
    schema = _restore_schema(header["dimension"], header["columns"])
    if schema.dimension is not None:
        kernel.check_dimension(schema.dimension)
    ridge = checks.positive("ridge", header["ridge"], "as a learner's")
    prior_mean = read_prior_mean(header["prior_mean"])
    named = header.get("model")  # files of release 0.1 name none
    model = restored_model(named, arrays, kernel, ridge, len(labels), prior_mean)
    if len(model) and model.observed.dimension != schema.dimension:
        raise ValueError("contexts have another dimension than the header says")
    return model, labels, active, schema


def read_prior_mean(value: Any) -> float | str:
    """Return a prior mean: a number or "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'prior_mean must be a number or "auto", got {value!r}')
        return value
    return checks.real("prior_mean", value, 'a number or "auto"')


def _restore_arms(arms: Any, active: Any) -> tuple[tuple[Label, ...], tuple[int, ...]]:
    if not (isinstance(arms, list) and isinstance(active, list)):
        raise ValueError("arms are not a list")
    labels = read_labels(Restored(decode_label(label) for label in arms))
    places = tuple(checks.whole("active", place, least=0) for place in active)
    if not places or sorted(set(places)) != list(places) or places[-1] >= len(labels):
        raise ValueError("the list of arms in use does not match the arms")
    return labels, places


def _described_columns(schema: ContextSchema) -> list[Any] | None:
    """Return names if columns hold numbers, and else what each holds too."""
    if schema.table is not None:
        return schema.table.describe()
    return None if schema.columns is None else list(schema.columns)


def _restore_schema(dimension: Any, columns: Any) -> ContextSchema:
    if dimension is not None:
        checks.whole("dimension", dimension, least=1)
    if isinstance(columns, list) and columns and isinstance(columns[0], dict):
        schema = ContextSchema.of(TableSchema.restored(columns))
        if schema.dimension != dimension:
            raise ValueError("columns do not make up a context")
        return schema
    if columns is None:
        return ContextSchema(dimension)
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError("columns are not a list of names")
    if not len(set(columns)) == len(columns) > 0 or dimension not in (None, len(columns)):
        raise ValueError("columns do not name the numbers of a context")
    return ContextSchema(dimension, tuple(columns))
