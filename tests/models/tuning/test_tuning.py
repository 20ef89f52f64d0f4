"""Hyperparameters learnt from rewards: criteria against other libraries, and the whole loop."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.spatial import cKDTree
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import contextgap as cg
from contextgap.kernels import Constant
from contextgap.kernels.categories import Spread
from contextgap.models import Features
from contextgap.models.tuning import learn
from contextgap.models.tuning.criteria import (
    Stack,
    _most_each,
    evidence,
    leave_one_out,
    part_of,
)
from contextgap.models.tuning.descent import finished
from contextgap.models.tuning.search import Search, Sharing, Terms
from contextgap.tables.columns import Layout


def data(seed=0, sizes=(20, 15), dimension=3, units=(1.0, 10.0, 0.1)):
    rng = np.random.default_rng(seed)
    contexts = [rng.normal(size=(n, dimension)) * units + 5 for n in sizes]
    rewards = [np.sin(x[:, 0]) + 3 + 0.1 * rng.normal(size=len(x)) for x in contexts]
    return contexts, rewards


KERNELS = [
    cg.Gaussian((1.0, 1.0, 1.0)),
    cg.Gaussian(1.0),
    3.0 * cg.Matern((1.0, 2.0, 1.0), 0.5),
    cg.Matern((1.0, 2.0, 1.0), 1.5),
    cg.Matern((1.0, 2.0, 1.0), 2.5) + Constant(),
    2.0 * cg.Gaussian((1.0, 1.0, 1.0)) + 0.5 * Constant(),
    cg.Linear() + Constant(),
    cg.Gaussian((1.0, 2.0, 1.0)) + 0.3 * cg.Linear((1.0, 9.0, 1.0), (5.0, 5.0, 5.0)) + Constant(),
    cg.Matern(1.0) + cg.Linear(),
    Constant(),
    cg.Gaussian(1.0) * cg.Linear(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_slopes_are_those_of_finite_differences(kernel, criterion):
    search = Search(Terms.of(kernel), *data(), criterion)
    start = search.start(-0.5, 0.01)
    theta = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
    slope = search.loss_and_slope(theta)[1]
    numeric = approx_fprime(theta, lambda x: search.loss_and_slope(x)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, atol=1e-4 * np.abs(slope).max())


@pytest.mark.parametrize("kind", [cg.Gaussian, cg.Matern])
def test_slopes_of_tied_bandwidths_are_those_of_finite_differences(kind):
    rng = np.random.default_rng(2)
    contexts = [
        np.column_stack([rng.normal(size=(20, 3)), rng.integers(4, size=20)]) for _ in range(2)
    ]
    spread = Spread.of(contexts, Layout((0, 1, 1, 2), 1))
    assert spread.tied == (0, 1, 1, 2, 2, 2, 2)
    columns = [spread.columns(x) for x in contexts]
    trend = cg.Linear(unit=(1.0,) * 7)
    terms = Terms(kind((1.0,) * 7), trend, offset=1.0, tied=spread.tied)
    search = Search(terms, columns, [rng.normal(size=20) for _ in range(2)], "evidence")
    start = search.start(-0.5, 0.01)
    assert len(start) == 6  # three bandwidths, slope, offset, ratio
    theta = start + 0.1 * rng.normal(size=6)
    slope = search.loss_and_slope(theta)[1]
    numeric = approx_fprime(theta, lambda x: search.loss_and_slope(x)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, atol=1e-4 * np.abs(slope).max())
    kernel = finished(search.hyperparameters(theta)).kernel
    codes, wanted = np.vstack(contexts), np.vstack(columns)
    np.testing.assert_allclose(
        spread.of_codes(kernel)(codes, codes), kernel(wanted, wanted), atol=1e-12
    )


FEATURES = np.array([[0.0, 3.0], [1.0, 5.0], [4.0, 3.0]])


@pytest.mark.parametrize("features", [None, Features(FEATURES), Features(FEATURES, categories=1)])
@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[7], KERNELS[10]], ids=str)
@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_slopes_of_arms_that_share_are_those_of_finite_differences(kernel, criterion, features):
    sizes = (12, 15, 9)
    sharing = Sharing(np.array(sizes), features)
    search = Search(Terms.of(kernel), *data(sizes=sizes), criterion, sharing)
    start = search.start(-0.5, 0.01)
    theta = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
    slope = search.loss_and_slope(theta)[1]
    numeric = approx_fprime(theta, lambda x: search.loss_and_slope(x)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, atol=1e-4 * np.abs(slope).max())


def test_the_loss_of_arms_that_share_is_the_density_of_all_rewards():
    """All but for beliefs and a constant: checked as the difference between two correlations."""
    contexts, rewards = data(sizes=(12, 15, 9))
    x, y, arms = np.vstack(contexts), np.concatenate(rewards), np.repeat([0, 1, 2], (12, 15, 9))
    losses, densities = [], []
    for correlation in (0.2, 0.9):
        sharing = Sharing(np.array([12, 15, 9]))
        search = Search(Terms.of(KERNELS[0]), contexts, rewards, "evidence", sharing)
        logit = np.log(correlation / (1 - correlation))
        theta = np.array([0.0, 0.0, 0.0, logit, np.log(0.1)])
        found = finished(search.hyperparameters(theta))
        losses.append(found.loss - search._prior_loss(theta)[0])
        alike = np.where(arms[:, None] == arms, 1.0, correlation)
        noisy = found.kernel(x, x) * alike + found.ridge * np.eye(len(x))
        mean = np.full(len(x), found.prior_mean)
        scale = found.ridge / 0.1
        density = multivariate_normal(mean, noisy).logpdf(y)
        # The reward scale at its optimum: the guess counts as one more observation.
        densities.append(density - 0.5 * np.log(scale) - 0.5 * search.guess / scale)
    assert losses[0] - losses[1] == pytest.approx(densities[1] - densities[0], rel=1e-6)


def covariance(x, bandwidth, ratio):
    return cg.Gaussian(bandwidth)(x, x) + ratio * np.eye(len(x))


def stack(rewards):
    return Stack(rewards[None], np.ones((1, len(rewards))))


def test_the_evidence_is_scikit_learns():
    (x,), (y,) = data(sizes=(25,), dimension=1, units=(1.0,))
    score = evidence([covariance(x, 0.7, 0.1)[None]], [stack(y)], 1.0, 0.0)
    scale = score.reward_scale
    kernel = scale * RBF(0.7) + WhiteKernel(0.1 * scale)
    regressor = GaussianProcessRegressor(kernel, optimizer=None).fit(x, y - score.prior_mean)
    constant = 0.5 * len(y) * (1 + np.log(2 * np.pi))
    assert regressor.log_marginal_likelihood_value_ == pytest.approx(-score.loss - constant)
    for factor, shift in [(1.05, 0.0), (0.95, 0.0), (1.0, 0.1), (1.0, -0.1)]:  # it is the best
        kernel = factor * scale * RBF(0.7) + WhiteKernel(0.1 * factor * scale)
        other = GaussianProcessRegressor(kernel, optimizer=None)
        other.fit(x, y - score.prior_mean - shift)
        assert other.log_marginal_likelihood_value_ < regressor.log_marginal_likelihood_value_


def test_leaving_one_out_is_leaving_one_out():
    contexts, rewards = data(sizes=(9, 7), dimension=2, units=(1.0, 1.0))
    matrices = [covariance(x, 1.3, 0.2) for x in contexts]
    stacks = [stack(y) for y in rewards]
    score = leave_one_out([each.copy()[None] for each in matrices], stacks, 1.0, 0.0)

    def loss(prior_mean, scale):
        total = 0.0
        for c, y in zip(matrices, rewards, strict=True):
            for i in range(len(y)):
                others = np.delete(np.arange(len(y)), i)
                weights = np.linalg.solve(c[np.ix_(others, others)], c[others, i])
                error = y[i] - prior_mean - weights @ (y[others] - prior_mean)
                variance = scale * (c[i, i] - weights @ c[others, i])
                total += 0.5 * np.log(variance) + 0.5 * error**2 / variance
        return total

    best = loss(score.prior_mean, score.reward_scale)
    assert best == pytest.approx(score.loss + 0.5 * 16)
    for mean, scale in [(0.1, 1.0), (-0.1, 1.0), (0.0, 1.1), (0.0, 0.9)]:
        assert loss(score.prior_mean + mean, score.reward_scale * scale) > best


@pytest.mark.parametrize("criterion", ["evidence", "loo"])
@pytest.mark.parametrize("make", [cg.Gaussian, lambda b: cg.Matern(b, 1.5)])
def test_known_hyperparameters_are_found_again(criterion, make):
    rng = np.random.default_rng(3)
    truth, noise = 9.0 * make((0.5, 40.0)), 0.2
    contexts = [rng.uniform(-1, 1, (150, 2)) * [1.0, 30.0] for _ in range(4)]
    rewards = []
    for x in contexts:
        draw = np.linalg.cholesky(truth(x, x) + 1e-9 * np.eye(len(x))) @ rng.normal(size=len(x))
        rewards.append(100 + draw + noise * rng.normal(size=len(x)))
    found, _ = learn(contexts, rewards, make((1.0, 1.0)), criterion)
    np.testing.assert_allclose(found.kernel.kernel.bandwidth, [0.5, 40.0], rtol=0.35)
    assert found.kernel.factor == pytest.approx(9.0, rel=0.6)
    assert found.ridge == pytest.approx(noise**2, rel=0.6)
    assert found.prior_mean == pytest.approx(100, abs=5)


def explored(units=(1.0, 1.0), factor=1.0, shift=0.0, steps=90, **settings):
    learner = cg.Learner(["a", "b", "c"], seed=0, **settings)
    picks = []
    for x in np.random.default_rng(2).uniform(-1, 1, (steps, 2)):
        arm = learner.ask(x * units)
        picks.append(arm)
        learner.tell(x * units, arm, factor * np.sin(2 * x[0] * (1 + "abc".index(arm))) + shift)
    return learner, picks


def test_units_and_levels_make_no_difference():
    contexts = np.random.default_rng(8).uniform(-1, 1, (300, 2))
    plain, picks = explored(steps=60)
    units = np.array([1e6, 1e-5])
    other, other_picks = explored(units, factor=1e4, shift=3e5, steps=60)
    # Rounding moves where searches end, and a pick between two arms that promise the same.
    assert np.mean(np.array(picks) == other_picks) > 0.9
    agreement = plain.recommend(contexts) == other.recommend(contexts * units)
    assert agreement.mean() > 0.98
    assert other.prior_mean == pytest.approx(3e5, rel=0.1)
    np.testing.assert_allclose(
        np.array(other.kernel.left.kernel.bandwidth) / plain.kernel.left.kernel.bandwidth,
        units,
        rtol=0.2,
    )


@pytest.mark.parametrize(
    ("retune", "times"),
    [(None, [10, 14, 20, 28, 40, 56, 79]), ("doubling", [10, 20, 40, 80]), ("never", [])],
)
def test_hyperparameters_are_learnt_whenever_there_are_so_many_more_rewards(
    retune, times, tmp_path
):
    learner = cg.Learner(2, retune=retune, seed=0)
    changes, kernel = [], learner.kernel
    for n, x in enumerate(np.random.default_rng(0).uniform(0, 9, (100, 1)), 1):
        learner.tell(x, n % 2, np.sin(x[0]))
        if learner.kernel != kernel:
            changes.append(learner.tuning.rewards)
            assert n <= learner.tuning.rewards + 5  # it takes a few tells
            kernel = learner.kernel
            learner.save(tmp_path / "l.cgap")
            learner = cg.Learner.load(tmp_path / "l.cgap")
    assert changes == times


def test_after_a_bulk_load_hyperparameters_are_learnt_when_the_log_has_grown():
    x = np.random.default_rng(0).uniform(0, 9, (100, 1))
    learner = cg.Learner(2, seed=0).fit(x, np.arange(100) % 2, np.sin(x[:, 0]))
    kernel, count = learner.kernel, 100
    while learner.kernel == kernel:
        learner.tell(x[count % 100], count % 2, 0.5)
        count += 1
    assert learner.tuning.rewards == 140
    assert 140 <= count < 150


def test_a_given_kernel_is_retuned_only_if_told():
    kernel = cg.Matern(3.0, 1.5)
    assert explored(kernel=kernel)[0].kernel == kernel
    retuned = explored(kernel=kernel, retune="doubling")[0].kernel
    assert retuned.kernel.smoothness == 1.5
    assert retuned.kernel.bandwidth != 3.0
    never = explored(retune="never")[0]
    assert never.kernel == cg.Gaussian(1.0)
    assert never.tune("loo").kernel != cg.Gaussian(1.0)


def test_tuning_keeps_what_was_observed_and_asked():
    learner, _ = explored(kernel=cg.Gaussian(1.0))
    waiting = learner.ask([[0.1, 0.2], [0.3, 0.4]])
    counts, before = learner.counts, learner.state.model
    assert learner.tune() is learner
    assert learner.counts == counts
    assert learner.pending == 2
    np.testing.assert_array_equal(learner.state.model.observed.rewards, before.observed.rewards)
    np.testing.assert_array_equal(learner.state.model.observed.arms, before.observed.arms)
    learner.tell([[0.1, 0.2], [0.3, 0.4]], waiting, [0.0, 0.0])
    assert learner.pending == 0
    fresh = cg.Learner(
        list("abc"), kernel=learner.kernel, ridge=learner.ridge, prior_mean=learner.prior_mean
    )
    fresh.fit(
        learner.state.model.observed.contexts,
        ["abc"[i] for i in learner.state.model.observed.arms],
        learner.state.model.observed.rewards,
    )
    np.testing.assert_allclose(fresh.decide([0.5, 0.5]).mean, learner.decide([0.5, 0.5]).mean)


def test_learning_goes_on_from_a_file_bit_for_bit(tmp_path):
    for steps in (4, 35):
        learner, _ = explored(steps=steps)
        learner.save(tmp_path / "l.cgap")
        twin = cg.Learner.load(tmp_path / "l.cgap")
        for x in np.random.default_rng(4).uniform(-1, 1, (30, 2)):
            arm = learner.ask(x)
            assert twin.ask(x) == arm
            for each in (learner, twin):
                each.tell(x, arm, x[0] if arm == "a" else x[1])
        assert twin.kernel == learner.kernel
        assert (twin.ridge, twin.prior_mean) == (learner.ridge, learner.prior_mean)


def test_settings_that_follow_the_rewards_take_the_promise_away(tmp_path):
    width = cg.TheoremWidth(0.1, 1.0, 0.05)
    learner, _ = explored(kernel=cg.Gaussian(1.0), width=width)
    assert learner.freeze().probability == 0.95
    policy = learner.tune().freeze()
    assert policy.probability is None
    policy.save(tmp_path / "p.cgap")
    assert cg.Policy.load(tmp_path / "p.cgap").probability is None


@pytest.mark.parametrize("reward", [0.0, 7.0, -1e9])
def test_rewards_that_are_all_the_same_and_contexts_that_never_change(reward):
    learner = cg.Learner(3, seed=0)
    for _ in range(45):
        learner.tell([4.0, 1e7], learner.ask([4.0, 1e7]), reward)
    decision = learner.decide([4.0, 1e7])
    assert np.isfinite(decision.std).all()
    assert decision.mean == pytest.approx([reward] * 3, rel=1e-6, abs=1e-6)


def test_logged_data_are_tuned_on_at_once():
    rng = np.random.default_rng(0)
    contexts = rng.uniform(0, 1e4, (200, 1))
    arms = rng.integers(2, size=200)
    rewards = np.where(arms == 1, np.sin(contexts[:, 0] / 2e3), 0.0) + 50
    learner = cg.Learner(2).fit(contexts, arms, rewards)
    query = np.linspace(500, 9500, 50)[:, None]
    right = (np.sin(query[:, 0] / 2e3) > 0).astype(int)
    assert (learner.recommend(query) == right).mean() > 0.95


@pytest.mark.parametrize(
    ("learner", "criterion", "message"),
    [
        (cg.Learner(2), "evidence", "tune needs at least 2 rewards to learn from, got 0"),
        (explored(steps=12)[0], "aic", "criterion must be one of .*'evidence', 'loo'.*'aic'"),
    ],
)
def test_what_cannot_be_tuned(learner, criterion, message):
    kernel = learner.kernel
    with pytest.raises(ValueError, match=message):
        learner.tune(criterion)
    assert learner.kernel == kernel


def test_noise_that_never_changes_is_not_taken_for_none():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (60, 1))
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=60)
    again = rng.integers(60, size=300)  # every visit hears the same noise
    once, _ = learn([x], [y], cg.Gaussian((1.0,)))
    often, _ = learn([np.vstack([x, x[again]])], [np.append(y, y[again])], cg.Gaussian((1.0,)))
    assert often.ridge == pytest.approx(once.ridge)
    assert often.ridge == pytest.approx(0.09, rel=0.5)


def test_few_rows_in_bulk_are_learnt_from_as_well():
    contexts = np.array([[0.0], [1000.0], [2000.0], [3000.0]])
    learner = cg.Learner(["a", "b"]).fit(contexts, ["a", "b", "a", "b"], [1.0, 3.0, 1.1, 3.1])
    assert learner.kernel != cg.Gaussian(1.0)
    assert learner.recommend(contexts).tolist() == ["b"] * 4


@pytest.mark.parametrize(
    ("truth", "kind"), [(cg.Gaussian(0.6), "gaussian"), (cg.Matern(0.6, 1.5), "matern")]
)
def test_smooth_or_rough_is_told_from_the_rewards(truth, kind):
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 6, (120, 1))
    root = np.linalg.cholesky(truth(x, x) + 1e-8 * np.eye(120))
    arms = np.arange(120) % 2
    draws = (root @ rng.normal(size=(120, 2)))[np.arange(120), arms]
    learner = cg.Learner(2, sharing=0).fit(x, arms, draws)
    assert learner.tuning.chosen == kind


def test_rewards_as_large_as_are_allowed():
    learner = cg.Learner(2)
    for i in range(45):
        learner.tell([1e40 * i], i % 2, 1e45 * np.sin(i))
    assert np.isfinite(learner.decide([1e41]).std).all()


def noisy_log(noise, seed=0, rows=400, dimension=6, slope=0.0, levels=(0.0, 0.3, 0.6)):
    """Three arms; only the first number matters, along a wave or a slope."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(rows, dimension))
    arms = rng.integers(3, size=rows)

    def expected(x):
        wave = np.sin(2 * x[:, :1] + np.arange(3)) if not slope else slope * x[:, :1] * [-1, 0, 1]
        return wave + levels

    rewards = expected(contexts)[np.arange(rows), arms] + noise * rng.normal(size=rows)
    return contexts, arms, rewards, expected


