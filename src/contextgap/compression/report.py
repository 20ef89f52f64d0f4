"""What compressing a policy cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.compression.original import Original


class CurveRow(NamedTuple):
    """One size of a compressed policy.

    Parameters
    ----------
    points
        Points of all arms together.
    bytes
        Bytes of constants in C.
    agreement
        Share of held-out reference contexts at which the decision is unchanged.
    """

    points: int
    bytes: int
    agreement: float


@dataclass(frozen=True)
class CompressionReport:
    """What compressing a policy cost.

    Parameters
    ----------
    agreement
        Share of decisions unchanged at reference contexts that were not used for choosing or
        refitting points; only ``compress(agreement=...)`` looks at them, to choose the size.
    agreement_fitted
        The same at the contexts that were used.
    added_regret
        Average over held-out contexts of what the original policy's mean says the changed
        decisions lose; never negative if the original deploys the highest mean.
    added_regret_bound
        The same with the original's upper bound of its own arm and its lower bound of the new one:
        what changed decisions lose at most, where the original's intervals hold.
    points
        Points of each arm.
    points_before
        Those of the original policy.
    bytes
        Bytes of constants in C.
    bytes_before
        Those of the original policy.
    recommender
        Name of the rule by which the compressed policy deploys.
    fitted
        What its means were fitted to: ``"mean"``, the original's means; ``"upper"``, its upper
        bounds; ``"nothing"`` if the policy was small enough as it was. Either way only up to a
        function that all arms share, so differences between arms are meant, not levels.
    curve
        Agreement at held-out contexts by size, for the same rule; the last row is the original.
    """

    agreement: float
    agreement_fitted: float
    added_regret: float
    added_regret_bound: float
    points: tuple[int, ...]
    points_before: tuple[int, ...]
    bytes: int
    bytes_before: int
    recommender: str
    fitted: str
    curve: tuple[CurveRow, ...] = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.bytes_before} bytes to {self.bytes} ({sum(self.points_before)} points to "
            f"{sum(self.points)}, deployed by {self.recommender}): {self.agreement:.2%} of "
            f"decisions unchanged, average regret added {self.added_regret:.3g}, "
            f"at most {self.added_regret_bound:.3g} where the original's intervals hold"
        )


def added_regret(original: Original, arms: IntArray) -> tuple[float, float]:
    """Return what deploying other arms loses on average, as believed and at most.

    Parameters
    ----------
    original
        What the original policy decides and believes.
    arms
        The arms deployed instead.
    """
    believed = _at(original.mean, original.arm) - _at(original.mean, arms)
    most = np.maximum(_at(original.upper, original.arm) - _at(original.lower, arms), 0.0)
    changed = arms != original.arm
    return float(np.mean(believed)), float(np.mean(np.where(changed, most, 0.0)))


def _at(values: FloatArray, arms: IntArray) -> FloatArray:
    return np.asarray(np.take_along_axis(values, arms[:, None], axis=1)[:, 0])
