"""The settings, the frozen state, the safe arm and the score card of a policy."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

import contextgap
from contextgap.base import checks, components, display, files
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Label, Mask, Restored, decode_label, encode_label, read_labels
from contextgap.base.components import completed
from contextgap.beliefs import Belief, Width
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import Evidence
from contextgap.models import Model, describe_model, restored_model
from contextgap.tables.columns import TableSchema
from contextgap.tables.contexts import ContextSchema

if TYPE_CHECKING:
    from contextgap.export.compression import CompressionReport
    from contextgap.models.observations import Observations

_MARGIN = 0.1  # of a column's range: so far beyond what was seen a context may lie


class Status(IntEnum):
    """Why a policy returned an arm; a number, as in exported C.

    .. versionadded:: 0.2

    See Also
    --------
    Policy.status : Returns it.

    Examples
    --------
    >>> policy.with_fallback("left").status([9.0, 0.0])
    <Status.OUTSIDE: 2>
    """

    RECOMMENDED = 0
    """The arm that the recommender chose."""
    BOUND_TOO_LARGE = 1
    """The fallback: the recommended arm's bound exceeds the tolerance."""
    OUTSIDE = 2
    """The fallback: the context lies outside what was seen, whatever the bound."""
    NO_FALLBACK = 3
    """The arm that the recommender chose: the fallback would be answered but is not eligible."""


@dataclass(frozen=True)
class Fallback:
    """A safe arm, and when a policy returns it in place of the recommended one.

    .. versionadded:: 0.2

    Parameters
    ----------
    arm
        Its label.
    column
        Its place among the policy's arms.
    tolerance
        The largest bound at which a recommended arm is returned; None for any.
    low, high
        The range of each number of a context that counts as seen: that of the contexts whose
        rewards were told, and a tenth of its length to either side; for codes of categories their
        range alone, which leaves out levels never met. Empty if there were none.

    See Also
    --------
    Policy.with_fallback : Sets one.

    Examples
    --------
    >>> policy.with_fallback("left", tolerance=0.5).fallback.tolerance
    0.5
    """

    arm: Label
    column: int
    tolerance: float | None
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        arm: Any,
        tolerance: Any,
        arms: tuple[Label, ...],
        contexts: FloatArray,
        categories: int = 0,
    ) -> Fallback:
        """Return a fallback for a policy that has ``arms`` and was told rewards at ``contexts``.

        The last ``categories`` numbers of a context are codes, which have no margin.
        """
        try:
            column = arms.index(arm)
        except ValueError:
            raise ValueError(f"fallback must be among {list(arms)}, got {arm!r}") from None
        if tolerance is not None:
            tolerance = checks.at_least("tolerance", tolerance, 0, "a simple regret")
        if not len(contexts):
            return cls(arms[column], column, tolerance, (), ())
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        margin = _MARGIN * (high - low)
        margin[len(margin) - categories :] = 0.0
        seen = tuple((low - margin).tolist()), tuple((high + margin).tolist())
        return cls(arms[column], column, tolerance, *seen)

    def outside(self, contexts: FloatArray) -> Mask:
        if not self.low:
            return np.ones(len(contexts), dtype=bool)
        inside = (contexts >= np.array(self.low)) & (contexts <= np.array(self.high))
        return np.asarray(~inside.all(axis=1))

    def why(self, context: FloatArray, gap: float, schema: ContextSchema) -> str:
        if not self.outside(context[None])[0]:
            return f"the bound {gap:.3g} exceeds the tolerance {self.tolerance:g}"
        for i, (value, low, high) in enumerate(zip(context, self.low, self.high, strict=False)):
            if not low <= value <= high:
                if schema.table is not None:  # its numbers are not what users know
                    return f"outside what was seen: {schema.table.column_of(i)!r}"
                name = f"column {i}" if schema.columns is None else repr(schema.columns[i])
                return f"outside what was seen: {name} is {value:.4g}, not {low:.4g} to {high:.4g}"
        return "outside what was seen: there are no rewards"

    def describe(self) -> dict[str, Any]:
        return {
            "arm": encode_label(self.arm),
            "tolerance": self.tolerance,
            "low": list(self.low),
            "high": list(self.high),
        }

    @classmethod
    def restored(
        cls, values: Mapping[str, Any], arms: tuple[Label, ...], dimension: int | None
    ) -> Self:
        given = cls.of(decode_label(values["arm"]), values["tolerance"], arms, np.empty((0, 0)))
        low, high = (
            tuple(checks.real(name, number) for number in values[name]) for name in ("low", "high")
        )
        if len(low) not in (0, dimension) or len(low) != len(high):
            raise ValueError("the fallback's ranges do not match the contexts")
        return cls(given.arm, given.column, given.tolerance, low, high)


