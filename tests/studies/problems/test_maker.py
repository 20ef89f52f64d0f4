from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from contextgap.studies.problems import FixedData, Problem
from contextgap.studies.problems.problem import standardised


@dataclass(frozen=True)
class Numbers(FixedData):
    ordered: bool = False

    def load(self):
        rows = np.arange(20.0)[:, None]
        return Problem(name="numbers", contexts=rows, rewards=rows, ordered=self.ordered)


def rows(problem):
    return problem.contexts[:, 0].astype(int).tolist()


def test_all_rows_in_their_own_order():
    assert rows(Numbers().sample()) == list(range(20))


def test_a_seed_shuffles_and_a_smaller_sample_is_its_beginning():
    everything = rows(Numbers().sample(seed=4))
    assert sorted(everything) == list(range(20))
    assert everything != list(range(20))
    assert rows(Numbers().sample(7, seed=4)) == everything[:7]
    assert rows(Numbers().sample(7, seed=5)) != everything[:7]


def test_a_subset_without_a_seed_is_random_too():
    seen = {tuple(rows(Numbers().sample(5))) for _ in range(5)}
    assert len(seen) > 1


def test_time_order_is_kept():
    assert rows(Numbers(ordered=True).sample(7, seed=4)) == list(range(7))
    assert rows(Numbers(ordered=True).sample(seed=4)) == list(range(20))


@pytest.mark.parametrize(
    ("n", "message"),
    [(21, "n must be at most the 20 rows of 'numbers', got 21"), (0, "n must be at least 1")],
)
def test_bad_n_is_named(n, message):
    with pytest.raises(ValueError, match=message):
        Numbers().sample(n)


def test_standardised():
    contexts = np.random.default_rng(0).normal(5, 3, (100, 4))
    contexts[:, 2] = 0.1  # not a binary fraction: its computed deviation is not exactly 0
    scaled = standardised(contexts)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0, 1])
    assert not scaled[:, 2].any()
