"""Maximum variance: learn every arm equally well, however good it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.methods.explorers.base import Explorer, Moment


@dataclass(frozen=True)
class MaxVariance(Explorer):
    """Try the arm with the largest posterior standard deviation here."""

    adaptive: ClassVar[bool] = False
    reason: ClassVar[str] = "the largest standard deviation"

    def pick(self, moment: Moment) -> int:
        """Return argmax of std."""
        return int(moment.belief.std.argmax())
