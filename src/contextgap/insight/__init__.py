"""What was learnt, as plain numbers: along columns, over time, and which columns matter."""

from contextgap.insight.courses import Area, Course, along, area
from contextgap.insight.importance import Importance, importance
from contextgap.insight.progress import Progress, progress

__all__ = ["Area", "Course", "Importance", "Progress", "along", "area", "importance", "progress"]
