"""The comparison of rates below Theorem 5.3, which are about different problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.studies.theory.arguments import counts

_HINT = "a constant of the bound; 1 shows the rate"


def uniform_rate(
    steps: Any, dimension: int, *, constant: float = 1.0, decay: float = 1.0
) -> FloatArray:
    """Return C·exp(−c·T^(2/(2 + d))): the fastest that Guan and Jiang's bound can fall.

    Their bound ("Nonparametric stochastic contextual bandits", 2018) is about uniform sampling and
    nearest neighbours, with d₁ ≥ 2 instead of the 2 that is added to d.

    Parameters
    ----------
    steps
        Exploration steps, T; a number or an array.
    dimension
        Numbers per context, d.
    constant, decay
        C and c.
    """
    d = checks.whole("dimension", dimension, least=1)
    c, rate = checks.positive("constant", constant, _HINT), checks.positive("decay", decay, _HINT)
    return np.asarray(c * np.exp(-rate * counts("steps", steps) ** (2 / (2 + d))))


def contextual_gap_rate(steps: Any, *, constant: float = 1.0, decay: float = 1.0) -> FloatArray:
    """Return C'·T·exp(−c'·T), the rate at which the bound of Theorem 5.3 falls, up to logarithms.

    It needs a kernel of finite rank, by assumption A III; Guan and Jiang's does not, so the two are
    not about the same problems. With finite rank, uniform exploration has this rate, too.

    Parameters
    ----------
    steps
        Exploration steps, T; a number or an array.
    constant, decay
        C' and c'.
    """
    t = counts("steps", steps)
    c, rate = checks.positive("constant", constant, _HINT), checks.positive("decay", decay, _HINT)
    return np.asarray(c * t * np.exp(-rate * t))
