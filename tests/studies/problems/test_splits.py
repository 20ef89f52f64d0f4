from __future__ import annotations

import pytest

from contextgap.studies.problems.problem import part_ends


@pytest.mark.parametrize(
    ("sizes", "rows", "ends"),
    [
        ((2000, 1000), 3000, [0, 2000, 3000]),
        ((0.5, 0.5), 5, [0, 3, 5]),
        ((0.1, 0.2, 0.7), 10, [0, 1, 3, 10]),
        ((0.25, 4), 10, [0, 3, 7]),
        ((1 / 3, 1, 1 / 3), 8, [0, 3, 4, 6]),
    ],
)
def test_ends(sizes, rows, ends):
    assert part_ends(sizes, rows, "toy") == ends


@pytest.mark.parametrize("fraction", [0.1, 0.15, 0.25, 0.35, 0.49999999999999994])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_whole_numbers_stay_whole_behind_fractions(fraction, count):
    _, start, end = part_ends((fraction, count), 10, "toy")
    assert end - start == count
