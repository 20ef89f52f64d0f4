"""Minimises a loss within bounds, one evaluation at a time.

Limited-memory BFGS (Nocedal and Wright, 2006, algorithm 7.4) over the variables that no bound
holds, with a search along the path projected on the bounds (Bertsekas, 1982). Unlike
``scipy.optimize`` it can pause after every evaluation: a learner does a few of them per reward.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from contextgap.base.arrays import FloatArray

_PAIRS = 10  # of steps and changes of the slope that approximate the curvature
_LONGEST = 2.0  # the farthest that one step moves a variable, which is a logarithm
_FIRST = 0.5  # the same before the curvature is known
_DECREASE = 1e-4  # the share of the decrease that the slope promises which is enough
_TRIALS = 12  # step lengths to try before giving up


class Evaluation(NamedTuple):
    """An evaluation that a search waits for."""

    cost: float  # in floating-point operations, about
    run: Callable[[], FloatArray]


T = TypeVar("T")
Steps: TypeAlias = Generator[Evaluation, FloatArray, T]  # yields what is to be evaluated


def finished(steps: Steps[T]) -> T:
    """Return what comes of a search."""
    answer = None
    while True:
        try:
            evaluation = next(steps) if answer is None else steps.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found
        answer = evaluation.run()


def descend(
    evaluation: Callable[[FloatArray], Evaluation],
    start: FloatArray,
    bounds: Sequence[tuple[float, float]],
    iterations: int,
    tolerance: float,
) -> Steps[tuple[float, FloatArray]]:
    """Return the lowest loss found from a start, and where.

    ``evaluation`` answers with the loss, then its slope. The descent ends when an iteration gains
    less than the tolerance.
    """
    lower, upper = np.array(bounds).T
    x = np.clip(start, lower, upper)
    loss, *rest = yield evaluation(x)
    slope = np.array(rest)
    pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=_PAIRS)
    for _ in range(iterations):
        held = ((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0))
        free = np.where(held, 0.0, slope)
        direction = np.where(held, 0.0, -_by_curvature(free, pairs))
        if not direction @ free < 0:  # no descent: forget the curvature
            pairs.clear()
            direction = -free
        reach = float(np.abs(direction).max())
        if reach == 0:
            break
        length = min(1.0, (_LONGEST if pairs else _FIRST) / reach)
        for _ in range(_TRIALS):
            trial = np.clip(x + length * direction, lower, upper)
            new, *rest = yield evaluation(trial)
            promised = float(free @ (trial - x))
            if new <= loss + _DECREASE * promised:
                break
            # The minimum of the parabola through both losses and the slope.
            length *= min(max(-promised / (2 * (new - loss - promised)), 0.1), 0.5)
        else:
            break
        pair = trial - x, np.array(rest) - slope
        if pair[0] @ pair[1] > 1e-10 * float(pair[1] @ pair[1]):
            pairs.append(pair)
        gained = loss - new
        x, loss, slope = trial, new, np.array(rest)
        if gained < tolerance:
            break
    return float(loss), x


def _by_curvature(slope: FloatArray, pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return the inverse of the approximate Hessian times the slope."""
    if not pairs:
        return slope
    left, found = [], slope.copy()
    for moved, changed in reversed(pairs):
        left.append((moved @ found) / (moved @ changed))
        found -= left[-1] * changed
    moved, changed = pairs[-1]
    found *= (moved @ changed) / (changed @ changed)
    for (moved, changed), weight in zip(pairs, reversed(left), strict=True):
        found += (weight - (changed @ found) / (moved @ changed)) * moved
    return found
