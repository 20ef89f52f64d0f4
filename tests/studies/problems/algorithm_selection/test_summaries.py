from __future__ import annotations

import math

import numpy as np
import pytest

from contextgap.studies.problems import Scenario
from contextgap.studies.problems.algorithm_selection import (
    closed_gap,
    folds,
    selected_performance,
    single_best,
)

PERFORMANCE = [[1, 4], [2, 10], [9, 3], [8, 3]]  # means 5 and 5; of the first two 1.5 and 7


def scenario(performance=PERFORMANCE, numbers=(1, 1, 2, 2)):
    table = np.array(performance, dtype=float)
    return Scenario(
        name="toy",
        contexts=np.arange(len(table))[:, np.newaxis],
        rewards=-table,
        performance=table,
        cutoff=10,
        folds=numbers,
        instances=[f"i{row}" for row in range(len(table))],
    )


def test_best_solvers_by_hand():
    toy = scenario()
    assert single_best(toy) == 0  # equals: the first
    assert single_best(toy.take([2, 3])) == 1
    assert selected_performance(toy, [1, 0, 0, 1]).tolist() == [4, 2, 9, 3]
    assert selected_performance(toy, 1).tolist() == [4, 10, 3, 3]


def test_closed_gap_by_hand():
    toy = scenario()
    # Single best 5, virtual best 9/4, selected (1 + 2 + 9 + 3)/4.
    assert closed_gap(toy, [0, 0, 0, 1]) == pytest.approx((5 - 15 / 4) / (5 - 9 / 4))
    assert closed_gap(toy, toy.performance.argmin(axis=1)) == 1
    assert closed_gap(toy, [0, 0, 0, 0]) == 0
    assert closed_gap(toy, [1, 1, 0, 0]) < 0


def test_the_single_best_solver_comes_from_the_training_part():
    train, test = scenario().take([0, 1]), scenario().take([2, 3])
    # Trained: algorithm 0, which takes 8.5 on average; virtual best 3; selected (9 + 3)/2.
    assert closed_gap(test, [0, 1], train=train) == pytest.approx((8.5 - 6) / (8.5 - 3))


def test_no_gap_is_nan():
    assert math.isnan(closed_gap(scenario([[1, 2], [1, 2]], (1, 2)), [0, 1]))


def test_folds_are_disjoint_and_complete():
    toy = scenario(np.arange(24).reshape(12, 2), np.arange(12) % 3 + 1)
    tested = []
    for number, (train, test) in enumerate(folds(toy), 1):
        assert set(test.folds.tolist()) == {number}
        assert set(train.instances) | set(test.instances) == set(toy.instances)
        assert not set(train.instances) & set(test.instances)
        tested += test.instances
    assert sorted(tested) == sorted(toy.instances)


def test_rows_without_a_fold_are_trained_on():
    toy = scenario(numbers=(0, 1, 2, 2))
    assert [test.instances for _, test in folds(toy)] == [("i1",), ("i2", "i3")]
    assert all("i0" in train.instances for train, _ in folds(toy))


def test_without_any_fold_ten_are_dealt():
    toy = scenario(np.arange(50).reshape(25, 2), np.zeros(25))
    parts = [test.instances for _, test in folds(toy)]
    assert len(parts) == 10
    assert sorted(name for part in parts for name in part) == sorted(toy.instances)
    assert parts == [test.instances for _, test in folds(toy)]


def test_one_fold_leaves_nothing_to_train_on():
    with pytest.raises(ValueError, match="'toy' has one fold only"):
        next(folds(scenario(numbers=(1, 1, 1, 1))))


def test_picks_are_checked():
    with pytest.raises(ValueError, match="arms must be indices"):
        selected_performance(scenario(), [0, 0, 0, 2])
    with pytest.raises(TypeError, match="arms must be indices"):
        closed_gap(scenario(), ["a", "b", "a", "b"])
