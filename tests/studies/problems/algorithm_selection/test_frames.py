"""Scenarios from tables of one's own."""

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.problems import AlgorithmSelection, Scenario
from tests.studies.problems.algorithm_selection.writing import ASLIB

FRAME = pd.DataFrame(
    {
        "instance_id": ["p", "q", "r", "s"],
        "size": [1.0, 2.0, np.nan, 9.0],
        "kind": ["wide", "deep", "wide", "wide"],
        "same": [3, 3, 3, 3],
        "fast": [0.5, 120.0, 3.0, np.nan],
        "slow": [50.0, 60.0, 70.0, 80.0],
    }
)


def test_times_above_the_cutoff_and_missing_ones_failed():
    scenario = Scenario.from_frame(FRAME, ["fast", "slow"], cutoff=100)
    np.testing.assert_allclose(scenario.performance, [[0.5, 50], [1000, 60], [3, 70], [1000, 80]])
    np.testing.assert_allclose(scenario.rewards, -np.log10(scenario.performance))
    assert (scenario.arms, scenario.instances) == (("fast", "slow"), ("p", "q", "r", "s"))
    assert (scenario.runtime, scenario.cutoff) == (True, 100.0)
    assert list(scenario.columns) == ["size", "kind"]  # what is the same everywhere says nothing
    raw = {"size": np.array([2.0]), "kind": np.array([0.0])}  # the median, and the first name
    assert scenario.preparation.contexts(raw).shape == (1, 2)


def test_of_scores_higher_is_better_and_missing_the_worst():
    scenario = Scenario.from_frame(FRAME, ["fast", "slow"])
    np.testing.assert_allclose(scenario.rewards, [[0.5, 50], [120, 60], [3, 70], [0.5, 80]])
    assert not scenario.runtime
    assert scenario.regret(np.array([1, 0, 1, 1])).tolist() == [0, 0, 0, 0]


def test_files_columns_and_frames_are_read_alike(tmp_path):
    FRAME.to_csv(tmp_path / "own.csv", index=False)
    given = [FRAME, tmp_path / "own.csv", FRAME.to_dict("list")]
    found = [Scenario.from_frame(each, ["slow", "fast"], cutoff=100) for each in given]
    for each in found[1:]:
        np.testing.assert_array_equal(each.contexts, found[0].contexts)
        np.testing.assert_array_equal(each.performance, found[0].performance)


@pytest.mark.skipif(not (ASLIB / "CSP-2010").is_dir(), reason="needs the shared scenarios")
def test_a_table_is_the_scenario_that_it_was_made_from():
    whole = AlgorithmSelection(ASLIB / "CSP-2010").load()
    times = {arm: whole.performance[:, place] for place, arm in enumerate(whole.arms)}
    features = {f"x{place}": column for place, column in enumerate(whole.contexts.T)}
    own = Scenario.from_frame({**features, **times}, whole.arms, cutoff=whole.cutoff)
    np.testing.assert_array_equal(own.performance, whole.performance)
    np.testing.assert_array_equal(own.rewards, whole.rewards)


@pytest.mark.parametrize(
    ("changed", "solvers", "cutoff", "message"),
    [
        ({}, ["fast"], 100, "at least two"),
        ({}, ["fast", "none"], 100, "no attribute 'none'"),
        ({}, ["fast", "fast"], 100, "twice"),
        ({}, ["fast", "slow"], -1, "cutoff"),
        ({"fast": [1, -2, 3, 4]}, ["fast", "slow"], 100, "row 1, attribute 'fast'.*negative"),
        ({"fast": [1, "timeout", 3, 4]}, ["fast", "slow"], 100, "number is needed, got 'timeout'"),
        ({"instance_id": list("aabc")}, ["fast", "slow"], 100, "every row differently"),
    ],
)
def test_what_is_wrong_is_named(changed, solvers, cutoff, message):
    with pytest.raises(ValueError, match=message):
        Scenario.from_frame(FRAME.assign(**changed), solvers, cutoff=cutoff)
    with pytest.raises(TypeError, match="frame must be"):
        Scenario.from_frame(3, ["fast", "slow"])
