"""Learn which option is best for each input while mistakes are free; then decide alone."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from contextgap import explorers, kernels
from contextgap.base.bars import ProgressBar
from contextgap.base.columns import Category, Columns, Cyclic, Date, Number
from contextgap.base.files import FileFormatError
from contextgap.belief import Decision
from contextgap.kernels import Gaussian, Linear, Matern, Periodic, Polynomial, SklearnKernel
from contextgap.learner import Learner, StoppingRule
from contextgap.methods import METHODS, Method
from contextgap.policy import Card, Certificate, Fallback, Policy, Ranked, Status
from contextgap.recommenders import (
    HighestMean,
    HighestUpper,
    PosteriorSample,
    SmallestGap,
    SmallestGapInHistory,
)
from contextgap.tuning import Tuning
from contextgap.widths import NonadaptiveWidth, PosteriorWidth, RidgeWidth, TheoremWidth

__version__ = "0.2.0"

__all__ = [
    "METHODS",
    "Card",
    "Category",
    "Certificate",
    "Columns",
    "Cyclic",
    "Date",
    "Decision",
    "Fallback",
    "FileFormatError",
    "Gaussian",
    "HighestMean",
    "HighestUpper",
    "Learner",
    "Linear",
    "Matern",
    "Method",
    "NonadaptiveWidth",
    "Number",
    "Periodic",
    "Policy",
    "Polynomial",
    "PosteriorSample",
    "PosteriorWidth",
    "ProgressBar",
    "Ranked",
    "RidgeWidth",
    "SklearnKernel",
    "SmallestGap",
    "SmallestGapInHistory",
    "Status",
    "StoppingRule",
    "TheoremWidth",
    "Tuning",
    "explorers",
    "kernels",
]

# Rooms that need extras, or are rarely needed, load when first used.
_LAZY = (
    "campaign",
    "client",
    "compression",
    "experiments",
    "export",
    "insight",
    "partitions",
    "plot",
    "problems",
    "report",
    "testing",
    "theory",
)
_NEEDS = {"Campaign": "sqlalchemy", "client": "httpx", "report": "matplotlib"}

if TYPE_CHECKING:
    from contextgap import campaign as campaign
    from contextgap import client as client
    from contextgap import compression as compression
    from contextgap import experiments as experiments
    from contextgap import export as export
    from contextgap import insight as insight
    from contextgap import partitions as partitions
    from contextgap import plot as plot
    from contextgap import problems as problems
    from contextgap import report as report
    from contextgap import testing as testing
    from contextgap import theory as theory
    from contextgap.campaign import Campaign as Campaign
    from contextgap.partitions import learn_from as learn_from
else:  # type checkers would believe that it answers any name

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return import_module(f"contextgap.{name}")
        if name == "learn_from":
            return import_module("contextgap.partitions").learn_from
        if name == "Campaign":
            try:
                return import_module("contextgap.campaign").Campaign
            except ImportError as error:
                raise ImportError(
                    f"campaigns need {error.name}; pip install 'contextgap[campaign]' brings it"
                ) from None
        raise AttributeError(f"module 'contextgap' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what is public, for completion and ``help``: without what lacks its extra."""
    usual = {name for name in globals() if name.startswith("__")}
    lacking = {name for name, needed in _NEEDS.items() if find_spec(needed) is None}
    return sorted({*usual, *__all__, *_LAZY, "Campaign", "learn_from"} - lacking)
