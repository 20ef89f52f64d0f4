"""What a problem, and a maker of problems, must do."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from contextgap.studies.experiments import run
from contextgap.studies.problems import Maker, Problem
from contextgap.testing.components import check_pickle, doing, expect

_ARRAYS = ("contexts", "rewards", "observations")


def check_problem(problem: Problem | Maker, *, rows: int = 12) -> None:
    """Check that a problem, or a maker of problems, can be used wherever the library takes one.

    Of a maker, samples must have the rows asked for and be the same for the same seed; each is
    then checked as a problem. A problem's arrays must fit together and be finite, no regret be
    negative and the best arm's be 0, ``take`` and ``split`` keep rows whole, and a run be possible.

    .. versionadded:: 0.2

    Parameters
    ----------
    problem
        The problem or the maker.
    rows
        How many rows to ask a maker for; at least 4.

    Examples
    --------
    >>> cg.testing.check_problem(cg.problems.Sinusoids(n_arms=3))
    """
    name = type(problem).__name__
    if isinstance(problem, Maker):
        sample = _sample(name, problem, rows)
    else:
        expect(
            isinstance(problem, Problem),
            f"{name} is neither a Problem nor a Maker: make one by Problem(name=, contexts=, "
            "rewards=), or derive from contextgap.problems.Maker",
        )
        sample = problem
    _check_arrays(name, sample)
    _check_regret(name, sample)
    _check_take(name, sample)
    _check_split(name, sample)
    check_pickle(sample, name, lambda copy: _same(copy, sample))
    parts = sample.split(0.5, 0.25)
    with doing(f"experiments.run on {name}"):
        trace = run(*parts, method="uniform")
    expect(
        (trace.average_regret >= 0).all() and np.isfinite(trace.worst_regret).all(),
        f"a run on {name} reports regrets {trace.average_regret} and {trace.worst_regret}",
    )


def _sample(name: str, maker: Maker, rows: int) -> Problem:
    with doing(f"{name}.sample({rows}, seed=0)"):
        first, again = (maker.sample(rows, seed=0) for _ in range(2))
    expect(
        isinstance(first, Problem),
        f"{name}.sample must return a Problem, got {type(first).__name__}",
    )
    expect(len(first) == rows, f"{name}.sample({rows}) must have {rows} rows, got {len(first)}")
    expect(
        _same(first, again),
        f"{name}.sample gives other data for the same seed: draw from "
        "np.random.default_rng(seed) only",
    )
    return first


def _same(left: Problem, right: Problem) -> bool:
    return left.arms == right.arms and all(
        np.array_equal(getattr(left, field), getattr(right, field)) for field in _ARRAYS
    )


def _check_arrays(name: str, problem: Problem) -> None:
    rows, arms, given = len(problem), problem.n_arms, cast(Any, problem.name)
    expect(rows >= 4, f"{name} has {rows} rows; at least 4 are needed to explore and to evaluate")
    expect(
        isinstance(given, str) and given,
        f"{name}.name must be a text that results are labelled with, got {given!r}",
    )
    shapes: dict[str, Any] = {
        "contexts": (rows, problem.dimension),
        "rewards": (rows, arms),
        "observations": (rows, arms),
    }
    for field, shape in shapes.items():
        values: Any = getattr(problem, field)
        expect(values.shape == shape, f"{name}.{field} must have shape {shape}, got {values.shape}")
        expect(
            values.dtype == np.float64 and np.isfinite(values).all(),
            f"{name}.{field} must be finite numbers of dtype float64",
        )
    expect(
        len(set(problem.arms)) == arms,
        f"{name}.arms must be {arms} different labels, got {problem.arms}",
    )


def _check_regret(name: str, problem: Problem) -> None:
    table = problem.regret_table
    expect(
        table.shape == problem.rewards.shape and (table >= 0).all(),
        f"{name}.regret_table must have no negative entry: regret is the best reward minus the "
        f"arm's, got a least of {table.min()}",
    )
    best = problem.rewards.argmax(axis=1)
    expect(
        not problem.regret(best).any(),
        f"{name}.regret of every row's best arm must be 0: both must come from `rewards`",
    )
    expect(
        problem.ranks.shape == table.shape and (problem.ranks.min(axis=1) == 1).all(),
        f"{name}.ranks must be 1 for the best arm of every row",
    )


def _check_take(name: str, problem: Problem) -> None:
    chosen = np.arange(len(problem)) % 3 == 1
    for index in ([2, 0, 3], slice(1, 3), chosen):
        with doing(f"{name}.take({index!r})"):
            part = problem.take(index)
        expect(
            type(part) is type(problem)
            and part.arms == problem.arms
            and all(
                np.array_equal(getattr(part, field), getattr(problem, field)[index])
                for field in _ARRAYS
            ),
            f"{name}.take({index!r}) must return a {name} of these rows, in this order, with the "
            "same arms",
        )


def _check_split(name: str, problem: Problem) -> None:
    with doing(f"{name}.split(0.5, 0.25)"):
        first, second = problem.split(0.5, 0.25)
    joined = np.concatenate([first.contexts, second.contexts])
    expect(
        np.array_equal(joined, problem.contexts[: len(joined)]),
        f"{name}.split must return consecutive rows",
    )
    if not problem.ordered:
        once, again = (problem.split(0.5, seed=1)[0] for _ in range(2))
        expect(_same(once, again), f"{name}.split gives other rows for the same seed")
