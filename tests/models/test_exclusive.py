"""Arms of which at most one pays: implied rewards are observations with more noise."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import contextgap as cg
from contextgap.export.c import CompiledPolicy
from contextgap.export.rule import ExportError
from contextgap.models import (
    ClassModel,
    ExactModel,
    Exclusive,
    ExclusiveModel,
    describe_model,
    restored_model,
)
from contextgap.models import exclusive as module
from contextgap.models.exclusive import calibrated
from contextgap.models.tuning.exclusive import LeaveOneOut
from tests.oracle_model import DenseHistoryModel

KERNEL, RIDGE, ARMS = 0.3 * cg.Gaussian((0.7, 1.1)) + 0.1 * cg.Linear(), 0.05, 3
RELATION = {"low": -1.0, "high": 2.0, "doubt": 4.0}
NEW = np.random.default_rng(9).uniform(-1.2, 1.2, (15, 2))


def data(count=40, seed=0, n_arms=ARMS):
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-1, 1, (count, 2))
    right = (3 * contexts[:, 0] + contexts[:, 1]).round().astype(int) % n_arms
    arms = rng.integers(n_arms, size=count)
    return contexts, arms, np.where(arms == right, 2.0, -1.0)


def filled(count=40, n_arms=ARMS, **settings):
    model = ExclusiveModel(KERNEL, RIDGE, n_arms, 0.3, **{**RELATION, **settings})
    model.observe_many(*data(count, n_arms=n_arms))
    return model


def spelt_out(contexts, arms, rewards, n_arms=ARMS):
    """The oracle: every implied reward is told as an observation of its own."""
    model = DenseHistoryModel(KERNEL, RIDGE, n_arms, 0.3)
    tried = set()
    for context, arm, reward in zip(contexts, arms.tolist(), rewards.tolist(), strict=True):
        model.observe(context, arm, reward)
        tried.add(arm)
        for other in tried - {arm}:
            if reward == 2.0:
                model.observe(context, other, -1.0, 3 * RIDGE)
            elif n_arms == 2:
                model.observe(context, other, 2.0, 3 * RIDGE)
    return model


def same(one, two):
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(one.std, two.std, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n_arms", [2, 3])
def test_implied_rewards_are_observations_with_more_noise(n_arms):
    model, oracle = filled(n_arms=n_arms), spelt_out(*data(n_arms=n_arms), n_arms)
    same(model.posterior(NEW, range(n_arms)), oracle.posterior(NEW, range(n_arms)))
    assert len(model) == 40
    assert sum(model.support_sizes(range(n_arms))) == len(oracle) > 40


def test_one_by_one_is_all_at_once():
    model = ExclusiveModel(KERNEL, RIDGE, ARMS, 0.3, **RELATION)
    for context, arm, reward in zip(*data(), strict=True):
        model.observe(context, int(arm), float(reward))
    same(model.posterior(NEW, range(ARMS)), filled().posterior(NEW, range(ARMS)))
    for row, context in enumerate(NEW):
        one = model.posterior(context, range(ARMS))
        np.testing.assert_allclose(one.mean, model.posterior(NEW, range(ARMS)).mean[row])


def test_history_is_the_posterior_of_fewer_observations():
    history = filled().history(NEW, range(ARMS), 7)
    for step in (0, 1, 12, 33):
        contexts, arms, rewards = (each[: 7 + step] for each in data())
        same(history.at(step), spelt_out(contexts, arms, rewards).posterior(NEW, range(ARMS)))


def test_a_visit_is_left_out_with_what_it_implies():
    contexts, arms, rewards = data()
    places = np.array([3, 20, 39])
    found = filled().left_out(places, np.ones(3, dtype=np.intp), range(ARMS))
    assert (rewards[places] == 2.0).any()
    for row, place in enumerate(places):
        # Arms were all tried before the first of these, so what others imply stays.
        others = np.delete(np.arange(40), place)
        oracle = spelt_out(contexts[others], arms[others], rewards[others])
        expected = oracle.posterior(contexts[place], range(ARMS))
        np.testing.assert_allclose(found.posterior.mean[row], expected.mean, rtol=1e-7)
        np.testing.assert_allclose(found.posterior.std[row], expected.std, rtol=1e-6)
        error = rewards[place] - expected.mean[arms[place]]
        assert found.error[row] == pytest.approx(error)


def test_rewind_snapshot_and_file():
    model, before = filled(30), filled(30).posterior(NEW, range(ARMS))
    mark, copy = model.mark(), model.snapshot()
    for context, arm, reward in zip(*data(12, seed=4), strict=True):
        model.observe(context, int(arm), float(reward))
    after = model.posterior(NEW, range(ARMS))
    loaded = restored_model(describe_model(model), model.arrays(), KERNEL, RIDGE, ARMS, 0.3)
    np.testing.assert_array_equal(loaded.posterior(NEW, range(ARMS)).mean, after.mean)
    np.testing.assert_array_equal(loaded.posterior(NEW, range(ARMS)).std, after.std)
    model.rewind(mark)
    np.testing.assert_array_equal(model.posterior(NEW, range(ARMS)).mean, before.mean)
    np.testing.assert_array_equal(copy.posterior(NEW, range(ARMS)).mean, before.mean)


def test_an_arm_that_was_never_tried_is_as_the_prior():
    model = filled()
    model.add_arm()
    model.observe(NEW[0], 0, 2.0)
    found = model.posterior(NEW, [ARMS])
    np.testing.assert_allclose(found.mean, 0.3)
    np.testing.assert_allclose(found.std[:, 0] ** 2, KERNEL.diagonal(NEW))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"low": 2.0}, "low must be below high"), ({"doubt": 0.5}, "doubt must be at least 1")],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        Exclusive(**{**RELATION, **settings})


@pytest.mark.parametrize("doubt", [1.0, 4.0, np.inf])
def test_leave_one_out_errors_are_those_of_models_without_the_context(doubt):
    contexts, arms, rewards = data(30)
    contexts[5], contexts[17] = contexts[4], contexts[16]  # visits that are left out together
    by_arm = [[each[arms == arm] for arm in range(ARMS)] for each in (contexts, rewards)]
    judge = LeaveOneOut(by_arm, Exclusive(**RELATION))
    scale, *errors = judge.errors(KERNEL, RIDGE, doubt)
    expected = []
    for arm in range(ARMS):
        for context, reward in zip(by_arm[0][arm], by_arm[1][arm], strict=True):
            oracle = DenseHistoryModel(KERNEL, RIDGE, ARMS, judge.mean)
            for other, own, told in zip(contexts, arms.tolist(), rewards.tolist(), strict=True):
                if (other == context).all():
                    continue
                if own == arm:
                    oracle.observe(other, arm, told)
                elif told == 2.0 and np.isfinite(doubt):
                    oracle.observe(other, arm, -1.0, (doubt - 1) * RIDGE)
            expected.append(reward - oracle.posterior(context, [arm]).mean[0])
    np.testing.assert_allclose(errors, expected, rtol=1e-7, atol=1e-9)
    assert scale > 0


def classes(count, seed, *, flip=0.0):
    """Contexts, and for every arm whether it is the right one; some rewards are flipped."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(count, 3))
    right = np.stack([contexts @ direction for direction in np.eye(3)], axis=1).argmax(axis=1)
    pays = np.eye(3)[right]
    return contexts, np.where(rng.random(pays.shape) < flip, 1 - pays, pays)


