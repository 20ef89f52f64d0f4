"""What the exported code holds, counted from the sizes of its tables.

Bytes are those of pointers and ``size_t`` where they are largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from contextgap.export.c.literals import (
    POINTER,
    Real,
    column_names,
    label_text,
    level_bytes,
    string_bytes,
)
from contextgap.insight.betting import BINS
from contextgap.insight.watch_baseline import STATISTICS
from contextgap.kernels import Kernel, Linear, Periodic, Product, Scaled, Sum, Warped
from contextgap.kernels.stationary import Stationary
from contextgap.methods.recommenders import HighestMean, Recommender, SmallestGapInHistory
from contextgap.policy import Policy
from contextgap.policy.state import Fallback
from contextgap.tables.columns import TableSchema


class Form(Enum):
    MEANS = "means"
    MEANS_EXPLAINED = "means, and widths when asked to explain"
    LAST_STEP = "means and widths after the last step"
    LOOK_BACK = "means and widths after every step"

    @classmethod
    def of(
        cls,
        recommender: Recommender,
        certificates: bool = False,
        fallback: Fallback | None = None,
    ) -> Form:
        """Return the form for a rule; one that needs means only has widths for certificates."""
        # A fallback with a tolerance compares every recommended arm's certificate with it.
        compares = fallback is not None and fallback.tolerance is not None
        if isinstance(recommender, HighestMean) and not compares:
            return cls.MEANS_EXPLAINED if certificates else cls.MEANS
        return cls.LOOK_BACK if isinstance(recommender, SmallestGapInHistory) else cls.LAST_STEP

    @property
    def has_widths(self) -> bool:
        """Whether the factors are in the tables."""
        return self is not Form.MEANS

    @property
    def mean_from_weights(self) -> bool:
        """Whether a recommendation needs the weights only."""
        # Where v = L⁻¹k is solved for anyway, the mean comes from v and the innovations, as in
        # Python: there are as many of them, and nothing cancels when the ridge is small.
        return self in (Form.MEANS, Form.MEANS_EXPLAINED)


@dataclass(frozen=True)
class Layout:
    form: Form
    real: Real
    dimension: int  # numbers that kernels see
    sizes: tuple[int, ...]  # observations of each arm, the same for arms that share
    kernel_constants: int
    text_bytes: int
    columns: int = 0  # arms observed, if arms share
    table: TableSchema | None = None  # how typed columns become what kernels see
    fallback: Fallback | None = None  # which needs the range of each number
    watch_points: int = 0  # contexts of the log that a watch measures distances to
    watch_columns: int = 0  # and numbers of contexts that it bets on
    warped: bool = False  # whether some numbers are put on a logarithmic scale
    common: bool = False  # whether all arms have the same inducing points, and share nothing else

    @classmethod
    def of(cls, policy: Policy, real: Real, *, certificates: bool = False) -> Layout:
        if policy.dimension is None:
            raise ValueError("a policy that never saw a context has no size; tell it something")
        words = *map(label_text, policy.arms), *column_names(policy.columns, policy.dimension)
        return cls(
            form=Form.of(policy.method.recommender, certificates, policy.fallback),
            real=real,
            dimension=policy.dimension,
            sizes=tuple(policy.state.model.support_sizes(policy.state.active)),
            kernel_constants=_kernel_constants(policy.kernel, policy.dimension),
            # A table points to each text.
            text_bytes=sum(string_bytes(word) + POINTER for word in words),
            columns=policy.state.model.n_arms if policy.state.model.shares else 0,
            table=policy.state.schema.table,
            fallback=policy.fallback,
            common=policy.state.model.common_support,
            warped=isinstance(policy.kernel, Warped),
        )

    def holding(self, recommender: Recommender, sizes: Sequence[int]) -> Layout:
        form = Form.of(recommender, fallback=self.fallback)
        return replace(self, form=form, sizes=tuple(sizes), columns=0, common=False)

    @property
    def arms(self) -> int:
        return len(self.sizes)

    @property
    def points(self) -> int:
        """Observations of all arms."""
        return self.sizes[0] if self.columns or self.common else sum(self.sizes)

    @property
    def solved_entries(self) -> int:
        """Entries of v = L⁻¹k that are kept at once, of each arm if arms share."""
        return max(1, self.points if self.form is Form.LOOK_BACK else max(self.sizes))

    @property
    def index_type(self) -> tuple[str, int]:
        """The smallest C type that holds every arm's index, and its bytes."""
        most = max(self.arms, self.columns)
        if most <= 2**7:
            return "signed char", 1
        return ("short", 2) if most <= 2**15 else ("int", 4)

    @property
    def number_bytes(self) -> int:
        weights = self.form.mean_from_weights
        by_arm = self.common or (self.columns and weights)  # the same points for every arm
        tables = [self.points * self.dimension, self.points * (self.arms if by_arm else 1)]
        if self.form.has_widths:  # factors, half widths over standard deviations, correlations
            triangles = [size * (size + 1) // 2 for size in self.sizes]
            if self.columns:
                tables += [triangles[0], 1, self.arms * self.columns, self.arms * self.arms]
            else:
                tables += [triangles[0], sum(triangles)] if self.common else [sum(triangles)]
                tables.append(self.arms + (self.points if self.form is Form.LOOK_BACK else 0))
        around = (self.table is not None) + (self.fallback is not None)  # two tables for each
        # C has no empty arrays, so every table has at least one entry.
        count = sum(max(1, size) for size in tables) + 2 * around * self.dimension
        count += self.watch_points * (self.dimension + 1)
        return self.real.bytes * (count + self.kernel_constants)

    @property
    def rom_bytes(self) -> int:
        """Bytes of all constants: numbers, labels, names and indices."""
        total = self.number_bytes + self.text_bytes
        if self.watch_points:
            count = len(STATISTICS) + self.watch_columns
            total += 8 * (self.arms + count * (BINS - 1)) + 4 * count * BINS
            total += 2 * self.watch_columns
        if self.table is not None:  # what becomes of each column, of which one, texts of levels
            total += 3 * self.dimension + level_bytes(self.table)
        total += POINTER * (1 if self.columns or self.common else self.arms)
        look_back = self.form is Form.LOOK_BACK
        if look_back:
            total += POINTER * self.arms
        if look_back or (self.columns and self.form.has_widths):  # the arm of each point
            total += max(1, self.points) * self.index_type[1]
        return total

    @property
    def ram_bytes(self) -> int:
        """Bytes of all arrays on the stack while a decision is made."""
        numbers = self.dimension * ((self.table is not None) + self.warped)
        numbers += 3 * self.arms + 1 if self.form.has_widths else self.arms  # the decision
        if self.form.has_widths:
            copies = self.arms if self.columns else 3 if self.common else 1
            numbers += self.solved_entries * copies
            if self.columns or self.form is Form.LOOK_BACK:  # sums of every arm
                numbers += 2 * self.arms
        seen = POINTER * self.arms + self.real.bytes if self.form is Form.LOOK_BACK else 0
        return numbers * self.real.bytes + seen + 2 * POINTER


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
    return Layout.of(policy, Real(float32)).rom_bytes


def _kernel_constants(kernel: Kernel, dimension: int) -> int:
    """Numbers in the tables that ``kernels.kernel_text`` writes."""
    if isinstance(kernel, Sum | Product):
        sides = (kernel.left, kernel.right)
        return sum(_kernel_constants(side, dimension) for side in sides)
    if isinstance(kernel, Scaled):
        return _kernel_constants(kernel.kernel, dimension)
    if isinstance(kernel, Warped):
        return 2 * dimension + _kernel_constants(kernel.kernel, dimension)
    if isinstance(kernel, Linear):  # codes have a unit and no centre
        return 0 if kernel.plain else 2 * dimension - kernel.categories
    if isinstance(kernel, Periodic):
        return 2 * dimension
    if isinstance(kernel, Stationary) and isinstance(kernel.bandwidth, tuple):
        return dimension
    return 0
