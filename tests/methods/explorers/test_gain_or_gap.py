"""GainOrGap: the knowledge gradient per reward, and Contextual-Gap where arms share."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.explorers import ContextualGap, GainOrGap, KnowledgeGradient

CONTEXTS = np.random.default_rng(3).uniform(size=(60, 1))
GAIN = KnowledgeGradient(repeats=256)


def learner_after(method, sharing, steps=40):
    rng = np.random.default_rng(5)
    learner = cg.Learner(
        3,
        kernel=cg.kernels.Gaussian(0.2),
        ridge=0.1,
        sharing=sharing,
        retune="never",
        method=method,
        seed=1,
    )
    arms = []
    for x in CONTEXTS[:steps]:
        arm = learner.ask(x)
        arms.append(arm)
        learner.tell(x, arm, np.sin(7 * x[0] + 2 * arm) + rng.normal(0, 0.3))
    return learner, arms


@pytest.mark.parametrize(
    ("sharing", "same", "other"), [(0.0, GAIN, ContextualGap()), (0.5, ContextualGap(), GAIN)]
)
def test_sharing_decides_which_rule_picks(sharing, same, other):
    _, arms = learner_after(GainOrGap(), sharing)
    assert arms == learner_after(same, sharing)[1]
    assert arms != learner_after(other, sharing)[1]


@pytest.mark.parametrize(("sharing", "same"), [(0.0, GAIN), (0.5, ContextualGap())])
def test_sharing_decides_which_rule_chooses_the_context(sharing, same):
    chosen = [
        learner_after(method, sharing, steps=20)[0].ask(pool=CONTEXTS)
        for method in (GainOrGap(), same)
    ]
    assert chosen[0] == chosen[1]