def told(contexts, pays, seed, **settings):
    """A learner that was told rewards of arms drawn at random."""
    arms = np.random.default_rng(seed).integers(3, size=len(contexts))
    learner = cg.Learner(3, seed=0, **settings)
    return learner.fit(contexts, arms.tolist(), pays[np.arange(len(arms)), arms])


def test_classes_are_found_to_exclude_each_other():
    chosen = {told(*classes(200, seed), seed).tuning.chosen for seed in range(10, 14)}
    assert chosen == {"exclusive"}
    assert told(*classes(200, 10), 10, sharing=0).tuning.chosen != "exclusive"


def test_arms_that_pay_independently_are_not():
    rng = np.random.default_rng(3)
    chosen = []
    for seed in range(6):
        contexts = rng.normal(size=(240, 3))
        pays = (contexts + 0.3 * rng.normal(size=(240, 3)) > 0).astype(float)
        chosen.append(told(contexts, pays, seed).tuning.chosen)
    assert chosen.count("exclusive") == 0


def test_learner_goes_on_from_a_file_and_exports_decide_the_same(tmp_path):
    contexts, pays = classes(160, seed=2)
    learner = told(contexts[:120], pays[:120], 0)
    assert learner.tuning.chosen == "exclusive"
    learner.save(tmp_path / "l.cgap")
    other = cg.Learner.load(tmp_path / "l.cgap")
    for context, paid in zip(contexts[120:], pays[120:], strict=True):
        arm = learner.ask(context)
        assert other.ask(context) == arm
        for each in (learner, other):
            each.tell(context, arm, paid[arm])
    policy = learner.freeze()
    np.testing.assert_array_equal(
        policy.decide(contexts[0]).mean, other.freeze().decide(contexts[0]).mean
    )
    policy.save(tmp_path / "p.cgap")
    loaded = cg.Policy.load(tmp_path / "p.cgap")
    np.testing.assert_array_equal(loaded.recommend(contexts), policy.recommend(contexts))
    assert policy.card is not None
    if shutil.which("cc"):
        policy.to_c(tmp_path / "c")
        found = CompiledPolicy(tmp_path / "c").recommend(contexts)
        np.testing.assert_array_equal(found, policy.recommend(contexts).astype(int))


