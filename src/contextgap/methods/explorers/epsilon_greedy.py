"""ε-greedy with a decaying ε, as in the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.base import checks
from contextgap.methods.explorers.base import Explorer, Moment


@dataclass(frozen=True)
class EpsilonGreedy(Explorer):
    """Try the highest mean, but at step t a random arm with probability decay^t.

    Parameters
    ----------
    decay
        Between 0 and 1; the paper's is 0.99.
    """

    decay: float = 0.99
    reason: ClassVar[str] = "the highest mean, or now and then a random arm"

    def __post_init__(self) -> None:
        decay = checks.at_least("decay", self.decay, 0, "a number between 0 and 1")
        if decay > 1:
            raise ValueError(f"decay must be a number between 0 and 1, got {self.decay!r}")
        object.__setattr__(self, "decay", decay)

    def pick(self, moment: Moment) -> int:
        """Return a random arm with probability decay^t, else argmax of mean."""
        if moment.rng.random() < self.decay**moment.step:
            return int(moment.rng.integers(len(moment.pulls)))
        return int(moment.belief.mean.argmax())
