"""Pictures of what was learnt and of single decisions; needs the extra ``plot``."""

from contextgap.insight.plot.courses import along
from contextgap.insight.plot.decisions import decision
from contextgap.insight.plot.explanations import explanation
from contextgap.insight.plot.importances import importance
from contextgap.insight.plot.maps import map  # noqa: A004  # the word users know it by
from contextgap.insight.plot.progressing import progress

__all__ = ["along", "decision", "explanation", "importance", "map", "progress"]
