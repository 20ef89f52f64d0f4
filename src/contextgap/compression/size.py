"""How many bytes of constants a policy takes when it is exported as C."""

from __future__ import annotations

from collections.abc import Sequence

from contextgap.base.labels import Label
from contextgap.kernels import Kernel, Periodic
from contextgap.kernels.base import Product, Scaled, Sum
from contextgap.kernels.stationary import Stationary
from contextgap.policy import Policy
from contextgap.recommenders import HighestMean, Recommender, SmallestGapInHistory

_POINTER = 8  # bytes of a pointer or size_t where they are largest


def rom_bytes(policy: Policy, *, float32: bool = True) -> int:
    """Return the bytes of constants in a policy's C export, without certificates.

    Code comes on top. Kernels that C does not know are counted as if they had no constants.

    Parameters
    ----------
    policy
        The policy; it must have seen a context.
    float32
        Whether numbers are ``float`` rather than ``double``.
    """
    layout = Layout.of(policy, float32=float32)
    return layout.bytes(policy.method.recommender, tuple(policy.counts.values()))


class Layout:
    """What the size of a policy depends on besides its rule and its points.

    Parameters
    ----------
    dimension
        Numbers per context.
    kernel
        Its settings per dimension are kept in tables.
    labels
        The arms' labels, which are kept as text.
    columns
        Names of the context's numbers, if they have any.
    float32
        Whether numbers are ``float`` rather than ``double``.
    """

    def __init__(
        self,
        dimension: int,
        kernel: Kernel,
        labels: Sequence[Label],
        columns: Sequence[str] | None,
        float32: bool,
    ) -> None:
        self._dimension = dimension
        self._constants = _kernel_constants(kernel, dimension)
        self._real = 4 if float32 else 8
        words = [label if isinstance(label, str) else repr(label) for label in labels]
        words += columns or [f"context[{i}]" for i in range(dimension)]
        # A text ends with a zero byte, and a table points to it.
        self._text = sum(
            len(word.encode("utf-8", "backslashreplace")) + 1 + _POINTER for word in words
        )

    @classmethod
    def of(cls, policy: Policy, *, float32: bool) -> Layout:
        """Return a policy's layout.

        Parameters
        ----------
        policy
            The policy.
        float32
            Whether numbers are ``float`` rather than ``double``.
        """
        if policy.dimension is None:
            raise ValueError("a policy that never saw a context has no size; tell it something")
        return cls(policy.dimension, policy.kernel, policy.arms, policy.columns, float32)

    def bytes(self, recommender: Recommender, points: Sequence[int]) -> int:
        """Return the bytes of constants.

        Parameters
        ----------
        recommender
            The rule; all but ``HighestMean`` need the factors.
        points
            Points of each arm.
        """
        arms, total = len(points), sum(points)
        # C has no empty arrays, so every table has at least one entry.
        numbers = max(1, total * self._dimension) + max(1, total) + self._constants
        others = self._text + _POINTER * arms
        if not isinstance(recommender, HighestMean):
            numbers += max(1, sum(n * (n + 1) // 2 for n in points)) + arms
        if isinstance(recommender, SmallestGapInHistory):  # every step's width, and the steps
            numbers += total
            index = 1 if arms <= 2**7 else 2 if arms <= 2**15 else 4
            others += _POINTER * arms + max(1, total) * index
        return self._real * numbers + others


def _kernel_constants(kernel: Kernel, dimension: int) -> int:
    if isinstance(kernel, Sum | Product):
        sides = (kernel.left, kernel.right)
        return sum(_kernel_constants(side, dimension) for side in sides)
    if isinstance(kernel, Scaled):
        return _kernel_constants(kernel.kernel, dimension)
    if isinstance(kernel, Periodic):
        return 2 * dimension
    if isinstance(kernel, Stationary) and isinstance(kernel.bandwidth, tuple):
        return dimension
    return 0
