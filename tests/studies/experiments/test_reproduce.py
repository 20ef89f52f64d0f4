"""What the two protocols of the paper's studies do differently."""

from __future__ import annotations

import numpy as np
import pytest

from contextgap.beliefs import Belief, PosteriorWidth, RidgeWidth
from contextgap.methods.explorers import Moment, Uniform
from contextgap.models import Posterior
from contextgap.studies.experiments import Grid, Study
from contextgap.studies.experiments.paper import (
    AUTHORS,
    RootSample,
    RootTS,
    Workshop,
    protocol_methods,
    protocol_width,
    reproduce,
)
from contextgap.studies.problems import MagnetometerBench, Sinusoids

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


BANDWIDTH, RIDGE, SCALES = 0.8, 0.04, (0.5, 1.0, 2.0)
WITH_A_WIDTH = ("contextual-gap", "kernel-ucb", "kernel-ucb-mod", "kernel-ts")


def intervals(explore, arms, contexts, multiple):
    """Each arm's mean and ``multiple`` · std from the paper's section 4, by explicit inverses."""
    means, halves = [], []
    for arm in range(explore.n_arms):
        rows = np.flatnonzero(np.array(arms) == arm)
        points, rewards = explore.contexts[rows], explore.rewards[rows, arm]
        near, among = (
            np.exp(-((left - points.T) ** 2) / (2 * BANDWIDTH**2)) for left in (contexts, points)
        )
        weights = near @ np.linalg.inv(among + RIDGE * np.eye(len(rows)))
        means.append(weights @ rewards)
        halves.append(multiple * np.sqrt(1 - (weights * near).sum(axis=1)))
    return np.transpose(means), np.transpose(halves)


def leader(lower, upper):
    others = [np.delete(upper, arm).max() for arm in range(len(upper))]
    return int(np.argmin(others - lower))


def explored(method, explore, multiple):
    """The arms that a rule of the paper tries with half widths ``multiple`` · std."""
    rng, arms = np.random.default_rng(0), list(range(explore.n_arms))
    for row in range(explore.n_arms, len(explore)):
        seen = explore.contexts[row : row + 1]
        mean, half = (each[0] for each in intervals(explore, arms, seen, multiple))
        upper = mean + half
        if method == "contextual-gap":
            first = leader(mean - half, upper)
            second = max((arm for arm in range(len(upper)) if arm != first), key=upper.item)
            arms.append(max(sorted((first, second)), key=half.item))
        elif method == "kernel-ts":
            arms.append(int((mean + half * rng.standard_normal(len(mean))).argmax()))
        else:
            arms.append(int(upper.argmax()))
    return arms


def deployed_regret(method, explore, exploit, arms, multiple):
    mean, half = intervals(explore, arms, exploit.contexts, multiple)
    if method == "contextual-gap":
        chosen = [leader(*row) for row in zip(mean - half, mean + half, strict=True)]
    else:
        chosen = (mean + half if method == "kernel-ucb" else mean).argmax(axis=1)
    return exploit.regret(np.array(chosen)).mean()


def rows_of(table, method, scale):
    return table[(table.method == method) & (table.scale == scale)]


@pytest.fixture(scope="module")
def sines():
    """A small study, and what both protocols find with one setting at three scales."""
    problem = Sinusoids(n_arms=4).sample(240, seed=3)
    study = Study.of(problem, hold_out=(60, 60), evaluate=(60, 60), repetitions=1)
    grid = Grid.of(problem.contexts, [BANDWIDTH], [RIDGE])
    workshops = [Workshop(protocol=name) for name in ("paper", AUTHORS)]
    return study, workshops, [each.compared(study, grid, SCALES, "a test") for each in workshops]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", WITH_A_WIDTH)
def test_the_papers_half_width_is_divided_by_the_root_of_the_ridge(method, scale, sines):
    study, _, comparisons = sines
    explore, exploit = study.rounds[0]
    arms = explored(method, explore, scale / np.sqrt(RIDGE))
    expected = np.bincount(explore.ranks[range(60), arms], minlength=5)[1:]
    paper, authors = (rows_of(found.results.picks, method, scale)["count"] for found in comparisons)
    np.testing.assert_array_equal(paper, expected)
    assert not np.array_equal(authors, expected)
    if method != "kernel-ts":  # which deploys at random
        curve = rows_of(comparisons[0].results.records, method, scale).average_regret
        regret = deployed_regret(method, explore, exploit, arms, scale / np.sqrt(RIDGE))
        assert curve.iloc[-1] == pytest.approx(regret)


@pytest.mark.parametrize("method", WITH_A_WIDTH[:3])
def test_methods_are_tuned_with_the_papers_half_width(method, sines):
    study, workshops, comparisons = sines
    over_grid = workshops[0].over_grid(study, comparisons[0])
    for pair, tuned in ((study.hold_out, comparisons[0].tunings), (study.rounds[0], over_grid)):
        arms = explored(method, pair[0], 1 / np.sqrt(RIDGE))
        regret = deployed_regret(method, *pair, arms, 1 / np.sqrt(RIDGE))
        assert tuned[method].regret.item() == pytest.approx(regret)


def test_every_part_of_a_study_has_the_half_width_of_its_protocol(sines):
    assert protocol_width("paper") == RidgeWidth(1.0)
    assert protocol_width(AUTHORS) == PosteriorWidth(1.0)
    for workshop, found in zip(*sines[1:], strict=True):
        assert {entry.width for entry in found.entries} == {protocol_width(workshop.protocol)}


def test_looking_back_over_one_step_is_the_papers_deployment(sines):
    study, workshops, comparisons = sines
    for workshop, found in zip(workshops, comparisons, strict=True):
        history = workshop.looked_back(study, found.tunings["contextual-gap"]).records
        one = rows_of(history, "last step", 1.0).average_regret
        same = rows_of(found.results.records, "contextual-gap", 1.0).average_regret
        assert one.iloc[-1] == pytest.approx(same.iloc[-1])