def regret(learner, expected, dimension=6):
    new = np.random.default_rng(99).normal(size=(1000, dimension))
    rewards = expected(new)
    return (rewards.max(axis=1) - rewards[np.arange(1000), learner.recommend(new)]).mean()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
@pytest.mark.parametrize("noise", [0.1, 1.0, 2.0])
def test_noise_is_not_taken_for_a_rough_function(noise, seed):
    contexts, arms, rewards, expected = noisy_log(noise, seed, rows=600)
    learner = cg.Learner(3, seed=0).fit(contexts, arms, rewards)
    assert learner.ridge == pytest.approx(noise**2, rel=0.5)
    best_single = expected(contexts).mean(axis=0).argmax()
    single = (expected(contexts).max(axis=1) - expected(contexts)[:, best_single]).mean()
    assert regret(learner, expected) < 0.8 * single


def test_binary_rewards_at_few_distinct_contexts_are_all_counted():
    # Deduplicated, every cell would have one 0 and one 1, and nothing could be learnt.
    rng = np.random.default_rng(0)
    cells, arms = rng.integers(4, size=600), rng.integers(2, size=600)
    chance = np.array([[0.7, 0.3], [0.3, 0.7], [0.6, 0.2], [0.2, 0.6]])
    rewards = (rng.uniform(size=600) < chance[cells, arms]).astype(float)
    learner = cg.Learner(2, seed=0).fit(np.eye(4)[cells], arms, rewards)
    assert learner.recommend(np.eye(4)).tolist() == [0, 1, 0, 1]
    assert learner.tuning.looked_at == 600
    assert learner.ridge == pytest.approx(0.2, rel=0.3)


