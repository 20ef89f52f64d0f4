"""Planner and sampler: a random rule that was fixed before any reward.

Zanette, Dong, Lee and Brunskill, "Design of Experiments for Stochastic Contextual Linear Bandits"
(2021). The planner goes through contexts that are known beforehand and plans, at each, the arm
whose reward is least known after the trials planned so far; rewards are not needed for that. The
sampler draws one of the planner's steps at random and tries the arm that is least known after the
trials planned up to it. Their planner updates when a determinant has doubled; this one always does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.methods.explorers.base import DrawingExplorer, Moment, ReferringExplorer

_SAME = 1e-9  # relative difference of variances that is rounding


@dataclass(frozen=True)
class PlannedSampling(DrawingExplorer, ReferringExplorer):
    """Draw the arm least known after a random part of a plan that was made without rewards.

    With a given kernel it picks without using rewards, so a whole sheet can be asked for
    before the first reward, and ``NonadaptiveWidth`` applies.

    .. versionadded:: 0.3

    Parameters
    ----------
    references
        Contexts to plan on, a table as the learner takes them; kept as a tuple of tuples, so that
        files can hold it. By default up to ``most`` of those whose rewards were told.
    columns
        The names of its columns; taken from the table, if it has names.
    trials
        How many trials there will be, if that is not the number of references: a planned trial
        counts as trials/references of one.
    most
        How many contexts to plan on, if none are given.

    Examples
    --------
    >>> explorer = cg.explorers.PlannedSampling(references=contexts)
    >>> cg.Learner(2, kernel=cg.Gaussian(0.5), method=explorer, seed=0).ask(contexts[:4])
    array([0, 1, 0, 1])
    """

    references: Any = field(default=None, repr=False)
    columns: tuple[str, ...] | None = field(default=None, repr=False, compare=False)
    trials: int | None = None
    most: int = 200
    adaptive: ClassVar[bool] = False
    reason: ClassVar[str] = "drawn from what a plan says is least known"

    def __post_init__(self) -> None:
        checks.whole("most", self.most, least=1)
        if self.trials is not None:
            checks.whole("trials", self.trials, least=1)
        self._read_references()

    def propensities(self, moment: Moment) -> FloatArray:
        """Return in which share of the planner's steps each arm is the least known here."""
        kernel = moment.kernel_at(self._reference(moment.seen, moment.read))
        planned = len(kernel) - 1
        noise = moment.ridge * (1.0 if self.trials is None else planned / self.trials)
        return _votes(kernel, len(moment.pulls), noise)


def _votes(kernel: FloatArray, n_arms: int, noise: float) -> FloatArray:
    """Plan a trial at all points but the last; return how often each arm is least known there."""
    variance = np.tile(kernel.diagonal(), (n_arms, 1))
    solved = np.empty((n_arms, len(kernel) - 1, len(kernel)))  # of each arm, one row per trial
    trials, votes = [0] * n_arms, np.zeros(n_arms)
    for step in range(len(kernel)):
        here = variance[:, -1]
        widest = here >= (1 - _SAME) * here.max()  # arms that are known equally well share the vote
        votes += widest / widest.sum()
        if step == len(kernel) - 1:
            break
        arm = int(variance[:, step].argmax())
        rows = solved[arm, : trials[arm]]
        row = (kernel[step] - rows[:, step] @ rows) / np.sqrt(variance[arm, step] + noise)
        solved[arm, trials[arm]] = row
        trials[arm] += 1
        variance[arm] = np.maximum(variance[arm] - row**2, 0.0)
    return np.asarray(votes / votes.sum())
