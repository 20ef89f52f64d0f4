"""The baselines of the paper's experiments, and other rules of a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.methods.explorers.base import Explorer, GapExplorer, Moment, least_pulled


@dataclass(frozen=True)
class Uniform(Explorer):
    """Try every arm equally often, whatever the context.

    Parameters
    ----------
    random
        Try a random arm each time instead of the one tried least so far. Its propensity is then
        known; with ``burn_in=0`` that of every pick.

    Examples
    --------
    >>> explorer = cg.explorers.Uniform()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 0, 1])
    """

    random: bool = False
    adaptive: ClassVar[bool] = False
    reason: ClassVar[str] = "its turn"

    def __post_init__(self) -> None:
        checks.truth("random", self.random)

    def pick(self, moment: Moment) -> int:
        """Return the arm pulled least so far, or a random one."""
        if self.random:
            return int(moment.rng.integers(len(moment.pulls)))
        return least_pulled(moment)

    def propensities(self, moment: Moment) -> FloatArray | None:
        """Return the same for every arm, if arms are random."""
        return np.full(len(moment.pulls), 1 / len(moment.pulls)) if self.random else None


@dataclass(frozen=True)
class EpsilonGreedy(Explorer):
    """ε-greedy: try the highest mean, but at step t a random arm with probability decay^t.

    Parameters
    ----------
    decay
        Between 0 and 1; the paper's is 0.99.

    Examples
    --------
    >>> explorer = cg.explorers.EpsilonGreedy(decay=0.9)
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    decay: float = 0.99
    reason: ClassVar[str] = "the highest mean, or now and then a random arm"

    def __post_init__(self) -> None:
        object.__setattr__(self, "decay", checks.share("decay", self.decay))

    def pick(self, moment: Moment) -> int:
        """Return a random arm with probability decay^t, else argmax of mean."""
        if moment.rng.random() < self.decay**moment.step:
            return int(moment.rng.integers(len(moment.pulls)))
        return int(moment.belief.mean.argmax())


@dataclass(frozen=True)
class KernelUCB(Explorer):
    """Optimism: try the arm with the highest upper bound (Valko et al., 2013).

    Examples
    --------
    >>> explorer = cg.explorers.KernelUCB()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    reason: ClassVar[str] = "the highest upper bound"

    def pick(self, moment: Moment) -> int:
        """Return argmax of upper."""
        return int(moment.belief.upper.argmax())


@dataclass(frozen=True)
class KernelTS(Explorer):
    """Thompson sampling: draw a value per arm, try the highest (Chowdhury and Gopalan, 2017).

    Examples
    --------
    >>> explorer = cg.explorers.KernelTS()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 0, 0])
    """

    reason: ClassVar[str] = "the highest of one random draw per arm"

    def pick(self, moment: Moment) -> int:
        """Return argmax of a draw whose standard deviations are the half widths."""
        return int(moment.belief.draws(moment.rng, 1)[0].argmax())


@dataclass(frozen=True)
class MaxVariance(Explorer):
    """Try the arm with the largest posterior standard deviation here.

    Examples
    --------
    >>> explorer = cg.explorers.MaxVariance()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    adaptive: ClassVar[bool] = False
    reason: ClassVar[str] = "the largest standard deviation"

    def pick(self, moment: Moment) -> int:
        """Return argmax of std."""
        return int(moment.belief.std.argmax())


@dataclass(frozen=True)
class Elimination(GapExplorer):
    """Try the arm with the widest interval among those that may still be the best here.

    Examples
    --------
    >>> explorer = cg.explorers.Elimination()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 1, 0])
    """

    reason: ClassVar[str] = "the widest interval among arms that may be the best"

    def pick(self, moment: Moment) -> int:
        """Return argmax of width over the arms that may be the best."""
        belief = moment.belief
        return int(np.where(belief.plausible, belief.half_width, -np.inf).argmax())
