"""What all makers of problems share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.studies.problems.problem import Problem


class Maker(ABC):
    """A source of problems."""

    @abstractmethod
    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return a problem of ``n`` rows.

        Parameters
        ----------
        n
            Number of rows; the default depends on the maker.
        seed
            Fixes everything random about the problem.
        """


class FixedData(Maker):
    """Data that exist once: a sample is a part of them."""

    @abstractmethod
    def load(self) -> Problem:
        """Return all rows, in their own order."""

    def sample(self, n: int | None = None, seed: Any = None) -> Problem:
        """Return ``n`` rows: the first in time order, or where order does not matter random ones.

        Parameters
        ----------
        n
            Number of rows; None for all.
        seed
            Chooses and shuffles the rows. Data in time order ignore it. With neither ``n`` nor
            ``seed``, rows come in their own order.
        """
        problem = self.load()
        size = len(problem) if n is None else checks.whole("n", n, least=1)
        if size > len(problem):
            raise ValueError(
                f"n must be at most the {len(problem)} rows of {problem.name!r}, got {n}"
            )
        if problem.ordered or (n is None and seed is None):
            return problem if n is None else problem.take(slice(size))
        # Data sets often come sorted by class: a subset without a seed must be random as well.
        return problem.take(np.random.default_rng(seed).permutation(len(problem))[:size])


def standardised(contexts: FloatArray) -> FloatArray:
    """Return ``contexts`` with mean 0 and standard deviation 1 in each column, or only zeros."""
    centre, unit = scales(contexts)
    scaled: FloatArray = (contexts - centre) / unit
    return scaled


def scales(contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each column's mean and standard deviation; its value and 1 if it is constant.

    The computed deviation of a constant column may be rounding error instead of zero, so constant
    columns are recognised by their range.
    """
    spread = contexts.std(axis=0)
    constant = contexts.max(axis=0) == contexts.min(axis=0)
    centre = np.where(constant, contexts[0], contexts.mean(axis=0))
    return centre, np.where(constant | (spread == 0), 1.0, spread)
