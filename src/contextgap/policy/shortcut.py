"""Decisions without all of the work: which arm, where its gap is not asked for.

Standard deviations are bounded, not computed, where the decision is the same whatever they turn out
to be. The other contexts go the long way, so that the answer is always that of the rule itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.belief import Belief
from contextgap.models import Model, Posterior
from contextgap.recommenders.rules import BoundedRule
from contextgap.widths import Width

# Arms with fewer points than this are so cheap to solve for that bounds do not pay.
_FEW = 256


def pays(rule: BoundedRule, model: Model, arms: Sequence[int]) -> bool:
    """Return whether computing bounds takes less time than it saves."""
    return not rule.needs_widths or max(map(model.observed.count, arms)) >= _FEW


def decided(
    rule: BoundedRule, model: Model, arms: Sequence[int], width: Width, contexts: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the arms chosen, and the rows where bounds do not decide."""
    bounds = model.bounds(contexts, arms)
    if bounds is None:
        return np.zeros(len(contexts), dtype=np.intp), np.arange(len(contexts))
    gain = model.information_gain(arms)
    least, most = (
        Belief(Posterior(bounds.mean, std, gain, model.ridge, model.n_arms), width)
        for std in (bounds.least, bounds.most)
    )
    arm, certain = rule.decided(least, most, bounds.slack)
    return arm, np.flatnonzero(~certain)
