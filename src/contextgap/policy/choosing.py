"""Chooses arms at many contexts, block by block, so that memory stays bounded.

Where only some arms are eligible, rows with the same eligible arms are chosen for together: the
answer is that for each row alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.descriptors import lazy
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import ModelEvidence
from contextgap.models import Model, Predictor
from contextgap.policy.state import Rules
from contextgap.tables.eligible import Mask, groups

# Numbers in one block of kernel values; 2^22 of them are 32 MB.
_BLOCK = 2**22


@dataclass(frozen=True)
class Chooser:
    """Chooses among some arms of a policy, by its recommender; arms are places in ``active``."""

    model: Model
    active: tuple[int, ...]  # the model's indices of the arms
    columns: tuple[int, ...]  # their places among all arms of the policy
    rules: Rules
    seed: int

    def groups(self, eligible: Mask | None) -> Iterator[tuple[IntArray | slice, Chooser]]:
        """Yield places of rows, and what chooses among the arms that are eligible there."""
        if eligible is None:
            yield slice(None), self
            return
        for places, columns in groups(eligible):
            active = tuple(self.active[column] for column in columns)
            yield places, replace(self, active=active, columns=tuple(columns.tolist()))

    def evidence(self, rows: FloatArray, among: int = 0) -> ModelEvidence:
        """Return what the recommender sees; ``among`` counts all rows, if these are a block."""
        return ModelEvidence(
            self.predictor,
            rows,
            self.rules.width,
            burn_in_end=self.rules.burn_in * len(self.active),
            seed=self.seed,
            columns=self.columns,
            among=among,
        )

    @lazy
    def predictor(self) -> Predictor:
        """What the model says about these arms; a policy's model never changes."""
        return self.model.predictor(self.active)

    def pick(self, rows: FloatArray) -> IntArray:
        """Return the arms chosen by ``decisions``, without their gaps, which take longer."""
        picks = np.empty(len(rows), dtype=np.intp)
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], among=len(rows))
            picks[block] = self.rules.method.recommender.choose_arms(evidence)
        return picks

    def decisions(self, rows: FloatArray) -> Iterator[tuple[slice, Choice, ModelEvidence]]:
        """Yield blocks of rows, what is chosen there, and what it was chosen by."""
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], among=len(rows))
            yield block, self.rules.method.recommender.choose(evidence), evidence

    def blocks(self, rows: int) -> Iterator[slice]:
        """Yield slices of rows for which there is memory enough."""
        size = max(1, _BLOCK // max(1, self.model.numbers_per_context, len(self.active)))
        for first in range(0, rows, size):
            yield slice(first, first + size)
