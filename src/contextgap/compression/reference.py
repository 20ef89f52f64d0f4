"""The contexts at which decisions shall change least."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.policy import Policy

_JITTER = 0.1
_EVERY = 4  # every fourth reference context is held out
_MOST = 4500  # reference contexts to fit at; the normal equations take time in proportion
_FEWEST = 8


class Reference(NamedTuple):
    """Reference contexts.

    Parameters
    ----------
    fitted
        Those to choose and refit points at.
    held_out
        Those to measure agreement at.
    """

    fitted: FloatArray
    held_out: FloatArray


def read_reference(policy: Policy, contexts: Any, rng: np.random.Generator) -> Reference:
    """Return the reference contexts, every fourth of which is held out.

    Parameters
    ----------
    policy
        What knows how contexts are read.
    contexts
        A table of contexts; None for the observed ones and jittered copies of them.
    rng
        Draws jitter, and which contexts to fit at if there are very many.
    """
    if contexts is None:
        rows = _jittered(policy._model.observed.contexts, rng)
    else:
        rows, single = policy._read(contexts)
        if single or len(rows) < _FEWEST:
            got = "one context" if single else f"{len(rows)}"
            raise ValueError(
                f"contexts must be a table of at least {_FEWEST} contexts like those to be met, "
                f"got {got}"
            )
    held_out = np.arange(len(rows)) % _EVERY == _EVERY - 1
    fitted = rows[~held_out]
    if len(fitted) > _MOST:
        fitted = fitted[np.sort(rng.choice(len(fitted), _MOST, replace=False))]
    return Reference(fitted, rows[held_out])


def _jittered(observed: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return observed contexts and copies, each moved by a tenth of the way between two others.

    So that constants stay constant, and what varies together is moved together. There are at
    least as many copies as contexts, and enough in all to hold some out.
    """
    copies = -(-_FEWEST // len(observed)) if len(observed) < _FEWEST else 1
    start = np.tile(observed, (copies, 1))
    one, two = rng.integers(len(observed), size=(2, len(start)))
    moved = start + _JITTER * (observed[one] - observed[two])
    return np.vstack([observed, moved])
