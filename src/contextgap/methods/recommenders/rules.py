"""Recommenders: which arm to deploy, where there is no feedback and every mistake costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.components import Component, lazy
from contextgap.beliefs import Belief, Width, gaps, highest_other
from contextgap.methods.recommenders.history import Choice, smallest_gap_in_history
from contextgap.models import KeepsHistory, Model, Posterior, Predictor


class Evidence(Protocol):
    """What a recommender may use.

    ``contexts`` has shape (m, d), ``belief`` arrays (m, n_arms); ``seed`` is for rules that draw at
    random. ``columns`` are the places of these arms among all arms of the policy, of which some may
    not be eligible.

    Examples
    --------
    >>> _, _, evidence = next(policy.answers(contexts[:3]))
    >>> evidence.n_arms, evidence.belief.mean.shape
    (2, (3, 2))
    """

    contexts: FloatArray
    n_arms: int
    seed: int
    columns: Sequence[int]

    @property
    def belief(self) -> Belief:
        """What is believed after the last step."""

    def smallest_gap_in_history(self, last: int | None) -> Choice:
        """Return the look-back's choice over the last ``last`` steps, or all since the burn-in."""


@dataclass(eq=False)
class ModelEvidence:
    """The evidence that a model gives at contexts of shape (m, d)."""

    predictor: Predictor
    contexts: FloatArray
    width: Width
    burn_in_end: int  # after so many observations the look-back starts
    seed: int  # for rules that draw at random
    columns: Sequence[int] = ()  # places of the predictor's arms in a policy; by default all
    among: int = 0  # contexts that are asked about in all, of which these may be a block
    n_arms: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_arms = len(self.predictor.arms)
        self.columns = self.columns or range(self.n_arms)

    def at(self, places: IntArray) -> ModelEvidence:
        """Return the evidence at some of the contexts."""
        return replace(self, contexts=self.contexts[places], among=len(places))

    @lazy
    def belief(self) -> Belief:
        """What is believed now, contexts by arms."""
        return Belief(self.predictor.posterior(self.contexts, self.among), self.width)

    @lazy
    def means(self) -> tuple[FloatArray, FloatArray] | None:
        """Means and bounds on their rounding errors; None where they are not cheap."""
        return self.predictor.means(self.contexts)

    @property
    def bounds(self) -> tuple[Belief, Belief, FloatArray] | None:
        """Beliefs with the least and highest widths, and the means' rounding; None if not cheap."""
        bounds = self.predictor.bounds(self.contexts)
        if bounds is None:
            return None
        model, arms = self.predictor.model, self.predictor.arms
        gain = model.information_gain(arms)
        least, most = (
            Belief(Posterior(bounds.mean, std, gain, model.ridge, model.n_arms), self.width)
            for std in (bounds.least, bounds.most)
        )
        return least, most, bounds.slack

    def smallest_gap_in_history(self, last: int | None) -> Choice:
        """Return the look-back's choice over the last ``last`` steps, or all since the burn-in."""
        model, now = _with_history(self.predictor.model), len(self.predictor.model)
        since = min(self.burn_in_end, now)
        if last is not None:
            since = max(since, now + 1 - last)
        arms = self.predictor.arms
        return smallest_gap_in_history(model, self.contexts, arms, self.width, since)


class Recommender(Component, ABC):
    """A rule that picks the arm to deploy at each context.

    See Also
    --------
    Method : Pairs a recommender with an explorer.
    testing.check_recommender : Checks your own.

    Examples
    --------
    >>> from contextgap.recommenders import Choice, Recommender
    >>> class First(Recommender):
    ...     def choose(self, evidence):
    ...         first = np.zeros(len(evidence.contexts), dtype=int)
    ...         return Choice(first, evidence.belief.gap[:, 0])
    >>> cg.Method(explorer=cg.explorers.Uniform(), recommender=First()).name
    'Uniform+First'
    """

    @abstractmethod
    def choose(self, evidence: Evidence) -> Choice:
        """Return the chosen arms and their gaps.

        Examples
        --------
        >>> _, _, evidence = next(policy.answers(contexts[:3]))
        >>> cg.HighestMean().choose(evidence).arm.shape
        (3,)
        """

    def choose_arms(self, evidence: ModelEvidence) -> IntArray:
        """Return the arms that ``choose`` chooses, faster where that can do without gaps.

        .. versionadded:: 0.3

        Examples
        --------
        >>> _, _, evidence = next(policy.answers(contexts[:3]))
        >>> cg.HighestMean().choose_arms(evidence).shape
        (3,)
        """
        return self.choose(evidence).arm

    def suited(self, by_features: bool) -> Recommender:
        """Return the rule of a policy, by whether its arms share what they learn by features."""
        del by_features
        return self


