from __future__ import annotations

import pickle

import numpy as np
import pytest

from contextgap.studies.problems import AlgorithmSelection, Scenario
from tests.studies.problems.algorithm_selection.writing import (
    ASLIB,
    FEATURES,
    FOLDS,
    NEW_DIALECT,
    OLD_DIALECT,
    RUNS,
    STATUSES,
    write,
)


@pytest.fixture
def toy(tmp_path):
    return AlgorithmSelection(write(tmp_path)).sample()


def test_names(toy):
    assert isinstance(toy, Scenario)
    assert toy.name == "TOY"
    assert toy.arms == ("a one", "b")
    assert toy.instances == ("i 1", "i2", "i3", "i4")
    assert repr(toy).startswith("Scenario('TOY': 4 rows, 3 numbers per context, 2 arms")


def test_par10_by_hand(toy):
    # A crash counts as a timeout whatever was noted; so does 150 s at a cutoff of 100 s; and i4 is
    # the average of a run that took 20 s and one that ran out of memory.
    expected = [[10, 1], [1, 1000], [1000, 0.0001], [510, 1000]]
    np.testing.assert_allclose(toy.performance, expected)
    assert toy.cutoff == 100


def test_raw_counts_the_cutoff(tmp_path):
    raw = AlgorithmSelection(write(tmp_path), performance="raw").load()
    np.testing.assert_allclose(raw.performance, [[10, 1], [1, 100], [100, 0.0001], [60, 100]])


def test_rewards_are_logarithms_above_a_millisecond(toy):
    np.testing.assert_allclose(toy.rewards[:3], [[-1, 0], [0, -3], [-3, 3]])


def test_features(tmp_path):
    toy = AlgorithmSelection(write(tmp_path), scale=False).load()
    # "same" is constant. i3 is the mean of two repetitions, i4 has no features and gets medians.
    assert toy.columns == ("big", "depth", "probe failed")
    np.testing.assert_allclose(toy.contexts, [[1, 5, 0], [2, 3.5, 1], [5, 2, 0], [2, 3.5, 1]])