class Answer(NamedTuple):
    """The arms that a policy answers, their gaps, and how it came to them (``Status``)."""

    arm: IntArray
    gap: FloatArray
    status: IntArray


def answer(fallback: Fallback | None, choice: Choice, evidence: Evidence) -> Answer:
    """Return a choice with the fallback in its place where the policy does not know enough."""
    status = np.zeros(len(evidence.contexts), dtype=np.intp)
    if fallback is None:
        return Answer(choice.arm, choice.gap, status)
    if fallback.tolerance is not None:
        # Not `gap > tolerance`: a gap that cannot be computed is NaN, and certifies nothing.
        status[~(choice.gap <= fallback.tolerance)] = Status.BOUND_TOO_LARGE
    status[fallback.outside(evidence.contexts)] = Status.OUTSIDE
    if not status.any():
        return Answer(choice.arm, choice.gap, status)
    if fallback.column not in evidence.columns:
        return Answer(choice.arm, choice.gap, np.where(status > 0, int(Status.NO_FALLBACK), 0))
    place = list(evidence.columns).index(fallback.column)
    arm = np.where(status > 0, place, choice.arm)
    gap = np.where(status > 0, evidence.belief.gap[:, place], choice.gap)
    return Answer(arm, gap, status)


_VALUES = ("value", "best_single", "logged", "direct", "weighted")  # rewards, or costs
LATER_FIELDS: dict[str, Any] = dict.fromkeys(("reward_range", "spent", "next_tenth"))
"""What cards of earlier releases lack; files of policies have it beside the card."""

