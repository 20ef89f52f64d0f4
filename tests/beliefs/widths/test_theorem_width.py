"""The width with a promise: its formula, its arguments, its place in learner and files."""

import math

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import TheoremWidth
from contextgap.models import ExactModel, Posterior, TrackedModel
from contextgap.studies.theory import confidence, scale
from tests.oracle_model import DenseModel

NOISE, NORM, FAILURE, RIDGE = 0.3, 2.0, 0.05, 0.2


def data(rng, size=40, n_arms=3):
    return rng.uniform(size=(size, 2)), rng.integers(n_arms, size=size), rng.normal(size=size)


def filled(rng):
    model = ExactModel(cg.Gaussian(0.5), RIDGE, 3)
    model.observe_many(*data(rng))
    return model


@pytest.mark.parametrize("tight", [False, True])
def test_is_the_theorem_with_the_arms_own_determinant(rng, tight):
    contexts, arms, rewards = data(rng)
    model = ExactModel(cg.Gaussian(0.5), RIDGE, 3)
    model.observe_many(contexts, arms, rewards)
    asked = rng.uniform(size=(5, 2))
    posterior = model.posterior(asked, range(3))
    half = TheoremWidth(NOISE, NORM, FAILURE, tight).half_width(posterior)
    for arm in range(3):
        gram = cg.Gaussian(0.5)(contexts[arms == arm], contexts[arms == arm])
        _, log_det = np.linalg.slogdet(np.eye(len(gram)) + gram / RIDGE)
        spread = NOISE * math.sqrt(2 * math.log(3 / FAILURE) + log_det) / math.sqrt(RIDGE)
        reach = math.sqrt(NORM**2 + spread**2) if tight else NORM + spread
        np.testing.assert_allclose(half[:, arm], reach * posterior.std[:, arm])


def test_every_model_gives_the_same_widths(rng):
    points = rng.uniform(size=(30, 2))
    kernel, width = cg.Matern(0.6), TheoremWidth(NOISE, NORM, FAILURE)
    tracked = TrackedModel(kernel(points[:20], points), kernel.diagonal(points), RIDGE, 3)
    exact, dense = (kind(kernel, RIDGE, 3) for kind in (ExactModel, DenseModel))
    for step in range(20):
        arm, reward = int(rng.integers(3)), float(rng.normal())
        tracked.observe(arm, reward)
        for model in (exact, dense):
            model.observe(points[step], arm, reward)
    expected = width.half_width(dense.posterior(points[20:], range(3)))
    np.testing.assert_allclose(width.half_width(exact.posterior(points[20:], range(3))), expected)
    np.testing.assert_allclose(width.half_width(tracked.posterior_from(20)), expected)
    one = width.half_width(exact.posterior(points[20], range(3)))
    np.testing.assert_allclose(one, expected[0])
    for arm, path in enumerate(exact.history(points[20:], range(3), 0).states):
        np.testing.assert_allclose(width.half_width(path)[-1], expected[:, arm])


def test_arms_not_asked_about_count_too(rng):
    model = filled(rng)
    width = TheoremWidth(NOISE, NORM, FAILURE)
    contexts = rng.uniform(size=(4, 2))
    every = width.half_width(model.posterior(contexts, range(3)))
    np.testing.assert_array_equal(
        width.half_width(model.posterior(contexts, [0, 2])), every[:, [0, 2]]
    )
    model.add_arm()
    assert (width.half_width(model.posterior(contexts, [0])) > every[:, [0]]).all()


def test_tight_is_narrower_by_at_most_the_root_of_two(rng):
    posterior = filled(rng).posterior(rng.uniform(size=(50, 2)), range(3))
    for noise, norm in ((0.01, 3.0), (0.3, 1.0), (2.0, 0.1)):
        wide, narrow = (
            TheoremWidth(noise, norm, FAILURE, tight).half_width(posterior)
            for tight in (False, True)
        )
        assert (narrow < wide).all()
        assert (narrow >= wide / math.sqrt(2) - 1e-12).all()


def test_is_never_wider_than_the_fixed_horizon(rng):
    posterior = filled(rng).posterior(rng.uniform(size=(50, 2)), range(3))
    beta = confidence(FAILURE / 3)
    alpha = scale(beta, NOISE, NORM, RIDGE, posterior.information_gain)
    fixed = alpha * posterior.std / math.sqrt(RIDGE)
    assert (TheoremWidth(NOISE, NORM, FAILURE).half_width(posterior) <= fixed).all()


def test_without_noise_the_norm_alone_counts():
    posterior = Posterior(np.zeros(2), np.array([0.5, 1.0]), np.ones(2), 0.1, 2)
    for tight in (False, True):
        half = TheoremWidth(0.0, NORM, FAILURE, tight).half_width(posterior)
        np.testing.assert_allclose(half, [1.0, 2.0])


