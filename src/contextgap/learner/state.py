"""The state of a learner: all that it knows at one moment, also in files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from contextgap.base import checks, files
from contextgap.base.arrays import FloatArray
from contextgap.base.seeds import seed_after
from contextgap.learner.arguments import read_chances, read_points
from contextgap.learner.features import ArmFeatures
from contextgap.learner.view import Pending
from contextgap.models import Eligible, Observations, check_floats, refitted_model
from contextgap.models.tuning import Hyperparameters, Tuning
from contextgap.policy.state import PolicyState, State, read_seed, read_truth
from contextgap.tables.contexts import ContextSchema

_MOST_GROWTH = 1e6  # of rewards between two tunings; more is no setting


@dataclass(frozen=True)
class LearnerState(State):
    """All that a learner knows at one moment.

    The model grows with every reward; ``mark`` says where it stood, so that ``Learner.restore`` can
    return to it. Everything else is never changed in place.
    """

    random: Mapping[str, Any]  # the state of the random source
    policy_seed: int  # from which policies have their seeds
    next_tune: int | None  # how many rewards there must be for the next tuning; None for never
    growth: float  # by which factor rewards grow between two tunings
    kernel_given: bool  # whether tuning keeps the kind of the kernel
    alone: bool  # whether tuning is to take for granted that arms have nothing in common
    points: int | None  # how many inducing points there may be; None for exact beliefs for ever
    features: ArmFeatures | None = None
    tuning: Tuning | None = None  # the report of the last one
    pending: Pending = field(default_factory=Pending)
    mark: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mark", self.model.mark())

    def policy(self) -> PolicyState:
        """Return the policy that would be deployed now."""
        return PolicyState(
            model=self.model,
            labels=self.labels,
            active=self.active,
            rules=self.rules,
            schema=self.schema.told_only(),
            seed=seed_after(self.policy_seed, len(self.model)),
        )

    def adopting(self, schema: ContextSchema) -> Self:
        """Return the state with a schema that knows more, as if it had always known."""
        if schema is self.schema:
            return self
        change = schema.refilling(self.schema)
        if change is None:
            return replace(self, schema=schema)
        model = self.model
        if len(model):
            log, alike = model.observed.changed(change), getattr(model, "alike", None)
            model = refitted_model(
                log, model.kernel, model.ridge, model.prior_mean, alike, self.points
            )
        return replace(self, schema=schema, pending=self.pending.changed(change), model=model)

    def tuned(
        self,
        log: Observations,
        learn: Callable[..., tuple[Hyperparameters, Tuning]],
        criterion: str,
    ) -> Self:
        """Return the state with hyperparameters that ``learn`` finds, and their posterior."""
        count = len(log)
        if count < 2:
            raise ValueError(f"tune needs at least 2 rewards to learn from, got {count}")
        found, tuning = learn(
            *log.by_arm(),
            self.model.kernel if self.kernel_given else None,
            criterion,
            alone=self.alone,
            features=None if self.features is None else self.features.numbers,
            layout=self.schema.layout,
        )
        following = self.next_tune
        if following is not None:
            following = max(following, math.ceil(self.growth * count))
        return replace(
            self,
            model=refitted_model(
                log, found.kernel, found.ridge, found.prior_mean, found.alike, self.points
            ),
            rules=replace(self.rules, tuned_on_rewards=True),
            tuning=tuning,
            next_tune=following,
        )

    def write(self, path: files.File) -> None:
        """Write a file from which ``read`` returns the same."""
        contexts, arms, eligible, chances = self.pending.in_order()
        header = {
            **self.describe(),
            "random_state": self.random,
            "policy_seed": self.policy_seed,
            "pending": arms,
            "next_tune": self.next_tune,
            "growth": self.growth,
            "kernel_given": self.kernel_given,
            "alone": self.alone,
            "points": self.points,
            **({"features": None} if self.features is None else self.features.describe()),
            "tuning": None if self.tuning is None else self.tuning.describe(),
        }
        if said := any(each is not None for each in eligible):
            header["pending_eligible"] = eligible
        if drawn := any(each is not None for each in chances):
            header["pending_propensities"] = chances
        rows = np.array(contexts).reshape(len(arms), self.schema.dimension or 0)
        arrays = {**self.model.arrays(), "pending": rows}
        files.write(path, "learner", header, arrays, self.file_version(newer=said or drawn))

    @classmethod
    def read(cls, path: files.File) -> Self:
        """Return the state in a file, checked as strictly as user input."""
        header, arrays = files.read(path, "learner")
        with files.making_sense_of(path):
            known = State.restored(header, arrays)
            kernel_given = read_truth("kernel_given", header["kernel_given"])
            tuning = header.get("tuning")  # files of release 0.1 have none
            return cls(
                **vars(known),
                random=random_source(header["random_state"]).bit_generator.state,
                policy_seed=read_seed(header["policy_seed"]),
                next_tune=_read_next(header["next_tune"]),
                growth=_read_growth(header.get("growth", 2.0)),
                kernel_given=kernel_given,
                # Files of release 0.1 know nothing about arms that share.
                alone=read_truth("alone", header.get("alone", kernel_given)),
                # Learners of earlier files stay exact.
                points=read_points(header.get("points"), known.rules.method.recommender),
                features=_read_features(header, known),
                tuning=None if tuning is None else Tuning.restored(tuning),
                pending=_read_pending(header, arrays["pending"], known),
            )


def random_source(state: Mapping[str, Any]) -> np.random.Generator:
    """Return a random source in a state."""
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    if rng.bit_generator.state != state:
        raise ValueError("the random state is invalid")
    return rng


def _read_next(rewards: Any) -> int | None:
    return None if rewards is None else checks.whole("next_tune", rewards, least=1)


def _read_growth(factor: Any) -> float:
    """Return the factor; until release 0.2 there was always one tuning per doubling."""
    growth = checks.at_least("growth", factor, 1.0)
    if growth > _MOST_GROWTH:
        raise ValueError(f"growth must be at most {_MOST_GROWTH}, got {growth}")
    return growth


def _read_features(header: dict[str, Any], known: State) -> ArmFeatures | None:
    features = ArmFeatures.restored(header, known.labels)
    told = known.model.settings().get("features", header.get("features"))
    if told != header.get("features"):
        raise ValueError("the features of the arms are not those that the model has")
    return features


def _read_pending(header: dict[str, Any], contexts: FloatArray, known: State) -> Pending:
    arms = [checks.whole("pending", arm, least=0) for arm in header["pending"]]
    check_floats(contexts, (len(arms), known.schema.dimension or 0))
    if arms and max(arms) >= len(known.labels):
        raise ValueError("a pending pick names an arm that does not exist")
    eligible = header.get("pending_eligible", [None] * len(arms))
    chances = read_chances(header.get("pending_propensities"), len(arms))
    pending = Pending()
    for context, arm, among, chance in zip(contexts, arms, eligible, chances, strict=True):
        pending.add(context, arm, _read_among(among, arm, len(known.labels)), chance)
    return pending


def _read_among(among: Sequence[Any] | None, arm: int, n_arms: int) -> Eligible:
    """Return the arms among which a pending pick was made."""
    if among is None:
        return None
    arms = tuple(checks.whole("pending_eligible", each, least=0) for each in among)
    if sorted(set(arms)) != list(arms) or arm not in arms or arms[-1] >= n_arms:
        raise ValueError("the eligible arms of a pending pick do not match the arms")
    return arms
