"""Rewards with noise of their own: every model equals the dense one, and tuning sees the noise."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.models import ExactModel, JointModel, describe_model, restored_model
from contextgap.models.tuning.search import Search, Terms
from tests.models.test_conformance import (
    ARMS,
    KERNEL,
    NEW,
    RIDGE,
    GivenPointsModel,
    SharingHistoryModel,
    data,
)
from tests.oracle_model import DenseHistoryModel

NOISE = np.random.default_rng(5).exponential(0.3, 40) * (np.arange(40) % 3 > 0)
PAIRS = [
    (ExactModel, DenseHistoryModel),
    (JointModel, SharingHistoryModel),
    (GivenPointsModel, DenseHistoryModel),
]
every_pair = pytest.mark.parametrize(("kind", "oracle"), PAIRS, ids=lambda kind: kind.kind)


def filled(kind, one_by_one=False):
    model = kind(KERNEL, RIDGE, ARMS, 0.3)
    if one_by_one:
        for context, arm, reward, noise in zip(*data(), NOISE, strict=True):
            model.observe(context, int(arm), float(reward), float(noise))
    else:
        model.observe_many(*data(), NOISE)
    return model


def assert_same(one, two):
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-7)
    np.testing.assert_allclose(one.std, two.std, atol=1e-6)


@every_pair
@pytest.mark.parametrize("one_by_one", [False, True])
def test_posteriors_and_gains_equal_the_dense_ones(kind, oracle, one_by_one):
    model, truth = filled(kind, one_by_one), filled(oracle)
    assert_same(model.posterior(NEW, range(ARMS)), truth.posterior(NEW, range(ARMS)))
    if kind is ExactModel:
        gains = model.information_gain(range(ARMS)), truth.information_gain(range(ARMS))
        np.testing.assert_allclose(*gains)


@every_pair
def test_rewards_left_out_and_sums_equal_the_dense_ones(kind, oracle):
    model, truth = filled(kind), filled(oracle)
    places = np.arange(0, 40, 3)
    ones = np.ones(len(places), dtype=np.intp)
    found, wanted = (each.left_out(places, ones, range(ARMS)) for each in (model, truth))
    np.testing.assert_allclose(found.error, wanted.error, atol=1e-6)
    assert_same(found.posterior, wanted.posterior)
    mean, variance = model.cavities(places)
    rows, arms = np.arange(len(places)), truth.observed.arms[places]
    np.testing.assert_allclose(mean, wanted.posterior.mean[rows, arms], atol=1e-6)
    np.testing.assert_allclose(variance, wanted.posterior.std[rows, arms] ** 2, atol=1e-6)
    weights = np.random.default_rng(0).normal(size=(2, len(NEW), ARMS))
    found = [each.sums(NEW, range(ARMS), weights) for each in (model, truth)]
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize(("kind", "oracle"), PAIRS[:2], ids=lambda kind: kind.kind)
def test_histories_and_followers_equal_the_dense_ones(kind, oracle):
    model, truth = filled(kind), filled(oracle)
    found, wanted = (each.history(NEW, range(ARMS), 30) for each in (model, truth))
    for step in range(11):
        assert_same(found.at(step), wanted.at(step))
    follower = filled(kind).follow(NEW)
    assert_same(follower.posterior(range(ARMS)), truth.posterior(NEW, range(ARMS)))


def test_a_look_ahead_does_not_stand_for_a_noisier_reward():
    model = filled(ExactModel)
    follower, reference = model.follow(), np.arange(5)
    follower.look_ahead(NEW[0], range(ARMS), reference)
    model.observe(NEW[0], 1, 0.4, 2.5)
    ahead = follower.look_ahead(NEW[1], range(ARMS), reference)
    fresh = model.snapshot().follow().look_ahead(NEW[1], range(ARMS), reference)
    np.testing.assert_allclose(ahead.mean, fresh.mean, atol=1e-10)
    np.testing.assert_allclose(ahead.move, fresh.move, atol=1e-10)


@every_pair
def test_files_and_rewinding_keep_noise(kind, oracle):
    model = filled(kind)
    arrays = {name: values.copy() for name, values in model.arrays().items()}
    loaded = restored_model(describe_model(model), arrays, KERNEL, RIDGE, ARMS, 0.3)
    for each in (model, loaded):
        each.observe(NEW[0], 1, 0.4, 0.7)
    before, after = (each.posterior(NEW, range(ARMS)) for each in (model, loaded))
    np.testing.assert_array_equal(before.mean, after.mean)
    gains = before.information_gain, after.information_gain
    np.testing.assert_allclose(*gains, rtol=1e-15)
    mark = model.mark()
    model.observe(NEW[1], 1, 0.4, 0.9)
    model.rewind(mark)
    assert model.observed.noise[-1] == 0.7
    np.testing.assert_array_equal(model.posterior(NEW, range(ARMS)).mean, before.mean)


def test_noise_of_a_file_must_make_sense():
    model = filled(ExactModel)
    for wrong in (-NOISE - 0.1, np.full(50, 0.1), np.full(3, np.nan)):
        arrays = {**model.arrays(), "noise": wrong}
        with pytest.raises(ValueError, match=r"noise|floats"):
            restored_model(describe_model(model), arrays, KERNEL, RIDGE, ARMS, 0.3)


@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_the_slope_of_the_loss_is_that_of_finite_differences(criterion):
    contexts, arms, rewards = data()
    split = [arms == arm for arm in range(ARMS)]
    own = [[values[rows] for rows in split] for values in (contexts, rewards, NOISE)]
    search = Search(Terms.of(KERNEL), *own[:2], criterion, noise=own[2])
    theta = search.start(0.3, 0.1)
    _, slope = search.loss_and_slope(theta)
    step = 1e-5 * np.eye(len(theta))
    numeric = [(search.loss(theta + each) - search.loss(theta - each)) / 2e-5 for each in step]
    np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-5)


def test_known_errors_are_no_part_of_the_noise_that_is_learnt():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (300, 1))
    error = np.where(rng.uniform(size=300) < 0.5, 0.05, 1.0)
    y = np.sin(3 * x[:, 0]) + rng.normal(size=300) * np.hypot(0.1, error)
    told, untold = (cg.Learner(1, seed=0).fit(x, [0] * 300, y, noise=each) for each in (error, 0.0))
    grid = np.linspace(-1, 1, 50)[:, None]
    miss = [
        np.abs(each.state.model.posterior(grid, [0]).mean[:, 0] - np.sin(3 * grid[:, 0])).mean()
        for each in (told, untold)
    ]
    assert 0.05 < np.sqrt(told.ridge) < 0.2 < np.sqrt(untold.ridge)
    assert miss[0] < 0.6 * miss[1]
