"""The stopping rule: stop when enough of the contexts that matter are certified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.contexts import ContextSchema
from contextgap.belief import Belief
from contextgap.models import Model
from contextgap.recommenders import Recommender, SmallestGapInHistory
from contextgap.recommenders.history import Choice
from contextgap.recommenders.lookback import LookBack
from contextgap.widths import Width


@dataclass(frozen=True, eq=False)
class StoppingRule:
    """Stop when a share of reference contexts has a certificate within the tolerance.

    With a width that guarantees its intervals, such as ``TheoremWidth``, the simple regret at
    those contexts is within the tolerance, with the width's probability.

    Parameters
    ----------
    tolerance
        The simple regret that may be left.
    share
        The share of the reference contexts, above 0 and at most 1.
    reference
        Contexts that stand for those to be deployed on, shape (m, d) or a DataFrame.
    """

    tolerance: float
    share: float = 0.95
    reference: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        tolerance = checks.at_least("tolerance", self.tolerance, 0, "a simple regret")
        share = checks.positive("share", self.share, "0.95 is usual")
        if share > 1:
            raise ValueError(f"share must be at most 1, got {self.share!r}")
        if self.reference is None:
            raise TypeError("reference must be contexts to certify, got None")
        intake = ContextSchema().read(self.reference, called="reference", learning=True)
        if intake.single or not len(intake.rows):
            raise ValueError("reference must be a table of contexts (2-D) with at least one row")
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "share", share)
        if intake.schema.table is None:
            object.__setattr__(self, "reference", intake.rows)
        object.__setattr__(self, "columns", intake.schema.columns)

    def contexts_for(self, schema: ContextSchema) -> Any:
        """Return the reference contexts with their columns in a learner's order, or as given."""
        if schema.table is not None or not isinstance(self.reference, np.ndarray):
            return self.reference
        names: tuple[str, ...] | None = getattr(self, "columns", None)
        if names is None or schema.columns is None:
            return np.asarray(self.reference)
        missing = [name for name in schema.columns if name not in names]
        if missing:
            raise ValueError(f"reference lacks the column {missing[0]!r}; it has {list(names)}")
        return np.asarray(self.reference[:, [names.index(name) for name in schema.columns]])

    def settled(self, bound: FloatArray) -> float:
        """Return the share of contexts whose bound is within the tolerance."""
        return float((bound <= self.tolerance).mean())


class ReferenceWatch:
    """The posterior at fixed contexts of shape (m, d), updated with every reward."""

    def __init__(
        self, model: Model, reference: FloatArray, recommender: Recommender, width: Width
    ) -> None:
        self.model = model
        self.contexts = reference
        self._recommender = recommender
        self._width = width
        self._follower = model.follow(reference)
        self._look_back: LookBack | None = None
        self._seen = 0
        self._active: tuple[int, ...] = ()

    def bound(self, active: tuple[int, ...], burn_in_end: int, seed: int) -> FloatArray:
        """Take in new rewards and return max(0, gap of the arm to deploy) at every context."""
        rule = self._recommender
        if isinstance(rule, SmallestGapInHistory):
            self._look(rule, active, burn_in_end)
        belief = Belief(self._follower.posterior(active), self._width)
        if self._look_back is not None and self._look_back.empty:
            self._look_back.add(belief)
        columns = range(len(active))
        evidence = _Now(self.contexts, len(active), seed, columns, belief, self._look_back)
        return np.maximum(rule.choose(evidence).gap, 0.0)

    def _look(self, rule: SmallestGapInHistory, active: tuple[int, ...], burn_in_end: int) -> None:
        """Update the look-back with every step since the last call."""
        if self._look_back is None or active != self._active:
            self._look_back = LookBack(rule.last)  # gaps to other arms are not comparable
            self._active = active
        first = self._seen + 1
        for step, posterior in enumerate(self._follower.steps(active), first):
            if step >= burn_in_end:
                self._look_back.add(Belief(posterior, self._width))
        self._seen = len(self.model)


@dataclass
class _Now:
    """What recommenders see of a watch."""

    contexts: FloatArray
    n_arms: int
    seed: int
    columns: Sequence[int]
    belief: Belief
    look_back: LookBack | None

    def smallest_gap_in_history(self, last: int | None) -> Choice:
        del last  # the look-back was kept for this rule alone
        if self.look_back is None:
            raise RuntimeError("no look-back was kept")
        return self.look_back.choice()
