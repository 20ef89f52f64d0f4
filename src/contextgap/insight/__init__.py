"""The numbers behind the plots: beliefs along columns, progress, importance, watches."""

from contextgap.insight.learnt import (
    Area,
    Course,
    Importance,
    Progress,
    along,
    area,
    importance,
    progress,
)
from contextgap.insight.watch import Audit, Watch
from contextgap.insight.watch_report import Alarm, Interval, Moved, WatchReport

__all__ = [
    "Alarm",
    "Area",
    "Audit",
    "Course",
    "Importance",
    "Interval",
    "Moved",
    "Progress",
    "Watch",
    "WatchReport",
    "along",
    "area",
    "importance",
    "progress",
]
