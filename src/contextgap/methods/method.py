"""Methods: named pairs of an exploration rule and a deployment rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from contextgap.base import checks, names
from contextgap.base.components import Component
from contextgap.methods.explorers import (
    EBTC,
    ContextualGap,
    Elimination,
    EpsilonGreedy,
    Explorer,
    GainOrGap,
    KernelTS,
    KernelUCB,
    KnowledgeGradient,
    MaxVariance,
    PlannedSampling,
    ProportionalResponse,
    TopTwoTS,
    Uniform,
)
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    PosteriorSample,
    Recommender,
    SmallestGap,
    SmallestGapInHistory,
)


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
    >>> Method(explorer=KernelUCB(), recommender=HighestMean()).name
    'kernel-ucb-mod'
    >>> Method(explorer=KernelUCB(), recommender=SmallestGap()).name
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
            if method == self:
                return name
        return f"{type(self.explorer).__name__}+{type(self.recommender).__name__}"


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "contextual-gap": Method(explorer=ContextualGap(), recommender=SmallestGap()),
        "contextual-gap-history": Method(
            explorer=ContextualGap(), recommender=SmallestGapInHistory()
        ),
        "kernel-ucb": Method(explorer=KernelUCB(), recommender=HighestUpper()),
        "kernel-ucb-mod": Method(explorer=KernelUCB(), recommender=HighestMean()),
        "kernel-ts": Method(explorer=KernelTS(), recommender=PosteriorSample()),
        "epsilon-greedy": Method(explorer=EpsilonGreedy(), recommender=HighestMean()),
        "uniform": Method(explorer=Uniform(), recommender=HighestMean()),
        "max-variance": Method(explorer=MaxVariance(), recommender=HighestMean()),
        "elimination": Method(explorer=Elimination(), recommender=HighestMean()),
        "top-two-ts": Method(explorer=TopTwoTS(), recommender=HighestMean()),
        "knowledge-gradient": Method(explorer=KnowledgeGradient(), recommender=HighestMean()),
        "eb-tc": Method(explorer=EBTC(), recommender=HighestMean()),
        "planned-sampling": Method(explorer=PlannedSampling(), recommender=HighestMean()),
        "proportional-response": Method(explorer=ProportionalResponse(), recommender=HighestMean()),
        "gain-or-gap": Method(explorer=GainOrGap(), recommender=HighestMean()),
    }
)


# What "auto" stands for, the default of learners and commands, and what it stands for where arms
# have features: see docs/leaderboard.md.
RECOMMENDED, WITH_FEATURES = "gain-or-gap", "contextual-gap"


def read_method(method: Any, *, features: bool = False) -> Method:
    """Return a method from its name, "auto", "package.module:name", or itself.

    ``features`` says whether arms have any. An explorer without a recommender deploys the highest
    mean.
    """
    if isinstance(method, str) and not names.is_path(method):
        if method == "auto":
            return METHODS[WITH_FEATURES if features else RECOMMENDED]
        if method not in METHODS:
            raise ValueError(
                f"method must be one of {['auto', *sorted(METHODS)]} or your own as "
                f"{names.FORM}, got {method!r}"
            )
        return METHODS[method]
    found = names.read("method", method, (Method, Explorer), '"contextual-gap"')
    if isinstance(found, Explorer):
        return Method(explorer=found, recommender=HighestMean())
    return found  # type: ignore[no-any-return]  # just checked
