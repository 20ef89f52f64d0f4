"""Kernel Thompson sampling (Chowdhury and Gopalan, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.methods.explorers.base import Explorer, Moment


@dataclass(frozen=True)
class KernelTS(Explorer):
    """Draw a value for every arm, and try the highest."""

    reason: ClassVar[str] = "the highest of one random draw per arm"

    def pick(self, moment: Moment) -> int:
        """Return argmax of a draw whose standard deviations are the half widths."""
        return int(moment.belief.draws(moment.rng, 1)[0].argmax())
