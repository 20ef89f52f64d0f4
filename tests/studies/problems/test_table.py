from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.problems import Table

FRAME = pd.DataFrame(
    {
        "size": [1.0, 2.0, 4.0],
        "fast": [0.1, 0.9, 0.2],
        "depth": [5.0, 5.0, 5.0],
        "exact": [0.5, 0.3, 0.8],
    }
)


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path):
    path = tmp_path / f"runs.{request.param}"
    FRAME.to_csv(path, index=False) if request.param == "csv" else FRAME.to_parquet(path)
    return path


def test_columns_become_contexts_and_rewards(path):
    problem = Table(path, rewards=["exact", "fast"], scale=False).sample()
    assert (problem.name, problem.ordered) == ("runs", False)
    assert (problem.arms, problem.columns) == (("exact", "fast"), ("size", "depth"))
    np.testing.assert_array_equal(problem.contexts, FRAME[["size", "depth"]])
    np.testing.assert_array_equal(problem.rewards, FRAME[["exact", "fast"]])


def test_named_context_labels_and_order(path):
    table = Table(
        str(path), context=["size"], rewards=["exact", "fast"], arms=["x", "f"], ordered=True
    )
    problem = table.sample(2, seed=0)
    assert (problem.arms, problem.columns, problem.ordered) == (("x", "f"), ("size",), True)
    np.testing.assert_array_equal(problem.rewards, FRAME[["exact", "fast"]][:2])


def test_scaling_is_over_all_rows(path):
    problem = Table(path, rewards=["fast"], ordered=True).sample(2)
    size = FRAME["size"].to_numpy()
    np.testing.assert_allclose(problem.contexts[:, 0], (size[:2] - size.mean()) / size.std())
    assert not problem.contexts[:, 1].any()


def test_makers_are_values():
    assert Table("a.csv", rewards=["b"]) == Table("a.csv", rewards=("b",))
    assert hash(Table("a.csv", rewards=["b"])) == hash(Table("a.csv", rewards=("b",)))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"rewards": "fast"}, TypeError, "rewards must be a list of column names"),
        ({"rewards": []}, ValueError, "rewards must name at least one column"),
        (
            {"rewards": ["a"], "context": ["a"]},
            ValueError,
            "'a' cannot be both in context and in rewards",
        ),
        ({"rewards": ["a"], "path": 3}, TypeError, "path must be the path of a file, got 3"),
        ({"rewards": ["a"], "arms": []}, ValueError, "arms must name at least one arm"),
    ],
)
def test_bad_settings_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        Table(**({"path": "runs.csv"} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rewards": ["slow"]}, "there is no column 'slow'; the columns are"),
        ({"rewards": ["fast"], "context": ["width"]}, "there is no column 'width'"),
        ({"rewards": list(FRAME.columns)}, "every column is in rewards"),
        ({"rewards": ["fast"], "arms": ["f", "g"]}, "name the 1 columns of rewards, got 2"),
    ],
)
def test_settings_that_do_not_fit_the_file_are_named(path, options, message):
    with pytest.raises(ValueError, match=message):
        Table(path, **options).sample()


def test_a_bad_cell_names_file_line_and_column(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("a,r\n1,2\n3,oops\n")
    with pytest.raises(ValueError, match=r"runs\.csv, line 3, column 'r': .*'oops'"):
        Table(path, rewards=["r"]).sample()


def test_rows_without_a_reward_are_skipped_if_asked(tmp_path):
    (tmp_path / "t.csv").write_text("x,a,b\n1,1,2\n2,,3\n3,2,NA\n4,5,7\n")
    given = {"rewards": ["a", "b"], "scale": False}
    with pytest.raises(ValueError, match=r"line 3: 2 of 4 rows have no reward.*skip_missing=True"):
        Table(tmp_path / "t.csv", **given).load()
    with pytest.warns(UserWarning, match="2 of 4 rows have no reward and are skipped"):
        found = Table(tmp_path / "t.csv", **given, skip_missing=True).load()
    assert found.contexts.tolist() == [[1.0], [4.0]]
    assert found.rewards.tolist() == [[1.0, 2.0], [5.0, 7.0]]
