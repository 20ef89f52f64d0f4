"""Statements of docs/theory.md about the paper's proofs, checked on random intervals."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import Belief
from contextgap.models import Posterior
from contextgap.studies.theory import (
    RegretBound,
    Spectrum,
    information_gain_bound,
    pulls_for_width,
    reward_gap,
    scale,
    width_envelope,
)


def belief_of(lower, upper):
    lower, upper = np.array(lower, dtype=float), np.array(upper, dtype=float)
    half = (upper - lower) / 2
    posterior = Posterior((lower + upper) / 2, half, np.zeros(len(half)), 1.0, len(half))
    return Belief(posterior, cg.PosteriorWidth())


def test_the_leader_need_not_have_the_highest_lower_bound():
    belief = belief_of([1.0, 2.0], [10.0, 8.0])
    assert belief.gap.tolist() == [7.0, 8.0]
    assert belief.leader == 0
    assert belief.lower.argmax() == 1


def test_the_gap_lemma_holds_in_all_its_cases(rng):
    """B of the leader ≤ min(0, s − Δ) + s for the arm pulled, wherever intervals hold."""
    cases = set()
    for _ in range(20_000):
        truth, width = rng.normal(size=4), rng.exponential(size=4)
        lower = truth - width * rng.uniform(size=4)
        belief = belief_of(lower, lower + width)
        leader, challenger = int(belief.leader), int(belief.challenger)
        arm = max(sorted({leader, challenger}), key=lambda a: width[a])
        gap = float(reward_gap(truth[None])[0, arm])
        bound = min(0.0, width[arm] - gap) + width[arm]
        assert belief.gap[leader] <= bound + 1e-9
        best = int(truth.argmax())
        cases.add((arm == leader, best == leader, best == challenger))
    assert len(cases) == 6


def test_pulls_for_the_hardest_width_are_not_negative_up_to_twice_the_norm():
    """g⁻¹(H) ≥ 0: differences of arms are at most 2·norm, and α ≥ √ridge·norm."""
    spectrum, norm = Spectrum(0.5, 2), 1.3
    for ridge in (1e-3, 0.1, 5.0):
        alpha = float(scale(0.0, 1e-9, norm, ridge, 0.0))
        assert pulls_for_width(2 * norm, alpha, ridge, spectrum) >= 0


def test_with_arms_in_turn_every_gap_is_below_the_envelope(rng):
    """What holds without Theorem 5.3: contexts of the circle, every arm pulled equally often."""
    spectrum, noise, norm, ridge, pulls = Spectrum(0.5, 2), 0.1, 1.0, 0.2, 16_000
    gain = information_gain_bound(pulls, ridge, spectrum)
    alpha = float(scale(1.5, noise, norm, ridge, gain))
    widths = []
    for _ in range(3):
        angle = rng.uniform(0, 2 * np.pi, pulls)
        points = np.column_stack([np.cos(angle), np.sin(angle)])
        inverse = np.linalg.inv(points.T @ points + ridge * np.eye(2))
        widths.append(2 * alpha * np.sqrt(np.linalg.eigvalsh(inverse)[-1]))
    # The gap of the leader is at most the wider of two intervals (the corollary of the appendix).
    assert max(widths) <= width_envelope(pulls, alpha, ridge, spectrum)


def test_the_recipe_runs_the_theorems_algorithm(rng):
    """Its widths are 2(C1·β + C2)·std/√ridge at every step, and its deployment rule looks back."""
    spectrum = Spectrum(0.5, 2)
    bound = RegretBound(
        n_arms=3,
        hardness=3 / 0.1**2,
        noise=0.1,
        norm=1.0,
        ridge=0.01,
        spectrum=spectrum,
        failure_probability=0.01,
    )
    steps = bound.steps_for(0.9)
    beta, gain = bound.confidence(steps), information_gain_bound(steps, 0.01, spectrum)
    width = cg.RidgeWidth(float(scale(beta, 0.1, 1.0, 0.01, gain)))
    c1, c2 = np.sqrt(2) * 0.1, bound.scale_offset(steps)
    learner = cg.Learner(
        3, kernel=cg.Linear(), ridge=0.01, method="contextual-gap-history", width=width, points=None
    )
    for context in rng.normal(size=(12, 2)):
        arm = learner.ask(context)
        learner.tell(context, arm, float(context[0] * arm))
    decision = learner.decide([0.3, 0.4])
    expected = 2 * (c1 * beta + c2) * decision.std / np.sqrt(0.01)
    np.testing.assert_allclose(decision.upper - decision.lower, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_look_back_compares_gaps_as_they_were(seed):
    """B of J_τ by the posterior of step τ; by today's posterior the look-back would do nothing."""
    rng = np.random.default_rng(seed)
    learner = cg.Learner(
        3, kernel=cg.Gaussian(0.5), ridge=0.1, method="contextual-gap-history", seed=0
    )
    here, then = rng.uniform(size=2), []
    for step, context in enumerate(rng.uniform(size=(30, 2))):
        arm = learner.ask(context)
        learner.tell(context, arm, float(np.sin(4 * context[0] + arm) + 0.3 * rng.normal()))
        if step >= 2:  # the burn-in is over
            decision = learner.decide(here)
            then.append((decision.gap.min(), decision.leader))
    smallest, leader = min(then, key=lambda pair: pair[0])
    policy = learner.freeze()
    assert policy.recommend(here) == leader
    assert policy.certificate(here).bound[0] == pytest.approx(max(0.0, smallest))
