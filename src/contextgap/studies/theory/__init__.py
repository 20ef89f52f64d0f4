"""The paper's constants and bounds, as functions: sections 4 and 5 and the appendix.

Everything here follows "Simple Regret Minimization for Contextual Bandits"; where a statement was
corrected, the function says so. Theorem 5.3's proof has gaps that are open: docs/theory.md has the
list, and says what holds without it.
"""

from contextgap.studies.theory.constants import (
    confidence,
    information_gain_bound,
    norm_estimate,
    scale,
    scale_offset,
    scale_slope,
)
from contextgap.studies.theory.regret import (
    RegretBound,
    burn_in,
    contextual_gap_rate,
    pulls_for_width,
    uniform_rate,
    width_envelope,
)
from contextgap.studies.theory.spectrum import (
    Spectrum,
    arm_hardness,
    eigenvalue_bound,
    eigenvalue_threshold,
    hardness,
    reward_gap,
    spectrum,
)

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
