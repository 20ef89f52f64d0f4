"""The state of policies, what learners share of it, and both in files."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import contextgap
from contextgap.base import checks, components, files
from contextgap.base.arrays import FloatArray
from contextgap.base.descriptors import completed
from contextgap.base.labels import Label, Restored, decode_label, encode_label, read_labels
from contextgap.beliefs.belief import Belief
from contextgap.beliefs.widths import Width
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.models import Model, describe_model, restored_model
from contextgap.policy.card import Card, Range
from contextgap.policy.fallback import Fallback
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.schema import TableSchema

if TYPE_CHECKING:
    from contextgap.export.compression import CompressionReport
    from contextgap.models.observations import Observations

# Of fewer rewards, or of one that came once, it is too early to say that there are two values.
_FEWEST, _FEWEST_OF_A_VALUE = 20, 2


@dataclass(frozen=True)
class Rules:
    """The settings that learner and policy share."""

    method: Method
    width: Width
    burn_in: int  # pulls per arm
    tuned_on_rewards: bool = False  # kernel, ridge or prior mean were; no bound is guaranteed then
    costs: bool = False  # users tell costs, to be kept low; inside, a reward is minus a cost

    @property
    def probability(self) -> float | None:
        """The probability with which intervals hold, if beliefs are exact and fixed before."""
        if self.tuned_on_rewards or (self.method.adaptive and not self.width.adaptive):
            return None
        return self.width.probability

    @property
    def deployment(self) -> str:
        """The deployment rule in words; where rewards are costs, it sees minus the cost."""
        name = type(self.method.recommender).__name__
        return f"{name} of minus the cost" if self.costs else name

    @property
    def sign(self) -> float:
        """What turns rewards as users tell them into rewards, and back."""
        return -1.0 if self.costs else 1.0

    def describe(self) -> dict[str, Any]:
        return {
            "method": self.method.describe(),
            "width": self.width.describe(),
            "burn_in": self.burn_in,
            "hindsight": self.tuned_on_rewards,
            **({"costs": True} if self.costs else {}),
        }

    @classmethod
    def restored(cls, header: dict[str, Any]) -> Self:
        method, width = components.build(header["method"]), components.build(header["width"])
        if not (isinstance(method, Method) and isinstance(width, Width)):
            raise ValueError("method or width has the wrong type")
        burn_in = checks.whole("burn_in", header["burn_in"], least=0)
        tuned_on_rewards = checks.truth("hindsight", header["hindsight"])
        costs = checks.truth("costs", header.get("costs", False))
        return cls(method, width, burn_in, tuned_on_rewards, costs)


@dataclass(frozen=True)
class State:
    """What learners and policies both know; replace parts with ``dataclasses.replace``."""

    model: Model  # of every arm that ever was in use
    labels: tuple[Label, ...]  # of each of the model's arms
    active: tuple[int, ...]  # the model's indices of the arms in use
    rules: Rules
    schema: ContextSchema  # how contexts are read

    @property
    def arms(self) -> tuple[Label, ...]:
        return tuple([self.labels[i] for i in self.active])

    def describe(self) -> dict[str, Any]:
        """Return everything learnt except the arrays, as plain values for a file's header."""
        columns = None if self.schema.columns is None else list(self.schema.columns)
        return {
            **self.rules.describe(),
            "model": describe_model(self.model),
            "kernel": self.model.kernel.describe(),
            "ridge": self.model.ridge,
            "prior_mean": self.model.prior_mean,
            "arms": [encode_label(label) for label in self.labels],
            "active": list(self.active),
            "dimension": self.schema.dimension,
            "columns": columns if self.schema.table is None else self.schema.table.describe(),
        }

    def file_version(self, *, newer: bool) -> int:
        """Return the format version of a file; ``newer`` if release 0.1 would ignore more of it."""
        log = self.model.observed
        newer = newer or log.has_eligible or log.has_propensities or log.has_noise
        newer = newer or self.schema.table is not None or self.rules.costs
        return max(self.model.file_version, 2 if newer else 1)

    @staticmethod
    def restored(header: dict[str, Any], arrays: dict[str, Any]) -> State:
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
        return State(model, labels, active, Rules.restored(header), schema)


@dataclass(frozen=True)
class Provenance:
    """Where a policy comes from.

    .. versionadded:: 0.3

    Parameters
    ----------
    version
        The release of contextgap that froze it; None if that is unknown, as in earlier files.
    created
        When, to the second, in UTC; None if that is unknown.
    data
        SHA-256 of what it was learnt from: labels of arms, kinds of columns that are not plain
        numbers, then contexts, arms and rewards in the order in which they were told; of a very
        long log, of the sample that is kept. None if they are no longer all there.

    See Also
    --------
    Policy.provenance : Where it is kept.

    Examples
    --------
    >>> policy.provenance.version == cg.__version__
    True
    """

    version: str | None = None
    created: datetime | None = None
    data: str | None = None

    def describe(self) -> dict[str, Any]:
        created = None if self.created is None else self.created.isoformat()
        return {"version": self.version, "created": created, "data": self.data}

    @classmethod
    def restored(cls, values: Mapping[str, Any] | None) -> Self:
        given = values or {}
        version, created, data = (given.get(name) for name in ("version", "created", "data"))
        if not all(each is None or isinstance(each, str) for each in (version, created, data)):
            raise ValueError("version, created and data are no texts")
        return cls(version, None if created is None else datetime.fromisoformat(created), data)


