"""Methods: named pairs of an exploration rule and a deployment rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from contextgap.base import checks, components
from contextgap.base.components import Component
from contextgap.methods import explorers, recommenders
from contextgap.methods.explorers import Explorer
from contextgap.methods.recommenders import HighestMean, Recommender, SmallestGapInHistory


@dataclass(frozen=True, kw_only=True)
class Method(Component):
    """The exploration and deployment rules; any explorer can be combined with any recommender.

    Parameters
    ----------
    explorer
        Picks the arm to try.
    recommender
        Picks the arm to deploy.

    Examples
    --------
    >>> from contextgap.explorers import KernelUCB
    >>> Method(explorer=KernelUCB(), recommender=HighestMean()).name
    'kernel-ucb-mod'
    >>> Method(explorer=KernelUCB(), recommender=recommenders.SmallestGap()).name
    'KernelUCB+SmallestGap'
    """

    explorer: Explorer
    recommender: Recommender

    def __post_init__(self) -> None:
        checks.instance("explorer", self.explorer, Explorer, "ContextualGap()")
        checks.instance("recommender", self.recommender, Recommender, "SmallestGap()")

    @property
    def adaptive(self) -> bool:
        """Whether intervals must hold for picks that depend on rewards, or at all steps at once."""
        return self.explorer.adaptive or isinstance(self.recommender, SmallestGapInHistory)

    @property
    def name(self) -> str:
        """The name in ``METHODS``, or else the names of the two parts."""
        for name, method in METHODS.items():
            if self in (method, method.suited(False), method.suited(True)):
                return name
        return f"{type(self.explorer).__name__}+{type(self.recommender).__name__}"

    def suited(self, by_features: bool) -> Method:
        """Return the method of a policy, by whether arms share what they learn by features."""
        return replace(self, recommender=self.recommender.suited(by_features))


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        name: Method(explorer=explorer, recommender=recommender)
        for name, explorer, recommender in (
            ("contextual-gap", explorers.ContextualGap(), recommenders.SmallestGap()),
            ("contextual-gap-history", explorers.ContextualGap(), SmallestGapInHistory()),
            ("kernel-ucb", explorers.KernelUCB(), recommenders.HighestUpper()),
            ("kernel-ucb-mod", explorers.KernelUCB(), HighestMean()),
            ("kernel-ts", explorers.KernelTS(), recommenders.PosteriorSample()),
            ("epsilon-greedy", explorers.EpsilonGreedy(), HighestMean()),
            ("uniform", explorers.Uniform(), HighestMean()),
            ("max-variance", explorers.MaxVariance(), HighestMean()),
            ("elimination", explorers.Elimination(), HighestMean()),
            ("top-two-ts", explorers.TopTwoTS(), HighestMean()),
            ("knowledge-gradient", explorers.KnowledgeGradient(), HighestMean()),
            ("eb-tc", explorers.EBTC(), HighestMean()),
            ("planned-sampling", explorers.PlannedSampling(), HighestMean()),
            ("proportional-response", explorers.ProportionalResponse(), HighestMean()),
            ("gain-or-gap", explorers.GainOrGap(), recommenders.MeanOrGap()),
        )
    }
)


RECOMMENDED = "gain-or-gap"  # "auto", the default of learners and commands: docs/leaderboard.md


def read_method(method: Any) -> Method:
    """Return a method from its name, "auto", "package.module:name", or itself.

    An explorer without a recommender deploys the highest mean.
    """
    if isinstance(method, str) and not components.is_path(method):
        if method == "auto":
            return METHODS[RECOMMENDED]
        if method not in METHODS:
            raise ValueError(
                f"method must be one of {['auto', *sorted(METHODS)]} or your own as "
                f"{components.FORM}, got {method!r}"
            )
        return METHODS[method]
    found = components.read("method", method, (Method, Explorer), '"contextual-gap"')
    if isinstance(found, Explorer):
        return Method(explorer=found, recommender=HighestMean())
    return found  # type: ignore[no-any-return]  # just checked
