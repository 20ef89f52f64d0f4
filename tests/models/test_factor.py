"""The growing Cholesky factor against numpy's."""

from itertools import pairwise

import numpy as np
import pytest

from contextgap.models.factor import ROWS, PanelFactor

SIZES = [1, 2, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3]


def grown(lower):
    factor = PanelFactor()
    for n, row in enumerate(lower):
        factor.append(row[:n], row[n])
    return factor


@pytest.fixture
def lower(rng):
    size = max(SIZES)
    root = rng.normal(size=(size, size + 5))
    return np.linalg.cholesky(root @ root.T + np.eye(size))


@pytest.mark.parametrize("size", SIZES)
def test_solves_one_and_many_right_hand_sides(lower, rng, size):
    factor = grown(lower[:size, :size])
    right = rng.normal(size=(size, 7))
    expected = np.linalg.solve(lower[:size, :size], right)
    many = right.copy()
    factor.solve_many(many)
    one = right[:, 0].copy()
    factor.solve(one)
    np.testing.assert_allclose(many, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one, expected[:, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_packs_rows_one_after_the_other(lower, size):
    factor = grown(lower[:size, :size])
    flat = factor.packed()
    np.testing.assert_array_equal(flat, lower[:size, :size][np.tril_indices(size)])
    again = PanelFactor.from_packed(flat, size)
    np.testing.assert_array_equal(again.packed(), flat)
    np.testing.assert_array_equal(again.diagonal, np.diagonal(lower)[:size])


def test_gives_single_rows(lower):
    factor = grown(lower)
    for n in (0, 1, ROWS - 1, ROWS, ROWS + 5, len(lower) - 1):
        np.testing.assert_array_equal(factor.row(n), lower[n, : n + 1])


def test_a_packed_array_of_another_size_is_refused(lower):
    with pytest.raises(ValueError, match="3 rows cannot have 5 entries"):
        PanelFactor.from_packed(np.ones(5), 3)


@pytest.mark.parametrize("kept", [5, ROWS, ROWS + 2])
def test_truncated_rows_are_replaced(lower, rng, kept):
    size = 2 * ROWS
    factor = grown(lower[:size, :size])
    factor.truncate(kept)
    for n in range(kept, size):
        factor.append(2 * lower[n, :n], 3 * lower[n, n])
    expected = lower[:size, :size].copy()
    expected[kept:] *= 2
    expected[np.arange(kept, size), np.arange(kept, size)] *= 1.5
    np.testing.assert_array_equal(factor.packed(), expected[np.tril_indices(size)])
    np.testing.assert_array_equal(factor.diagonal, np.diagonal(expected))


def test_a_snapshot_does_not_see_later_rows(lower, rng):
    factor = grown(lower[:ROWS, :ROWS])
    snapshot = factor.snapshot()
    before = snapshot.packed()
    factor.truncate(ROWS - 3)
    snapshot_size = snapshot.size
    factor.truncate(ROWS)
    for n in range(ROWS, ROWS + 40):
        factor.append(lower[n, :n], lower[n, n])
    assert snapshot.size == snapshot_size == ROWS
    np.testing.assert_array_equal(snapshot.packed(), before)


def test_growing_moves_no_row(lower):
    factor = PanelFactor()
    addresses = []
    for n, row in enumerate(lower):
        factor.append(row[:n], row[n])
        addresses.append([panel.ctypes.data for panel in factor._rectangles + factor._triangles])
    assert all(set(before) <= set(after) for before, after in pairwise(addresses))
