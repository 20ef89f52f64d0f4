"""The widest arm, whatever it pays."""

from contextgap.methods.explorers import MaxVariance
from tests.methods.explorers.dense import moment_of


def test_the_largest_standard_deviation_wins_whatever_the_mean():
    assert MaxVariance().pick(moment_of([5.0, -9.0, 1.0], [0.1, 0.4, 0.3])) == 1


def test_ties_go_to_the_lowest_index():
    assert MaxVariance().pick(moment_of([0.0, 1.0, 2.0], [0.1, 0.4, 0.4])) == 1
