"""All arms at a context, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contextgap.base.arrays import FloatArray
from contextgap.base.labels import Label
from contextgap.beliefs.belief import Belief


@dataclass(frozen=True)
class Ranked:
    """One arm of a ranking, and what is believed about it.

    Parameters
    ----------
    arm
        Its label.
    mean, std, lower, upper
        What is believed about its reward, or its cost where costs are told.
    bound
        A bound on the simple regret of deploying it: max(0, its gap among the eligible arms).
    """

    arm: Label
    mean: float
    std: float
    lower: float
    upper: float
    bound: float


def ranked(
    arms: Sequence[Label],
    belief: Belief,
    bounds: FloatArray,
    places: Sequence[int],
    sign: float,
) -> tuple[Ranked, ...]:
    """Return arms in order; ``places`` says where each is in the belief and the bounds."""
    columns = (*belief.told(sign), bounds)
    return tuple(
        Ranked(arm, *(float(column[place]) for column in columns))
        for arm, place in zip(arms, places, strict=True)
    )
