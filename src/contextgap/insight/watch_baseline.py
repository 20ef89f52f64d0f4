"""What a watch compares with: scores of the log's contexts, as if they had not been observed.

A row's score must not depend on whether it belongs to the log. So distances are measured to a part
of the log whose own scores are not used, and what the policy answers at a logged context, and by
how much, is computed leave-one-out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray, evenly
from contextgap.base.checks import Label, Mask
from contextgap.beliefs import Belief
from contextgap.models import Posterior
from contextgap.policy import Policy
from contextgap.policy.answers import decided, eligible_at, expected_regret, own_std, visits_of

STATISTICS = {
    "distance": "distances to the log's contexts",
    "lead": "leads of the arms answered over the others",
    "value": "expected rewards",
    "decisions": "decisions",
}
"""What is bet on, of the policy's own; columns of contexts come after these."""
COLUMNS = 4
"""Numbers of contexts that are bet on, at most."""
MOST = 3000
"""Contexts of the log that scores are compared with, at most."""
FEWEST = 20
"""Contexts, or blocks of them, that make a baseline, and rewards of an arm that is audited."""
_BLOCK = 2000  # rows whose kernel values fit into a cache
_OFTEN = 3  # observations of one context, which one more of them hardly changes
_OPERATIONS = 2e10  # for leave-one-out predictions: about 2 seconds


class Scores(NamedTuple):
    """What scores of rows rest on: what is exported to C."""

    points: FloatArray  # of the log, which distances are measured to
    surprise: FloatArray  # of each arm
    columns: IntArray  # numbers of contexts that are scores themselves

    @classmethod
    def of(cls, policy: Policy, points: FloatArray, often: IntArray) -> Scores:
        """Return scores by points of the log, and by how often it has each arm.

        The columns are those which move points farthest, in the kernel's feature space, when only
        they take their values from other points.
        """
        moved = np.zeros(points.shape[1])
        for column in range(points.shape[1]):
            other = points.copy()
            other[:, column] = np.roll(points[:, column], 1)
            diagonal = policy.kernel.diagonal(points) + policy.kernel.diagonal(other)
            moved[column] = (diagonal - 2 * np.diagonal(policy.kernel(points, other))).mean()
        most = min(COLUMNS, max(1, np.count_nonzero(moved > 0)))
        first = np.sort(np.argsort(-moved, kind="stable")[:most])
        surprise = -np.log((often + 0.5) / (often + 0.5).sum())
        return cls(points, surprise, first)

    @property
    def size(self) -> int:
        """How many scores a row has."""
        return len(STATISTICS) + len(self.columns)

    def at(
        self, policy: Policy, rows: FloatArray, mean: FloatArray, arm: IntArray, among: Mask | None
    ) -> FloatArray:
        """Return the scores of rows, shape (rows, size)."""
        kernel, everywhere = policy.kernel, np.arange(len(rows))
        scores = np.empty((self.size, len(rows))).T
        # Squared distances in the kernel's feature space, to the nearest of the points.
        own_values = kernel.diagonal(self.points)
        least = own_values.min()
        more = 0.5 * (own_values - least)[:, None]  # nothing, for most kernels
        for first in range(0, len(rows), _BLOCK):
            part = slice(first, first + _BLOCK)
            if more.any():
                near = (kernel(self.points, rows[part]) - more).max(axis=0)
            else:
                near = kernel.highest(self.points, rows[part])
            scores[part, 0] = kernel.diagonal(rows[part]) + least - 2.0 * near
        scores[:, 2] = own = mean[everywhere, arm]
        others = mean.T.copy() if among is None else np.where(among.T, mean.T, -np.inf)
        others[arm, everywhere] = -np.inf
        best = others.max(axis=0)
        scores[:, 1] = np.where(np.isneginf(best), 0.0, best - own)
        scores[:, 3] = self.surprise[arm]
        scores[:, len(STATISTICS) :] = rows[:, self.columns]
        scores[np.isnan(scores)] = np.inf
        return scores


class Answered(NamedTuple):
    """What the policy answers at rows, and the means that it compared."""

    arm: IntArray
    mean: FloatArray
    status: IntArray


