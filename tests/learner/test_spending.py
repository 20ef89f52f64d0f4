"""Trials that cost differently: gain per cost, what was spent, and what more would cost."""

import io
import math

import numpy as np
import pytest

import contextgap as cg
from contextgap.learner.arguments import CostModel

CONTEXTS = np.random.default_rng(5).uniform(size=(80, 2))
SETTINGS = [
    {},
    {"method": "knowledge-gradient", "kernel": cg.Gaussian(0.5)},
    {"method": "contextual-gap", "kernel": cg.Gaussian(0.5)},
    {"method": "gain-or-gap", "kernel": cg.Gaussian(0.5), "sharing": 0.4},
    {"method": "eb-tc", "kernel": cg.Gaussian(0.5)},
]


def reward(x, arm):
    return math.sin(5 * x[0] + 2 * arm) + 0.1 * math.cos(97 * x[1])


def explored(count=50, costs=None, cost=None, pool=False, **settings):
    learner, picks = cg.Learner(3, seed=3, costs=costs, **settings), []
    for x in CONTEXTS[:count]:
        if pool:
            x, arm = learner.ask(pool=CONTEXTS)
        else:
            arm = learner.ask(x)
        picks.append((*x, arm))
        told = {} if cost is None else {"cost": cost(x, arm)}
        learner.tell(x, arm, reward(x, arm), **told)
    return learner, picks


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("settings", SETTINGS)
def test_with_equal_costs_picks_are_those_without(settings, pool):
    count = 25 if pool else 50
    without = explored(count, pool=pool, **settings)[1]
    known, told = dict.fromkeys(range(3), 7.3), lambda _, __: 0.1
    assert explored(count, costs=known, pool=pool, **settings)[1] == without
    assert explored(count, cost=told, pool=pool, **settings)[1] == without
    assert explored(count, costs=known, cost=told, pool=pool, **settings)[1] == without


@pytest.mark.parametrize("settings", SETTINGS)
def test_dear_arms_are_tried_less_often(settings):
    known, _ = explored(80, costs={0: 1, 1: 1, 2: 50}, **settings)
    told, _ = explored(80, cost=lambda _, arm: 50.0 if arm == 2 else 1.0, **settings)
    without, _ = explored(80, **settings)
    assert known.counts[2] < without.counts[2]
    assert told.counts[2] < without.counts[2]


def test_gain_per_cost_decides(monkeypatch):
    from contextgap.methods.explorers import KnowledgeGradient

    settings = {"kernel": cg.Gaussian(0.5), "method": "knowledge-gradient"}
    learner, _ = explored(40, **settings)
    costs = {0: 1.0, 1: 2.0, 2: 9.0}
    dear = cg.Learner(3, seed=3, costs=costs, **settings)
    log = learner.state.model.observed
    dear.fit(log.contexts, log.arms.tolist(), log.rewards)
    gains = []
    usual = KnowledgeGradient.gain
    monkeypatch.setattr(
        KnowledgeGradient, "gain", lambda *own: gains.append(usual(*own)) or gains[-1]
    )
    for x in np.random.default_rng(8).uniform(size=(20, 2)):
        arm = dear.decide(x).arm
        assert arm == (gains[-1] / list(costs.values())).argmax()
        x, arm = dear.ask(pool=CONTEXTS)
        dear.drop_pending()


def test_of_a_pool_the_highest_gain_per_cost_of_all_is_found():
    explorer = cg.explorers.KnowledgeGradient(references=CONTEXTS[:30])
    costs = np.array([1.0, 4.0, 9.0])
    settings = {"kernel": cg.Gaussian(0.5), "method": explorer, "seed": 3}
    learner = cg.Learner(3, costs=dict(enumerate(costs)), **settings)
    for x in CONTEXTS[:40]:
        learner.tell(x, 2 if x[0] < 0.5 else 0, reward(x, 0))
    learner.tell(CONTEXTS[0], 1, 0.0)
    # Brute force: all gains at all contexts, which a moment does not prune.
    view = learner._view(learner.state.schema, learner.state.pending)
    gains = np.array([explorer.gain(view.moment(x)) for x in CONTEXTS])
    row, arm = np.unravel_index((gains / costs).argmax(), gains.shape)
    assert arm != gains[row].argmax() or row != gains.max(axis=1).argmax()
    assert learner.ask(pool=CONTEXTS, index=True) == (row, arm)


