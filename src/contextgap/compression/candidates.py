"""The ways in which a policy can be compressed: a rule to deploy by, and what to fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.compression.choose import Selection
from contextgap.compression.equations import normal_equations
from contextgap.compression.original import Original, targets
from contextgap.compression.refit import refitted
from contextgap.compression.size import Layout
from contextgap.policy import Policy
from contextgap.recommenders import (
    HighestMean,
    HighestUpper,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)

# Of the observed contexts, so many at most may become points: their matrix has to fit in memory.
_MOST = 6000

_GAP = ((HighestMean(), "mean"), (SmallestGap(), "mean"))
WAYS: dict[type[Recommender], tuple[tuple[Recommender, str], ...]] = {
    HighestMean: ((HighestMean(), "mean"),),
    SmallestGap: _GAP,
    SmallestGapInHistory: _GAP,
    HighestUpper: ((HighestMean(), "upper"), (HighestUpper(), "mean")),
}


class Candidate:
    """One way to compress a policy, at any size.

    Parameters
    ----------
    policy
        The original.
    recommender
        The rule to deploy by.
    fitted
        What the means are fitted to, ``"mean"`` or ``"upper"``.
    selection
        The order in which points are taken.
    layout
        Knows the bytes.
    """

    def __init__(
        self,
        policy: Policy,
        recommender: Recommender,
        fitted: str,
        selection: Selection,
        layout: Layout,
    ) -> None:
        self.recommender = recommender
        self.fitted = fitted
        self._policy = policy
        self._selection = selection
        self._layout = layout

    def reach(self, size: int) -> int:
        """Return how many points there are to have, up to ``size``.

        Parameters
        ----------
        size
            Points of all arms together.
        """
        return self._selection.reach(size)

    def policy(self, size: int) -> Policy:
        """Return the policy of the first ``size`` points.

        Parameters
        ----------
        size
            Points of all arms together.
        """
        return refitted(self._policy, self.recommender, *self._selection.points(size))

    def bytes(self, size: int) -> int:
        """Return the bytes of the first ``size`` points.

        Parameters
        ----------
        size
            Points of all arms together.
        """
        arm = self._selection.points(size)[1]
        counts = np.bincount(arm, minlength=len(self._policy.arms))
        return self._layout.bytes(self.recommender, counts.tolist())


def make_candidates(
    policy: Policy,
    fitting: Original,
    layout: Layout,
    most_per_arm: int | None,
    rng: np.random.Generator,
) -> Iterator[Candidate]:
    """Return the ways in which a policy can be compressed.

    Parameters
    ----------
    policy
        The original.
    fitting
        Its decisions at the contexts to fit at.
    layout
        Knows the bytes.
    most_per_arm
        Points that an arm may have; None for any number.
    rng
        Draws which observed contexts may become points, if there are very many.
    """
    contexts, arm = _observed(policy, rng)
    there = Original.of(policy, contexts)
    selections: dict[str, Selection] = {}
    for recommender, fitted in WAYS[type(policy.method.recommender)]:
        if fitted not in selections:
            equations = normal_equations(
                policy.kernel,
                fitting.contexts,
                targets(fitting, fitted) - policy.prior_mean,
                fitting.arm,
                contexts,
                arm,
                # The functions themselves: jumps to where decisions differ have a large norm.
                (there.upper if fitted == "upper" else there.mean) - policy.prior_mean,
            )
            selections[fitted] = Selection(equations, most_per_arm)
        yield Candidate(policy, recommender, fitted, selections[fitted], layout)


def _observed(policy: Policy, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """The contexts observed of arms in use, arm after arm, and whose they are."""
    model = policy._model
    index = np.full(model.n_arms, -1, dtype=np.intp)
    index[list(policy._active)] = np.arange(len(policy._active))
    arm = index[model.observed.arms]
    places = np.flatnonzero(arm >= 0)
    if len(places) > _MOST:
        places = rng.choice(places, _MOST, replace=False)
    places = places[np.lexsort((places, arm[places]))]
    return model.observed.contexts[places], arm[places]
