"""The bandwidths that a policy's kernel has, by column."""

from __future__ import annotations

import numpy as np

from contextgap.base.arrays import FloatArray
from contextgap.policy import Policy


def bandwidths(policy: Policy) -> tuple[float, ...] | None:
    """Return the bandwidth of every number of a context; None if the kernel has not one for each.

    Of a sum or product it is the first part that counts, which for learnt kernels is the smooth
    one.
    """
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
    spread = contexts.std(axis=0)
    layout = policy.state.schema.layout
    if layout is not None and layout.categories:
        spread[-layout.categories :] = 1.0  # two levels are 1 apart, whatever their codes
    in_bandwidths = spread / np.asarray(found)
    parts = policy.state.schema.parts()
    return {name: float(in_bandwidths[numbers].max()) for name, numbers in parts.items()}
