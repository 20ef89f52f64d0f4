"""SparingGap: Contextual-Gap where arms may change places, any arm where one is settled."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.belief import Belief
from contextgap.explorers import ContextualGap, Moment, SparingGap
from contextgap.models import Posterior


def moment(mean, std, seed=0):
    mean, std = np.array(mean, dtype=float), np.array(std, dtype=float)
    belief = Belief(
        Posterior(mean, std, np.zeros(len(mean)), 1.0, len(mean)), cg.PosteriorWidth(1.0)
    )
    return Moment(lambda: belief, [1] * len(mean), 5, np.random.default_rng(seed))


@pytest.mark.parametrize("mean", [[0.0, 0.5, 0.2], [1.0, 0.9, 0.0], [0.3, 0.3, 0.3]])
def test_it_is_contextual_gap_where_arms_may_change_places(mean):
    for seed in range(5):
        here = moment(mean, [0.3, 0.2, 0.5], seed)
        assert SparingGap().pick(here) == ContextualGap().pick(here)


def test_any_arm_is_tried_where_the_leader_is_certain():
    picks = [SparingGap().pick(moment([3.0, 0.5, 0.2], [0.3, 0.2, 0.5], s)) for s in range(600)]
    counts = np.bincount(picks, minlength=3)
    assert (np.abs(counts - 200) < 4 * np.sqrt(600 * 2 / 9)).all()


def test_a_single_arm_is_tried():
    assert SparingGap().pick(moment([1.0], [0.0])) == 0
