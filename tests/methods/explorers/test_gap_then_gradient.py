"""GapThenGradient: which of its two rules picks, spelt out from means and standard deviations."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.explorers import ContextualGap, GapThenGradient, KnowledgeGradient

RULES = {"new": GapThenGradient(), "gap": ContextualGap(), "gradient": KnowledgeGradient()}


def learners_after(sharing, steps=60, noise=0.1):
    rng = np.random.default_rng(5)
    contexts, arms = rng.uniform(size=(steps, 1)), np.arange(steps) % 3
    rewards = np.sin(7 * contexts[:, 0] + 2 * arms) + noise * rng.normal(size=steps)
    return {
        name: cg.Learner(
            3,
            kernel=cg.kernels.Gaussian(0.2),
            ridge=0.1,
            sharing=sharing,
            method=cg.Method(explorer=rule, recommender=cg.HighestMean()),
        ).fit(contexts, arms, rewards)
        for name, rule in RULES.items()
    }


def two_stds_leave_a_doubt(learner, x, sharing):
    """Whether another arm may be better than the leader at 2 standard deviations."""
    decision = learner.decide(x)
    leader, rival = (decision.arms.index(arm) for arm in (decision.leader, decision.challenger))
    lead = decision.mean[leader] - decision.mean[rival]
    if not sharing:
        return lead < 2 * (decision.std[leader] + decision.std[rival])
    # With its interval, the leader's gap is the half width of the difference less the lead.
    return lead < 2 * (decision.gap[leader] + lead)


@pytest.mark.parametrize("sharing", [0.0, 0.5])
def test_doubt_about_the_best_arm_decides_which_rule_picks(sharing):
    learners, seen, differ = learners_after(sharing), set(), set()
    for x in np.linspace(0, 1, 101)[:, None]:
        doubt = bool(two_stds_leave_a_doubt(learners["new"], x, sharing))
        picks = {name: learner.decide(x).arm for name, learner in learners.items()}
        assert picks["new"] == picks["gap" if doubt else "gradient"]
        seen.add(doubt)
        if picks["gap"] != picks["gradient"]:
            differ.add(doubt)
    assert seen == differ == {True, False}


@pytest.mark.parametrize("sharing", [0.0, 0.5])
def test_the_context_with_the_largest_gap_is_chosen_until_it_is_settled(sharing):
    learners = learners_after(sharing)
    everywhere = np.linspace(0, 1, 51)[:, None]
    settled = [x for x in everywhere if not two_stds_leave_a_doubt(learners["new"], x, sharing)]
    for pool, rule in ((everywhere, "gap"), (np.array(settled), "gradient")):
        rows = {name: learner.ask(pool=pool, index=True)[0] for name, learner in learners.items()}
        assert rows["new"] == rows[rule]
        for learner in learners.values():
            learner.drop_pending()


def test_pending_picks_count_as_observed():
    """With picks on their way, intervals are narrower, and a context may be settled."""
    learners, changed = learners_after(0.0), 0
    for x in np.linspace(0, 1, 101)[:, None]:
        if not two_stds_leave_a_doubt(learners["new"], x, False):
            continue
        picks = {}
        for name, learner in learners.items():
            learner.expect(np.repeat(x[None], 60, axis=0), [0, 1, 2] * 20)
            decision = learner.decide(x)
            picks[name] = decision.arm
            learner.drop_pending()
        leader, rival = (decision.arms.index(arm) for arm in (decision.leader, decision.challenger))
        lead = decision.mean[leader] - decision.mean[rival]
        settled = lead > 2 * decision.pending_std[[leader, rival]].sum()
        assert picks["new"] == picks["gradient" if settled else "gap"]
        changed += settled and picks["gap"] != picks["gradient"]
    assert changed


def test_the_unit_of_rewards_makes_no_difference():
    noise = 0.1 * np.random.default_rng(2).normal(size=60)
    contexts = np.random.default_rng(3).uniform(size=(60, 1))

    def picks(unit):
        learner = cg.Learner(3, method="gap-then-gradient", seed=1)
        arms = []
        for x, e in zip(contexts, noise, strict=True):
            arms.append(learner.ask(x))
            learner.tell(x, arms[-1], unit * (np.sin(7 * x[0] + 2 * arms[-1]) + e))
        return arms

    assert picks(1.0) == picks(1024.0)


@pytest.mark.slow
def test_on_the_papers_sines_it_beats_contextual_gap():
    explore, exploit = cg.problems.Sinusoids().sample(2000, seed=1).split(1500, 500)
    regret = [
        cg.experiments.run(
            explore,
            exploit,
            method=method,
            kernel=cg.Gaussian(0.0707),
            ridge=1e-4,
            checkpoints=1500,
        ).average_regret[-1]
        for method in ("gap-then-gradient", "contextual-gap")
    ]
    assert regret[0] < 0.8 * regret[1]
