"""Experiments: run, tune and compare methods on problems."""

from contextgap.studies.experiments.compare import (
    PAPER_METHODS,
    PAPER_SCALES,
    Comparison,
    Entry,
    Results,
    Study,
    compare,
    conduct,
    tune_and_compare,
)
from contextgap.studies.experiments.fly import FlightTrace, fly
from contextgap.studies.experiments.plan import Plan, pilot, plan
from contextgap.studies.experiments.run import Gram, Trace, run
from contextgap.studies.experiments.selection import (
    Selection,
    Selector,
    learn_selector,
    select_algorithms,
    summarise_selection,
)
from contextgap.studies.experiments.tune import PAPER_BANDWIDTHS, PAPER_RIDGES, Grid, Tuning, tune

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
    "Plan",
    "Results",
    "Selection",
    "Selector",
    "Study",
    "Trace",
    "Tuning",
    "compare",
    "conduct",
    "fly",
    "learn_selector",
    "pilot",
    "plan",
    "run",
    "select_algorithms",
    "summarise_selection",
    "tune",
    "tune_and_compare",
]
