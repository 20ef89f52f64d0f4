"""NoiseAwareGap: Contextual-Gap with noise, the knowledge gradient without."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.explorers import ContextualGap, KnowledgeGradient, NoiseAwareGap

CONTEXTS = np.random.default_rng(3).uniform(size=(60, 1))


def learner_after(method, ridge, steps=40):
    learner = cg.Learner(
        3, kernel=cg.kernels.Gaussian(0.2), ridge=ridge, retune="never", method=method, seed=1
    )
    arms = []
    for x in CONTEXTS[:steps]:
        arm = learner.ask(x)
        arms.append(arm)
        learner.tell(x, arm, np.sin(7 * x[0] + 2 * arm))
    return learner, arms


@pytest.mark.parametrize(
    ("ridge", "same", "other"),
    [
        (1e-6, KnowledgeGradient(), ContextualGap()),
        (0.1, ContextualGap(), KnowledgeGradient()),
    ],
)
def test_the_noise_decides_which_rule_picks(ridge, same, other):
    _, arms = learner_after(NoiseAwareGap(), ridge)
    assert arms == learner_after(same, ridge)[1]
    assert arms != learner_after(other, ridge)[1]


@pytest.mark.parametrize("ridge", [1e-6, 0.1])
def test_the_noise_decides_which_rule_chooses_the_context(ridge):
    chosen = [
        learner_after(method, ridge, steps=20)[0].ask(pool=CONTEXTS)
        for method in (NoiseAwareGap(), KnowledgeGradient() if ridge < 1e-3 else ContextualGap())
    ]
    assert chosen[0] == chosen[1]


def test_the_scale_of_rewards_makes_no_difference():
    def picks(unit):
        learner = cg.Learner(3, method="noise-aware-gap", seed=1)
        arms = []
        for x in CONTEXTS:
            arms.append(learner.ask(x))
            learner.tell(x, arms[-1], unit * np.sin(7 * x[0] + 2 * arms[-1]))
        return arms

    assert picks(1.0) == picks(1024.0)
