"""What learners and policies both say about themselves."""

from __future__ import annotations

from contextgap.base.completed import completed
from contextgap.base.labels import Label
from contextgap.beliefs.widths import Width
from contextgap.kernels import Kernel
from contextgap.methods.method import Method
from contextgap.models import Model
from contextgap.policy.state import Rules
from contextgap.tables.contexts import ContextSchema


class Known:
    """A model of some arms, and the rules to explore and deploy by."""

    _model: Model
    _labels: tuple[Label, ...]
    _active: tuple[int, ...]
    _rules: Rules
    _schema: ContextSchema

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.arms)} arms, {self.method.name}, {self.kernel}, "
            f"{len(self._model)} observations)"
        )

    @property
    def arms(self) -> tuple[Label, ...]:
        """The arms to choose from."""
        return tuple(self._labels[i] for i in self._active)

    @property
    def method(self) -> Method:
        """The exploration and deployment rules."""
        return self._rules.method

    @property
    def kernel(self) -> Kernel:
        """The similarity of contexts."""
        return self._model.kernel

    @property
    def width(self) -> Width:
        """How standard deviations become intervals."""
        return self._rules.width

    @property
    def ridge(self) -> float:
        """The regularisation."""
        return self._model.ridge

    @property
    def prior_mean(self) -> float:
        """The mean reward believed where nothing was observed, as a number."""
        return self._rules.sign * self._model.prior()

    @completed
    def counts(self) -> dict[Label, int]:
        """How many rewards of each arm were told."""
        return {self._labels[i]: self._model.observed.count(i) for i in self._active}
