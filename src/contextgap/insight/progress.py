"""How an exploration went, with the hyperparameters of now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.labels import Label
from contextgap.insight.courses import read_policy, seen
from contextgap.policy import Estimate, Policy
from contextgap.policy.scoring import QUICK
from contextgap.tables.contexts import Encoded

_CONTEXTS = 200  # at which certificates are computed


@dataclass(frozen=True)
class Progress:
    """How an exploration went.

    .. versionadded:: 0.2

    Parameters
    ----------
    arms
        The arms.
    rewards
        How many rewards were told at each point in time.
    picks
        Shape (times, arms): how many of them were of each arm.
    settled
        The share of contexts at which regret bounds were within the tolerance.
    value
        What deploying would have earned, as a score card estimates it; NaN where it cannot tell.
    error
        The standard error of that.

    Examples
    --------
    >>> progress = cg.insight.progress(policy, points=4)
    >>> progress.rewards, progress.picks.shape
    (array([11, 20, 30, 40]), (4, 2))
    """

    arms: tuple[Label, ...]
    rewards: IntArray
    picks: IntArray = field(repr=False)
    settled: FloatArray = field(repr=False)
    value: FloatArray = field(repr=False)
    error: FloatArray = field(repr=False)


def progress(
    source: Any, tolerance: float = 0.0, points: int = 16, contexts: Any = None
) -> Progress:
    """Return how an exploration went; kernel, ridge and kind of model are those of now.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    tolerance
        The largest regret bound at which a context counts as settled.
    points
        How many points in time.
    contexts
        Contexts that are to be settled; by default some that were seen, which are those that were
        chosen, where a pool was asked for.

    See Also
    --------
    plot.progress : Draws it.

    Examples
    --------
    >>> cg.insight.progress(policy, points=4).picks[-1]
    array([22, 18])
    """
    policy = read_policy(source)
    tolerance = checks.real("tolerance", tolerance)
    log = policy.state.model.observed
    if log.forgotten:
        raise ValueError(
            "progress needs all trials, and this policy was saved with a sample of them; ask its "
            "learner"
        )
    count = checks.whole("points", points, least=1)
    times = np.unique(np.linspace(1, len(log), count + 1).round().astype(np.intp)[1:])
    if contexts is None:
        contexts = Encoded(seen(policy, _CONTEXTS), policy.state.schema)
    settled, value, error = np.empty((3, len(times)))
    for place, earlier in enumerate(_earlier(policy, times)):
        settled[place] = (earlier.certificate(contexts).bound <= tolerance).mean()
        known = len(earlier.state.model) > 1
        found = earlier.score(rows=QUICK).value if known else Estimate(np.nan, np.nan)
        value[place], error[place] = found.value, found.error
    own = log.arms[:, None] == np.asarray(policy.state.active)
    return Progress(policy.arms, times, own.cumsum(axis=0)[times - 1], settled, value, error)


def _earlier(policy: Policy, times: IntArray) -> Iterator[Policy]:
    """Yield the policies after fewer rewards."""
    now, log = policy.state.model, policy.state.model.observed
    model = type(now)(now.kernel, now.ridge, now.n_arms, now.prior_mean, **now.settings())
    for first, last in zip([0, *times[:-1]], times, strict=True):
        model.observe_many(log.contexts[first:last], log.arms[first:last], log.rewards[first:last])
        known = log.snapshot()
        known.truncate(int(last))
        model.observed.take_notes_from(known)
        yield Policy(replace(policy.state, model=model.snapshot(), card=None))