def test_without_any_influence_of_the_context_the_best_single_arm_is_deployed():
    chosen = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        contexts, arms = rng.normal(size=(300, 5)), rng.integers(3, size=300)
        rewards = np.array([0.0, 0.5, 1.0])[arms] + rng.normal(size=300)
        learner = cg.Learner(3, seed=0).fit(contexts, arms, rewards)
        chosen.append(learner.tuning.chosen)
        picks = learner.recommend(rng.normal(size=(500, 5)))
        assert (picks == 2).mean() > 0.9
        if chosen[-1] == "constant":
            assert (picks == 2).all()
            assert "best single arm" in learner.tuning.reason
        else:  # by chance it predicted better than averages; the card knows better
            assert any("no significant gain" in warning for warning in learner.score().warnings)
    assert "constant" in chosen


def test_a_linear_trend_is_found_under_noise():
    contexts, arms, rewards, expected = noisy_log(2.0, rows=500, slope=1.0)
    learner = cg.Learner(3, seed=0).fit(contexts, arms, rewards)
    best = {each.name: each.advantage for each in learner.tuning.candidates}
    assert best["linear"] > 20
    assert regret(learner, expected) < 0.1


@pytest.mark.parametrize("slope", [0.7, 2.0])
def test_the_report_states_the_rule_that_was_applied(slope):
    """Of the same log, the smooth models are 0.6 nats behind the linear one, or more than 2."""
    rng = np.random.default_rng(34)
    contexts, arms = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    rewards = np.where(arms == 0, slope, -slope) * contexts[:, 0] + rng.normal(size=300)
    tuning = cg.Learner(2, seed=0, sharing=0.0).fit(contexts, arms, rewards).tuning
    nats = {each.name: each.advantage for each in tuning.candidates}
    ahead = nats["linear"] - max(nats["gaussian"], nats["matern"])
    assert ahead > 0
    assert f"{ahead:.1f} nats more probable" in tuning.reason
    assert "chosen from 2 nats on" in tuning.reason
    assert (tuning.chosen == "linear") == (ahead > 2) == (slope > 1)


