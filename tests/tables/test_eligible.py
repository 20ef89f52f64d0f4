"""Eligible arms: every form that users may write, and rows grouped by what is eligible."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contextgap.base.checks import groups, read_eligible

LABELS = ("a", "b", "c")


def read(arms, rows=2, single=False, labels=LABELS, **settings):
    return read_eligible(arms, labels, rows, single=single, **settings)


def test_nothing_said_means_every_arm():
    assert read(None) is None


@pytest.mark.parametrize(
    "arms",
    [
        ["a", "c"],
        ("c", "a"),
        {"a", "c"},
        frozenset("ac"),
        iter(["a", "c"]),
        ["a", "c", "a"],
        {"a": 1, "c": 2}.keys(),
        np.array(["a", "c"]),
        np.array(["a", "c"], dtype=object),
        pd.Series(["a", "c"]),
        pd.Index(["a", "c"]),
        pl.Series(["a", "c"]),
        np.array([True, False, True]),
        pd.Series([True, False, True]),
    ],
    ids=lambda arms: type(arms).__name__,
)
@pytest.mark.parametrize("single", [True, False])
def test_one_collection(arms, single):
    if isinstance(arms, type(iter([]))):
        arms = iter(["a", "c"])  # an iterator can be read once
    mask = read(arms, 1 if single else 4, single)
    assert mask.tolist() == [[True, False, True]] * (1 if single else 4)


@pytest.mark.parametrize(
    "arms",
    [
        [["a"], {"b", "c"}],
        (("a",), ("c", "b", "b")),
        [np.array(["a"]), iter("bc")],
        pd.Series([["a"], ["b", "c"]]),
        np.array([[True, False, False], [False, True, True]]),
    ],
    ids=lambda arms: type(arms).__name__,
)
def test_one_collection_per_row(arms):
    assert read(arms).tolist() == [[True, False, False], [False, True, True]]


def test_labels_that_are_tuples_are_labels():
    labels = (("a", 1), ("b", 2), "a")
    assert read([("a", 1), "a"], labels=labels).tolist() == [[True, False, True]] * 2
    assert read([[("a", 1)], ["a"]], labels=labels).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_labels_that_are_truths_are_labels():
    assert read([False], 1, True, labels=(True, False)).tolist() == [[False, True]]
    assert read([1, 0], 1, True, labels=(0, 1, 2)).tolist() == [[True, True, False]]


def test_no_rows():
    assert read([], 0).shape == (0, 3)
    assert read(["a"], 0).shape == (0, 3)
    assert read(np.empty((0, 3), dtype=bool), 0).shape == (0, 3)
    assert not list(groups(read([], 0)))


def test_retired_arms_come_last_and_masks_leave_them_out():
    assert read(["z", "a"], 1, True, retired=["z"]).tolist() == [[True, False, False, True]]
    mask = np.array([False, True, True])
    assert read(mask, 1, True, retired=["z"]).tolist() == [[False, True, True, False]]


@pytest.mark.parametrize(
    ("arms", "error", "message"),
    [
        ("a", TypeError, "must be labels, such as ['a', 'b'], or a boolean array"),
        (b"a", TypeError, "got b'a'"),
        (7, TypeError, "got 7"),
        (True, TypeError, "got True"),
        (np.array("a"), TypeError, "got array('a'"),
        ({"a": True, "b": False}, TypeError, "got {'a': True, 'b': False}"),
        (pd.DataFrame({"a": [True, False]}), TypeError, "must be labels"),
        (["a", "z"], ValueError, "must be among ['a', 'b', 'c'], got 'z'"),
        (["z"], ValueError, "must be among ['a', 'b', 'c'], got 'z'"),
        (["a", None], ValueError, "got None"),
        (["a", ["b"]], ValueError, "got ['b']"),
        ([True, False, True], ValueError, "must be among ['a', 'b', 'c'], got True"),
        ([["a"], ["z"]], ValueError, "got 'z' at row 1"),
        ([["a"], []], ValueError, "must leave at least one arm to choose from, got none at row 1"),
        ([["a"]], ValueError, "one for each of 2 contexts, got 1"),
        ([["a"]] * 3, ValueError, "one for each of 2 contexts, got 3"),
        ([], ValueError, "must leave at least one arm to choose from, got none at row 0"),
        (np.zeros(3, dtype=bool), ValueError, "at least one arm"),
        (np.ones(2, dtype=bool), ValueError, "of shape (3,) or (2, 3), got shape (2,)"),
        (np.ones((3, 3), dtype=bool), ValueError, "got shape (3, 3)"),
        (np.ones((2, 2), dtype=bool), ValueError, "got shape (2, 2)"),
        (np.array([[1, 0, 1], [1, 1, 1]]), ValueError, "a boolean array to be a mask"),
    ],
)
def test_what_is_wrong_is_named(arms, error, message):
    with pytest.raises(error) as caught:
        read(arms)
    assert str(caught.value).startswith("arms must")
    assert message in str(caught.value)


def test_errors_for_one_context_do_not_speak_of_rows():
    with pytest.raises(ValueError, match=r"eligible must leave at least one arm .*, got none$"):
        read([], 1, True, called="eligible")
    with pytest.raises(ValueError, match=r"arms must be among .*, got \['a'\]$"):
        read([["a"]], 1, True)
    with pytest.raises(ValueError, match=r"of shape \(3,\), got shape \(1, 3\)"):
        read(np.ones((1, 3), dtype=bool), 1, True)
    with pytest.raises(ValueError, match=r"must be among \[0, 1\], got True"):
        read([True, False], 1, True, labels=(0, 1))


@given(arrays(bool, st.tuples(st.integers(0, 30), st.integers(1, 12))))
def test_groups_are_the_rows_by_mask(mask):
    seen = []
    for rows, columns in groups(mask):
        assert len(rows)
        assert (np.diff(rows) > 0).all()
        for row in rows:
            assert np.flatnonzero(mask[row]).tolist() == columns.tolist()
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(mask)))
    assert len(list(groups(mask))) == len({row.tobytes() for row in mask})


@pytest.mark.parametrize("kind", [int, float, np.uint8])
def test_zeros_and_ones_are_no_labels_where_they_have_the_shape_of_a_mask(kind):
    mask = np.array([[0, 1, 1], [1, 1, 0]], dtype=kind)
    for arms in (mask, mask[0]):
        with pytest.raises(ValueError, match=r"must be a boolean array .*\.astype\(bool\)"):
            read_eligible(arms, [0, 1, 2], 2, single=False)
    both = read_eligible(np.array([1, 0]), [0, 1], 2, single=False)
    assert both.all()
    named = read_eligible(np.array([[0, 2], [1, 2]]), [0, 1, 2], 2, single=False)
    assert named.tolist() == [[True, False, True], [False, True, True]]
