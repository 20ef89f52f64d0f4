"""Decisions without all of the work: which arm, where its gap is not asked for.

Widths are followed only until the decision is the same whatever they turn out to be; see
``NarrowingPosterior``. The few contexts where rounding could decide go the long way, so that the
answer is always that of the rule itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contextgap.arrays import FloatArray, IntArray
from contextgap.belief import Belief
from contextgap.models import ExactModel, Posterior
from contextgap.models.narrowing import NarrowingPosterior
from contextgap.recommenders import Recommender
from contextgap.widths import Width

# If a panel leaves more than this share of contexts open, the next are not worth looking between.
_MANY = 0.5


def decided_arms(
    rule: Recommender, model: ExactModel, contexts: FloatArray, arms: Sequence[int], width: Width
) -> tuple[IntArray, IntArray]:
    """Return the arms chosen, and the rows where this way cannot tell.

    Parameters
    ----------
    rule
        Chooses among the arms.
    model
        The posterior.
    contexts
        Shape (m, d).
    arms
        The model's indices of the arms to choose from.
    width
        How standard deviations become intervals; wider for larger ones.
    """
    chosen = np.zeros(len(contexts), dtype=np.intp)
    open_ = np.arange(len(contexts))
    posterior = NarrowingPosterior(model, contexts, arms)
    gain = model.information_gain(arms)

    def belief(std: FloatArray) -> Belief:
        return Belief(Posterior(posterior.mean, std, gain, model.ridge, model.n_arms), width)

    while len(open_):
        settled = rule.decided(belief(posterior.least), belief(posterior.most), posterior.slack)
        if settled is None:
            break
        chosen[open_[settled.certain]] = settled.arm[settled.certain]
        left = np.flatnonzero(~settled.certain)
        open_ = open_[left]
        if not (len(left) and posterior.panels_left):
            break
        posterior.keep(left)
        if posterior.panels_done and len(left) > _MANY * len(settled.certain):
            posterior.finish()  # arms are close, in widths: bounds will not do
        else:
            posterior.narrow()
    return chosen, open_
