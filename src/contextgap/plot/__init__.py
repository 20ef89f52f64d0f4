"""Pictures of what was learnt and of single decisions; needs the extra ``plot``."""

from contextgap.plot.courses import along
from contextgap.plot.decisions import decision
from contextgap.plot.explanations import explanation
from contextgap.plot.importances import importance
from contextgap.plot.maps import map  # noqa: A004  # the word users know it by
from contextgap.plot.progressing import progress

__all__ = ["along", "decision", "explanation", "importance", "map", "progress"]
