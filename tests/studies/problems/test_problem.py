from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contextgap.studies.problems import Problem


def make(rows=6, n_arms=3, **options):
    rng = np.random.default_rng(0)
    contexts, rewards = rng.normal(size=(rows, 2)), rng.normal(size=(rows, n_arms))
    return Problem(**({"name": "toy", "contexts": contexts, "rewards": rewards} | options))


def test_defaults_and_sizes():
    problem = make()
    assert (len(problem), problem.n_arms, problem.dimension) == (6, 3, 2)
    assert problem.arms == (0, 1, 2)
    assert problem.observations is problem.rewards
    assert not problem.ordered
    assert problem.columns is None


@pytest.mark.parametrize("field", ["contexts", "rewards", "observations", "regret_table", "ranks"])
def test_arrays_are_read_only(field):
    problem = make().with_noise(1, seed=0)
    with pytest.raises(ValueError, match="read-only"):
        getattr(problem, field)[0, 0] = 1


def test_a_problem_is_frozen_and_keeps_its_own_copy():
    rewards = np.zeros((6, 3))
    problem = make(rewards=rewards)
    rewards[:] = 7
    assert not problem.rewards.any()
    with pytest.raises(FrozenInstanceError):
        problem.name = "other"


def test_arrays_are_c_ordered_floats():
    problem = make(contexts=np.ones((2, 6), dtype=int).T, rewards=np.ones((3, 6), dtype=int).T)
    for table in (problem.contexts, problem.rewards):
        assert table.dtype == np.float64
        assert table.flags.c_contiguous


def test_a_frame_of_contexts_gives_the_columns_and_is_given_back():
    frame = pd.DataFrame({"heat": [1.0, 2.0], "wind": [3.0, 4.0]})
    problem = Problem(name="toy", contexts=frame, rewards=[[1], [2]])
    assert problem.columns == ("heat", "wind")
    pd.testing.assert_frame_equal(problem.frame(), frame)
    assert list(make().frame().columns) == ["x0", "x1"]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"contexts": np.zeros(6)}, ValueError, r"shape \(rows, numbers\).*got \(6,\)"),
        ({"contexts": np.zeros((0, 2))}, ValueError, r"at least one row, got \(0, 2\)"),
        ({"contexts": [[np.nan, 1]] * 6}, ValueError, "contexts must be finite, got nan in row 0"),
        ({"contexts": [["a", 1]] * 6}, TypeError, "contexts must be numbers, got"),
        ({"rewards": np.zeros((5, 3))}, ValueError, r"rewards must have .*\(6, arms\).*\(5, 3\)"),
        ({"rewards": np.zeros((6, 0))}, ValueError, r"rewards must have .* got \(6, 0\)"),
        ({"rewards": np.zeros(6)}, ValueError, r"rewards must have .* got \(6,\)"),
        ({"rewards": [["a"]] * 6}, TypeError, "rewards must be numbers.*'a'"),
        ({"rewards": [[0, np.inf]] * 6}, ValueError, "finite, got inf in row 0, column 1"),
        ({"observations": np.zeros((6, 2))}, ValueError, r"shape of rewards, \(6, 3\), got"),
        ({"observations": [[np.nan] * 3] * 6}, ValueError, "observations must be finite, got nan"),
        ({"arms": ["a", "b"]}, ValueError, "name the 3 columns of rewards, got 2 labels"),
        ({"arms": ["a", "b", "a"]}, ValueError, "distinct, got 'a' twice"),
        ({"columns": ["a"]}, ValueError, "1 numbers each, one for each of the columns"),
        ({"columns": "ab"}, TypeError, "columns must be a list of names, got 'ab'"),
    ],
)
def test_bad_input_is_named(options, kind, message):
    with pytest.raises(kind, match=message):
        make(**options)


values = arrays(np.float64, (4, 3), elements=st.integers(-3, 3).map(float))


@given(values)
def test_regret_and_ranks_by_brute_force(rewards):
    problem = make(rows=4, rewards=rewards)
    for row, paid in enumerate(rewards):
        best_first = sorted(paid, reverse=True)
        for arm, reward in enumerate(paid):
            assert problem.regret_table[row, arm] == max(paid) - reward
            assert problem.ranks[row, arm] == best_first.index(reward) + 1
    picks = np.array([0, 1, 2, 1])
    expected = [max(paid) - paid[arm] for paid, arm in zip(rewards, picks, strict=True)]
    np.testing.assert_array_equal(problem.regret(picks), expected)


@pytest.mark.parametrize(
    ("arms", "kind", "message"),
    [
        (["a"] * 6, TypeError, r"indices 0\.\.2, got \['a'\]; problem.arms.index"),
        ([0.0] * 6, TypeError, r"indices 0\.\.2, got \[0.0\]"),
        ([0] * 5, ValueError, r"must be 6 indices, got shape \(5,\)"),
        ([0, 1, 2, 3, 0, 0], ValueError, r"indices 0\.\.2, got 3 at row 3"),
        ([0, -1, 0, 0, 0, 0], ValueError, r"indices 0\.\.2, got -1 at row 1"),
    ],
)
def test_bad_picks_are_named(arms, kind, message):
    with pytest.raises(kind, match=message):
        make().regret(arms)