def test_told_costs_are_predicted_by_context_and_arm():
    rng = np.random.default_rng(0)

    def cost(x, arm):
        return math.exp(2 * x[0] + arm + 0.1 * rng.normal())

    learner, _ = explored(80, cost=cost, kernel=cg.Gaussian(0.5), method="uniform")
    fresh = rng.uniform(size=(200, 2))
    found = CostModel(learner.state.model).typical(fresh, range(3), None)
    truth = np.exp(2 * fresh[:, [0]] + np.arange(3))
    error = np.sqrt(np.square(np.log(found / truth)).mean())
    spread = np.sqrt(np.square(2 * fresh[:, 0] - (2 * fresh[:, 0]).mean()).mean())
    assert error < 0.15 < spread / 3
    # Known costs are where predictions start: for an arm about which nothing was told, they stand.
    other = cg.Learner(3, kernel=cg.Gaussian(0.5), costs={0: 1, 1: 10, 2: 100})
    other.fit(fresh[:20], [0] * 20, np.zeros(20), costs=np.full(20, 2.0))
    found = CostModel(other.state.model).typical(fresh, range(3), other.state.costs)
    np.testing.assert_allclose(found, np.tile([2.0, 20.0, 200.0], (200, 1)), rtol=1e-6)


def test_what_was_spent():
    learner = cg.Learner(["a", "b"], kernel=cg.Gaussian(1.0))
    learner.tell([0.0], "a", 1.0)
    assert learner.spent == 1.0
    learner.tell([0.0], "b", 1.0, cost=12.5)
    learner.tell([[0.0], [1.0]], ["a", "b"], [1.0, 2.0], cost=[2.0, 3.0])
    assert learner.spent == 18.5
    known = cg.Learner(["a", "b"], costs={"a": 3, "b": 5})
    trial = known.trial([0.0])
    known.tell(trial, 0.5, cost=30)
    known.tell([0.0], "b", 0.5)
    assert known.spent == 35
    known.add_arm("c", cost=11)
    known.tell([0.0], "c", 0.5)
    known.remove_arm("c")
    assert known.spent == 46
    known.add_arm("d")
    assert known.state.costs[-1] == pytest.approx((3 * 5 * 11) ** (1 / 3))


@pytest.mark.parametrize("settings", SETTINGS[:3])
def test_files_keep_costs(settings):
    def cost(x, arm):
        return 1 + arm + x[0]

    learner, _ = explored(40, costs={0: 1, 1: 2, 2: 3}, cost=cost, **settings)
    file = io.BytesIO()
    learner.save(file)
    file.seek(0)
    other = cg.Learner.load(file)
    assert other.spent == learner.spent
    assert other.state.costs == (1.0, 2.0, 3.0)
    for x in CONTEXTS[40:]:
        arm = learner.ask(x)
        assert other.ask(x) == arm
        for each in (learner, other):
            each.tell(x, arm, reward(x, arm), cost=cost(x, arm))
    policy = learner.freeze()
    again = io.BytesIO()
    policy.save(again)
    again.seek(0)
    assert cg.Policy.load(again).card == policy.card
    assert policy.card.spent == learner.spent
    assert policy.card.next_tenth > 0
    assert "extrapolated" in str(policy.card)


