"""Algorithm selection: scenarios of the Algorithm Selection Library, and the usual summaries."""

from contextgap.studies.problems.algorithm_selection.scenario import (
    SHORTEST,
    AlgorithmSelection,
    Scenario,
    closed_gap,
    folds,
    selected_performance,
    single_best,
    virtual_best,
)

__all__ = [
    "SHORTEST",
    "AlgorithmSelection",
    "Scenario",
    "closed_gap",
    "folds",
    "selected_performance",
    "single_best",
    "virtual_best",
]