@pytest.mark.parametrize("tight", [False, True])
def test_noiseless_functions_never_leave_their_intervals(rng, tight):
    """With no noise the bound is a fact, whatever the ridge: no run may break it."""
    kernel, width = cg.Gaussian(0.4), TheoremWidth(0.0, 1.5, FAILURE, tight)
    centres, weights = rng.uniform(size=(8, 2)), rng.normal(size=8)
    weights *= 1.5 / np.sqrt(weights @ kernel(centres, centres) @ weights)
    contexts = rng.uniform(size=(80, 2))
    truth = kernel(contexts, centres) @ weights
    model = ExactModel(kernel, 0.01, 1)
    for context, reward in zip(contexts, truth, strict=True):
        posterior = model.posterior(contexts, [0])
        error = np.abs(posterior.mean[:, 0] - truth)
        assert (error <= width.half_width(posterior)[:, 0] + 1e-9).all()
        model.observe(context, 0, float(reward))


def test_the_narrower_bound_fails_nearly_as_often_as_it_may(rng):
    """One number, observed with noise again and again: the linear kernel at the context 1.

    With n rewards std² = ridge/(ridge + n) and the determinant is 1 + n/ridge. A bound narrower
    than this one could not keep its promise here.
    """
    runs, norm, noise, failure, ridge = 2000, 0.1, 0.5, 0.1, 10.0
    truth = rng.choice([-norm, norm], size=runs)
    total, failed = np.zeros(runs), {tight: np.zeros(runs, dtype=bool) for tight in (False, True)}
    for n in range(1, 801):
        total += truth + noise * rng.standard_normal(runs)
        mean = total / (n + ridge)
        std, gain = (
            np.full(1, math.sqrt(ridge / (n + ridge))),
            np.full(1, math.log1p(n / ridge) / 2),
        )
        for tight, ever in failed.items():
            width = TheoremWidth(noise, norm, failure, tight)
            ever |= np.abs(mean - truth) > width.half_width(Posterior(mean, std, gain, ridge, 1))
    assert failed[True].mean() <= failure
    assert failed[True].mean() > failure / 2
    assert failed[False].mean() < failed[True].mean()


def test_promises_its_probability_in_the_certificate(rng):
    contexts, arms, rewards = data(rng)
    width = TheoremWidth(NOISE, NORM, FAILURE)
    learner = cg.Learner(3, kernel=cg.Gaussian(0.5), ridge=RIDGE, width=width)
    policy = learner.fit(contexts, arms, rewards).freeze()
    certificate = policy.certificate(contexts)
    assert certificate.probability == pytest.approx(0.95)
    assert (certificate.bound >= 0).all()


@pytest.mark.parametrize("method", ["contextual-gap", "contextual-gap-history"])
def test_survives_a_file(rng, tmp_path, method):
    contexts, arms, rewards = data(rng)
    width = TheoremWidth(NOISE, NORM, FAILURE, tight=True)
    learner = cg.Learner(3, kernel=cg.Gaussian(0.5), ridge=RIDGE, width=width, method=method)
    policy = learner.fit(contexts, arms, rewards).freeze()
    policy.save(tmp_path / "p.cgap")
    loaded = cg.Policy.load(tmp_path / "p.cgap")
    assert loaded.width == width
    np.testing.assert_array_equal(
        loaded.certificate(contexts).bound, policy.certificate(contexts).bound
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"noise": -0.1}, ValueError, "noise must be a standard deviation of at least 0, got -0.1"),
        ({"noise": "loud"}, TypeError, "noise must be"),
        ({"norm": 0.0}, ValueError, "norm must be positive, got 0.0"),
        ({"norm": math.inf}, ValueError, "norm must be a positive number"),
        ({"failure_probability": 0.0}, ValueError, "failure_probability must be positive"),
        ({"failure_probability": 1.0}, ValueError, "failure_probability must be below 1, got 1.0"),
        ({"failure_probability": None}, TypeError, "failure_probability must be"),
        ({"tight": 1}, TypeError, "tight must be True or False, got 1"),
    ],
)
def test_bad_arguments_are_named(changes, error, message):
    good = {"noise": 0.1, "norm": 1.0, "failure_probability": 0.1}
    with pytest.raises(error, match=message):
        TheoremWidth(**{**good, **changes})


def test_a_policy_promises_only_with_a_prior_mean_fixed_beforehand(tmp_path):
    contexts = np.random.default_rng(0).uniform(size=(20, 1))
    promised = {}
    for prior_mean in (0.0, "auto"):
        width = TheoremWidth(0.1, 1.0, 0.05)
        learner = cg.Learner(2, kernel=cg.Gaussian(1.0), width=width, prior_mean=prior_mean)
        policy = learner.fit(contexts, [0, 1] * 10, np.sin(contexts[:, 0])).freeze()
        policy.save(tmp_path / "p.cgap")
        loaded = cg.Policy.load(tmp_path / "p.cgap")
        certificates = [p.certificate(contexts) for p in (policy, loaded)]
        np.testing.assert_array_equal(certificates[0].bound, certificates[1].bound)
        assert certificates[0].probability == certificates[1].probability
        promised[prior_mean] = certificates[0].probability
    assert promised == {0.0: 0.95, "auto": None}
