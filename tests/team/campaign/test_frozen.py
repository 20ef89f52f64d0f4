"""Frozen policies, and what a retraction means for them."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.team.campaign import ConflictError

from .conftest import ARMS, tell_some
from .oracle import check, events, learner_of, to_bytes


def test_a_policy_is_rebuilt_bit_for_bit_from_the_log(place, contexts):
    campaign = place.create(kernel=None)
    tell_some(campaign, contexts[:25])
    policy = campaign.freeze("first", fallback="hull", tolerance=0.5)
    (known,) = campaign.policies()
    log = events(campaign)
    assert policy.card.log == known.log == log[known.event - 1].hash
    tell_some(campaign, contexts[25:35])
    campaign.retract(3, "typo")
    wanted = to_bytes(policy)
    again = place.open()
    assert to_bytes(again.policy("first")) == wanted
    assert to_bytes(again.rebuild("first")) == wanted
    learner = learner_of(log[: known.event])
    assert again.policy("first").recommend(contexts).tolist() == (
        learner.freeze(fallback="hull", tolerance=0.5).recommend(contexts).tolist()
    )
    assert cg.Policy.load(_saved(policy)).card == policy.card
    assert known.log in str(policy.card)


def _saved(policy):
    import io

    return io.BytesIO(to_bytes(policy))


def test_names_of_policies_are_used_once(local, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:4])
    campaign.freeze("first")
    with pytest.raises(ConflictError, match="there is a policy 'first' already"):
        campaign.freeze("first")


def test_a_retraction_says_which_policies_rest_on_the_trial(place):
    campaign = place.create(goal=cg.StoppingRule(0.1, reference=[[0.0], [5.0]]))
    for context, arm, reward in [
        ([0.0], "hull", 0.0), ([5.0], "hull", 0.0), ([5.0], "panel", -1.0), ([0.0], "boom", -1.0)
    ]:  # fmt: skip
        campaign.tell(contexts=context, arms=arm, reward=reward)
    campaign.freeze("before")
    typo = campaign.tell(contexts=[0.0], arms="panel", reward=100.0)
    campaign.freeze("with")
    campaign.freeze("with, too", fallback="hull")
    recall = campaign.retract(typo, "a comma too few")
    assert recall.trial == typo.id
    assert [(each.policy, each.contexts, each.changed) for each in recall.policies] == [
        ("with", 2, 1),
        ("with, too", 2, 1),
    ]
    campaign.freeze("after")
    assert [each.recalled for each in campaign.policies()] == [(), (typo.id,), (typo.id,), ()]
    assert campaign.policy("with").recommend([0.0]) == "panel"
    assert campaign.policy("after").recommend([0.0]) == "hull"
    back = campaign.correct(typo, 100.0, "it was right")
    assert [each.changed for each in back.policies] == [0, 0, 1]
    check(campaign)


def test_contexts_seen_stand_for_others_without_a_goal(local, contexts):
    campaign = local.create()
    tell_some(campaign, contexts[:12])
    policy = campaign.freeze("first")
    (found,) = campaign.retract(4, "typo").policies
    assert found.contexts == 12
    rest = cg.Learner(ARMS, kernel=cg.Gaussian(0.5), seed=0)
    table = campaign.trials()
    kept = table[table["state"] == "told"]
    for _, row in kept.iterrows():
        rest.tell(row[["x0", "x1"]].to_numpy(dtype=float), row["arm"], row["reward"])
    then, now = policy.recommend(contexts[:12]), rest.freeze().recommend(contexts[:12])
    assert found.changed == np.count_nonzero(then != now)


@pytest.mark.parametrize("reward", [None, -10.0])
def test_a_recall_counts_all_that_was_changed_since(local, reward):
    reference = [[0.0, 0.0], [0.1, 0.0]]
    campaign = local.create(goal=cg.StoppingRule(0.1, reference=reference), ridge=0.1)
    arms, rewards = ["hull", "hull", "boom", "boom", "panel"], [1.0, 1.0, 10.0, 10.0, 0.0]
    campaign.tell(contexts=[[0.0, 0.0]] * 5, arms=arms, reward=rewards)
    assert campaign.freeze("p").recommend(reference).tolist() == ["boom", "boom"]
    changed = []
    for trial in (3, 4):
        if reward is None:
            recall = campaign.retract(trial, "bench unplugged")
        else:
            recall = campaign.correct(trial, reward, "sign")
        changed += [policy.changed for policy in recall.policies]
    assert campaign.recommend(reference).tolist() == ["hull", "hull"]
    assert changed[-1] == 2


def test_a_policy_of_clicks_is_rebuilt_with_their_range(place, contexts):
    campaign = place.create()
    for row, context in enumerate(contexts[:24]):
        campaign.tell(contexts=context, arms=ARMS[row % 3], reward=float(row % 2))
    policy = campaign.freeze("clicks")
    assert policy.state.reward_range == policy.card.reward_range == (0, 1)
    again = place.open()
    for each in (again.policy("clicks"), again.rebuild("clicks")):
        assert to_bytes(each) == to_bytes(policy)
        assert each.card == policy.card
        assert each.certificate(contexts).bound.max() <= 1
