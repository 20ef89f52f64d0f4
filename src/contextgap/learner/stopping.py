"""The stopping rule: stop when the contexts that matter are certified, each or on average."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label
from contextgap.beliefs.belief import Belief
from contextgap.beliefs.widths import Width
from contextgap.methods.recommenders import Recommender, SmallestGapInHistory
from contextgap.methods.recommenders.history import LookBack
from contextgap.models import Model
from contextgap.policy.scoring import GivenEvidence
from contextgap.tables.contexts import ContextSchema, read_table
from contextgap.tables.eligible import Mask, groups, read_eligible


@dataclass(frozen=True, eq=False)
class StoppingRule:
    """Stop when a share of reference contexts has a certificate within the tolerance.

    With a width that guarantees its intervals, such as ``TheoremWidth``, the simple regret at
    those contexts is within the tolerance, with the width's probability. With ``average`` it is the
    mean certificate over the reference contexts that must be within the tolerance. Then the
    policy's value, its expected reward averaged over them, is at most that much below the best
    possible value.

    Parameters
    ----------
    tolerance
        The simple regret that may be left.
    share
        The share of the reference contexts, above 0 and at most 1.
    reference
        Contexts that stand for those to be deployed on, a table as the learner takes them.
    arms
        The arms that will be eligible there, all by default: labels, or one collection of labels
        per row, or a boolean array, as ``Policy.recommend`` takes them. Certificates are then among
        these arms, and arms that are eligible nowhere need no burn-in.
    average
        Compare the mean certificate with the tolerance; ``share`` is not used then.
    budget
        Stop as soon as so much is spent, whatever is certified; without a reference, then alone.

    See Also
    --------
    Learner.done : Whether a rule is met.
    Learner.run : Explores until a rule is met.

    Examples
    --------
    >>> import contextgap as cg
    >>> rule = cg.StoppingRule(budget=10)
    >>> learner = cg.Learner(["a", "b"], costs={"a": 1, "b": 4})
    >>> learner.run(lambda context, arm: 0.0, contexts=[[0.0]] * 20, until=rule).spent
    10.0
    """

    tolerance: float = 0.0
    share: float = 0.95
    reference: Any = field(default=None, repr=False)
    arms: Any = field(default=None, repr=False)
    average: bool = False
    budget: float | None = None
    given: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tolerance = checks.at_least("tolerance", self.tolerance, 0, "a simple regret")
        share = checks.positive("share", self.share, "0.95 is usual")
        if share > 1:
            raise ValueError(f"share must be at most 1, got {self.share!r}")
        checks.truth("average", self.average)
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "share", share)
        if self.budget is not None:
            budget = checks.positive("budget", self.budget, "the sum of costs")
            object.__setattr__(self, "budget", budget)
        if self.reference is None:
            if self.budget is None:
                raise TypeError("reference must be contexts to certify, got None; or give a budget")
            object.__setattr__(self, "given", None)
            return
        intake = read_table(self.reference, "reference")
        # As it was given, for columns with names or types, which a learner reads by its own.
        object.__setattr__(self, "given", copy.deepcopy(self.reference))
        if intake is not None:
            object.__setattr__(self, "reference", intake.rows)

    def contexts_for(self, schema: ContextSchema) -> FloatArray:
        """Return the reference contexts as a learner with this schema sees them."""
        return schema.read(self.given, called="reference contexts", learning=True).rows

    def eligible(self, labels: Sequence[Label]) -> Mask | None:
        return read_eligible(self.arms, labels, len(self.reference), single=False)

    def settled(self, bound: FloatArray) -> float:
        """Return the share of contexts whose bound is within the tolerance."""
        return float((bound <= self.tolerance).mean())

    def met(self, bound: FloatArray) -> bool:
        if self.average:
            return float(bound.mean()) <= self.tolerance
        return self.settled(bound) >= self.share


class ReferenceWatch:
    """Certificates at contexts of shape (m, d), updated with every reward, by eligible arms."""

    def __init__(
        self, model: Model, reference: FloatArray, recommender: Recommender, width: Width
    ) -> None:
        self.model = model
        self.contexts = reference
        self._of = partial(_Watch, model, recommender=recommender, width=width)
        self._watches: dict[bytes, _Watch] = {}

    def bound(
        self, active: tuple[int, ...], burn_in: int, seed: int, eligible: Mask | None
    ) -> FloatArray:
        """Take in new rewards and return max(0, gap of the arm to deploy) at every context."""
        count, bound = len(self.contexts), np.empty(len(self.contexts))
        everything = np.arange(count), np.arange(len(active))
        for rows, columns in [everything] if eligible is None else groups(eligible):
            key = rows.tobytes()
            if key not in self._watches:
                self._watches[key] = self._of(self.contexts[rows])
            among = tuple(active[column] for column in columns)
            bound[rows] = self._watches[key].bound(
                among, columns.tolist(), burn_in * len(among), seed
            )
        return bound


@dataclass(eq=False)
class _Watch:
    """The posterior at contexts with the same eligible arms."""

    model: Model
    contexts: FloatArray
    recommender: Recommender
    width: Width
    look_back: LookBack | None = None
    seen: int = 0
    active: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.follower = self.model.follow(self.contexts)

    def bound(
        self, active: tuple[int, ...], columns: Sequence[int], burn_in_end: int, seed: int
    ) -> FloatArray:
        """Take in new rewards; ``columns`` are the places of the arms among all of them."""
        rule = self.recommender
        if isinstance(rule, SmallestGapInHistory):
            self._look(rule, active, burn_in_end)
        belief = Belief(self.follower.posterior(active), self.width)
        if self.look_back is not None and self.look_back.empty:
            self.look_back.add(belief)
        about = belief, self.contexts, len(active), seed, columns
        evidence = GivenEvidence(*about, lambda _: cast(LookBack, self.look_back).choice())
        return np.maximum(rule.choose(evidence).gap, 0.0)

    def _look(self, rule: SmallestGapInHistory, active: tuple[int, ...], burn_in_end: int) -> None:
        """Update the look-back with every step since the last call."""
        if self.look_back is None or active != self.active:
            self.look_back = LookBack(rule.last)  # gaps to other arms are not comparable
            self.active = active
        first = self.seen + 1
        for step, posterior in enumerate(self.follower.steps(active), first):
            if step >= burn_in_end:
                self.look_back.add(Belief(posterior, self.width))
        self.seen = len(self.model)
