"""A faster way to choose arms where their gaps are not asked for.

Cheap bounds replace standard deviations where the decision is the same for all values between them.
The other contexts are computed in full, so the answer is always that of the rule itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.beliefs.belief import Belief
from contextgap.beliefs.widths import Width
from contextgap.methods.recommenders.rules import BoundedRule
from contextgap.models import Model, Posterior
from contextgap.models.answers import Bounds

# With fewer points than this per arm, bounds would not save time.
_FEW = 256


def pays(rule: BoundedRule, model: Model, arms: Sequence[int]) -> bool:
    """Return whether computing bounds takes less time than it saves."""
    if not rule.needs_widths:
        return True
    return model.narrow_bounds and max(map(model.observed.count, arms)) >= _FEW


def decided(
    rule: BoundedRule,
    model: Model,
    arms: Sequence[int],
    width: Width,
    bounds_of: Callable[[FloatArray], Bounds],
    contexts: FloatArray,
) -> tuple[IntArray, IntArray]:
    """Return the arms chosen, and the rows where bounds do not decide."""
    bounds = bounds_of(contexts)
    gain = model.information_gain(arms)
    least, most = (
        Belief(Posterior(bounds.mean, std, gain, model.ridge, model.n_arms), width)
        for std in (bounds.least, bounds.most)
    )
    arm, certain = rule.decided(least, most, bounds.slack)
    return arm, np.flatnonzero(~certain)
