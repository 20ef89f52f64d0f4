"""Which form the exported code takes, and the sizes of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from contextgap.export.rule import DecisionRule
from contextgap.recommenders import HighestMean, SmallestGapInHistory


class Form(Enum):
    """What the exported code computes."""

    MEANS = "means"
    MEANS_EXPLAINED = "means, and widths when asked to explain"
    LAST_STEP = "means and widths after the last step"
    LOOK_BACK = "means and widths after every step"

    @property
    def has_widths(self) -> bool:
        """Whether the factors are in the tables."""
        return self is not Form.MEANS

    @property
    def mean_from_weights(self) -> bool:
        """Whether a recommendation needs the weights only.

        Where v = L⁻¹k is solved for anyway, the mean comes from v and the innovations, as in
        Python: there are as many of them, and nothing cancels when the ridge is small.
        """
        return self in (Form.MEANS, Form.MEANS_EXPLAINED)


@dataclass(frozen=True)
class Shape:
    """Sizes of the exported tables.

    Parameters
    ----------
    form
        What the code computes.
    dimension
        Numbers per context.
    sizes
        Observations of each arm.
    steps
        Observations of arms in use, in all.
    first_step
        After how many of them the look-back starts.
    """

    form: Form
    dimension: int
    sizes: tuple[int, ...]
    steps: int
    first_step: int

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(self.sizes)

    @property
    def points(self) -> int:
        """Observations of all arms."""
        return sum(self.sizes)

    @property
    def factor_entries(self) -> int:
        """Numbers in all factors."""
        return sum(size * (size + 1) // 2 for size in self.sizes)

    @property
    def compared_states(self) -> int:
        """States that the look-back compares."""
        return self.steps - self.first_step + 1

    @property
    def solved_entries(self) -> int:
        """Entries of v = L⁻¹k that are kept at once."""
        return self.points if self.form is Form.LOOK_BACK else max(self.sizes)


def shape_of(rule: DecisionRule, certificates: bool) -> Shape:
    """Return the form and sizes of an exported rule.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    certificates
        Whether a rule that needs means only shall have widths too.
    """
    form = Form.LAST_STEP
    if isinstance(rule.recommender, HighestMean):
        form = Form.MEANS_EXPLAINED if certificates else Form.MEANS
    elif isinstance(rule.recommender, SmallestGapInHistory):
        form = Form.LOOK_BACK
    # A step of a retired arm changes no interval, and ties go to the earlier step: leave it out.
    kept = rule.pulls >= 0
    return Shape(
        form=form,
        dimension=rule.dimension,
        sizes=tuple(len(arm.weights) for arm in rule.arms),
        steps=int(kept.sum()),
        first_step=int(kept[: rule.first_step].sum()),
    )
