"""The second pass: every arm's statistics over all rows, given support points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.kernels import Kernel
from contextgap.learner.rewards import check_sizes
from contextgap.models import Dictionary, Statistics, sums_by_arm
from contextgap.policy.scoring import read_propensities
from contextgap.tables.cells import Holds
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.files import Sheet
from contextgap.tables.trials import Trials


@dataclass(frozen=True, eq=False)
class Outermost:
    """The rows with the lowest and the highest of each number of a context."""

    contexts: FloatArray
    arms: IntArray
    rewards: FloatArray

    def __add__(self, other: Outermost) -> Outermost:
        return Outermost(
            np.concatenate([self.contexts, other.contexts]),
            np.concatenate([self.arms, other.arms]),
            np.concatenate([self.rewards, other.rewards]),
        ).thinned()

    def thinned(self) -> Outermost:
        """Return the same without rows that are not outermost."""
        lowest, highest = self.contexts.argmin(axis=0), self.contexts.argmax(axis=0)
        kept = np.unique(np.concatenate([lowest, highest]))
        return Outermost(self.contexts[kept], self.arms[kept], self.rewards[kept])

    def beyond(self, contexts: FloatArray) -> Outermost:
        """Return the rows that lie outside the range of some contexts, each once."""
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        outside = ((self.contexts < low) | (self.contexts > high)).any(axis=1)
        rows = np.column_stack([self.contexts, self.arms, self.rewards])[outside]
        rows = np.unique(rows, axis=0)
        return Outermost(rows[:, :-2], rows[:, -2].astype(np.intp), rows[:, -1])


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over rows: all that a model of any number of them needs.

    Parameters
    ----------
    sums
        The statistics of every arm that was tried.
    reward_sum
        The sum of all rewards.
    outermost
        The rows that say how far contexts reach.
    """

    sums: Mapping[int, Statistics]
    reward_sum: float
    outermost: Outermost

    def __add__(self, other: Totals) -> Totals:
        sums = dict(self.sums)
        for arm, found in other.sums.items():
            sums[arm] = sums[arm] + found if arm in sums else found
        outermost = self.outermost + other.outermost
        return Totals(sums, self.reward_sum + other.reward_sum, outermost)


@dataclass(frozen=True, eq=False)
class Add:
    """Makes the totals of a partition.

    Parameters
    ----------
    trials, columns, holds, truths, schema
        How rows are read.
    places
        The index of every arm, by its text.
    sign
        What rewards are multiplied by: −1 for costs.
    kernel, ridge, dictionary
        Those of the model.
    """

    trials: Trials
    columns: list[str]
    holds: Mapping[str, Holds]
    truths: bool
    schema: ContextSchema
    places: Mapping[str, int]
    sign: float
    kernel: Kernel
    ridge: float
    dictionary: Dictionary

    def __call__(self, partition: Any) -> Totals | None:
        """Return the totals of a partition; None if it has no rows."""
        total = None
        for sheet in map(self.trials.rewarded, partition.blocks()):
            if len(sheet):
                found = self._of(sheet)
                total = found if total is None else total + found
        return total

    def _of(self, sheet: Sheet) -> Totals:
        arms = np.array([self.places[arm] for arm in self.trials.arms(sheet)], dtype=np.intp)
        rewards = self.sign * self.trials.rewards(sheet, self.truths)
        contexts = self._contexts(sheet)
        check_sizes(self.kernel, contexts, rewards)
        chances = self._chances(sheet)
        told = contexts, arms, rewards, None if chances is None else 1.0 / chances
        sums = sums_by_arm(self.dictionary, self.kernel, self.ridge, *told)
        outermost = Outermost(contexts, arms, rewards).thinned()
        return Totals(sums, float(rewards.sum()), outermost)

    def _chances(self, sheet: Sheet) -> FloatArray | None:
        if self.trials.propensity is None:
            return None
        found = sheet.numbers([self.trials.propensity])[:, 0]
        try:
            return read_propensities(found, len(found))
        except ValueError as error:
            raise ValueError(sheet.located(error)) from None

    def _contexts(self, sheet: Sheet) -> FloatArray:
        table = sheet.table(self.columns, self.trials.kinds, self.holds)
        try:
            return self.schema.read(table).rows
        except (TypeError, ValueError) as error:
            raise ValueError(sheet.located(error)) from None
