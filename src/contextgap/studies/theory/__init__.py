"""The paper's constants and bounds, as functions: sections 4 and 5 and the appendix.

Everything here follows "Simple Regret Minimization for Contextual Bandits"; where a statement was
corrected, the function says so. Theorem 5.3's proof has gaps that are open: docs/theory.md has the
list, and says what holds without it.
"""

from contextgap.studies.theory.constants import (
    confidence,
    information_gain_bound,
    scale,
    scale_offset,
    scale_slope,
)
from contextgap.studies.theory.eigenvalues import eigenvalue_bound, eigenvalue_threshold
from contextgap.studies.theory.envelope import burn_in, pulls_for_width, width_envelope
from contextgap.studies.theory.hardness import arm_hardness, hardness, reward_gap
from contextgap.studies.theory.norm import norm_estimate
from contextgap.studies.theory.rates import contextual_gap_rate, uniform_rate
from contextgap.studies.theory.regret import RegretBound
from contextgap.studies.theory.spectrum import Spectrum, spectrum

__all__ = [
    "RegretBound",
    "Spectrum",
    "arm_hardness",
    "burn_in",
    "confidence",
    "contextual_gap_rate",
    "eigenvalue_bound",
    "eigenvalue_threshold",
    "hardness",
    "information_gain_bound",
    "norm_estimate",
    "pulls_for_width",
    "reward_gap",
    "scale",
    "scale_offset",
    "scale_slope",
    "spectrum",
    "uniform_rate",
    "width_envelope",
]