class _ByBelief(Recommender):
    """A rule of the belief after the last step only."""

    def choose(self, evidence: Evidence) -> Choice:
        arm = self._pick(evidence)
        gap = np.take_along_axis(evidence.belief.gap, arm[:, None], axis=-1)[:, 0]
        return Choice(arm, gap)

    def choose_arms(self, evidence: ModelEvidence) -> IntArray:
        clear = self.clear(evidence)
        if clear is None:
            return self.choose(evidence).arm
        arm, certain = clear
        left = np.flatnonzero(~certain)
        if len(left):
            arm[left] = self.choose(evidence.at(left)).arm
        return arm

    @abstractmethod
    def _pick(self, evidence: Evidence) -> IntArray: ...

    def clear(self, evidence: ModelEvidence) -> tuple[IntArray, NDArray[np.bool_]] | None:
        """Return arms, and where these are certain by cheap numbers; None if there are none."""
        del evidence
        return None


@dataclass(frozen=True)
class SmallestGap(_ByBelief):
    """Deploy the arm with the smallest gap after the last step: the paper's practical rule.

    Examples
    --------
    >>> method = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.SmallestGap())
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(0.5), method=method)
    >>> learner.fit(contexts[:2], [0, 1], [1.0, 2.0]).recommend(contexts[:2])
    array([0, 1])
    """

    def _pick(self, evidence: Evidence) -> IntArray:
        return evidence.belief.leader

    def clear(self, evidence: ModelEvidence) -> tuple[IntArray, NDArray[np.bool_]] | None:
        bounds = evidence.bounds
        return None if bounds is None else self.decided(*bounds)

    def decided(
        self, least: Belief, most: Belief, slack: FloatArray
    ) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return the leader, and where it is the same for all widths between two beliefs'."""
        # Both have the same means, which may be wrong by up to ``slack`` at each context.
        #
        # With m the means, w the half widths and M the highest upper bound of the arms other than a
        # and b, the gap of b exceeds that of a by s_a − s_b, where s_i = m_i + max(m_i, M − w_i):
        # mostly the widths cancel out, so this decides more often than bounds on the gaps would.
        mean, rows = least.mean, np.arange(len(least.mean))
        if mean.shape[1] == 1:
            return np.zeros(len(rows), dtype=np.intp), np.ones(len(rows), dtype=bool)
        middle = (least.half_width + most.half_width) / 2
        leader = gaps(mean - middle, mean + middle).argmin(axis=-1)
        uppers = [belief.upper.copy() for belief in (least, most)]
        for upper in uppers:
            upper[rows, leader] = -np.inf
        low, high = map(highest_other, uppers)
        own, width = mean[rows, leader, None], most.half_width[rows, leader, None]
        ours = own + np.maximum(own, low - width)
        theirs = mean + np.maximum(mean, high - least.half_width)
        theirs[rows, leader] = -np.inf
        certain = (ours > theirs + 4 * slack[:, None]).all(axis=-1)
        return leader, np.asarray(certain)


@dataclass(frozen=True)
class HighestMean(_ByBelief):
    """Deploy the arm with the highest posterior mean.

    Examples
    --------
    >>> method = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.HighestMean())
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(0.5), method=method)
    >>> learner.fit(contexts[:2], [0, 1], [1.0, 2.0]).recommend(contexts[:2])
    array([0, 1])
    """

    def _pick(self, evidence: Evidence) -> IntArray:
        return np.asarray(evidence.belief.mean.argmax(axis=-1))

    def clear(self, evidence: ModelEvidence) -> tuple[IntArray, NDArray[np.bool_]] | None:
        means = evidence.means
        if means is None:
            return None
        mean, slack = means
        arm, rows = mean.argmax(axis=-1), np.arange(len(mean))
        others = mean.copy()
        others[rows, arm] = -np.inf
        return arm, np.asarray(mean[rows, arm] > others.max(axis=-1) + 4 * slack)


