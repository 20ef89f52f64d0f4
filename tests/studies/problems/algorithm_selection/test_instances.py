"""The features of new instances, against those that the scenario's own instances have."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.problems import AlgorithmSelection
from contextgap.studies.problems.algorithm_selection import Preparation, read_instances
from tests.studies.problems.algorithm_selection.writing import FEATURES, write

RUNS = """\
@RELATION runs
@ATTRIBUTE instance_id STRING
@ATTRIBUTE algorithm STRING
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE runstatus {ok}
@DATA
"""
HEAD = FEATURES[: FEATURES.index("'i 1'")].replace("same NUMERIC", "same {low, high}")
COUNT = 40


def table(seed=0):
    """Return raw features: one skewed and with gaps, one a name, one plain and with gaps."""
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame(
        {
            "big": np.exp(rng.normal(0, 3, COUNT)),
            "same": rng.choice(["low", "high"], COUNT),
            "depth": rng.normal(5, 2, COUNT),
        }
    )
    raw.loc[[3, 7], "big"] = np.nan
    raw.loc[[7, 9], "depth"] = np.nan
    raw.insert(0, "instance_id", [f"n{row}" for row in range(COUNT)])
    return raw


def scenario(folder, statuses=None, scale=True):
    raw = table()
    names = raw["instance_id"]
    runs = "".join(f"{name},{arm},1,ok\n" for name in names for arm in "ab")
    values = raw.assign(repetition=1)[["instance_id", "repetition", "big", "same", "depth"]]
    write(
        folder,
        algorithm_runs=RUNS + runs,
        feature_values=HEAD + values.to_csv(header=False, index=False, na_rep="?"),
        feature_runstatus=statuses,
        feature_costs=None,
        cv=None,
    )
    return AlgorithmSelection(folder, scale=scale).load()


def said(failed):
    """Return statuses in which the step probe failed on some instances."""
    head = "@RELATION s\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE probe {ok, timeout}\n@DATA\n"
    return head + "".join(f"n{i},{'timeout' if f else 'ok'}\n" for i, f in enumerate(failed))


def saved(folder, frame, gap=""):
    path = folder / "new.csv"
    frame.to_csv(path, index=False, na_rep=gap)
    return path


@pytest.mark.parametrize("scale", [True, False])
def test_the_scenarios_own_instances_get_their_contexts(tmp_path, scale):
    toy = scenario(tmp_path, scale=scale)
    assert toy.columns == ("big", "same", "depth", "probe failed")
    for gap in ("", "?", "inf"):
        path = saved(tmp_path, table(), gap)
        found = read_instances(path, toy.preparation)
        np.testing.assert_array_equal(found.contexts, toy.contexts)
        assert found.names == toy.instances
        assert found.unused == ()


def test_by_an_independent_computation(tmp_path):
    toy, old = scenario(tmp_path), table()
    new = table(seed=1).iloc[[0, 3, 7, 9]]

    def prepared(column, new_column):
        centre, unit = column.mean(), column.std(ddof=0)
        return (new_column - centre) / unit

    log, depth = np.log1p(old["big"]), old["depth"]
    place = {"low": 0.0, "high": 1.0}
    gaps = old["depth"].isna().astype(float)
    expected = np.column_stack(
        [
            prepared(log.fillna(log.median()), np.log1p(new["big"]).fillna(log.median())),
            prepared(old["same"].map(place), new["same"].map(place)),
            prepared(depth.fillna(depth.median()), new["depth"].fillna(depth.median())),
            prepared(gaps, new["depth"].isna().astype(float)),
        ]
    )
    found = read_instances(saved(tmp_path, new), toy.preparation)
    np.testing.assert_allclose(found.contexts, expected, rtol=1e-12, atol=1e-12)


def test_a_step_that_failed_is_said_where_the_scenario_says_it(tmp_path):
    failed = np.arange(COUNT) % 5 == 0  # not where features are missing
    toy = scenario(tmp_path, said(failed))
    assert toy.columns == ("big", "same", "depth", "probe failed")
    new = table()
    with pytest.raises(ValueError, match="no column 'probe failed': 1 where that step"):
        read_instances(saved(tmp_path, new), toy.preparation)
    new["probe failed"] = failed.astype(int)
    found = read_instances(saved(tmp_path, new), toy.preparation)
    np.testing.assert_array_equal(found.contexts, toy.contexts)
    new["probe failed"] = np.where(failed, "timeout", "ok")
    with pytest.raises(ValueError, match=r"new\.csv, line 2, attribute 'probe failed'.*'timeout'"):
        read_instances(saved(tmp_path, new), toy.preparation)
    new["probe failed"] = np.where(failed, 0.5, 0)
    with pytest.raises(ValueError, match=r"'probe failed': 0 or 1 is needed, got '0\.5'"):
        read_instances(saved(tmp_path, new), toy.preparation)


def test_repetitions_are_averaged_and_one_good_one_is_enough(tmp_path):
    toy = scenario(tmp_path, said(np.arange(COUNT) % 2 == 0))
    once = table().iloc[[0]].assign(**{"probe failed": 0})
    twice = pd.concat([once.assign(big=once["big"] - 1), once.assign(big=once["big"] + 1)])
    twice["probe failed"] = [0, 1]
    twice["repetition"] = [1, 2]
    one, two = (read_instances(saved(tmp_path, frame), toy.preparation) for frame in (once, twice))
    np.testing.assert_allclose(two.contexts, one.contexts)
    assert two.names == ("n0",)


def test_rows_without_names_are_numbered_and_other_columns_are_told(tmp_path):
    toy = scenario(tmp_path)
    new = table().drop(columns="instance_id").assign(family="x")[["depth", "family", "same", "big"]]
    found = read_instances(saved(tmp_path, new), toy.preparation)
    np.testing.assert_array_equal(found.contexts, toy.contexts)  # by name, not by place
    assert found.names[:2] == ("1", "2")
    assert found.unused == ("family",)


def test_parquet_files_too(tmp_path):
    toy = scenario(tmp_path)
    table().to_parquet(tmp_path / "new.parquet")
    found = read_instances(tmp_path / "new.parquet", toy.preparation)
    np.testing.assert_array_equal(found.contexts, toy.contexts)


def test_through_a_file_and_back(tmp_path):
    for statuses in (None, said(np.arange(COUNT) % 5 == 0)):
        preparation = scenario(tmp_path, statuses).preparation
        assert Preparation.restored(json.loads(json.dumps(asdict(preparation)))) == preparation


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"big": None}, r"new\.csv: there is no column 'big'$"),
        ({"big": None, "same": None}, "no column 'big', and 1 more of 3 columns"),
        ({"big": "much"}, r"new\.csv, line 2, attribute 'big': a number is needed, got 'much'"),
        ({"same": "medium"}, r"attribute 'same': one of \['low', 'high'\] is needed, got 'medium'"),
        ({"instance_id": ""}, "attribute 'instance_id': a name is needed"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, change, message):
    toy = scenario(tmp_path)
    new = table()
    for name, value in change.items():
        new = new.drop(columns=name) if value is None else new.assign(**{name: value})
    with pytest.raises(ValueError, match=message):
        read_instances(saved(tmp_path, new), toy.preparation)
