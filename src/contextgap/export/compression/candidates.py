"""The ways to compress a policy (a rule to deploy by, and what to fit), and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.c.layout import Layout
from contextgap.export.compression.refit import refitted
from contextgap.export.compression.sample import Decided, targets
from contextgap.export.compression.selection import Selection, normal_equations
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)
from contextgap.policy import Policy

# Of the observed contexts, so many at most may become points: their matrix has to fit in memory.
_MOST = 6000

_GAP = ((HighestMean(), "mean"), (SmallestGap(), "mean"))
WAYS: dict[type[Recommender], tuple[tuple[Recommender, str], ...]] = {
    HighestMean: ((HighestMean(), "mean"),),
    SmallestGap: _GAP,
    SmallestGapInHistory: _GAP,
    HighestUpper: ((HighestMean(), "upper"), (HighestUpper(), "mean")),
}


class Candidate(NamedTuple):
    """One way to compress a policy, at any size: how many points all arms have together.

    ``fitted`` says what the means are fitted to, ``"mean"`` or ``"upper"``.
    """

    original: Policy
    recommender: Recommender
    fitted: str
    selection: Selection
    layout: Layout

    def policy(self, size: int) -> Policy:
        """Return the policy of the first ``size`` points."""
        smaller = refitted(self.original, self.recommender, *self.selection.points(size))
        return Policy(replace(smaller.state, fallback=self.original.fallback))

    def bytes(self, size: int) -> int:
        """Return the bytes of the first ``size`` points."""
        arm = self.selection.points(size)[1]
        counts = np.bincount(arm, minlength=len(self.original.arms))
        return self.layout.holding(self.recommender, counts.tolist()).rom_bytes


def make_candidates(
    policy: Policy,
    fitting: Decided,
    layout: Layout,
    most_per_arm: int | None,
    rng: np.random.Generator,
) -> Iterator[Candidate]:
    """Return the ways in which a policy can be compressed, fitted where ``fitting`` was asked."""
    contexts, arm = _observed(policy, rng)
    there = Decided.of(policy, contexts)
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
    model = policy.state.model.deployed()
    index = np.full(model.n_arms, -1, dtype=np.intp)
    index[list(policy.state.active)] = np.arange(len(policy.state.active))
    arm = index[model.observed.arms]
    places = np.flatnonzero(arm >= 0)
    if len(places) > _MOST:
        places = rng.choice(places, _MOST, replace=False)
    places = places[np.lexsort((places, arm[places]))]
    return model.observed.contexts[places], arm[places]


def _keeps(wanted: float, samples: Iterable[Decided], policy: Policy) -> bool:
    """Whether a policy decides as before at this share of every sample."""
    return all(sample.share_kept(policy) >= wanted for sample in samples)


def search(
    candidates: Iterable[Candidate],
    goal: tuple[str, float],
    fitting: Decided,
    held_out: Decided,
) -> tuple[Candidate, int] | None:
    """Return the best way and its number of points; None if only all points satisfy the goal."""
    kind, wanted = goal
    best: tuple[float, Candidate, int] | None = None
    least_bytes: list[int] = []
    for candidate in candidates:
        if kind == "agreement":
            size = _smallest(candidate, partial(_keeps, wanted, (held_out, fitting)))
            score = 0.0 if size is None else -float(candidate.bytes(size))
        else:
            size = _largest(candidate, int(wanted) if kind == "bytes" else None)
            least_bytes.append(candidate.bytes(0))
            score = 0.0 if size is None else fitting.share_kept(candidate.policy(size))
        if size is not None and (best is None or score > best[0]):
            best = score, candidate, size
    if best is None and kind == "bytes":
        raise ValueError(
            f"bytes must be at least {min(least_bytes)}, which this policy takes without a single "
            f"point, got {int(wanted)}"
        )
    return None if best is None else best[1:]


def _largest(candidate: Candidate, most_bytes: int | None) -> int | None:
    """The largest number of points that fits; any fits if there is no limit."""
    if most_bytes is None:
        return candidate.selection.reach(np.iinfo(np.int64).max)
    if candidate.bytes(0) > most_bytes:
        return None
    low, high = 0, 1
    while candidate.selection.reach(high) == high and candidate.bytes(high) <= most_bytes:
        low, high = high, 2 * high
    high = min(high, candidate.selection.reach(high) + 1)
    return _bisect(low, high, lambda size: candidate.bytes(size) > most_bytes) - 1


def _smallest(candidate: Candidate, enough: Callable[[Policy], bool]) -> int | None:
    """The smallest number of points that is enough, found by doubling and bisection."""
    low, high = -1, 1
    while not enough(candidate.policy(size := candidate.selection.reach(high))):
        if size < high:
            return None
        low, high = high, 2 * high
    return _bisect(low, size, lambda size: enough(candidate.policy(size)))


def _bisect(low: int, high: int, true: Callable[[int], bool]) -> int:
    """The first whole number above ``low`` for which something is true, ``high`` being one."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high
