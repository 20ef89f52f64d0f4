"""Flights through windows with and without feedback."""

from types import SimpleNamespace

import numpy as np
import pytest

import contextgap as cg
from contextgap.studies.experiments.run import fly


def phased(n=240, window=20, orbit=60, known=None):
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-1, 1, (n, 1))
    rewards = np.hstack([contexts, -contexts, np.full((n, 1), -0.2)])
    if known is None:
        known = (np.arange(n) // window) % 2 == 0
    return SimpleNamespace(
        contexts=contexts,
        rewards=rewards,
        observations=rewards,
        arms=("up", "down", "flat"),
        known=known,
        orbit_number=np.arange(n) // orbit,
        regret_table=rewards.max(axis=1, keepdims=True) - rewards,
    )


def test_learns_in_known_windows_only_and_recommends_in_the_others():
    problem = phased()
    trace = fly(problem, kernel=cg.Gaussian(0.5), ridge=0.01)
    learner = cg.Learner(3, kernel=cg.Gaussian(0.5), ridge=0.01, seed=0)
    for row in range(len(problem.contexts)):
        if problem.known[row]:
            arm = learner.ask(problem.contexts[row])
            learner.tell(problem.contexts[row], arm, problem.rewards[row, arm])
        else:
            arm = learner.recommend(problem.contexts[row])
        assert trace.arms[row] == arm
    np.testing.assert_array_equal(trace.deployed, ~problem.known)
    places = learner.freeze().recommend(problem.contexts)
    names = [problem.arms[place] for place in places]
    assert trace.policy.recommend(problem.contexts).tolist() == names


def test_regret_counts_only_where_deployed():
    problem = phased()
    trace = fly(problem, kernel=cg.Gaussian(0.5), ridge=0.01)
    for place, orbit in enumerate(trace.orbits):
        rows = ~problem.known & (problem.orbit_number == orbit)
        assert trace.average_regret[place] == pytest.approx(trace.regret[rows].mean())
        assert trace.random[place] == pytest.approx(problem.regret_table[rows].mean())
    means = problem.regret_table[~problem.known].mean(axis=0)
    singles = problem.regret_table[:, means.argmin()]
    rows = ~problem.known & (problem.orbit_number == 0)
    assert trace.best_single[0] == pytest.approx(singles[rows].mean())
    assert trace.average_regret[-1] < 0.1 * trace.best_single[-1]


def test_a_flight_may_begin_without_feedback():
    trace = fly(phased(known=np.arange(240) % 50 > 10))
    assert trace.arms[0] == 0
    assert trace.deployed[0]


def test_a_flight_that_always_knows_the_truth_is_refused():
    with pytest.raises(ValueError, match="nothing is ever deployed"):
        fly(phased(known=np.ones(240, dtype=bool)))


def test_without_settings_the_learner_learns_its_scales():
    problem = phased()
    problem.contexts = 1000 * problem.contexts  # any unit
    trace = fly(problem)
    assert trace.average_regret[-1] < 0.1 * trace.best_single[-1]


def test_a_problem_without_windows_is_refused():
    with pytest.raises(TypeError, match="must say by known where the truth is known"):
        fly(cg.problems.Sinusoids(3).sample(10, seed=0))
