"""The inverse of a growing Cholesky factor, kept so that every arm finds its own columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from contextgap.base.arrays import FloatArray, IntArray


class GroupedInverse:
    """The inverse M of a growing Cholesky factor, its columns grouped by arm."""

    def __init__(self, n_arms: int) -> None:
        self.size = 0
        self.counts = [0] * n_arms
        self._groups = [np.zeros((16, 16)) for _ in range(n_arms)]

    def group(self, arm: int) -> FloatArray:
        """Return the columns of an arm's observations, shape (n, own)."""
        return self._groups[arm][: self.size, : self.counts[arm]]

    def add_arm(self) -> None:
        """Add a group without columns."""
        self.counts.append(0)
        self._groups.append(np.zeros((max(16, self.size), 16)))

    def extend(self, rows: FloatArray, corner: FloatArray, arms: IntArray) -> None:
        """Add the rows [Vᵀ, C] of L: rows holds Vᵀ, shape (new, n), and corner the triangle C."""
        first, end = self.size, self.size + len(rows)
        own = solve_triangular(corner, np.eye(len(corner)), lower=True)
        below = [-own @ (rows @ self.group(arm)) for arm in range(len(self.counts))]
        for arm, old in enumerate(below):
            new = np.flatnonzero(arms == arm)
            count = self.counts[arm]
            group = self._reserve(arm, end, count + len(new))
            group[first:end, :count] = old
            group[first:end, count : count + len(new)] = own[:, new]
            self.counts[arm] = count + len(new)
        self.size = end

    def truncate(self, size: int, counts: Sequence[int]) -> None:
        """Forget all rows from ``size`` on, and the columns behind the first ``counts``."""
        for arm, count in enumerate(counts):
            group = self._groups[arm]
            group[size:, count:] = 0.0  # a later column must be zero above its first row
        self.size, self.counts = size, list(counts)

    def snapshot(self) -> GroupedInverse:
        """Return an inverse that stays as it is; rows are shared, not copied."""
        copy = GroupedInverse(0)
        copy.size, copy.counts, copy._groups = self.size, list(self.counts), list(self._groups)
        return copy

    def _reserve(self, arm: int, rows: int, columns: int) -> FloatArray:
        group = self._groups[arm]
        if rows > group.shape[0] or columns > group.shape[1]:
            wanted = zip(group.shape, (rows, columns), strict=True)
            grown = np.zeros([2 * need if need > have else have for have, need in wanted])
            grown[: group.shape[0], : group.shape[1]] = group
            self._groups[arm] = group = grown
        return group
