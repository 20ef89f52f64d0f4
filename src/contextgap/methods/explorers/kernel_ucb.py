"""Kernel-UCB (Valko et al., 2013): optimism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contextgap.methods.explorers.base import Explorer, Moment


@dataclass(frozen=True)
class KernelUCB(Explorer):
    """Try the arm with the highest upper bound."""

    reason: ClassVar[str] = "the highest upper bound"

    def pick(self, moment: Moment) -> int:
        """Return argmax of upper."""
        return int(moment.belief.upper.argmax())