@pytest.mark.parametrize("cost", [None, lambda x, arm: 1 + arm + x[0]])
def test_forgotten_rewards_stay_paid_for(cost):
    learner, _ = explored(40, costs={0: 1, 1: 2, 2: 3}, cost=cost, kernel=cg.Gaussian(0.5))
    spent, told = learner.spent, learner.state.model.observed.costs[-15:].copy()
    learner.forget(keep=15)
    np.testing.assert_array_equal(learner.state.model.observed.costs, told)
    assert learner.spent == pytest.approx(spent)
    learner.tell(CONTEXTS[0], 1, 0.5)
    file = io.BytesIO()
    learner.save(file)
    file.seek(0)
    other = cg.Learner.load(file)
    assert other.spent == learner.spent == pytest.approx(spent + 2)
    other.forget(keep=1)
    assert other.spent == pytest.approx(spent + 2)


def test_a_learner_that_is_resumed_knows_costs():
    costs = {0: 1, 1: 2, 2: 30}
    told, _ = explored(40, cost=lambda _, arm: 1.0 + arm, kernel=cg.Gaussian(0.5))
    later = cg.Learner.resume(told.freeze(), seed=0)
    np.testing.assert_array_equal(later.state.model.observed.costs, told.state.model.observed.costs)
    assert later.spent == pytest.approx(told.spent)
    known, _ = explored(40, costs=costs, kernel=cg.Gaussian(0.5))
    for given in (costs, None):  # what was spent is spent, whatever more will cost
        later = cg.Learner.resume(known.freeze(), seed=0, costs=given)
        assert later.spent == pytest.approx(known.spent)
        assert (later.state.costs is None) == (given is None)
    with pytest.raises(ValueError, match="costs must have a cost for every arm"):
        cg.Learner.resume(known.freeze(), costs={0: 1})
    with pytest.raises(ValueError, match="cutoff is about times"):
        cg.Learner.resume(known.freeze(), cutoff=3)


def test_a_file_without_costs_says_nothing_of_them():
    file = io.BytesIO()
    learner, _ = explored(20, kernel=cg.Gaussian(0.5))
    learner.save(file)
    assert b"cost" not in file.getvalue()
    assert learner.score().spent is None
    assert "spent" not in str(learner.score())


def test_a_budget_ends_exploring():
    rule = cg.StoppingRule(budget=30)
    learner = cg.Learner(3, costs={0: 1, 1: 2, 2: 4}, seed=0)
    learner.run(reward, contexts=CONTEXTS, until=rule, progress=False)
    assert 30 <= learner.spent < 34
    assert learner.done(rule)
    assert learner.settled(rule) == 1.0
    both = cg.StoppingRule(1e9, reference=CONTEXTS, budget=1e9)
    other, _ = explored(50)
    assert other.done(both)
    assert not other.done(cg.StoppingRule(budget=51))
    assert other.done(cg.StoppingRule(0.0, reference=CONTEXTS, budget=50))
    other.ask(CONTEXTS[0])
    assert other.done(cg.StoppingRule(budget=51))  # what is under way counts


def test_a_run_tells_costs():
    learner = cg.Learner(3, seed=0)
    learner.run(lambda x, arm: {"reward": reward(x, arm), "cost": 2.5}, contexts=CONTEXTS[:10])
    assert learner.spent == 25.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cg.Learner(["a"], costs=[1]), "costs must map arms"),
        (lambda: cg.Learner(["a", "b"], costs={"a": 1}), "costs must have a cost for every arm"),
        (lambda: cg.Learner(["a"], costs={"a": 1, "z": 2}), "costs must be about arms among"),
        (lambda: cg.Learner(["a"], costs={"a": 0}), "costs must be positive"),
        (lambda: cg.Learner(["a"]).tell([0.0], "a", 1.0, cost=-1), "cost must be positive"),
        (lambda: cg.Learner(["a"]).tell([0.0], "a", 1.0, cost=math.inf), "cost must be"),
        (lambda: cg.Learner(["a"]).fit([[0.0]], ["a"], [1.0], costs=[1, 2]), "1 contexts, 2 costs"),
        (lambda: cg.Learner(["a"]).add_arm("b", cost=1), "for all arms or for none"),
        (lambda: cg.StoppingRule(budget=0), "budget must be positive"),
        (lambda: cg.StoppingRule(0.1), "reference must be contexts"),
    ],
)
def test_bad_costs_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
