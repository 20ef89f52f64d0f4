"""Problems: where contexts and rewards come from.

A maker describes a source of data; its ``sample`` gives a ``Problem``, in which every arm's reward
is known for every context, so that regret can be measured.
"""

from contextgap.problems.algorithm_selection import AlgorithmSelection, Scenario
from contextgap.problems.classification import Classification
from contextgap.problems.maker import FixedData, Maker
from contextgap.problems.problem import Problem
from contextgap.problems.sensor_log import SensorLog
from contextgap.problems.sinusoids import Sinusoids
from contextgap.problems.spacecraft import Flight, MagnetometerBench, Spacecraft
from contextgap.problems.table import Table

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
