"""What every problem must do."""

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.problems import (
    AlgorithmSelection,
    Classification,
    MagnetometerBench,
    Problem,
    SensorLog,
    Sinusoids,
    Spacecraft,
    Table,
)
from contextgap.testing import check_problem
from tests.studies.problems.algorithm_selection.writing import write


@pytest.fixture
def sheets(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 4)), columns=["x", "y", "noise_a", "noise_b"])
    frame.to_csv(tmp_path / "sheet.csv", index=False)
    return tmp_path / "sheet.csv"


@pytest.mark.parametrize(
    "maker",
    [
        Sinusoids(3),
        Sinusoids(4, noise=0.2, first=0),
        Classification("iris"),
        Spacecraft(),
        MagnetometerBench(),
        MagnetometerBench(noise=0, sequence=True),
    ],
    ids=str,
)
def test_every_maker_conforms(maker):
    check_problem(maker)


def test_problems_in_files_conform(sheets, tmp_path):
    check_problem(Table(sheets, rewards=["noise_a", "noise_b"]))
    check_problem(SensorLog(sheets))
    check_problem(AlgorithmSelection(write(tmp_path)), rows=4)


def test_problems_conform():
    x = np.random.default_rng(0).normal(size=(9, 2))
    check_problem(Problem(name="tiny", contexts=x, rewards=x, ordered=True).with_noise(0.1, 0))
    check_problem(Spacecraft().sample(30, seed=0))
