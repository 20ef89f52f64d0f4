"""What one call of the exported code computes, counted from the sizes of its tables.

Every addition, subtraction, multiplication and division of real numbers counts, and every call of
``exp``, ``sqrt`` and ``sin``; comparisons, signs and integer arithmetic do not. None of the loops
ends early, so the count holds for every finite context and is the worst case.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from contextgap.export.c.shape import Form, Shape


@dataclass(frozen=True)
class Operations:
    """Numbers of floating-point operations.

    Parameters
    ----------
    additions
        Additions and subtractions.
    multiplications
        Multiplications.
    divisions
        Divisions.
    exp, sqrt, sin
        Calls of these functions.
    """

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    exp: int = 0
    sqrt: int = 0
    sin: int = 0

    @property
    def multiply_adds(self) -> int:
        """Additions or multiplications, whichever are more.

        Almost every addition goes with a multiplication, so this is about the number of fused
        multiply-adds of a machine that has them, and never below it.
        """
        return max(self.additions, self.multiplications)

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: int) -> Operations:
        return Operations(*(times * count for count in astuple(self)))

    __rmul__ = __mul__


def recommend_cost(shape: Shape, kernel: Operations, diagonal: Operations) -> Operations:
    """Return what one call of ``contextgap_recommend`` computes.

    Parameters
    ----------
    shape
        Sizes of the tables.
    kernel
        Cost of one kernel value.
    diagonal
        Cost of k(x, x).
    """
    arms, points = shape.arms, shape.points
    if shape.form.mean_from_weights:
        return points * (kernel + Operations(1, 1)) + arms * Operations(additions=1)
    solving = sum((_solved_row(i) for size in shape.sizes for i in range(size)), Operations())
    states = shape.compared_states if shape.form is Form.LOOK_BACK else 1
    intervals = arms + states - 1  # all arms' at the first state, the pulled one's at each later
    # One interval: prior + shift, k(x, x) − known, reach · root.
    interval = Operations(additions=2, multiplications=1, sqrt=1)
    # One comparison: upper, lower and gap of every arm.
    comparison = arms * Operations(additions=3 if arms > 1 else 0)
    doubled = arms * Operations(multiplications=1)
    return (
        points * kernel + solving + diagonal + intervals * interval + states * comparison + doubled
    )


def _solved_row(before: int) -> Operations:
    """One entry of v: subtract a dot product of ``before`` terms, divide, update two sums."""
    dot = Operations(before + 3, before)  # four partial sums, added up at the end
    return dot + Operations(additions=3, multiplications=2, divisions=1)
