"""The widest arm among those that may be the best."""

import numpy as np

from contextgap.methods.explorers import Elimination
from tests.methods.explorers.dense import moment_of


def by_brute_force(mean, half):
    highest_lower = max(m - h for m, h in zip(mean, half, strict=True))
    plausible = [a for a in range(len(mean)) if mean[a] + half[a] >= highest_lower]
    return max(plausible, key=lambda a: (half[a], -a))


def test_against_brute_force(rng):
    for _ in range(300):
        mean, half = rng.normal(size=6), rng.uniform(0, 1, size=6)
        assert Elimination().pick(moment_of(mean, half)) == by_brute_force(mean, half)


def test_a_wide_arm_that_cannot_be_the_best_is_left_alone():
    assert Elimination().pick(moment_of([3.0, 2.8, -5.0], [0.1, 0.2, 2.0])) == 1


def test_touching_the_highest_lower_is_enough():
    assert Elimination().pick(moment_of([1.0, 0.0], [0.25, 0.75])) == 1


def test_ties_go_to_the_lowest_index():
    assert Elimination().pick(moment_of(np.zeros(4), [0.1, 0.5, 0.5, 0.2])) == 1
