"""How hard it is to tell the arms apart (section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray

_TOLERANCE_HINT = "the simple regret that is small enough, in units of reward"


def reward_gap(rewards: Any) -> FloatArray:
    """Return Δ_a(x), how far each arm is from the best other one, in the shape of ``rewards``.

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms, of two arms or more.

    Examples
    --------
    >>> reward_gap([[3.0, 1.0, 2.0]])
    array([[1., 2., 1.]])
    """
    table = np.asarray(rewards, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError(
            "rewards must be finite numbers of shape (contexts, arms) with two arms or more, "
            f"got shape {table.shape}"
        )
    second, highest = np.partition(table, -2, axis=1)[:, -2:].T[:, :, None]
    rival = np.where(table == highest, second, highest)
    return np.asarray(np.abs(rival - table))


def arm_hardness(rewards: Any, tolerance: float) -> FloatArray:
    """Return H_{a,ε} of every arm: the width below which the arm needs no more pulls.

    It is the smallest over the contexts of max(½(Δ_a(x) + ε), ε).

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms.
    tolerance
        The paper's ε.
    """
    epsilon = checks.positive("tolerance", tolerance, _TOLERANCE_HINT)
    closest = reward_gap(rewards).min(axis=0)
    return np.asarray(np.maximum((closest + epsilon) / 2, epsilon))


def hardness(rewards: Any, tolerance: float) -> float:
    """Return H_ε, the sum over arms of H_{a,ε}⁻²; at most A/ε².

    Parameters
    ----------
    rewards
        Expected rewards, contexts by arms.
    tolerance
        The paper's ε.
    """
    return float((arm_hardness(rewards, tolerance) ** -2).sum())
