"""Problems: where contexts and rewards come from.

A maker describes a source of data; its ``sample`` gives a ``Problem``, in which every arm's reward
is known for every context, so that regret can be measured.
"""

from contextgap.studies.problems.algorithm_selection import AlgorithmSelection, Scenario
from contextgap.studies.problems.problem import (
    Classification,
    FixedData,
    Maker,
    Problem,
    SensorLog,
    Sinusoids,
    Table,
)
from contextgap.studies.problems.spacecraft import Flight, MagnetometerBench, Spacecraft

__all__ = [
    "AlgorithmSelection",
    "Classification",
    "FixedData",
    "Flight",
    "MagnetometerBench",
    "Maker",
    "Problem",
    "Scenario",
    "SensorLog",
    "Sinusoids",
    "Spacecraft",
    "Table",
]