@dataclass(frozen=True)
class PolicyState(State):
    seed: int  # of recommenders that draw at random
    fallback: Fallback | None = None
    card: Card | None = None  # once it was computed
    compression: CompressionReport | None = None
    provenance: Provenance = Provenance()
    reward_range: Range | None = None  # as users tell them, where there are only two rewards
    spending: tuple[float, float | None] | None = (
        None  # what it cost, and a tenth less regret would
    )

    @property
    def largest_regret(self) -> float:
        """What no simple regret exceeds."""
        return np.inf if self.reward_range is None else self.reward_range[1] - self.reward_range[0]

    def noted(self, card: Card) -> Card:
        """Return a card with what the state knows of rewards and costs."""
        spent, more = self.spending or (None, None)
        return replace(card, reward_range=self.reward_range, spent=spent, next_tenth=more)

    def within(self, expected: FloatArray) -> FloatArray:
        """Return expected rewards, or their bounds, clipped to what rewards can be."""
        return expected if self.reward_range is None else np.clip(expected, *self.reward_range)

    def told(self, belief: Belief) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return mean, std, lower and upper as users tell rewards, within what these can be."""
        mean, std, lower, upper = belief.told(self.rules.sign)
        return self.within(mean), std, self.within(lower), self.within(upper)

    def made_now(self, at: datetime | None = None) -> Self:
        """Return the same, made by this release, now or at another time."""
        when = (datetime.now(UTC) if at is None else at).replace(microsecond=0)
        return replace(self, provenance=Provenance(contextgap.__version__, when))

    def data_hash(self) -> str:
        """Return the hash of the observations, as ``Provenance`` says."""
        log = self.model.observed
        table = self.schema.table  # names of plain numbers may be given later
        told = [encode_label(label) for label in self.labels], table and table.describe()
        found = hashlib.sha256(json.dumps(told).encode())
        for array, kind in ((log.contexts, "<f8"), (log.arms, "<i8"), (log.rewards, "<f8")):
            found.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        return found.hexdigest()

    def read(self, contexts: Any) -> tuple[FloatArray, bool]:
        """Return contexts as the rows that kernels take, and whether it was a single context."""
        intake = self.schema.read(contexts)
        self.model.kernel.check_dimension(intake.rows.shape[1])
        return intake.rows, intake.single

    def with_fallback(self, arm: Any, tolerance: Any, seen: FloatArray) -> Self:
        """Return the same with a safe arm, where these contexts were seen, and without a card."""
        codes = 0 if self.schema.layout is None else self.schema.layout.categories
        fallback = Fallback.of(arm, tolerance, self.arms, seen, codes)
        return replace(self, fallback=fallback, card=None)


class Stateful(ABC):
    """What learners and policies both say about themselves."""

    state: State

    def save(self, path: files.File) -> None:
        """Write a ``.cgap`` file, atomically.

        Parameters
        ----------
        path
            Where to write, or a binary file that is open already.

        See Also
        --------
        load : Read the file.
        Policy.to_c : Write a policy as C.
        Policy.to_onnx : Write a policy as an ONNX graph.
        mlflow.log_policy : Log a policy to MLflow.

        Examples
        --------
        >>> policy.save("policy.cgap")
        >>> cg.Policy.load("policy.cgap").recommend([0.5, 0.0])
        'right'
        """
        self._save(path)

    @classmethod
    def load(cls, path: files.File) -> Self:
        """Read a ``.cgap`` file; a learner continues exactly as the saved one would have.

        Parameters
        ----------
        path
            A file that ``save`` wrote, or a binary file that is open already.

        See Also
        --------
        save : Write the file.

        Examples
        --------
        >>> learner.save("learner.cgap")
        >>> cg.Learner.load("learner.cgap").counts == learner.counts
        True
        """
        return cls._load(path)

    @abstractmethod
    def _save(self, path: files.File) -> None: ...

    @classmethod
    @abstractmethod
    def _load(cls, path: files.File) -> Self: ...

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.arms)} arms, {self.method.name}, {self.kernel}, "
            f"{len(self.state.model)} observations)"
        )

    @property
    def arms(self) -> tuple[Label, ...]:
        """The arms to choose from."""
        return self.state.arms

    @property
    def method(self) -> Method:
        """The exploration and deployment rules."""
        return self.state.rules.method

    @property
    def kernel(self) -> Kernel:
        """The similarity of contexts."""
        return self.state.model.kernel

    @property
    def width(self) -> Width:
        """How standard deviations become intervals."""
        return self.state.rules.width

    @property
    def ridge(self) -> float:
        """The regularisation."""
        return self.state.model.ridge

    @property
    def prior_mean(self) -> float:
        """The mean reward believed where nothing was observed, as a number."""
        return self.state.rules.sign * self.state.model.prior()

    @completed
    def counts(self) -> dict[Label, int]:
        """The number of rewards of each arm."""
        log = self.state.model.observed
        return {self.state.labels[i]: log.count(i) for i in self.state.active}


def two_values(log: Observations, sign: float) -> Range | None:
    """Return both rewards, as users tell them, of a log that has only two; None of others."""
    rewards = log.rewards
    if len(rewards) < _FEWEST or log.has_noise:  # a censored reward is none of the values
        return None
    low, high = float(rewards.min()), float(rewards.max())
    counts = np.count_nonzero(rewards == low), np.count_nonzero(rewards == high)
    if low == high or sum(counts) < len(rewards) or min(counts) < _FEWEST_OF_A_VALUE:
        return None
    return (low, high) if sign > 0 else (-high, -low)


def read_costs(reward: Any) -> bool:
    if reward not in ("maximize", "minimize"):
        raise ValueError(f'reward must be "maximize" or "minimize", got {reward!r}')
    return bool(reward == "minimize")


read_truth = checks.truth


def read_seed(value: Any) -> int:
    seed = checks.whole("seed", value, least=0)
    if seed >= 2**64:
        raise ValueError("seed is too large")
    return seed


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
