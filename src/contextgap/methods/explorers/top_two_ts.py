"""Top-two Thompson sampling (Russo, "Simple Bayesian algorithms for best-arm identification")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from contextgap.base import checks
from contextgap.beliefs import Belief
from contextgap.methods.explorers.base import Explorer, Moment

_REDRAWS = 100  # after this many draws the rival is found by a formula


@dataclass(frozen=True)
class TopTwoTS(Explorer):
    """Try the best arm of a random draw or, as often, the best of a draw in which another is best.

    Thompson sampling alone soon tries nothing but the leader, which is the wrong thing when the
    question is whether another arm is better.

    Parameters
    ----------
    keep
        Probability of trying the first draw's best arm; 0.5 is Russo's.

    Examples
    --------
    >>> explorer = cg.explorers.TopTwoTS()
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 0, 1])
    """

    keep: float = 0.5
    reason: ClassVar[str] = "the best of a random draw, or its rival"

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", checks.share("keep", self.keep))

    def pick(self, moment: Moment) -> int:
        """Return the first draw's best arm, or redraw, up to 100 times, until another is best."""
        belief, rng = moment.belief, moment.rng
        first = int(belief.draws(rng, 1)[0].argmax())
        if len(belief.mean) == 1 or rng.random() < self.keep:
            return first
        best = belief.draws(rng, _REDRAWS).argmax(axis=-1)
        others = best[best != first]
        return int(others[0]) if len(others) else _likeliest_rival(belief, first)


def _likeliest_rival(belief: Belief, first: int) -> int:
    """Return the arm that most likely beats the first, without waiting for a draw that shows it."""
    # Of normals, arm a exceeds the first with probability Φ(ratio), where ratio is the difference
    # of the means divided by its standard deviation: the root of the summed squares of the half
    # widths if they are independent. This replaces the probability of being the best of all arms:
    # the two hardly differ once the first arm wins a hundred draws in a row.

    def merit(arm: int) -> tuple[float, float]:
        lead = float(belief.mean[arm] - belief.mean[first])
        if belief.apart is None:
            spread = math.hypot(belief.half_width[arm], belief.half_width[first])
        else:
            spread = float(belief.apart[arm, first])
        ratio = lead / spread if spread > 0 else math.copysign(math.inf, lead)
        return ratio, lead  # where nothing is uncertain, the means decide

    return max((arm for arm in range(len(belief.mean)) if arm != first), key=merit)
