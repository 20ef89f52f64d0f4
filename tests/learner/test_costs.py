"""Costs to be kept low: the same learner as with rewards of the other sign, in the users' sign."""

import numpy as np
import pytest

import contextgap as cg

CONTEXTS = np.random.default_rng(2).uniform(size=(60, 2))


def cost(x, arm):
    return 3.0 + np.sin(5 * x[0] + 2 * arm)


def pair(**settings):
    both = cg.Learner(3, reward="minimize", seed=4, **settings), cg.Learner(3, seed=4, **settings)
    for x in CONTEXTS:
        arm = both[0].ask(x)
        assert both[1].ask(x) == arm
        both[0].tell(x, arm, cost(x, arm))
        both[1].tell(x, arm, -cost(x, arm))
    return both


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": cg.Gaussian(0.5)}, {"kernel": cg.Gaussian(0.5), "sharing": 0.4}]
)
def test_costs_are_rewards_of_the_other_sign(settings, tmp_path):
    costs, rewards = pair(**settings)
    costs.save(tmp_path / "l.cgap")
    costs.freeze().save(tmp_path / "p.cgap")
    for rule in (costs, cg.Learner.load(tmp_path / "l.cgap"), cg.Policy.load(tmp_path / "p.cgap")):
        other = rewards.freeze() if isinstance(rule, cg.Policy) else rewards
        assert (rule.recommend(CONTEXTS) == rewards.recommend(CONTEXTS)).all()
        one, two = rule.decide(CONTEXTS[0]), other.decide(CONTEXTS[0])
        np.testing.assert_array_equal(one.mean, -two.mean)
        np.testing.assert_array_equal(one.lower, -two.upper)
        np.testing.assert_array_equal(one.upper, -two.lower)
        np.testing.assert_array_equal(one.gap, two.gap)
        best = rule.rank(CONTEXTS[0])[0]
        assert best.lower <= best.mean <= best.upper
        assert best.mean == -rewards.rank(CONTEXTS[0])[0].mean
        assert rule.prior_mean == -other.prior_mean


def test_the_card_says_what_a_policy_costs():
    costs, rewards = pair()
    card, other = costs.score(), rewards.score()
    assert card.value.value == -other.value.value
    assert card.logged.value == -other.logged.value > 2
    assert card.value.value < card.best_single.value
    assert card.gain == other.gain
    assert card.gain.value == pytest.approx(card.best_single.value - card.value.value)


def test_a_prior_mean_is_a_cost_too():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), prior_mean=7.0, reward="minimize")
    assert learner.prior_mean == 7.0
    np.testing.assert_array_equal(learner.decide([0.0]).mean, [7.0, 7.0])


def test_other_words_are_refused():
    with pytest.raises(ValueError, match=r"reward must be .*, got 'min'"):
        cg.Learner(2, reward="min")