Range = tuple[float, float]  # the lower value first


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error.

    .. versionadded:: 0.2

    Parameters
    ----------
    value
        The estimate.
    error
        Its standard error.
    limits
        The lowest and the highest value that there can be; None if they are unknown.

    Examples
    --------
    >>> from contextgap.policy.card import Estimate
    >>> Estimate(2.0, 0.5).interval
    (1.02, 2.98)
    >>> print(Estimate(2.0, 0.5))
    2 ± 0.5
    """

    value: float
    error: float
    limits: Range | None = None

    @property
    def interval(self) -> Range:
        """The 95 % interval: 1.96 standard errors to either side, within the limits."""
        low, high = (-math.inf, math.inf) if self.limits is None else self.limits
        ends = self.value - 1.96 * self.error, self.value + 1.96 * self.error
        return min(max(ends[0], low), high), min(max(ends[1], low), high)

    @property
    def in_words(self) -> str:
        """The number, its standard error, and the 95 % interval in brackets.

        .. versionadded:: 0.3
        """
        low, high = self.interval
        return f"{self} [{low:.4g}, {high:.4g}]"

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g}"


@dataclass(frozen=True)
class Card:
    """An estimate of how good a policy is, by leave-one-out predictions; print it.

    Every logged reward is predicted, and every logged context decided, without that reward. No
    trial is needed. Where the eligible arms at a context are known, the policy chooses among them.

    .. versionadded:: 0.2

    Parameters
    ----------
    rewards
        How many rewards the policy was learnt from.
    looked_at
        How many of them were predicted leave-one-out, for decisions and errors of predictions.
        Averages over arms, and of what was logged, rest on all of them.
    error
        Root mean square error of predicted rewards.
    error_of_averages
        The same for each arm's average reward.
    value
        Average reward that the policy would earn at contexts like the logged ones; the average
        cost, as below, where rewards are costs.
    best_single_arm
        The arm that would earn most if it were always chosen.
    best_single
        What it would earn; where it was not eligible, the next best by average stands in for it.
    gain
        How much better the policy is than the best single arm.
    logged
        Average of the logged rewards.
    estimator
        "direct": values are predicted rewards, averaged over the logged contexts. "doubly robust":
        corrected by the prediction errors, weighted by the logging propensities.
    certificate
        Median over the logged contexts of the bound on a recommendation's simple regret.
    probability
        The probability with which all such bounds hold; None if they are heuristic.
    warnings
        Warnings before deployment, in words.
    log
        SHA-256 of the events of the campaign that the policy was frozen from; None without one.
    direct
        The direct estimate of the policy's value, beside a doubly robust one; None without one.
    weighted
        The self-normalised importance-weighted estimate (SNIPS) of the policy's value: the average
        of the rewards logged where the logged arm is the policy's, weighted by 1/propensity. It
        needs no model of rewards. None where propensities are unknown, or no such row was logged.
    reward_range
        Both rewards, or costs, where there are only two; intervals lie within what they allow.
    spent
        What the trials cost together; None where nothing is known or told about costs.
    next_tenth
        About what a tenth less regret would cost. It is extrapolated: the regret expected now, and
        that when half had been spent, are taken to fall on as a power of what is spent. None where
        that cannot be estimated.

    See Also
    --------
    Policy.card : The card of a policy.
    Learner.score : The card of deploying now.

    Examples
    --------
    >>> card = policy.card
    >>> card.rewards, card.best_single_arm
    (40, 'right')
    >>> round(card.gain.value, 1)
    0.4
    """

    rewards: int
    looked_at: int
    error: float
    error_of_averages: float
    value: Estimate
    best_single_arm: Label
    best_single: Estimate
    gain: Estimate
    logged: Estimate
    estimator: str
    certificate: float
    probability: float | None
    warnings: tuple[str, ...]
    log: str | None = None
    direct: Estimate | None = None
    weighted: Estimate | None = None
    reward_range: Range | None = None
    spent: float | None = None
    next_tenth: float | None = None

    def __post_init__(self) -> None:
        limits = self.reward_range
        difference = None if limits is None else (limits[0] - limits[1], limits[1] - limits[0])
        for name in ("gain", *_VALUES):
            if (each := vars(self)[name]) is not None:
                own = difference if name == "gain" else limits
                vars(self)[name] = replace(each, limits=own)

    @property
    def explained(self) -> float:
        """Share of the squared error of the arms' averages that the predictions remove."""
        if self.error_of_averages == 0:
            return 0.0
        return 1.0 - (self.error / self.error_of_averages) ** 2

    @property
    def basis(self) -> str:
        """What the card rests on, in words.

        .. versionadded:: 0.3
        """
        return (
            f"{self.looked_at} of {self.rewards} rewards predicted leave-one-out; [95 % intervals]"
        )

    def of_costs(self) -> Self:
        told = {name: vars(self)[name] for name in _VALUES if vars(self)[name] is not None}
        costs: dict[str, Any] = {
            name: Estimate(-each.value, each.error) for name, each in told.items()
        }
        return replace(self, **costs)

    def rows(self) -> list[tuple[str, str]]:
        """Return the card for people: pairs of a name and a text.

        Examples
        --------
        >>> [name for name, text in policy.card.rows()][:3]
        ['value of the policy', 'always right', 'gain over that']
        """
        kind = "heuristic" if self.probability is None else f"probability {self.probability:g}"
        others = (("  by predictions alone", self.direct), ("  by weights alone", self.weighted))
        return [
            ("value of the policy", f"{self.value.in_words} ({self.estimator})"),
            *((name, each.in_words) for name, each in others if each is not None),
            (f"always {self.best_single_arm}", self.best_single.in_words),
            ("gain over that", self.gain.in_words),
            ("logged rewards", self.logged.in_words),
            ("error of predictions", f"{self.error:.4g}"),
            ("error of averages", f"{self.error_of_averages:.4g}"),
            ("explained", f"{100 * self.explained:.1f} %"),
            ("median certificate", f"{self.certificate:.4g} ({kind})"),
            *self.spending(),
            *([] if self.log is None else [("log", self.log)]),
        ]

    def spending(self) -> list[tuple[str, str]]:
        if self.spent is None:
            return []
        more = "unknown" if self.next_tenth is None else f"about {self.next_tenth:.3g}"
        return [
            ("spent", f"{self.spent:.6g}"),
            ("a tenth less regret", f"{more}, extrapolated"),
        ]

    def __str__(self) -> str:
        size = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:{size}}  {text}" for name, text in self.rows()]
        return "\n".join(
            [f"score card: {self.basis}", *lines, *(f"! {warning}" for warning in self.warnings)]
        )

    def _repr_html_(self) -> str:
        warned = [("!", warning) for warning in self.warnings]
        return display.table(f"score card: {self.basis}", ["", ""], [*self.rows(), *warned])

    def describe(self) -> dict[str, Any]:
        """Return the card as plain values; ``restored`` reverses it.

        Examples
        --------
        >>> policy.card.describe()["estimator"]
        'direct'
        """
        plain: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Estimate):
                value = [value.value, value.error]
            plain[name] = list(value) if isinstance(value, tuple) else value
        sometimes = ("log", "direct", "weighted", *LATER_FIELDS)
        plain = {n: value for n, value in plain.items() if value is not None or n not in sometimes}
        return {**plain, "best_single_arm": encode_label(self.best_single_arm)}

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Self:
        plain: dict[str, Any] = dict(values)
        for name in (name for name in ("gain", *_VALUES) if values.get(name) is not None):
            value, error = (checks.real(name, number) for number in values[name])
            plain[name] = Estimate(value, error)
        for name in ("rewards", "looked_at"):
            plain[name] = checks.whole(name, values[name], least=0)
        for name in ("error", "error_of_averages", "certificate"):
            plain[name] = checks.real(name, values[name])
        if values["probability"] is not None:
            plain["probability"] = checks.fraction("probability", values["probability"])
        plain["best_single_arm"] = decode_label(values["best_single_arm"])
        plain["estimator"] = str(values["estimator"])
        if values.get("log") is not None:
            plain["log"] = str(values["log"])
        plain["warnings"] = tuple(str(warning) for warning in values["warnings"])
        for name in ("spent", "next_tenth"):
            if values.get(name) is not None:
                plain[name] = checks.at_least(name, values[name], 0.0)
        plain["reward_range"] = read_range(values.get("reward_range"))
        return cls(**plain)


