"""Decisions without all of the work: which arm, where its gap is not asked for.

Widths are followed only until the decision is the same whatever they turn out to be; see
``NarrowingPosterior``. The few contexts where rounding could decide, or where bounds stay too wide,
go the long way, so that the answer is always that of the rule itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.belief import Belief
from contextgap.models import ExactModel, Posterior
from contextgap.models.narrowing import NarrowingPosterior, StillModel
from contextgap.recommenders.rules import BoundedRule
from contextgap.widths import Width

# Arms with fewer points than this are so cheap to solve for that bounds do not pay.
_FEW = 256
# Finding the spectrum of an arm costs as much as solving for some six contexts per point.
_CONTEXTS_PER_POINT = 6
# The kernel matrix of so many points, which is needed for it, is 128 MB.
_MANY = 4096
# If a stage leaves more than this share of contexts open, the next will not do much better.
_HOPELESS = 0.9


class Shortcut:
    """Decides for a model that does not change any more; prepares as far as use makes it pay.

    Parameters
    ----------
    rule
        Chooses among the arms.
    model
        The posterior.
    arms
        The model's indices of the arms to choose from.
    width
        How standard deviations become intervals; wider for larger ones.
    """

    def __init__(
        self, rule: BoundedRule, model: ExactModel, arms: Sequence[int], width: Width
    ) -> None:
        self._rule = rule
        self._model = model
        self._arms = arms
        self._width = width
        self._still: StillModel | None = None
        self._undecided = 0  # contexts so far that needed more than the first look
        self._largest = max(model.count(arm) for arm in arms)
        self.pays = self._largest >= _FEW or not rule.needs_widths
        worth = rule.needs_widths and self._largest <= _MANY
        self._spectra_at = _CONTEXTS_PER_POINT * self._largest if worth else math.inf

    def decided(self, contexts: FloatArray, asked: int) -> tuple[IntArray, IntArray]:
        """Return the arms chosen, and the rows where this way cannot tell.

        Parameters
        ----------
        contexts
            Shape (m, d).
        asked
            For how many contexts the caller waits, if these are a part of them only.
        """
        chosen = np.zeros(len(contexts), dtype=np.intp)
        left = np.arange(len(contexts))
        if self._still is None:
            self._still = StillModel(self._model, self._arms)
        posterior = NarrowingPosterior(self._still, contexts)
        open_ = self._settle(posterior, chosen, left)
        self._prepare(self._still, len(open_), asked)
        while len(open_) and posterior.can_narrow:
            left = left[open_]
            posterior.keep(open_)
            posterior.narrow()
            open_ = self._settle(posterior, chosen, left)
            if len(open_) > _HOPELESS * len(left):
                break
        return chosen, left[open_]

    def _settle(self, posterior: NarrowingPosterior, chosen: IntArray, left: IntArray) -> IntArray:
        """Write down what is certain; return which of ``left`` are not."""
        least = self._belief(posterior, posterior.least)
        most = self._belief(posterior, posterior.most)
        settled = self._rule.decided(least, most, posterior.slack)
        chosen[left[settled.certain]] = settled.arm[settled.certain]
        return np.flatnonzero(~settled.certain)

    def _belief(self, posterior: NarrowingPosterior, std: FloatArray) -> Belief:
        model = self._model
        gain = model.information_gain(self._arms)
        return Belief(Posterior(posterior.mean, std, gain, model.ridge, model.n_arms), self._width)

    def _prepare(self, still: StillModel, undecided: int, asked: int) -> None:
        """Find the spectra once they would have paid for themselves.

        Not while someone waits for a few decisions only, who would wait many times as long.
        """
        # Threads may come here at once: the worst that can happen is that both find them.
        self._undecided += undecided
        if self._undecided >= self._spectra_at and asked >= self._largest:
            self._spectra_at = math.inf
            still.find_spectra()
