"""Learn which option is best for each input while mistakes are free; then decide alone."""

from importlib import import_module
from typing import Any

from contextgap import explorers, kernels
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
from contextgap.widths import PosteriorWidth, RidgeWidth, TheoremWidth

__version__ = "0.2.0.dev0"

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
    "Number",
    "Periodic",
    "Policy",
    "Polynomial",
    "PosteriorSample",
    "PosteriorWidth",
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
