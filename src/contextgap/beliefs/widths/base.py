"""The base class of widths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from contextgap.base.arrays import FloatArray
from contextgap.base.components import Component
from contextgap.models import Posterior


class Width(Component, ABC):
    """A rule that turns a posterior into confidence intervals.

    ``adaptive`` says whether its guarantee, if there is one, holds where picks depend on rewards.
    """

    adaptive: ClassVar[bool] = True

    @property
    def probability(self) -> float | None:
        """The probability with which all intervals hold at once; None if there is no guarantee."""
        return None

    def covers(self, contexts: int) -> bool:
        """Return whether the guarantee, if there is one, covers so many contexts at once.

        Parameters
        ----------
        contexts
            How many.
        """
        del contexts
        return True

    def suited(self, *, adaptive: bool) -> Width:
        """Return the width to use where picks depend on rewards, or where they do not.

        Parameters
        ----------
        adaptive
            Whether they do, as ``Method.adaptive`` says.
        """
        del adaptive
        return self

    @abstractmethod
    def half_width(self, posterior: Posterior) -> FloatArray:
        """Return upper − mean, in the shape of ``posterior.std``.

        Parameters
        ----------
        posterior
            Besides the standard deviations it has the ridge and each arm's information gain.
        """
