"""The exact model against the dense one, scikit-learn's, and what posteriors must satisfy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import contextgap as cg
from contextgap.models import ExactModel
from tests.oracle_model import DenseModel

KERNELS = [
    cg.Gaussian(0.8),
    cg.Gaussian((0.5, 1.0, 2.0)),
    cg.Matern(1.0, 1.5),
    cg.Linear() + cg.Gaussian(1.0),
    0.5 * cg.Matern(2.0) * cg.Polynomial(2, 1.0),
]


def data(rng, n=60, n_arms=3, dimension=3):
    return (
        rng.normal(size=(n, dimension)),
        rng.integers(n_arms, size=n),
        rng.normal(size=n) + 2.0,
    )


def models(kernel, ridge=0.1, n_arms=3, prior_mean=0.0):
    return (cls(kernel, ridge, n_arms, prior_mean) for cls in (ExactModel, DenseModel))


def assert_same(exact, dense, rtol=1e-8):
    np.testing.assert_allclose(exact.mean, dense.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(exact.std, dense.std, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(exact.information_gain, dense.information_gain, rtol=rtol)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("prior_mean", [0.0, 2.0, "auto"])
def test_equals_the_dense_model(kernel, prior_mean, rng):
    exact, dense = models(kernel, prior_mean=prior_mean)
    queries = rng.normal(size=(20, 3))
    for context, arm, reward in zip(*data(rng), strict=True):
        exact.observe(context, int(arm), float(reward))
        dense.observe(context, int(arm), float(reward))
    table = dense.posterior(queries, range(3))
    assert_same(exact.posterior(queries, range(3)), table)
    for row, query in enumerate(queries[:5]):
        one = exact.posterior(query, range(3))
        np.testing.assert_allclose(one.mean, table.mean[row], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(one.std, table.std[row], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("prior_mean", [0.0, 5.0])
def test_equals_scikit_learn(prior_mean, rng):
    contexts, _, rewards = data(rng, n=300)
    model = ExactModel(cg.Gaussian(1.3), 0.2, 1, prior_mean)
    for context, reward in zip(contexts, rewards, strict=True):
        model.observe(context, 0, float(reward))
    theirs = GaussianProcessRegressor(RBF(1.3), alpha=0.2, optimizer=None)
    theirs.fit(contexts, rewards - prior_mean)
    queries = rng.normal(size=(50, 3))
    mean, std = theirs.predict(queries, return_std=True)
    ours = model.posterior(queries, [0])
    np.testing.assert_allclose(ours.mean[:, 0], mean + prior_mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.std[:, 0], std, rtol=1e-8)


@pytest.mark.parametrize("first", [0, 1, 40, 200])
def test_bulk_loading_equals_one_at_a_time(first, rng):
    contexts, arms, rewards = data(rng, n=400)
    one, bulk = (ExactModel(cg.Gaussian(1.0), 0.05, 3, "auto") for _ in range(2))
    for row in zip(contexts, arms, rewards, strict=True):
        one.observe(row[0], int(row[1]), float(row[2]))
    bulk.observe_many(contexts[:first], arms[:first], rewards[:first])
    bulk.observe_many(contexts[first:], arms[first:], rewards[first:])
    queries = rng.normal(size=(30, 3))
    assert_same(bulk.posterior(queries, range(3)), one.posterior(queries, range(3)))
    np.testing.assert_array_equal(bulk.observed.arms, one.observed.arms)


@pytest.mark.parametrize("load", ["one at a time", "bulk"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("kernel", [cg.Gaussian(1.0), cg.Linear(), cg.Periodic(1.0, 1.0)], ids=str)
def test_stays_sane_with_duplicates_and_hardly_any_ridge(load, noise, kernel, rng):
    contexts = np.repeat(rng.normal(size=(1, 2)), 200, axis=0)
    rewards = 1.0 + noise * rng.normal(size=200)
    model = ExactModel(kernel, 1e-10, 1)
    if load == "bulk":
        model.observe_many(contexts, np.zeros(200, dtype=np.intp), rewards)
    else:
        for context, reward in zip(contexts, rewards, strict=True):
            model.observe(context, 0, float(reward))
    queries = np.vstack([contexts[:1], rng.normal(size=(20, 2))])
    posterior = model.posterior(queries, [0])
    width = cg.PosteriorWidth(1.0).half_width(posterior)
    assert np.isfinite(posterior.mean).all()
    assert np.isfinite(posterior.std).all()
    assert (posterior.std >= 0).all()
    assert (posterior.mean - width <= posterior.mean + width).all()
    assert posterior.mean[0, 0] == pytest.approx(rewards.mean(), abs=1e-3)
    assert posterior.std[0, 0] < 1e-4


@pytest.mark.parametrize("ridge", [1e-15, 1e-30])
def test_a_ridge_below_rounding_does_no_harm(ridge, rng):
    contexts = 1e-9 * rng.normal(size=(300, 2))
    one, bulk = (ExactModel(cg.Gaussian(1.0), ridge, 1) for _ in range(2))
    rewards = rng.normal(size=300)
    for context, reward in zip(contexts, rewards, strict=True):
        one.observe(context, 0, float(reward))
    bulk.observe_many(contexts, np.zeros(300, dtype=np.intp), rewards)
    queries = np.vstack([contexts[:3], rng.normal(size=(5, 2))])
    for model in (one, bulk):
        posterior = model.posterior(queries, [0])
        assert np.isfinite(posterior.mean).all()
        assert np.abs(posterior.mean[:3]).max() < 10
        assert (posterior.std >= 0).all()
        assert (posterior.std[:3] < 1e-5).all()


contexts_and_rewards = st.lists(
    st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(-10, 10)), min_size=1, max_size=25
)


@given(contexts_and_rewards, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_order_of_arrival_does_not_matter(rows, random):
    shuffled = rows.copy()
    random.shuffle(shuffled)
    first, second = (ExactModel(cg.Gaussian(1.0), 0.1, 1) for _ in range(2))
    for model, sequence in ((first, rows), (second, shuffled)):
        for x, y, reward in sequence:
            model.observe(np.array([x, y]), 0, reward)
    queries = np.array([[0.0, 0.0], [1.0, -2.0]])
    assert_same(first.posterior(queries, [0]), second.posterior(queries, [0]), rtol=1e-7)


@given(contexts_and_rewards)
@settings(max_examples=40, deadline=None)
def test_variance_never_grows_and_information_never_shrinks(rows):
    model = ExactModel(cg.Gaussian(1.0), 0.1, 1)
    queries = np.array([[0.0, 0.0], [1.0, -2.0]])
    before = model.posterior(queries, [0])
    for x, y, reward in rows:
        model.observe(np.array([x, y]), 0, reward)
        after = model.posterior(queries, [0])
        assert (after.std <= before.std + 1e-12).all()
        assert after.information_gain >= before.information_gain - 1e-12
        before = after


def test_shifting_rewards_and_prior_mean_shifts_the_mean(rng):
    contexts, arms, rewards = data(rng)
    base, moved = (ExactModel(cg.Gaussian(1.0), 0.1, 3, prior) for prior in (1.0, 1001.0))
    base.observe_many(contexts, arms, rewards)
    moved.observe_many(contexts, arms, rewards + 1000)
    queries = rng.normal(size=(10, 3))
    expected = base.posterior(queries, range(3)).mean + 1000
    np.testing.assert_allclose(moved.posterior(queries, range(3)).mean, expected, rtol=1e-12)


def test_an_assumed_observation_shrinks_the_variance_and_leaves_the_mean(rng):
    contexts, arms, rewards = data(rng)
    model, told = (ExactModel(cg.Gaussian(1.0), 0.1, 3, 2.0) for _ in range(2))
    for each in (model, told):
        each.observe_many(contexts, arms, rewards)
    query, assumed = rng.normal(size=3), rng.normal(size=(2, 3))
    before = model.posterior(query, range(3))
    for context in assumed:
        told.observe(context, 1, float(told.posterior(context, range(3)).mean[1]))
    during = model.posterior(query, range(3), {1: list(assumed)})
    as_if_told = told.posterior(query, range(3))
    np.testing.assert_allclose(during.mean, before.mean, rtol=1e-12)
    np.testing.assert_allclose(during.mean, as_if_told.mean, rtol=1e-9)
    np.testing.assert_allclose(during.std, as_if_told.std, rtol=1e-9)
    after = model.posterior(query, range(3))
    np.testing.assert_array_equal(after.std, before.std)
    np.testing.assert_array_equal(after.mean, before.mean)


@pytest.mark.parametrize("since", [0, 17, 60])
def test_the_history_holds_every_earlier_posterior(since, rng):
    contexts, arms, rewards = data(rng)
    queries = rng.normal(size=(4, 3))
    whole = ExactModel(cg.Gaussian(1.0), 0.1, 3, 1.0)
    whole.observe_many(contexts, arms, rewards)
    paths, steps, _ = whole.history(queries, range(3), since)
    np.testing.assert_array_equal(np.diff(steps, axis=0), np.eye(3)[arms[since:]])
    growing = DenseModel(cg.Gaussian(1.0), 0.1, 3, 1.0)
    growing.observe_many(contexts[:since], arms[:since], rewards[:since])
    states = [0, 0, 0]
    for step in range(since, 61):
        expected = growing.posterior(queries, range(3))
        for arm, path in enumerate(paths):
            row = states[arm]
            np.testing.assert_allclose(path.mean[row], expected.mean[:, arm], rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(path.std[row], expected.std[:, arm], rtol=1e-8)
            gain = path.information_gain[row, 0]
            assert gain == pytest.approx(expected.information_gain[arm], abs=1e-9)
        if step < 60:
            growing.observe(contexts[step], int(arms[step]), float(rewards[step]))
            states[arms[step]] += 1
    assert [len(path.mean) for path in paths] == [n + 1 for n in states]
