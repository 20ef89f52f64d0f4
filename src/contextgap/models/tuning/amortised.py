"""Learns hyperparameters a little at a time, so that no single call takes long."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from contextgap.base.arrays import FloatArray
from contextgap.models.tuning.choose import search
from contextgap.models.tuning.descent import Evaluation, Steps
from contextgap.models.tuning.report import Tuning
from contextgap.models.tuning.search import Hyperparameters


class AmortisedSearch:
    """A search for hyperparameters that goes on where it stopped.

    It takes the arguments of ``search``, and how many rewards of the log are not among them. What
    it finds depends on them alone: how far it has come is a cache, which several states of a
    learner may share.
    """

    def __init__(self, *given: Any, left_out: int = 0, **settings: Any) -> None:
        self._left_out = left_out
        self._given, self._settings = given, settings
        self._answers: list[FloatArray] = []
        self._restart()

    def _restart(self) -> None:
        self._waiting: tuple[Steps[tuple[Hyperparameters, Tuning]], Evaluation] | None = None
        self._place, self._used = 0, 0.0  # how many answers were used, and what they cost
        self._found: tuple[Hyperparameters, Tuning] | None = None
        self._needed = math.inf

    def __getstate__(self) -> dict[str, Any]:
        names = ("_given", "_settings", "_answers", "_left_out")  # a generator cannot be pickled
        return {name: vars(self)[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._restart()

    @property
    def rewards(self) -> int:
        """How many rewards of the log are searched, those left out included."""
        return self._left_out + sum(map(len, self._given[1]))

    def result(self, operations: float = math.inf) -> tuple[Hyperparameters, Tuning] | None:
        """Return what was found, or None if that takes more operations in all."""
        try:
            while self._found is None and self._used < operations:
                self._step()
        except BaseException:
            self._restart()  # a generator that was interrupted cannot go on
            raise
        return self._found if self._needed < operations else None

    def _step(self) -> None:
        """Make the next evaluation, or take its answer from those that are known."""
        if self._waiting is None:
            steps = search(*self._given, **self._settings)
            self._waiting = steps, next(steps)
        steps, evaluation = self._waiting
        place, before = self._place, self._used
        if place == len(self._answers):
            self._answers.append(evaluation.run())
        self._place, self._used = place + 1, before + evaluation.cost
        try:
            self._waiting = steps, steps.send(self._answers[place])
        except StopIteration as end:
            found, tuning = end.value
            tuning = replace(tuning, rewards=tuning.rewards + self._left_out)
            self._found, self._needed = (found, tuning), before
