"""GapThenGradient: which of its two rules picks, spelt out from means and standard deviations."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.explorers import ContextualGap, GapThenGradient, KnowledgeGradient

RULES = {"new": GapThenGradient(), "gap": ContextualGap(), "gradient": KnowledgeGradient()}
EVERYWHERE = np.linspace(0, 1, 101)[:, None]


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


def two_stds_leave_a_doubt(learner, x):
    """Whether the challenger may be better than the leader at 2 standard deviations."""
    decision = learner.decide(x)
    leader, rival = (decision.arms.index(arm) for arm in (decision.leader, decision.challenger))
    lowest = decision.mean[leader] - 2 * decision.std[leader]
    return bool(decision.mean[rival] + 2 * decision.std[rival] > lowest)


def test_doubt_about_the_best_arm_decides_which_rule_picks():
    learners, seen, differ = learners_after(0.0), set(), set()
    for x in EVERYWHERE:
        doubt = two_stds_leave_a_doubt(learners["new"], x)
        picks = {name: learner.decide(x).arm for name, learner in learners.items()}
        assert picks["new"] == picks["gap" if doubt else "gradient"]
        seen.add(doubt)
        if picks["gap"] != picks["gradient"]:
            differ.add(doubt)
    assert seen == differ == {True, False}


def test_where_arms_share_contextual_gap_always_picks():
    learners = learners_after(0.5)
    picks = {
        name: [learner.decide(x).arm for x in EVERYWHERE] for name, learner in learners.items()
    }
    assert picks["new"] == picks["gap"] != picks["gradient"]


@pytest.mark.parametrize(("sharing", "same"), [(0.0, "gradient"), (0.5, "gap")])
def test_sharing_decides_which_rule_chooses_the_context(sharing, same):
    learners = learners_after(sharing)
    rows = {name: learner.ask(pool=EVERYWHERE, index=True)[0] for name, learner in learners.items()}
    assert rows["new"] == rows[same]
    assert rows["gap"] != rows["gradient"]


def test_pending_picks_count_as_observed():
    """With picks on their way, intervals are narrower, and a context may be settled."""
    learners, changed = learners_after(0.0), 0
    for x in EVERYWHERE:
        if not two_stds_leave_a_doubt(learners["new"], x):
            continue
        picks = {}
        for name, learner in learners.items():
            learner.add_pending(np.repeat(x[None], 60, axis=0), [0, 1, 2] * 20)
            decision = learner.decide(x)
            picks[name] = decision.arm
            learner.drop_pending()
        leader, rival = (decision.arms.index(arm) for arm in (decision.leader, decision.challenger))
        lead = decision.mean[leader] - decision.mean[rival]
        settled = lead > 2 * decision.pending_std[[leader, rival]].sum()
        assert picks["new"] == picks["gradient" if settled else "gap"]
        changed += settled and picks["gap"] != picks["gradient"]
    assert changed
