"""What the two protocols of the paper's studies do differently."""

from __future__ import annotations

import numpy as np
import pytest

from contextgap.beliefs.belief import Belief
from contextgap.beliefs.widths import PosteriorWidth
from contextgap.methods.explorers import Moment, Uniform
from contextgap.models import Posterior
from contextgap.studies.experiments.reproduce import (
    AUTHORS,
    RootSample,
    RootTS,
    Workshop,
    protocol_methods,
    reproduce,
)
from contextgap.studies.problems import MagnetometerBench

BENCH = {"hold_out": (60, 30), "evaluate": (90, 40), "repetitions": 2}


def believing(*shape):
    """The first arm is known to pay 0.2, and the second has mean 0 and half width 0.04."""
    mean, std = np.tile([0.2, 0.0], (*shape, 1)), np.tile([0.0, 0.04], (*shape, 1))
    gain = np.zeros(2)
    posterior = Posterior(mean=mean, std=std, ridge=1.0, information_gain=gain, n_arms=2)
    return Belief(posterior, PosteriorWidth(1.0))


SECOND = 0.159  # P(N > 1): a draw of variance 0.04 has deviation 0.2; of deviation 0.04, never


@pytest.fixture(scope="module")
def benches():
    return [
        reproduce("bench", Workshop(grid_size=1, protocol=name), **BENCH)
        for name in ("paper", AUTHORS)
    ]


def test_thompson_draws_have_the_half_width_as_variance(rng):
    belief = believing()
    picks = [
        RootTS().pick(Moment(believe=lambda: belief, pulls=[1, 1], step=3, rng=rng))
        for _ in range(2000)
    ]
    assert np.mean(picks) == pytest.approx(SECOND, abs=0.03)


def test_deployed_draws_have_the_half_width_as_variance(rng):
    count = 2000

    class Evidence:
        contexts = rng.normal(size=(count, 1))
        n_arms, seed, columns = 2, 0, range(2)
        belief = believing(count)

    choice = RootSample().choose(Evidence())
    assert choice.arm.mean() == pytest.approx(SECOND, abs=0.03)
    assert choice.gap.shape == (count,)


def test_the_authors_draw_arms_at_random():
    assert protocol_methods(AUTHORS)["uniform"].explorer == Uniform(random=True)
    assert protocol_methods("paper")["uniform"].explorer == Uniform()
    same = [
        name
        for name, m in protocol_methods(AUTHORS).items()
        if m == protocol_methods("paper")[name]
    ]
    assert same == ["contextual-gap", "kernel-ucb-mod", "kernel-ucb", "epsilon-greedy"]


def test_sines_begin_at_zero_and_first_rewards_are_0_or_1():
    workshop = Workshop(grid_size=1, protocol=AUTHORS)
    found = reproduce("sinusoids", workshop, hold_out=(60, 20), evaluate=(60, 20), repetitions=2)
    for explore, _ in (found.study.hold_out, *found.study.rounds):
        assert explore.arms == tuple(range(20))
        assert len(explore) == 80
        best = explore.rewards[:20] == explore.rewards[:20].max(axis=1, keepdims=True)
        np.testing.assert_array_equal(explore.observations[:20], best)
        np.testing.assert_array_equal(explore.observations[20:], explore.rewards[20:])


def test_the_bench_is_shuffled_for_evaluation_only(benches):
    paper, authors = (found.study for found in benches)
    run = MagnetometerBench(sequence=True).sample(226, seed=0)
    unit = run.contexts.max(axis=0)
    unit = unit[unit > 0].min()
    np.testing.assert_allclose(authors.hold_out[0].contexts, run.contexts[:63] / unit)
    evaluated = np.concatenate([part.contexts for part in authors.rounds[0]])
    assert len(evaluated) == 93 + 40
    rows = {row.tobytes() for row in run.contexts[93:226] / unit}
    assert {row.tobytes() for row in evaluated} == rows
    assert not np.array_equal(evaluated, run.contexts[93:226] / unit)
    shorter = run.contexts[:220]
    largest = shorter.max(axis=0)
    together = np.concatenate([part.contexts for part in (*paper.hold_out, *paper.rounds[0])])
    np.testing.assert_allclose(together, shorter / largest[largest > 0].min())


def test_first_rewards_on_the_bench_are_0(benches):
    paper, authors = (found.study.rounds[0][0] for found in benches)
    assert not authors.observations[:3].any()
    assert authors.observations[3:].any(axis=1).all()
    assert paper.observations.any(axis=1).all()


def test_steps_are_counted_behind_the_first_rewards(benches):
    for found in benches:
        assert set(found.main.results.records["checkpoint"]) == {50, 90}


def test_every_setting_is_tried_where_methods_are_compared():
    found = reproduce("bench", Workshop(grid_size=2), **BENCH)
    records = found.main.results.records
    last = records[(records.checkpoint == 90) & (records.scale == 1) & (records.seed == 0)]
    for method, grid in found.over_grid.items():
        assert grid.regret.shape == (2, 2)
        reached = last[last.method == method].average_regret.item()
        assert grid.regret[found.main.tunings[method].best] == pytest.approx(reached)