def of_own_rewards(model):
    log = model.observed
    own = ExactModel(model.kernel, model.ridge, model.n_arms, model.prior_mean)
    own.observe_many(log.contexts, log.arms, log.rewards)
    return own


def test_the_model_of_own_rewards_follows_every_change():
    model, (contexts, arms, rewards) = filled(30), data()
    mark = model.mark()
    copy = model.snapshot()
    for change in (
        lambda: None,
        lambda: model.observe(contexts[30], int(arms[30]), float(rewards[30])),
        lambda: model.observe_many(contexts[31:], arms[31:], rewards[31:]),
        model.add_arm,
    ):
        change()
        every = range(model.n_arms)
        same(
            model.of_own_rewards().posterior(NEW, every),
            of_own_rewards(model).posterior(NEW, every),
        )
    model = filled(30)
    model.of_own_rewards()
    model.observe(contexts[30], int(arms[30]), float(rewards[30]))
    model.of_own_rewards()
    model.rewind(mark)
    for each in (model, copy):
        same(
            each.of_own_rewards().posterior(NEW, range(3)),
            of_own_rewards(each).posterior(NEW, range(3)),
        )
    exact = model.of_own_rewards()
    assert exact.of_own_rewards() is exact


def classes_told(rounds=60):
    rng = np.random.default_rng(3)
    told = rng.uniform(-1, 1, (rounds, 2))
    right = 2 * (told[:, 0] > 0) + (told[:, 1] > 0)
    arms = rng.integers(4, size=rounds)
    return cg.Learner(4, seed=0).fit(told, arms, (arms == right).astype(float))


@pytest.mark.parametrize("count", [3, 40])
def test_picks_are_optimistic_about_own_rewards(count):
    learner = classes_told()
    model = learner.state.model
    assert isinstance(model, ExclusiveModel)
    contexts = np.random.default_rng(4).uniform(-1, 1, (count, 2))
    picks, pending = learner.ask(contexts), {}
    own = of_own_rewards(model)
    for context, pick in zip(contexts, picks.tolist(), strict=True):
        found = own.posterior(context, range(4), pending)
        assert pick == np.argmax(found.mean + 4 * found.std)
        pending.setdefault(pick, []).append(context)
    one_by_one = classes_told()
    assert picks.tolist() == [one_by_one.ask(context) for context in contexts]


