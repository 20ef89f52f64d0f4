"""Chooses arms at many contexts, block by block and with shortcuts, so that memory stays bounded.

Where only some arms are eligible, rows with the same eligible arms are chosen for together: the
answer is that for each row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.lazy import lazy
from contextgap.methods.recommenders.history import Choice
from contextgap.methods.recommenders.rules import BoundedRule, HighestMean, ModelEvidence
from contextgap.models import Model, Posterior
from contextgap.models.answers import Bounds
from contextgap.policy import shortcut
from contextgap.policy.state import Rules
from contextgap.tables.eligible import Mask, groups

# Numbers in one block of kernel values; 2^22 of them are 32 MB.
_BLOCK = 2**22
# Contexts, for each number that one of them takes, from which on preparing to compute many pays.
_MANY = 4


@dataclass(frozen=True)
class Chooser:
    """Chooses among some arms of a policy, by its recommender.

    ``active`` holds the model's indices of these arms, ``columns`` their places among all arms of
    the policy. Arms chosen are places in ``active``.
    """

    model: Model
    active: tuple[int, ...]
    columns: tuple[int, ...]
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

    def evidence(self, rows: FloatArray, *, many: bool = False) -> ModelEvidence:
        """Return what the recommender sees; ``many`` if these rows are some of very many."""
        return ModelEvidence(
            model=self.model,
            contexts=rows,
            arms=self.active,
            width=self.rules.width,
            burn_in_end=self.rules.burn_in * len(self.active),
            seed=self.seed,
            columns=self.columns,
            posterior=self.posterior_of if many else None,
        )

    @lazy
    def posterior_of(self) -> Callable[[FloatArray], Posterior] | None:
        """What computes posteriors at very many contexts; preparing it takes a moment."""
        return self.model.posterior_of(self.active)

    @lazy
    def bounds_of(self) -> Callable[[FloatArray], Bounds] | None:
        """What computes bounds; a policy's model never changes, so it is made once."""
        return self.model.bounds_of(self.active)

    @lazy
    def means_of(self) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None:
        """What computes means, where the rule asks for nothing else."""
        wanted = isinstance(self.rules.method.recommender, HighestMean)
        return self.model.means_of(self.active) if wanted else None

    def pick(self, rows: FloatArray) -> IntArray:
        """Return the arms that ``choose`` chooses, without their gaps, which take longer."""
        rule, model, active = self.rules.method.recommender, self.model, self.active
        if isinstance(rule, HighestMean) and self.means_of is not None:
            return self._by_means(rule, self.means_of, rows)
        if not isinstance(rule, BoundedRule) or not shortcut.pays(rule, model, active):
            return self.choose(rows).arm
        bounds_of = self.bounds_of
        if bounds_of is None:
            return self.choose(rows).arm
        picks = np.empty(len(rows), dtype=np.intp)
        for block in self.blocks(len(rows)):
            own = rows[block]
            found, left = shortcut.decided(rule, model, active, self.rules.width, bounds_of, own)
            if len(left):
                found[left] = self.choose(own[left]).arm
            picks[block] = found
        return picks

    def _by_means(
        self,
        rule: HighestMean,
        means_of: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
        rows: FloatArray,
    ) -> IntArray:
        picks = np.empty(len(rows), dtype=np.intp)
        for block in self.blocks(len(rows)):
            found, certain = rule.decided_by_means(*means_of(rows[block]))
            if not certain.all():
                left = np.flatnonzero(~certain)
                found[left] = self.choose(rows[block][left]).arm
            picks[block] = found
        return picks

    def choose(self, rows: FloatArray) -> Choice:
        """Return the arms chosen and their gaps."""
        choices = [choice for _, choice, _ in self.decisions(rows)]
        if not choices:
            return Choice(np.empty(0, dtype=np.intp), np.empty(0))
        arms: list[IntArray] = [choice.arm for choice in choices]
        gaps: list[FloatArray] = [choice.gap for choice in choices]
        return Choice(np.concatenate(arms), np.concatenate(gaps))

    def decisions(self, rows: FloatArray) -> Iterator[tuple[slice, Choice, ModelEvidence]]:
        """Yield blocks of rows, what is chosen there, and what it was chosen by."""
        many = len(rows) >= _MANY * self.model.numbers_per_context
        for block in self.blocks(len(rows)):
            evidence = self.evidence(rows[block], many=many)
            yield block, self.rules.method.recommender.choose(evidence), evidence

    def blocks(self, rows: int) -> Iterator[slice]:
        """Yield slices of rows for which there is memory enough."""
        size = max(1, _BLOCK // max(1, self.model.numbers_per_context, len(self.active)))
        for first in range(0, rows, size):
            yield slice(first, first + size)
