"""Scales learnt from rewards: criteria against other libraries and brute force, and the loop."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import contextgap as cg
from contextgap.kernels import Constant
from contextgap.scales import learn_scales
from contextgap.scales.criteria import evidence, leave_one_out
from contextgap.scales.search import _Search
from contextgap.scales.shape import Shape


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
    cg.Gaussian(1.0) * cg.Linear(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_slopes_are_those_of_finite_differences(kernel, criterion):
    search = _Search(Shape.of(kernel), *data(), criterion)
    start = search._start(-0.5)
    theta = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
    slope = search.loss_and_slope(theta)[1]
    numeric = approx_fprime(theta, lambda x: search.loss_and_slope(x)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, atol=1e-4 * np.abs(slope).max())


def covariance(x, bandwidth, ratio):
    return cg.Gaussian(bandwidth)(x, x) + ratio * np.eye(len(x))


def test_the_evidence_is_scikit_learns():
    (x,), (y,) = data(sizes=(25,), dimension=1, units=(1.0,))
    score = evidence([covariance(x, 0.7, 0.1)], [y], 1.0, 0.0)
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
    score = leave_one_out(matrices, rewards, 1.0, 0.0)

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
def test_known_scales_are_found_again(criterion, make):
    rng = np.random.default_rng(3)
    truth, noise = 9.0 * make((0.5, 40.0)), 0.2
    contexts = [rng.uniform(-1, 1, (150, 2)) * [1.0, 30.0] for _ in range(4)]
    rewards = []
    for x in contexts:
        draw = np.linalg.cholesky(truth(x, x) + 1e-9 * np.eye(len(x))) @ rng.normal(size=len(x))
        rewards.append(100 + draw + noise * rng.normal(size=len(x)))
    found = learn_scales(make((1.0, 1.0)), contexts, rewards, criterion)
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
    plain, picks = explored()
    units = np.array([1e6, 1e-5])
    other, other_picks = explored(units, factor=1e4, shift=3e5)
    assert np.mean(np.array(picks) == other_picks) > 0.95
    agreement = plain.recommend(contexts) == other.recommend(contexts * units)
    assert agreement.mean() > 0.98
    assert other.prior_mean == pytest.approx(3e5, rel=0.1)
    np.testing.assert_allclose(
        np.array(other.kernel.left.kernel.bandwidth) / plain.kernel.left.kernel.bandwidth,
        units,
        rtol=0.2,
    )


def test_scales_are_learnt_whenever_the_number_of_rewards_has_doubled():
    learner = cg.Learner(2, seed=0)
    changes, kernel = [], learner.kernel
    for n, x in enumerate(np.random.default_rng(0).uniform(0, 9, (100, 1)), 1):
        learner.tell(x, n % 2, np.sin(x[0]))
        if learner.kernel != kernel:
            changes.append(n)
            kernel = learner.kernel
    assert changes == [10, 20, 40, 80]


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
    counts, before = learner.counts, learner._model
    assert learner.tune() is learner
    assert learner.counts == counts
    assert learner.pending == 2
    np.testing.assert_array_equal(learner._model.rewards, before.rewards)
    np.testing.assert_array_equal(learner._model.sequence, before.sequence)
    learner.tell([[0.1, 0.2], [0.3, 0.4]], waiting, [0.0, 0.0])
    assert learner.pending == 0
    fresh = cg.Learner(
        list("abc"), kernel=learner.kernel, ridge=learner.ridge, prior_mean=learner.prior_mean
    )
    fresh.fit(
        learner._model.contexts, ["abc"[i] for i in learner._model.sequence], learner._model.rewards
    )
    np.testing.assert_allclose(fresh.decide([0.5, 0.5]).mean, learner.decide([0.5, 0.5]).mean)


def test_learning_goes_on_from_a_file_bit_for_bit(tmp_path):
    for steps in (4, 35):
        learner, _ = explored(steps=steps)
        learner.save(tmp_path / "l.cgap")
        twin = cg.Learner.load(tmp_path / "l.cgap")
        for x in np.random.default_rng(4).uniform(-1, 1, (60, 2)):
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
    once = learn_scales(cg.Gaussian((1.0,)), [x], [y])
    often = learn_scales(cg.Gaussian((1.0,)), [np.vstack([x, x[again]])], [np.append(y, y[again])])
    assert often.ridge == pytest.approx(once.ridge)
    assert often.ridge == pytest.approx(0.09, rel=0.5)


def test_few_rows_in_bulk_are_learnt_from_as_well():
    contexts = np.array([[0.0], [1000.0], [2000.0], [3000.0]])
    learner = cg.Learner(["a", "b"]).fit(contexts, ["a", "b", "a", "b"], [1.0, 3.0, 1.1, 3.1])
    assert learner.kernel != cg.Gaussian(1.0)
    assert learner.recommend(contexts).tolist() == ["b"] * 4


@pytest.mark.parametrize(
    ("truth", "kind"), [(cg.Gaussian(0.6), "Gaussian"), (cg.Matern(0.6, 1.5), "Matern")]
)
def test_smooth_or_rough_is_told_from_the_rewards(truth, kind):
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 6, (120, 1))
    root = np.linalg.cholesky(truth(x, x) + 1e-8 * np.eye(120))
    arms = np.arange(120) % 2
    draws = (root @ rng.normal(size=(120, 2)))[np.arange(120), arms]
    learner = cg.Learner(2).fit(x, arms, draws)
    assert type(learner.kernel.left.kernel).__name__ == kind


def test_rewards_as_large_as_are_allowed():
    learner = cg.Learner(2)
    for i in range(45):
        learner.tell([1e40 * i], i % 2, 1e45 * np.sin(i))
    assert np.isfinite(learner.decide([1e41]).std).all()