def test_two_arms_that_exclude_each_other_are_tried_equally_often():
    rng = np.random.default_rng(3)
    contexts = rng.uniform(-1, 1, (60, 2))
    arms, right = np.arange(60) % 2, (contexts[:, 0] > 0).astype(int)
    learner = cg.Learner(2, seed=0).fit(contexts, arms, (arms == right).astype(float))
    assert isinstance(learner.state.model, ExclusiveModel)
    assert learner.ask(rng.uniform(-1, 1, (7, 2))).tolist() == [0, 1, 0, 1, 0, 1, 0]


def expected_rewards(model):
    """The oracle: every arm's expected reward at every observed context, and the row's noise."""
    log, every = model.observed, range(model.n_arms)
    left_out = model.left_out(np.arange(len(log)), np.ones(len(log), dtype=np.intp), every)
    paid = log.rewards == 2.0
    chances, flips = calibrated((left_out.posterior.mean + 1) / 3, log.arms, paid)
    rows = []
    for chance, arm, reward in zip(chances, log.arms.tolist(), paid.tolist(), strict=True):
        right = [1 - flips if (each == arm) == reward else flips for each in every]
        rows.append(chance * right / np.sum(chance * right))
    chances = np.array(rows)
    return -1 + 3 * (flips + (1 - 2 * flips) * chances), RIDGE * (1 / chances.max(axis=1) - 1)


def told_all(contexts, values, noise):
    oracle = DenseHistoryModel(KERNEL, RIDGE, values.shape[1], float(values.mean()))
    for context, row, own in zip(contexts, values, noise, strict=True):
        for arm, value in enumerate(row):
            oracle.observe(context, arm, float(value), float(own))
    return oracle


@pytest.mark.parametrize("n_arms", [2, 3])
def test_policies_rest_on_expected_rewards_of_all_arms(n_arms, monkeypatch):
    monkeypatch.setattr(module, "_SURE", 0.0)
    model = filled(n_arms=n_arms)
    deployed, every = model.for_deployment(), range(n_arms)
    values, noise = expected_rewards(model)
    oracle = told_all(model.observed.contexts, values, noise)
    same(deployed.posterior(NEW, every), oracle.posterior(NEW, every))
    one = deployed.posterior(NEW[3], every)
    np.testing.assert_allclose(one.mean, oracle.posterior(NEW[3], every).mean)
    support = deployed.supports(every)[1]
    means = deployed.prior() + model.kernel(NEW, support.points) @ support.weights
    np.testing.assert_allclose(means, oracle.posterior(NEW, every).mean[:, 1])


def test_expected_rewards_are_left_out_one_context_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "_SURE", 0.0)
    model = filled()
    deployed, (contexts, arms, rewards) = model.for_deployment(), data()
    values, noise = expected_rewards(model)
    places = np.array([2, 17, 39])
    found = deployed.left_out(places, np.ones(3, dtype=np.intp), [0, 2])
    for row, place in enumerate(places):
        others = np.delete(np.arange(40), place)
        oracle = told_all(contexts[others], values[others], noise[others])
        oracle.prior_mean = float(values.mean())  # that of all
        expected = oracle.posterior(contexts[place], range(ARMS))
        np.testing.assert_allclose(found.posterior.mean[row], expected.mean[[0, 2]], rtol=1e-7)
        np.testing.assert_allclose(found.posterior.std[row], expected.std[[0, 2]], rtol=1e-6)
        assert found.error[row] == pytest.approx(rewards[place] - expected.mean[arms[place]])


@pytest.mark.parametrize("flip", [0.0, 0.1, 0.3])
def test_the_share_of_flips_is_found(flip):
    rng = np.random.default_rng(8)
    means = rng.normal(size=(4000, 5)) / 3
    means[:, 0] += 1
    chances = np.exp(means / 0.3) / np.exp(means / 0.3).sum(axis=1, keepdims=True)
    right = (chances.cumsum(axis=1) < rng.random(4000)[:, None]).sum(axis=1)
    arms = rng.integers(5, size=4000)
    paid = (right == arms) ^ (rng.random(4000) < flip)
    found, flips = calibrated(means, arms, paid)
    assert flips == pytest.approx(flip, abs=0.04)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert abs(found - chances).max() < 0.1


