"""Examples in the benchmarks' docstrings, which pytest does not collect by itself."""

import doctest

import pytest

from leaderboard import page, ranking


@pytest.mark.parametrize("module", [page, ranking], ids=lambda module: module.__name__)
def test_examples_give_what_they_say(module):
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed
