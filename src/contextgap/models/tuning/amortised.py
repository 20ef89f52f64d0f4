"""Learns hyperparameters a little at a time, so that no single call takes long."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.models.tuning.choose import search
from contextgap.models.tuning.descent import Evaluation, Steps
from contextgap.models.tuning.report import Tuning
from contextgap.models.tuning.search import Hyperparameters


class AmortisedSearch:
    """A search for hyperparameters that goes on where it stopped.

    What it finds depends on the observations alone. How far it has come is a cache: a search of the
    same observations that is given the ``answers`` of this one need not compute them again.

    Parameters
    ----------
    answers
        Evaluations that were made before, in order.
    given, settings
        The arguments of ``search``.
    """

    def __init__(self, answers: Iterable[FloatArray], *given: Any, **settings: Any) -> None:
        self.answers = list(answers)
        self._given, self._settings = given, settings
        self._restart()

    def _restart(self) -> None:
        self._waiting: tuple[Steps[tuple[Hyperparameters, Tuning]], Evaluation] | None = None
        self._place, self._used = 0, 0.0  # how many answers were used, and what they cost
        self._found: tuple[Hyperparameters, Tuning] | None = None
        self._needed = math.inf

    def __getstate__(self) -> dict[str, Any]:
        return {"answers": self.answers, "_given": self._given, "_settings": self._settings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._restart()

    @property
    def rewards(self) -> int:
        """How many rewards are searched."""
        return sum(map(len, self._given[1]))

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
        if place < len(self.answers) and len(self.answers[place]) != evaluation.size:
            del self.answers[place:]  # they are of another search
        if place == len(self.answers):
            self.answers.append(evaluation.run())
        self._place, self._used = place + 1, before + evaluation.cost
        try:
            self._waiting = steps, steps.send(self.answers[place])
        except StopIteration as end:
            self._found, self._needed = end.value, before

    def array(self) -> FloatArray:
        """Return the answers as one array, each after its length; ``from_array`` reverses it."""
        parts = [np.append(len(each), each) for each in self.answers]
        return np.concatenate([np.empty(0), *parts])

    @classmethod
    def from_array(cls, array: FloatArray, *given: Any, **settings: Any) -> Self:
        """Return a search with the answers that another one had."""
        answers, rest = [], np.asarray(array)
        while len(rest):
            length = int(rest[0])
            if not 1 <= length < len(rest):
                raise ValueError("the evaluations of a search are incomplete")
            answers.append(rest[1 : length + 1])
            rest = rest[length + 1 :]
        return cls(answers, *given, **settings)
