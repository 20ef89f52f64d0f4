"""A study: data to compare methods on, and held-out data to tune them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from contextgap.base import checks
from contextgap.studies.problems import Problem

Pair: TypeAlias = tuple[Problem, Problem]


@dataclass(frozen=True, eq=False)
class Study:
    """Pairs of rows to explore and rows to exploit.

    Parameters
    ----------
    name
        What results are labelled with.
    hold_out
        The pair that hyper-parameters are tuned on.
    rounds
        The pairs that methods are compared on, one per repetition.
    """

    name: str
    hold_out: Pair
    rounds: tuple[Pair, ...]

    @classmethod
    def of(
        cls,
        problem: Problem,
        *,
        hold_out: Sequence[Any] | None = None,
        evaluate: Sequence[Any] | None = None,
        repetitions: int = 10,
    ) -> Study:
        """Return the paper's protocol for one problem.

        The first rows are held out. The rest is shuffled anew for every repetition; where time
        order matters, nothing is shuffled and repetitions differ in the methods' randomness only.

        Parameters
        ----------
        problem
            All the data.
        hold_out
            Rows to explore and to exploit when tuning; a third and a sixth by default.
        evaluate
            Rows to explore and to exploit when comparing; the same by default.
        repetitions
            How many times to compare.
        """
        tune_on = tuple(hold_out or (1 / 3, 1 / 6))
        compare_on = tuple(evaluate or tune_on)
        for name, sizes in (("hold_out", tune_on), ("evaluate", compare_on)):
            if len(sizes) != 2:
                raise ValueError(f"{name} must be (rows to explore, rows to exploit), got {sizes}")
        repetitions = checks.whole("repetitions", repetitions, least=1)
        *held, first, second = problem.split(*tune_on, *compare_on)
        pool = problem.take(slice(len(held[0]) + len(held[1]), None))
        sizes = (len(first), len(second))
        rounds = [
            (first, second) if problem.ordered else pool.split(*sizes, seed=seed)
            for seed in range(repetitions)
        ]
        return cls(problem.name, (held[0], held[1]), tuple((a, b) for a, b in rounds))

    @classmethod
    def of_each(
        cls, problems: Sequence[Problem], *, hold_out: Sequence[Any], evaluate: Sequence[Any]
    ) -> Study:
        """Return the protocol for several samples of one problem, one per repetition.

        Settings are tuned on the first rows of the first sample. Every sample is compared on the
        rows behind as many.

        Parameters
        ----------
        problems
            The samples.
        hold_out
            Rows to explore and to exploit when tuning.
        evaluate
            Rows to explore and to exploit when comparing.
        """
        parts = [problem.split(*hold_out, *evaluate) for problem in problems]
        first = parts[0]
        rounds = tuple((part[2], part[3]) for part in parts)
        return cls(problems[0].name, (first[0], first[1]), rounds)