def read_spending(values: Any) -> tuple[float, float | None] | None:
    if values is None:
        return None
    spent, more = (
        None if each is None else checks.at_least("spending", each, 0) for each in values
    )
    if spent is None:
        raise ValueError("spending has no total")
    return spent, more


def read_range(values: Any) -> Range | None:
    if values is None:
        return None
    low, high = (checks.real("reward_range", number) for number in values)
    if low >= high:
        raise ValueError(f"reward_range must be a lower and a higher number, got {values!r}")
    return low, high


# Of fewer rewards, or of one that came once, it is too early to say that there are two values.
_FEWEST, _FEWEST_OF_A_VALUE = 20, 2


@dataclass(frozen=True)
class Rules:
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
        return np.inf if self.reward_range is None else self.reward_range[1] - self.reward_range[0]

    def noted(self, card: Card) -> Card:
        spent, more = self.spending or (None, None)
        return replace(card, reward_range=self.reward_range, spent=spent, next_tenth=more)

    def within(self, expected: FloatArray) -> FloatArray:
        return expected if self.reward_range is None else np.clip(expected, *self.reward_range)

    def told(self, belief: Belief) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return mean, std, lower and upper as users tell rewards, within what these can be."""
        mean, std, lower, upper = belief.told(self.rules.sign)
        return self.within(mean), std, self.within(lower), self.within(upper)

    def made_now(self, at: datetime | None = None) -> Self:
        when = (datetime.now(UTC) if at is None else at).replace(microsecond=0)
        return replace(self, provenance=Provenance(contextgap.__version__, when))

    def data_hash(self) -> str:
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
