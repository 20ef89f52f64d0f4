"""Which columns decisions depend on, and the bandwidths of a policy's kernel by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.insight.courses import read_policy, seen
from contextgap.kernels import Warped
from contextgap.policy import Policy
from contextgap.tables.contexts import Encoded

_CONTEXTS = 500  # at most
_REPEATS = 5  # shufflings of each column


@dataclass(frozen=True)
class Importance:
    """How much decisions depend on each column; print it.

    .. versionadded:: 0.2

    Parameters
    ----------
    changed
        By column: the share of decisions that change if the column is shuffled among contexts that
        were seen.
    spread
        By column: the largest of its numbers' standard deviations over their bandwidths, a column
        of categories counting as 1 over its bandwidth: near 0, the kernel does not see the column.
        None if the kernel has not one bandwidth per number.
    contexts
        How many contexts there were.

    Examples
    --------
    >>> importance = cg.insight.importance(policy)
    >>> importance.changed["x"] > importance.changed["y"]
    True
    """

    changed: Mapping[str, float]
    spread: Mapping[str, float] | None
    contexts: int

    def __str__(self) -> str:
        size = max(len("column"), *(len(name) for name in self.changed))
        lines = [f"  {'column':{size}}  {'changed':>8}" + ("  spread" if self.spread else "")]
        for name, share in sorted(self.changed.items(), key=lambda each: -each[1]):
            scale = f"  {self.spread[name]:6.2g}" if self.spread else ""
            lines.append(f"  {name:{size}}  {100 * share:6.1f} %{scale}")
        return "\n".join([f"decisions at {self.contexts} contexts", *lines])


def importance(source: Any, seed: int = 0) -> Importance:
    """Return which columns decisions depend on.

    .. versionadded:: 0.2

    Parameters
    ----------
    source
        A learner or a policy.
    seed
        Of the shuffling.

    See Also
    --------
    plot.importance : Draws it.

    Examples
    --------
    >>> sorted(cg.insight.importance(policy).changed)
    ['x', 'y']
    """
    policy = read_policy(source)
    rng = np.random.default_rng(checks.whole("seed", seed, least=0))
    rows, schema = seen(policy, _CONTEXTS), policy.state.schema
    usual, changed = policy.recommend(Encoded(rows, schema)), {}
    for name, numbers in schema.parts().items():
        shares = []
        for _ in range(_REPEATS):
            shuffled = rows.copy()
            shuffled[:, numbers] = rows[rng.permutation(len(rows))][:, numbers]
            shares.append(np.mean(policy.recommend(Encoded(shuffled, schema)) != usual))
        changed[name] = float(np.mean(shares))
    return Importance(changed, spread_by_column(policy, rows), len(rows))


def bandwidths(policy: Policy) -> tuple[float, ...] | None:
    """Return the bandwidths of the kernel's first part that has one for every number; else None."""
    parts = [policy.kernel]
    while parts:
        part = parts.pop(0)
        found = getattr(part, "bandwidth", None)
        if isinstance(found, tuple):
            return found
        parts += [
            getattr(part, name) for name in ("left", "right", "kernel") if hasattr(part, name)
        ]
    return None


def bandwidths_by_column(policy: Policy) -> dict[str, list[float]] | None:
    """Return the same by column, for columns that are not all numbers; else None."""
    table, found = policy.state.schema.table, bandwidths(policy)
    return None if table is None or found is None else table.by_column(found)


def spread_by_column(policy: Policy, contexts: FloatArray) -> dict[str, float] | None:
    """Return how far contexts are spread in each column, in bandwidths; None if there are none."""
    found = bandwidths(policy)
    if found is None:
        return None
    kernel = policy.kernel
    spread = (kernel.warp(contexts) if isinstance(kernel, Warped) else contexts).std(axis=0)
    layout = policy.state.schema.layout
    if layout is not None and layout.categories:
        spread[-layout.categories :] = 1.0  # two levels are 1 apart, whatever their codes
    in_bandwidths = spread / np.asarray(found)
    parts = policy.state.schema.parts()
    return {name: float(in_bandwidths[numbers].max()) for name, numbers in parts.items()}
