"""When exploring may stop: enough of the contexts that matter are certified."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, Rows
from contextgap.base.contexts import ContextSchema
from contextgap.belief import Belief
from contextgap.models import ExactModel, Posterior
from contextgap.models.arm import root
from contextgap.recommenders import Recommender, SmallestGapInHistory
from contextgap.recommenders.history import Choice
from contextgap.recommenders.lookback import LookBack
from contextgap.widths import Width


@dataclass(frozen=True, eq=False)
class StoppingRule:
    """Stop when a share of reference contexts has a certificate within the tolerance.

    With a width that promises something, such as ``TheoremWidth``, so does the rule: the simple
    regret at those contexts is within the tolerance, with the width's probability.

    Parameters
    ----------
    tolerance
        The simple regret that may be left.
    share
        Of the reference contexts, above 0 and at most 1.
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
        intake = ContextSchema().read(self.reference, called="reference")
        if intake.single or not len(intake.rows):
            raise ValueError("reference must be a table of contexts (2-D) with at least one row")
        object.__setattr__(self, "tolerance", tolerance)
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "reference", intake.rows)
        object.__setattr__(self, "columns", intake.schema.columns)

    def contexts_for(self, schema: ContextSchema) -> FloatArray:
        """Return the reference contexts with their columns as a learner has them."""
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
    """The posterior at fixed contexts, followed as rewards come.

    One observation costs one matrix–vector product: with n earlier observations of the arm, the new
    row of V = L⁻¹K(arm's contexts, reference) follows from the factor's new row.

    Parameters
    ----------
    model
        The model to follow.
    reference
        Contexts, shape (m, d).
    recommender
        The rule to deploy by.
    width
        How standard deviations become intervals.
    """

    def __init__(
        self, model: ExactModel, reference: FloatArray, recommender: Recommender, width: Width
    ) -> None:
        self.model = model
        self._reference = reference
        self._recommender = recommender
        self._width = width
        self._seen = 0
        self._prior_variance = model.kernel.diagonal(reference)
        self._arms: list[_Followed] = []
        last = recommender.last if isinstance(recommender, SmallestGapInHistory) else 1
        self._look_back = LookBack(last)
        self._active: tuple[int, ...] = ()

    def bound(self, active: tuple[int, ...], burn_in_end: int, seed: int) -> FloatArray:
        """Catch up with the model and return max(0, gap of the arm to deploy) at every context."""
        if active != self._active:  # gaps to other arms are not comparable
            self._look_back = LookBack(self._look_back.last)
            self._active = active
        looks_back = isinstance(self._recommender, SmallestGapInHistory)
        while self._seen < len(self.model):
            self._follow(self._seen)
            self._seen += 1
            if looks_back and self._seen >= burn_in_end:
                self._look_back.add(self._belief())
        evidence = _Now(self, seed)
        if looks_back and self._look_back.empty:
            self._look_back.add(evidence.belief)
        return np.maximum(self._recommender.choose(evidence).gap, 0.0)

    def _follow(self, place: int) -> None:
        arm = int(self.model.sequence[place])
        while len(self._arms) <= arm:
            self._arms.append(_Followed(self._prior_variance))
        followed = self._arms[arm]
        n = len(followed.rows)
        entries = self.model.factor_row(arm, n)
        values = self.model.kernel(self.model.contexts[place][None], self._reference)[0]
        row = (values - entries[:-1] @ followed.rows.view) / entries[-1]
        z, w = self.model.innovations(arm, n)
        followed.rows.append(row)
        followed.fit += row * z
        followed.ones += row * w
        followed.variance -= row**2
        followed.gain += math.log(entries[-1]) - 0.5 * math.log(self.model.ridge)

    def _belief(self) -> Belief:
        prior, size = self.model.prior(), len(self._reference)
        mean = np.full((size, len(self._active)), prior)
        std = np.tile(np.sqrt(self._prior_variance)[:, None], (1, len(self._active)))
        for column, arm in enumerate(self._active):
            if arm < len(self._arms):
                followed = self._arms[arm]
                mean[:, column] = followed.fit + prior * (1.0 - followed.ones)
                std[:, column] = root(followed.variance.copy())
        # Of the step at hand, not of today: a look-back sees every step as it was.
        gains = [self._arms[arm].gain if arm < len(self._arms) else 0.0 for arm in self._active]
        gain = np.array(gains)
        posterior = Posterior(mean, std, gain, self.model.ridge, self.model.n_arms)
        return Belief(posterior, self._width)


class _Followed:
    """One arm's posterior at the reference contexts."""

    def __init__(self, prior_variance: FloatArray) -> None:
        self.rows = Rows(len(prior_variance))
        self.fit = np.zeros(len(prior_variance))  # the mean for prior mean 0
        self.ones = np.zeros(len(prior_variance))  # the fit to rewards that are all 1
        self.variance = prior_variance.copy()
        self.gain = 0.0  # ½ ln det(I + K/ridge)


class _Now:
    """What recommenders see of a watch."""

    def __init__(self, watch: ReferenceWatch, seed: int) -> None:
        self.contexts = watch._reference
        self.n_arms = len(watch._active)
        self.seed = seed
        self._watch = watch

    @cached_property
    def belief(self) -> Belief:
        return self._watch._belief()

    def smallest_gap_in_history(self, last: int | None) -> Choice:
        del last  # the look-back was kept for this rule alone
        return self._watch._look_back.choice()
