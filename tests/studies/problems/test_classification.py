from __future__ import annotations

from urllib.error import URLError

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.datasets
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from contextgap.studies.problems import Classification

FEATURES = [[1.0, 7.0], [2.0, 7.0], [6.0, 7.0], [3.0, 7.0]]


@pytest.mark.parametrize(
    ("name", "rows", "dimension", "classes"),
    [
        ("digits", 1797, 64, 10),
        ("wine", 178, 13, 3),
        ("breast_cancer", 569, 30, 2),
        ("iris", 150, 4, 3),
    ],
)
def test_bundled_data(name, rows, dimension, classes):
    problem = Classification(name, scale=False).sample()
    raw = getattr(sklearn.datasets, f"load_{name}")()
    assert (problem.name, len(problem), problem.dimension) == (name, rows, dimension)
    assert problem.arms == tuple(range(classes))
    assert {type(arm) for arm in problem.arms} == {int}
    assert problem.columns == tuple(raw.feature_names)
    np.testing.assert_array_equal(problem.contexts, raw.data)
    np.testing.assert_array_equal(problem.rewards.argmax(axis=1), raw.target)
    np.testing.assert_array_equal(problem.rewards.sum(axis=1), 1)


def test_scaling_leaves_constant_columns_zero():
    problem = Classification((FEATURES, [0, 1, 0, 1])).sample()
    assert problem.contexts[:, 0].mean() == pytest.approx(0)
    assert problem.contexts[:, 0].std() == pytest.approx(1)
    assert not problem.contexts[:, 1].any()


def test_ordinal_rewards_by_brute_force():
    target = [3, 1, 8, 3]
    problem = Classification((FEATURES, target), ordinal=True).sample()
    assert problem.arms == (1, 3, 8)
    for right, row in zip(target, problem.rewards, strict=True):
        assert row.tolist() == [-abs(arm - right) for arm in problem.arms]


@pytest.mark.parametrize(
    "target",
    [
        np.array(["b", "a", "b", "c"]),
        pd.Series(["b", "a", "b", "c"], dtype="category"),
        pl.Series(["b", "a", "b", "c"]),
        ["b", "a", "b", "c"],
    ],
)
def test_labels_are_plain_values(target):
    problem = Classification((FEATURES, target), name="mine").sample()
    assert problem.arms == ("a", "b", "c")
    assert {type(arm) for arm in problem.arms} == {str}
    assert problem.name == "mine"
    assert problem.rewards.argmax(axis=1).tolist() == [1, 0, 1, 2]


def test_numbers_spelt_as_text_are_in_numeric_order():
    problem = Classification((FEATURES, ["9", "10", "2", "9"]), ordinal=True).sample()
    assert problem.arms == ("2", "9", "10")
    assert problem.rewards[1].tolist() == [-8, -1, 0]


def test_frames_keep_their_column_names():
    frame = pd.DataFrame(FEATURES, columns=["u", "v"])
    assert Classification((frame, [0, 1, 0, 1])).sample().columns == ("u", "v")


def test_subsets_are_random_rows():
    iris = Classification("iris")
    part = iris.sample(60, seed=0)
    assert len(part) == 60
    assert part.rewards.any(axis=0).all()  # the first 60 rows hold two classes only
    np.testing.assert_array_equal(part.contexts, iris.sample(60, seed=0).contexts)


@pytest.fixture
def openml(monkeypatch):
    def answer(with_what):
        calls = []

        def fetch(name, **options):
            calls.append((name, options))
            if isinstance(with_what, Exception):
                raise with_what
            return with_what

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        return calls

    return answer


def test_other_names_are_fetched_from_openml(openml):
    frame = pd.DataFrame(FEATURES, columns=["u", "v"])
    calls = openml(Bunch(data=frame, target=pd.Series(list("BABA"), dtype="category")))
    problem = Classification("letter", version=1).sample()
    assert calls == [("letter", {"version": 1, "as_frame": "auto"})]
    assert (problem.name, problem.arms, problem.columns) == ("letter", ("A", "B"), ("u", "v"))


def test_sparse_data_from_openml(openml):
    openml(Bunch(data=csr_array(np.array(FEATURES)), target=np.array(["1", "2", "1", "2"])))
    problem = Classification("usps", scale=False).sample()
    np.testing.assert_array_equal(problem.contexts, FEATURES)


@pytest.mark.parametrize("error", [URLError("no route"), ValueError("No known data set")])
def test_a_failed_fetch_says_what_needs_none(openml, error):
    openml(error)
    kind = OSError if isinstance(error, OSError) else ValueError
    with pytest.raises(kind, match=r"could not fetch 'digit' .*(no route|No known).*digits, iris"):
        Classification("digit").sample()


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (
            (pd.DataFrame({"u": [1, 2], "v": ["x", "y"]}), [0, 1]),
            TypeError,
            "must be numbers without missing values: .*'x' in row 0, column 'v'",
        ),
        (
            (pd.DataFrame({"u": [1, np.nan]}), [0, 1]),
            ValueError,
            "must be numbers without missing values: .*nan in row 1, column 'u'",
        ),
        (([1.0, 2.0], [0, 1]), ValueError, r"shape \(rows, features\).*got \(2,\)"),
        ((FEATURES, [0, 1]), ValueError, "4 rows of features but 2 classes"),
        ((FEATURES, [0, 0, 0, 0]), ValueError, "at least two classes, got only 0"),
        ((FEATURES, ["a", None, "b", "a"]), ValueError, "lack a value: got None in row 1"),
        ((FEATURES, [0, 1, np.nan, 0]), ValueError, "lack a value: got nan in row 2"),
        ((FEATURES, [[0], [1], [0], [1]]), ValueError, r"one label per row, got shape \(4, 1\)"),
        ((FEATURES, None), ValueError, "one label per row"),
    ],
)
def test_bad_data_are_named(data, kind, message):
    with pytest.raises(kind, match="'classification'.*" + message):
        Classification(data).sample()


@pytest.mark.parametrize("label", ["high", "nan"])
def test_ordinal_needs_numbers(label):
    with pytest.raises(ValueError, match=f"classes that are numbers, got '{label}'"):
        Classification((FEATURES, ["1", label, "1", "2"]), ordinal=True).sample()


@pytest.mark.parametrize("data", [3, "", (FEATURES,), np.eye(2)])
def test_bad_settings_are_named(data):
    with pytest.raises(TypeError, match=r"data must be a data set's name.*or a pair"):
        Classification(data)