class LeftOut(NamedTuple):
    """The log's contexts, each answered as if it had not been observed.

    A context at which several arms were measured is one context, left out with all its rewards. If
    contexts recur, every observation is a row of its own, as it is in deployment, and those of a
    context that was observed often leave nothing out.
    """

    places: IntArray  # of observations left out
    which: IntArray  # the context of each
    contexts: FloatArray
    posterior: Posterior
    eligible: Mask
    answered: Answered
    gap: FloatArray
    error: FloatArray  # of each of the observations

    @classmethod
    def of(cls, policy: Policy) -> LeftOut:
        chooser, model = policy.chooser, policy.state.model
        log, active = model.observed, chooser.active
        _, first, which = np.unique(log.contexts, axis=0, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        recurring = np.zeros(0, dtype=np.intp)
        if _met_again(which, log.arms):
            recurring = np.flatnonzero(np.bincount(which)[which] >= _OFTEN)
            first = which = np.arange(len(log))
        order = np.argsort(first)  # as they were told
        sizes = np.square(np.asarray(model.support_sizes(active), dtype=np.float64))
        most = max(200, int(_OPERATIONS / max(1.0, sizes.sum() + 2 * sizes.max())))
        kept = evenly(np.arange(len(order)), min(MOST, most))
        place_of = np.full(len(order), -1)
        place_of[order[kept]] = np.arange(len(kept))
        places = np.flatnonzero(place_of[which] >= 0)
        which = place_of[which[places]]
        contexts = log.contexts[first[order[kept]]]
        visits, parts, errors = visits_of(model)[places], [], []
        for block in chooser.blocks(len(places)):
            found, error = model.left_out(places[block], visits[block], active)
            parts.append(found)
            errors.append(error)
        # Each arm's posterior is the one without what was observed of it at this very context.
        told = {arm: column for column, arm in enumerate(active)}
        column = np.array([told.get(arm, -1) for arm in log.arms[places].tolist()])
        leading = np.full(len(kept), -1)
        leading[which[::-1]] = np.arange(len(places))[::-1]
        values = {}
        for name in ("mean", "std"):
            every = np.concatenate([getattr(part, name) for part in parts])
            values[name] = every[leading]
            own = column >= 0
            values[name][which[own], column[own]] = every[own, column[own]]
        # A context met often was part of the log, and is answered as such when it is met again.
        again = place_of[recurring][place_of[recurring] >= 0]
        for block in chooser.blocks(len(again)):
            found = model.posterior(contexts[again[block]], active)
            for name in values:
                values[name][again[block]] = getattr(found, name)
        covariance = None
        if parts[0].covariance is not None:
            covariance = np.concatenate([part.covariance for part in parts])[leading]
        posterior = parts[0]._replace(**values, covariance=covariance)
        eligible = eligible_at(model, active, places[leading])
        there = decided(chooser, policy.fallback, posterior, contexts, eligible)
        answered = Answered(there.arm, posterior.mean, there.status)
        return cls(
            places,
            which,
            contexts,
            posterior,
            eligible,
            answered,
            there.gap,
            np.concatenate(errors),
        )

    def doubts(self, policy: Policy) -> tuple[FloatArray, FloatArray]:
        """Return expected regrets and certificates."""
        some, most = evenly(np.arange(len(self.contexts)), 500), policy.state.largest_regret
        mean = np.where(self.eligible, self.posterior.mean, -1e300)[some]
        std = own_std(Belief(self.posterior, policy.width))
        regret = expected_regret(mean, std[some], self.answered.arm[some])
        return finite(np.minimum(regret, most)), finite(np.clip(self.gap, 0.0, most))

    def residuals(self, policy: Policy) -> dict[Label, FloatArray]:
        """Return standardised leave-one-out errors of arms with enough of them, by arm.

        They are those at contexts where the policy answers the arm, as it does where audits are
        made; where these are few, and rewards have more than two values, at all contexts.
        """
        log, found = policy.state.model.observed, {}
        observed = log.arms[self.places]
        censored = np.isin(self.places, log.censored)
        for column, arm in enumerate(policy.state.active):
            own = np.flatnonzero((observed == arm) & ~censored)
            answered = own[self.answered.arm[self.which[own]] == column]
            if policy.state.reward_range is not None or len(answered) >= FEWEST:
                own = answered  # two values have other errors where another arm is answered
            if len(own) >= FEWEST:
                std = self.posterior.std[self.which[own], column]
                spread = np.hypot(std, math.sqrt(policy.ridge))
                found[policy.arms[column]] = self.error[own] / spread
        return found


def _met_again(which: IntArray, arms: IntArray) -> bool:
    """Return whether contexts recur by themselves, some more often than others.

    Otherwise rewards of one context are measurements of several arms, or replicates.
    """
    often = np.bincount(which)
    pairs = np.unique(np.column_stack([which, arms]), axis=0)
    return bool(len(pairs) < len(which) and (often != often[0]).any())


def finite(values: FloatArray) -> FloatArray:
    """Return values with the largest in the place of those that are not finite."""
    known = values[np.isfinite(values)]
    return np.nan_to_num(values, nan=np.inf).clip(max=known.max(initial=0.0))
