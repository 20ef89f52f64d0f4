"""Pictures of single decisions and what they rest on; needs the extra ``plot``."""

from contextgap.plot.decisions import decision
from contextgap.plot.explanations import explanation

__all__ = ["decision", "explanation"]
