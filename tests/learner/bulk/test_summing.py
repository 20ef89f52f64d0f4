"""Sums are grouped in the same way wherever they are made."""

from dataclasses import dataclass
from functools import reduce

import pytest

from contextgap.learner.bulk import _sum, _summed


@dataclass(frozen=True)
class Grouped:
    """A summand that remembers how it was added."""

    text: str

    def __add__(self, other):
        return Grouped(f"({self.text}{other.text})")


def by_levels(results):
    """Return the sum as the cluster makes it: of eight, then of eight of those."""
    while len(results) > 1:
        results = [_sum(results[first : first + 8]) for first in range(0, len(results), 8)]
    return results[0]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 63, 64, 65, 130, 513])
def test_sums_as_they_come_are_those_of_the_levels(count):
    results = [Grouped(chr(0x4E00 + number)) for number in range(count)]
    assert _summed(iter(results)) == by_levels(results)
    empty = [None if number % 3 else result for number, result in enumerate(results)]
    assert _summed(iter(empty)) == by_levels(empty)


def test_nothing_is_the_sum_of_nothing():
    assert _summed(iter([None, None])) is None
    assert _sum([None, 2, None, 3]) == reduce(lambda a, b: a + b, [2, 3])