def test_scaled_features(toy):
    np.testing.assert_allclose(toy.contexts.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(toy.contexts.std(axis=0), 1)


def test_folds_and_costs(toy):
    assert toy.folds.tolist() == [1, 2, 1, 2]
    np.testing.assert_allclose(toy.feature_cost, [1.5, 0.5, 0, 0])


def test_both_dialects_say_the_same(tmp_path, toy):
    (tmp_path / "old").mkdir()
    old = AlgorithmSelection(write(tmp_path / "old", description=OLD_DIALECT)).load()
    for name in ("contexts", "rewards", "performance", "folds"):
        np.testing.assert_array_equal(getattr(old, name), getattr(toy, name))
    assert (old.name, old.cutoff, old.columns) == (toy.name, toy.cutoff, toy.columns)


@pytest.mark.parametrize("dialect", [NEW_DIALECT, OLD_DIALECT])
def test_without_optional_files(tmp_path, dialect):
    features = FEATURES + "i4,1,?,?,?\n"
    folder = write(
        tmp_path,
        description=dialect,
        feature_values=features,
        feature_runstatus=None,
        feature_costs=None,
        cv=None,
    )
    toy = AlgorithmSelection(folder, scale=False).load()
    # A step failed where all its features are missing: i4's both, i2's second.
    assert toy.columns == ("big", "depth", "size failed", "probe failed")
    assert toy.contexts[:, 2:].tolist() == [[0, 0], [0, 1], [0, 0], [1, 1]]
    assert not toy.folds.any()
    assert not toy.feature_cost.any()


@pytest.mark.parametrize("maximize", [True, False])
def test_quality(tmp_path, maximize):
    description = NEW_DIALECT.replace("- false", f"- {maximize}").replace(
        "- runtime", "- solution_quality"
    )
    description = description.replace("measures:\n- solution_quality", "measures:\n- accuracy")
    runs = """\
@relation runs
@attribute\tinstance_id\tstring
@attribute repetition numeric
@attribute algorithm string
@attribute accuracy numeric
@attribute runstatus {ok, timeout}
@data
'i 1',1,a,0.9,ok
'i 1',1,b,0.7,timeout
i2,1,a,?,timeout
i2,1,b,0.2,ok
"""
    toy = AlgorithmSelection(write(tmp_path, description=description, algorithm_runs=runs)).load()
    worst = 0.2 if maximize else 0.9
    sign = 1 if maximize else -1
    np.testing.assert_allclose(toy.rewards, sign * np.array([[0.9, 0.7], [worst, 0.2]]))
    np.testing.assert_array_equal(toy.performance, -toy.rewards)


def test_skewed_features_are_compressed(tmp_path):
    sizes = [2.0**k for k in range(20)]
    rows = "".join(f"n{k},1,{size},{k},{-size}\n" for k, size in enumerate(sizes))
    runs = RUNS + "".join(f"n{k},1,{arm},{k + 1},ok\n" for k in range(20) for arm in "bc")
    header = FEATURES[: FEATURES.index("'i 1'")]
    folder = write(tmp_path, feature_values=header + rows, algorithm_runs=runs)
    toy = AlgorithmSelection(folder, scale=False).load()
    new = [name.startswith("n") for name in toy.instances]
    np.testing.assert_allclose(toy.contexts[new, 0], np.log1p(sizes))
    np.testing.assert_allclose(toy.contexts[new, 1], np.arange(20))
    np.testing.assert_allclose(toy.contexts[new, 2], -np.log1p(sizes))


def test_nominal_and_infinite_features(tmp_path):
    features = FEATURES.replace("same NUMERIC", "same {low, high}").replace('"depth"', "depth")
    features = features.replace(",7,", ",high,").replace("'i 1',1,1,high", "'i 1',1,inf,low")
    toy = AlgorithmSelection(write(tmp_path, feature_values=features), scale=False).load()
    # Infinity is a gap, filled with the median of 2 and 5; names become their places.
    np.testing.assert_allclose(toy.contexts[:, :2], [[3.5, 0], [2, 1], [5, 1], [3.5, 1]])


def test_facts_survive_taking_splitting_and_pickling(toy):
    part = toy.take([2, 0])
    assert part.instances == ("i3", "i 1")
    np.testing.assert_array_equal(part.performance, toy.performance[[2, 0]])
    np.testing.assert_array_equal(part.feature_cost, toy.feature_cost[[2, 0]])
    first, second = toy.split(1, 3)
    assert first.instances + second.instances == toy.instances
    assert pickle.loads(pickle.dumps(second)).folds.tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        toy.performance[0, 0] = 1


@pytest.mark.parametrize(
    ("fact", "value"),
    [("performance", np.ones((3, 2))), ("folds", [1]), ("instances", ("a",)), ("feature_cost", 1)],
)
def test_facts_must_fit(fact, value):
    facts = {"performance": np.ones((2, 2)), "folds": [1, 2], "instances": ("a", "b"), "cutoff": 9}
    rest = {"name": "toy", "contexts": np.eye(2), "rewards": np.eye(2)}
    with pytest.raises(ValueError, match=fact):
        Scenario(**rest, **{**facts, fact: value})


def test_arguments_are_checked(tmp_path):
    with pytest.raises(ValueError, match=r"one of \['par10', 'raw'\], got 'par1'"):
        AlgorithmSelection(tmp_path, performance="par1")
    with pytest.raises(TypeError, match="path"):
        AlgorithmSelection(3)


def bad(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


BAD = {
    "no runs": ({"algorithm_runs": None}, r"algorithm_runs\.arff: there is no such file"),
    "no description": ({"description": None}, r"description\.txt: there is no such file"),
    "no features": ({"feature_values": None}, r"feature_values\.arff: there is no such file"),
    "no algorithm": (
        {"algorithm_runs": bad(RUNS, "E algorithm", "E solver")},
        r"algorithm_runs\.arff: there is no attribute 'algorithm'",
    ),
    "no instance": (
        {"feature_values": bad(FEATURES, "instance_id", "inst")},
        r"feature_values\.arff: there is no attribute 'instance_id'",
    ),
    "measure": (
        {"description": bad(NEW_DIALECT, "- runtime", "- quality")},
        r"description\.txt: performance_measures names 'quality'.*algorithm_runs\.arff",
    ),
    "no measure": (
        {"description": bad(NEW_DIALECT, "- runtime", "- '?'")},
        r"description\.txt: performance_measures must name",
    ),
    "type": (
        {"description": bad(NEW_DIALECT, "type:\n- runtime", "type:\n- speed")},
        r"performance_type must be one of .*, got 'speed'",
    ),
    "maximize": (
        {"description": bad(NEW_DIALECT, "- false", "- perhaps")},
        r"maximize must be true or false, got 'perhaps'",
    ),
    "maximized runtime": (
        {"description": bad(NEW_DIALECT, "- false", "- true")},
        r"maximize must be false",
    ),
    "cutoff": (
        {"description": bad(NEW_DIALECT, "time: 100", "time: soon")},
        r"algorithm_cutoff_time must be a positive number of seconds, got 'soon'",
    ),
    "no cutoff": (
        {"description": bad(NEW_DIALECT, "time: 100", "time: ?")},
        r"description\.txt: algorithm_cutoff_time is needed, since the run in line 12 of .*runs",
    ),
    "not YAML": (
        {"description": bad(NEW_DIALECT, "- false", "- [false")},
        r"description\.txt, line \d+: not YAML",
    ),
    "no entries": ({"description": "a scenario"}, r"description\.txt: entries"),
    "unknown instance": (
        {"algorithm_runs": RUNS + "i9,1,b,1,ok\n"},
        r"algorithm_runs\.arff, line 18, attribute 'instance_id': the instance 'i9' is unknown",
    ),
    "status": (
        {"algorithm_runs": bad(RUNS, "i2,1,b,100,timeout", "i2,1,b,100,late")},
        r"algorithm_runs\.arff, line 12: not ARFF",
    ),
    "number": (
        {"algorithm_runs": bad(RUNS, "i2,1,b,100,", "i2,1,b,1oo%,")},
        r"algorithm_runs\.arff, line 12: not ARFF",
    ),
    "short row": (
        {"algorithm_runs": bad(RUNS, "i2,1,b,100,timeout", "i2,1,100%")},
        r"algorithm_runs\.arff, line 12: not ARFF",
    ),
    "header": (
        {"cv": bad(FOLDS, "fold NUMERIC", "fold WHOLE")},
        r"cv\.arff, line 4: not ARFF",
    ),
    "no rows": (
        {"feature_runstatus": STATUSES[: STATUSES.index("'i 1'")]},
        r"feature_runstatus\.arff: there is no row behind @data",
    ),
    "no runtime": (
        {"algorithm_runs": bad(RUNS, "'i 1',1,b,1,ok", "'i 1',1,b,?,ok")},
        r"algorithm_runs\.arff, line 10, attribute 'runtime': the runtime is missing",
    ),
    "negative runtime": (
        {"algorithm_runs": bad(RUNS, "'i 1',1,b,1,ok", "'i 1',1,b,-1,ok")},
        r"line 10, attribute 'runtime': the runtime is negative",
    ),
    "nameless": (
        {"algorithm_runs": bad(RUNS, "'i 1',1,b,1,ok", "'i 1',1,?,1,ok")},
        r"line 10, attribute 'algorithm': a name is needed",
    ),
    "text feature": (
        {"feature_values": bad(FEATURES, "big NUMERIC", "big STRING").replace("i2,1,2", "i2,1,x")},
        r"feature_values\.arff, line 9, attribute 'big': a number is needed, got 'x'",
    ),
    "fold": (
        {"cv": bad(FOLDS, "i2,1,2", "i2,1,0")},
        r"cv\.arff, line 7, attribute 'fold': a whole number from 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_named(tmp_path, case):
    changed, message = BAD[case]
    folder = write(tmp_path, **changed)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
        AlgorithmSelection(folder).load()
    assert str(tmp_path) in str(raised.value)


def test_features_must_differ(tmp_path):
    header = FEATURES[: FEATURES.index("'i 1'")]
    rows = "".join(f"{name},1,1,1,1\n" for name in ("'i 1'", "i2", "i3", "i4"))
    folder = write(tmp_path, feature_values=header + rows, feature_runstatus=None)
    with pytest.raises(ValueError, match=r"feature_values\.arff: no feature differs"):
        AlgorithmSelection(folder).load()


def test_one_algorithm_leaves_no_choice(tmp_path):
    runs = RUNS.replace("'a one'", "b")
    with pytest.raises(ValueError, match=r"algorithm_runs\.arff: runs of at least two"):
        AlgorithmSelection(write(tmp_path, algorithm_runs=runs)).load()


def test_a_missing_run_counts_as_a_failed_one(tmp_path):
    runs = bad(RUNS, "i2,1,'a one',1,ok\n", "")
    toy = AlgorithmSelection(write(tmp_path, algorithm_runs=runs)).load()
    assert toy.performance[1].tolist() == [1000, 1000]


@pytest.mark.skipif(not ASLIB.is_dir(), reason="the shared scenarios are not here")
@pytest.mark.parametrize(
    ("name", "instances", "algorithms", "features", "failed", "cutoff"),
    [
        ("ASP-POTASSCO", 1294, 11, 138, 2, 600),
        ("BNSL-2016", 1179, 8, 86, 0, 7200),
        ("CSP-2010", 2024, 2, 86, 1, 5000),
    ],
)
def test_real_scenarios(name, instances, algorithms, features, failed, cutoff):
    scenario = AlgorithmSelection(ASLIB / name).load()
    assert scenario.name == name
    assert (len(scenario), scenario.n_arms, scenario.cutoff) == (instances, algorithms, cutoff)
    indicators = [column for column in scenario.columns if column.endswith(" failed")]
    assert len(indicators) == failed
    assert 0.75 * features <= scenario.dimension - failed <= features  # constant ones are dropped
    assert set(scenario.folds.tolist()) == set(range(1, 11))
    assert scenario.performance.max() == 10 * cutoff
    virtual = scenario.performance.min(axis=1).mean()
    assert virtual < scenario.performance.mean(axis=0).min()