def test_what_predicts_worse_than_averages_is_not_deployed():
    """Over noisy logs of all kinds, a contextual model in use always predicts better."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        contexts, arms = rng.normal(size=(150, 4)), rng.integers(3, size=150)
        rewards = np.exp(1.5 * rng.normal(size=150)) * (rng.uniform(size=150) < 0.2)
        tuning = cg.Learner(3, seed=0).fit(contexts, arms, rewards).tuning
        if tuning.chosen != "constant":
            assert tuning.explained > 0


def test_bandwidths_stay_above_the_distance_to_neighbours():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 5))
    found, _ = learn([x], [rng.normal(size=200)], cg.Gaussian((1.0,) * 5))
    unit = np.asarray(cg.Gaussian.from_contexts(x).bandwidth)
    nearest = np.median(cKDTree(x / unit).query(x / unit, k=2)[0][:, 1])
    assert (np.array(found.kernel.kernel.bandwidth) / unit > 0.49 * nearest).all()


def test_the_report_says_what_was_tried_and_survives_a_file(tmp_path):
    contexts, arms, rewards, _ = noisy_log(0.5)
    learner = cg.Learner(3, seed=0)
    assert learner.tuning is None
    learner.fit(contexts, arms, rewards)
    report = learner.tuning
    assert [each.name for each in report.candidates][:4] == [
        "constant",
        "linear",
        "gaussian",
        "matern",
    ]
    assert report.rewards == report.looked_at == 400
    assert 0.3 < report.explained < 1
    assert report.reason in str(report)
    assert all(each.name in str(report) for each in report.candidates)
    learner.save(tmp_path / "l.cgap")
    assert cg.Learner.load(tmp_path / "l.cgap").tuning == report
    given = cg.Learner(3, kernel=cg.Gaussian(1.0)).fit(contexts, arms, rewards).tune()
    assert given.tuning.chosen == "given"


def test_large_logs_are_thinned_by_what_they_cost():
    assert _most_each([300, 200], 2 * 600**3) == 300
    assert _most_each([5000, 5000], 2 * 600**3) == 600
    assert _most_each([5000, 10], 2 * 600**3) == int(np.cbrt(2 * 600**3 - 1000))
    sizes = [len(y) for y in part_of(([np.arange(9000.0)[:, None]], [np.arange(9000.0)]))[1]]
    assert sizes == [int(np.cbrt(2 * 600**3))]


@pytest.mark.parametrize(
    ("kernel", "terms"),
    [
        (2.0 * cg.Gaussian(1.0), Terms(cg.Gaussian(1.0))),
        (
            2.0 * (cg.Gaussian(1.0) + 0.5 * cg.Linear()) + Constant(),
            Terms(cg.Gaussian(1.0), cg.Linear(), 0.5, 0.5),
        ),
        (cg.Linear() + 3.0 * Constant(), Terms(cg.Linear(), offset=3.0)),
        (5.0 * Constant(), Terms(Constant())),
        (cg.Linear() * cg.Gaussian(1.0), Terms(cg.Linear() * cg.Gaussian(1.0))),
    ],
)
def test_terms_of_a_kernel(kernel, terms):
    assert Terms.of(kernel) == terms
    x = np.linspace(0, 1, 4)[:, None]
    whole, part = kernel(x, x), terms.scaled(1.0)(x, x)
    np.testing.assert_allclose(whole, part * (whole[1, 1] / part[1, 1]))


@pytest.mark.parametrize("reward", [0.7, 0.1, 3.3, -2.2, 1 / 3, 1e6])
def test_equal_rewards_are_equal_whatever_their_average_is_rounded_to(reward, rng):
    for count in (24, 60):
        arms = (["a", "b", "c"] * count)[:count]
        learner = cg.Learner(["a", "b", "c"], seed=0)
        learner.fit(rng.uniform(size=(count, 2)), arms, np.full(count, reward))
        assert learner.tuning.chosen in ("constant", "gaussian")
        assert learner.decide(rng.uniform(size=2)).mean == pytest.approx(reward)
    card = learner.freeze().card
    assert card.explained == 0
    assert "no significant gain" in card.warnings[0]


@pytest.mark.parametrize(("placeholder", "share"), [(-9999.0, 0.002), (1e6, 0.1), (-1e9, 0.1)])
def test_placeholders_far_beyond_all_values_hide_nothing(placeholder, share, rng):
    contexts, arms = rng.uniform(size=(300, 2)), rng.integers(2, size=300)
    rewards = np.where(arms == 0, contexts[:, 0], 1 - contexts[:, 0]) + 0.05 * rng.normal(size=300)
    gone = rng.random(300) < share
    gone[0] = True
    contexts[gone, 0] = placeholder
    tested = rng.uniform(size=(500, 2))
    with pytest.warns(UserWarning, match="far beyond all others"):
        learner = cg.Learner(2).fit(contexts, arms, rewards)
    right = (tested[:, 0] > 0.5) == (learner.recommend(tested) == 0)
    assert right.mean() > 0.95


@pytest.mark.parametrize("unit", [1e-150, 1e-161, 1e-300])
def test_rewards_whose_squares_are_hardly_numbers_are_learnt_from(unit):
    x = np.random.default_rng(0).normal(size=(60, 3))
    learner = cg.Learner(2, seed=0).fit(x, np.arange(60) % 2, unit * x[:, 0])
    assert np.isfinite(learner.decide(x[0]).mean).all()


@pytest.mark.parametrize("growth", [0.5, None, "x", 1e308, True])
def test_a_file_with_an_impossible_growth_is_refused(growth, tmp_path):
    learner, path = cg.Learner(2, seed=0), tmp_path / "l.cgap"
    learner.state = replace(learner.state, growth=growth)
    learner.save(path)
    with pytest.raises(cg.FileFormatError, match="growth"):
        cg.Learner.load(path)


@pytest.mark.parametrize("level", [1e16, 1.7e18, 1e30])
def test_rewards_that_are_large_against_their_spread_can_be_learnt_from(level):
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(60, 2)), rng.integers(3, size=60)
    learner = cg.Learner(3, seed=0).fit(contexts, arms, level + np.sin(contexts[:, 0] + arms))
    for criterion in ("evidence", "loo"):
        learner.tune(criterion)
        assert np.isfinite(learner.decide(contexts[0]).mean).all()


def test_hundreds_of_arms_with_a_reward_each():
    rng = np.random.default_rng(0)
    learner = cg.Learner(400, seed=0)
    learner.fit(rng.normal(size=(400, 3)), np.arange(400), rng.integers(2, size=400))
    assert learner.tuning.rewards == 400
    assert len(learner.recommend(rng.normal(size=(5, 3)))) == 5
