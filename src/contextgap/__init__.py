"""Learn which option is best for each input while mistakes are free; then decide alone."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

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

# Where public names are; each loads when first used.
_NAMES = {
    "base.display": ["ProgressBar"],
    "base.files": ["FileFormatError"],
    "beliefs": ["Decision", "NonadaptiveWidth", "PosteriorWidth", "RidgeWidth", "TheoremWidth"],
    "kernels": ["Gaussian", "Linear", "Matern", "Periodic", "Polynomial", "SklearnKernel"],
    "learner": ["Learner", "StoppingRule"],
    "learner.bulk": ["learn_from"],
    "methods": ["METHODS", "Method"],
    "methods.recommenders": [
        "HighestMean",
        "HighestUpper",
        "PosteriorSample",
        "SmallestGap",
        "SmallestGapInHistory",
    ],
    "models.tuning": ["Tuning"],
    "policy": ["Card", "Certificate", "Fallback", "Policy", "Ranked", "Status"],
    "tables.columns": ["Category", "Columns", "Cyclic", "Date", "Number"],
    "team.campaign": ["Campaign"],
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
_LAZY = {
    "campaign": "team.campaign",
    "client": "team.client",
    "compression": "export.compression",
    "experiments": "studies.experiments",
    "explorers": "methods.explorers",
    "export": "export",
    "insight": "insight",
    "io": "io",
    "kernels": "kernels",
    "mlflow": "mlflow",
    "partitions": "learner.bulk",
    "plot": "insight.plot",
    "problems": "studies.problems",
    "report": "studies.report",
    "sklearn": "sklearn",
    "testing": "testing",
    "theory": "studies.theory",
}
_NEEDS = {
    "Campaign": "sqlalchemy",
    "client": "httpx",
    "mlflow": "mlflow",
    "report": "matplotlib",
    "sklearn": "sklearn",
}
# Public packages by the short paths under which they are imported, and where they are.
_PLACES = {
    **_LAZY,
    "belief": "beliefs",
    "recommenders": "methods.recommenders",
    "service": "team.service",
    "tuning": "models.tuning",
    "widths": "beliefs",
}


class _ShortPaths:
    """Imports ``contextgap.problems`` and other public packages from where they are."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a spec for a short path; None for every other module."""
        del path, target
        root, _, rest = name.partition(".")
        first, _, below = rest.partition(".")
        place = _PLACES.get(first)
        if root != __name__ or place is None or place == first:
            return None
        real = f"{root}.{place}.{below}".rstrip(".")
        loader: Any = self  # importlib.abc, which has a base class for it, is slow to load
        return ModuleSpec(name, loader, loader_state=real)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself, so that both paths name one object."""
        real = spec.loader_state
        module = import_module(real)
        self._spec = module.__spec__
        # Else importing contextgap.experiments.run would replace the function of that name.
        for name in [name for name in sys.modules if name.startswith(f"{real}.")]:
            sys.modules[f"{spec.name}{name.removeprefix(real)}"] = sys.modules[name]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as its own path made it."""
        module.__spec__ = self._spec


if TYPE_CHECKING:
    from contextgap import export as export
    from contextgap import insight as insight
    from contextgap import io as io
    from contextgap import kernels
    from contextgap import mlflow as mlflow
    from contextgap import sklearn as sklearn
    from contextgap import testing as testing
    from contextgap.base.display import ProgressBar
    from contextgap.base.files import FileFormatError
    from contextgap.beliefs import (
        Decision,
        NonadaptiveWidth,
        PosteriorWidth,
        RidgeWidth,
        TheoremWidth,
    )
    from contextgap.export import compression as compression
    from contextgap.insight import plot as plot
    from contextgap.kernels import Gaussian, Linear, Matern, Periodic, Polynomial, SklearnKernel
    from contextgap.learner import Learner, StoppingRule
    from contextgap.learner import bulk as partitions  # noqa: F401  # its public name
    from contextgap.learner.bulk import learn_from as learn_from
    from contextgap.methods import METHODS, Method, explorers
    from contextgap.methods.recommenders import (
        HighestMean,
        HighestUpper,
        PosteriorSample,
        SmallestGap,
        SmallestGapInHistory,
    )
    from contextgap.models.tuning import Tuning
    from contextgap.policy import Card, Certificate, Fallback, Policy, Ranked, Status
    from contextgap.studies import experiments as experiments
    from contextgap.studies import problems as problems
    from contextgap.studies import report as report
    from contextgap.studies import theory as theory
    from contextgap.tables.columns import Category, Columns, Cyclic, Date, Number
    from contextgap.team import campaign as campaign
    from contextgap.team import client as client
    from contextgap.team.campaign import Campaign as Campaign
else:  # type checkers would believe that it answers any name
    sys.meta_path.insert(0, _ShortPaths())  # before submodules are found a second time

    def __getattr__(name: str) -> Any:
        try:
            if name in _LAZY:
                return import_module(f"contextgap.{_LAZY[name]}")
            if name in _HOMES:
                return getattr(import_module(f"contextgap.{_HOMES[name]}"), name)
        except ImportError as error:
            if name != "Campaign":
                raise
            raise ImportError(
                f"campaigns need {error.name}; pip install 'contextgap[campaign]' brings it"
            ) from None
        raise AttributeError(f"module 'contextgap' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what is public, for completion and ``help``: without what lacks its extra."""
    usual = {name for name in globals() if name.startswith("__")}
    lacking = {name for name, needed in _NEEDS.items() if find_spec(needed) is None}
    return sorted({*usual, *_HOMES, *_LAZY} - lacking)
