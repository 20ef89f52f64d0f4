"""Experiments: run, tune and compare methods on problems."""

import sys
import warnings
from typing import TYPE_CHECKING, Any

from contextgap.studies.experiments.compare import (
    PAPER_BANDWIDTHS,
    PAPER_METHODS,
    PAPER_RIDGES,
    PAPER_SCALES,
    Comparison,
    Entry,
    Grid,
    GridSearch,
    Results,
    Study,
    compare,
    conduct,
    tune,
    tune_and_compare,
)
from contextgap.studies.experiments.paper import Plan, pilot, plan
from contextgap.studies.experiments.run import FlightTrace, Gram, Trace, fly, run
from contextgap.studies.experiments.selection import (
    Selection,
    Selector,
    learn_selector,
    select_algorithms,
    summarise_cpu,
    summarise_selection,
)

# Where public names were before they moved.
for _moved in (pilot, plan, tune):
    sys.modules[f"{__name__}.{_moved.__name__}"] = sys.modules[_moved.__module__]

if not TYPE_CHECKING:  # type checkers would believe that it answers any name

    def __getattr__(name: str) -> Any:
        if name != "Tuning":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        text = "experiments.Tuning is now called experiments.GridSearch"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return GridSearch


__all__ = [
    "PAPER_BANDWIDTHS",
    "PAPER_METHODS",
    "PAPER_RIDGES",
    "PAPER_SCALES",
    "Comparison",
    "Entry",
    "FlightTrace",
    "Gram",
    "Grid",
    "GridSearch",
    "Plan",
    "Results",
    "Selection",
    "Selector",
    "Study",
    "Trace",
    "compare",
    "conduct",
    "fly",
    "learn_selector",
    "pilot",
    "plan",
    "run",
    "select_algorithms",
    "summarise_cpu",
    "summarise_selection",
    "tune",
    "tune_and_compare",
]