def test_regret_is_measured_without_noise():
    plain = make(rows=2000)
    noisy = plain.with_noise(0.5, seed=3)
    np.testing.assert_array_equal(noisy.rewards, plain.rewards)
    np.testing.assert_array_equal(noisy.regret_table, plain.regret_table)
    noise = noisy.observations - noisy.rewards
    assert noise.std() == pytest.approx(0.5, rel=0.05)
    assert noise.mean() == pytest.approx(0, abs=0.03)


def test_noise_is_fixed_by_its_seed_and_does_not_add_up():
    plain = make()
    once = plain.with_noise(0.5, seed=3)
    np.testing.assert_array_equal(
        once.observations, plain.with_noise(9, seed=1).with_noise(0.5, seed=3).observations
    )
    silent = once.with_noise(0)
    assert silent.observations is silent.rewards
    with pytest.raises(ValueError, match=r"std must be .* at least 0, got -1"):
        plain.with_noise(-1)


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (slice(1, 3), [1, 2]),
        ([4, 0, 4], [4, 0, 4]),
        (-1, [5]),
        (np.array([True, False, False, True, False, False]), [0, 3]),
    ],
)
def test_take(index, rows):
    problem = make(columns=["u", "v"]).with_noise(1, seed=0)
    part = problem.take(index)
    for field in ("contexts", "rewards", "observations"):
        np.testing.assert_array_equal(getattr(part, field), getattr(problem, field)[rows])
    assert (part.name, part.arms, part.columns) == (problem.name, problem.arms, problem.columns)


def test_take_keeps_observations_shared():
    part = make().take([1, 2])
    assert part.observations is part.rewards


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        ([6], IndexError, "row numbers below 6.*index 6 is out of bounds"),
        ([0.5], IndexError, "must be a slice, row numbers"),
        ([True], IndexError, "6 booleans"),
        (slice(3, 3), ValueError, "at least one of 6 rows"),
        ([[0, 1]], ValueError, "a list of at least one of 6 rows"),
    ],
)
def test_bad_index_is_named(index, kind, message):
    with pytest.raises(kind, match=message):
        make().take(index)


def numbered(rows, **options):
    """A problem whose contexts are the row numbers."""
    return make(rows=rows, contexts=np.arange(rows, dtype=float)[:, None], **options)


sizes = st.lists(st.one_of(st.integers(1, 20), st.floats(0.05, 0.5)), min_size=1, max_size=4)


@given(sizes, st.one_of(st.none(), st.integers(0, 5)))
def test_split_gives_consecutive_disjoint_parts(sizes, seed):
    rows = 200
    problem = numbered(rows)
    wanted = [size if isinstance(size, int) else size * rows for size in sizes]
    assume(sum(wanted) <= rows)
    parts = problem.split(*sizes, seed=seed)
    for part, want, size in zip(parts, wanted, sizes, strict=True):
        assert abs(len(part) - want) < (1 if isinstance(size, float) else 1e-9)
    taken = np.concatenate([part.contexts[:, 0] for part in parts])
    assert len(set(taken)) == len(taken)
    if seed is None:
        np.testing.assert_array_equal(taken, np.arange(len(taken)))
    for part in parts:
        np.testing.assert_array_equal(
            part.rewards, problem.rewards[part.contexts[:, 0].astype(int)]
        )


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(50, 90))
def test_fractions_that_sum_to_one_use_every_row(weights, rows):
    parts = numbered(rows).split(*(weight / sum(weights) for weight in weights))
    assert sum(map(len, parts)) == rows


def test_shuffling_depends_on_the_seed_only():
    first, again, other = (numbered(50).split(50, seed=seed)[0].contexts for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("sizes", "kind", "message"),
    [
        ((), ValueError, r"at least one size, such as split\(0.7, 0.3\)"),
        ((4, 3), ValueError, r"asks for 7 rows \(4 \+ 3\), but 'toy' has 6"),
        ((0.5, 0.9), ValueError, r"asks for 8 rows \(0.5 \+ 0.9\), but 'toy' has 6"),
        ((0,), ValueError, "a split size must be at least 1, got 0"),
        ((-0.5,), ValueError, "fraction below 1, got -0.5"),
        ((2.0,), ValueError, "whole number of rows or a fraction below 1, got 2.0"),
        (("2",), TypeError, "a number of rows or a fraction below 1, got '2'"),
        ((True,), TypeError, "a split size must be a whole number .* got True"),
        ((0.01, 3), ValueError, "no row for the part 0.01 of 6 rows"),
    ],
)
def test_bad_sizes_are_named(sizes, kind, message):
    with pytest.raises(kind, match=message):
        make().split(*sizes)


def test_shuffling_time_is_refused():
    problem = make(ordered=True)
    assert all(part.ordered for part in problem.split(2, 2))
    with pytest.raises(ValueError, match=r"'toy' are in time order.*seed=0.*leave seed out"):
        problem.split(2, 2, seed=0)


def test_repr_tells_what_there_is():
    assert repr(make()) == "Problem('toy': 6 rows, 2 numbers per context, 3 arms (0, 1, 2))"
    long = repr(make(rows=1, n_arms=20, ordered=True).with_noise(1))
    assert "1 row," in long
    assert "20 arms (0, 1, 2, ..., 19), in time order, observations differ" in long


def test_problems_reach_other_processes():
    problem = make().with_noise(1, seed=0)
    twin = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(twin.observations, problem.observations)
    assert repr(twin) == repr(problem)
    shared = pickle.loads(pickle.dumps(make()))
    assert shared.observations is shared.rewards


def test_replace_keeps_observations_shared():
    renamed = replace(make(), name="other")
    assert renamed.observations is renamed.rewards