@dataclass(frozen=True)
class MeanOrGap(Recommender):
    """Deploy the highest mean, or where arms share what they learn by features the smallest gap.

    A policy has one of the two rules, by ``suited``. The highest mean needs no widths, which makes
    exports small. Where neighbouring arms pay nearly the same, the smallest gap has a lower regret.

    .. versionadded:: 0.3

    Examples
    --------
    >>> from contextgap.recommenders import MeanOrGap
    >>> MeanOrGap().suited(by_features=True)
    SmallestGap()
    """

    def suited(self, by_features: bool) -> Recommender:
        """Return one of the two rules."""
        return SmallestGap() if by_features else HighestMean()

    def choose(self, evidence: Evidence) -> Choice:
        """Return the choice among arms without features."""
        return HighestMean().choose(evidence)


@dataclass(frozen=True)
class HighestUpper(_ByBelief):
    """Deploy the arm with the highest upper bound, as Kernel-UCB does.

    Examples
    --------
    >>> method = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.HighestUpper())
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(0.5), method=method)
    >>> learner.fit(contexts[:2], [0, 1], [1.0, 2.0]).recommend(contexts[:2])
    array([0, 1])
    """

    def _pick(self, evidence: Evidence) -> IntArray:
        return np.asarray(evidence.belief.upper.argmax(axis=-1))


@dataclass(frozen=True)
class PosteriorSample(_ByBelief):
    """Deploy the highest of one random draw per arm, as Kernel-TS does.

    The draw is a fixed function of context, arm and seed, so a frozen policy always gives the same
    answer at the same context, in any order and in any thread.

    Examples
    --------
    >>> method = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.PosteriorSample())
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(0.5), method=method, seed=0)
    >>> learner.fit(contexts[:2], [0, 1], [1.0, 2.0]).recommend(contexts[:2])
    array([0, 1])
    """

    def _pick(self, evidence: Evidence) -> IntArray:
        belief = evidence.belief
        normals = context_normals(evidence.contexts, evidence.columns, evidence.seed)
        return np.asarray((belief.mean + belief.half_width * normals).argmax(axis=-1))


@dataclass(frozen=True)
class SmallestGapInHistory(Recommender):
    """Deploy the arm with the smallest gap at any step: Algorithm 1, exactly.

    Parameters
    ----------
    last
        How many steps to look back, 1 being the last alone; None for all since the burn-in.

    Examples
    --------
    >>> method = cg.Method(explorer=cg.explorers.Uniform(), recommender=cg.SmallestGapInHistory())
    >>> learner = cg.Learner(2, kernel=cg.Gaussian(0.5), method=method)
    >>> learner.fit(contexts[:2], [0, 1], [1.0, 2.0]).recommend(contexts[:2])
    array([0, 1])
    """

    last: int | None = None

    def __post_init__(self) -> None:
        if self.last is not None:
            object.__setattr__(self, "last", checks.whole("last", self.last, least=1))

    def choose(self, evidence: Evidence) -> Choice:
        """Return the chosen arms and their gaps at the steps they were chosen for."""
        return evidence.smallest_gap_in_history(self.last)


def check_history(rule: Recommender, model: Model) -> None:
    """Raise ``TypeError`` if a rule looks back and the model does not keep its history."""
    if isinstance(rule, SmallestGapInHistory):
        _with_history(model)


def _with_history(model: Model) -> KeepsHistory:
    if not isinstance(model, KeepsHistory):
        raise TypeError(
            f"SmallestGapInHistory looks back on every step, but a model of kind {model.kind!r} "
            "does not keep its history; deploy by SmallestGap, or learn with points=None"
        )
    return model


def context_normals(contexts: FloatArray, arms: Sequence[int], seed: int) -> FloatArray:
    """Return standard normal draws, contexts by arms, each a hash of seed, context and arm."""
    from scipy.special import ndtri  # slow to load, and most policies do without

    state = np.full(len(contexts), seed, dtype=np.uint64)
    for column in (contexts + 0.0).T:  # + 0.0 makes −0.0 and 0.0 the same context
        state = scramble(scramble(state) ^ np.ascontiguousarray(column).view(np.uint64))
    numbers = np.array(arms, dtype=np.uint64) + np.uint64(1)
    bits = scramble(scramble(state)[:, None] ^ scramble(numbers)[None, :])
    uniform = ((bits >> np.uint64(11)) + 0.5) * 2.0**-53
    return np.asarray(ndtri(uniform))


def scramble(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014): 64 bits to 64 others."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