def test_a_deployed_model_is_kept_until_the_next_reward_and_does_not_learn():
    model, (contexts, arms, rewards) = filled(30), data()
    deployed = model.for_deployment()
    assert model.for_deployment() is deployed
    before = deployed.posterior(NEW, range(ARMS)).mean
    model.observe(contexts[30], int(arms[30]), float(rewards[30]))
    assert len(model.for_deployment()) == 31
    np.testing.assert_array_equal(deployed.posterior(NEW, range(ARMS)).mean, before)
    for change in (deployed.observe, deployed.observe_many, deployed.add_arm):
        with pytest.raises(TypeError, match="does not learn"):
            change(contexts[30], 0, 1.0)
    loaded = restored_model(describe_model(deployed), deployed.arrays(), KERNEL, RIDGE, ARMS, 0.3)
    for each in (loaded, deployed.snapshot()):
        found = each.posterior(NEW, range(ARMS))
        np.testing.assert_array_equal(found.mean, before)
        np.testing.assert_array_equal(found.std, deployed.posterior(NEW, range(ARMS)).std)


def test_without_a_reward_of_every_arm_or_with_others_the_model_itself_is_deployed():
    model = filled()
    model.add_arm()
    assert model.for_deployment() is model
    model = filled()
    model.observe(NEW[0], 0, 0.5)
    assert model.for_deployment() is model
    assert ExactModel(KERNEL, RIDGE, 2).for_deployment().kind == "exact"
    rng = np.random.default_rng(6)
    model = ExclusiveModel(KERNEL, RIDGE, 3)  # clicks, which context says little about
    model.observe_many(rng.normal(size=(60, 2)), np.arange(60) % 3, 1.0 * (rng.random(60) < 0.3))
    assert model.for_deployment() is model


def test_flipped_rewards_cost_less():
    errors = []
    for seed in range(5):
        (contexts, pays), (new, expected) = classes(300, seed, flip=0.2), classes(1000, 50 + seed)
        arms = np.random.default_rng(seed).integers(3, size=300)
        model = ExclusiveModel(0.2 * cg.Gaussian(1.5), 0.15, 3, 0.3)
        model.observe_many(contexts, arms, pays[np.arange(300), arms])
        found = (each.posterior(new, range(3)).mean for each in (model.for_deployment(), model))
        errors.append([np.square(each - 0.2 - 0.6 * expected).mean() for each in found])
    deployed, implied = np.mean(errors, axis=0)
    assert deployed < 0.8 * implied


def test_policies_of_classes_can_be_resumed_and_follow_their_learner():
    contexts, pays = classes(120, 10)
    learner = told(contexts, pays, 10)
    policy = learner.freeze()
    assert isinstance(policy.state.model, ClassModel)
    np.testing.assert_array_equal(learner.recommend(contexts), policy.recommend(contexts))
    again = cg.Learner.resume(policy)
    assert isinstance(again.state.model, ExclusiveModel)
    np.testing.assert_array_equal(again.recommend(contexts), policy.recommend(contexts))


def test_look_backs_over_implied_rewards_cannot_be_exported(tmp_path):
    policy = told(*classes(120, 10), 10, method="contextual-gap-history").freeze()
    for export in (policy.to_c, policy.to_onnx):
        with pytest.raises(ExportError, match="steps of each arm; deploy by SmallestGap"):
            export(tmp_path / "policy")


def test_cards_leave_rewards_out_of_all_that_was_learnt():
    """Expected rewards rest on the rewards that are left out, too."""
    contexts, pays = classes(160, 10, flip=0.1)
    learner = told(contexts, pays, 10)
    policy, model = learner.freeze(), learner.freeze().state.model
    assert isinstance(model, ClassModel)
    learnt = model.learnt()
    same(learnt.posterior(contexts, range(3)), learner.state.model.posterior(contexts, range(3)))
    implied = cg.Policy(replace(policy.state, model=learnt))
    assert policy.score().value == implied.score().value
    assert ExactModel(KERNEL, RIDGE, 2).learnt().kind == "exact"
