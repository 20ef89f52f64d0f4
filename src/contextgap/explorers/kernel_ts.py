"""Kernel Thompson sampling (Chowdhury and Gopalan, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.explorers.base import Explorer, Moment


@dataclass(frozen=True)
class KernelTS(Explorer):
    """Draw a value for every arm, independently, and try the highest."""

    reason: ClassVar[str] = "the highest of one random draw per arm"

    def pick(self, moment: Moment) -> int:
        """Return argmax of mean + half width · N(0, 1)."""
        belief = moment.belief
        normals = moment.rng.standard_normal(len(belief.mean))
        return int((belief.mean + belief.half_width * normals).argmax())
