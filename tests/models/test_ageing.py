"""Rewards that drift: a Gaussian process over contexts and time, solved densely, is the oracle."""

import shutil

import numpy as np
import pytest

import contextgap as cg
from contextgap.export.c import CompiledPolicy
from contextgap.models import Ageing, AgeingModel, ExactModel, describe_model, restored_model
from contextgap.models.tuning.descent import finished
from contextgap.models.tuning.search import Search, Terms

KERNEL, RIDGE, ARMS, HALF_LIFE = 0.8 * cg.Gaussian((0.7, 1.1)) + 0.1 * cg.Linear(), 0.05, 3, 12.0
NEW = np.random.default_rng(9).uniform(-1.2, 1.2, (15, 2))
EVERY, NOISE = range(ARMS), 0.002 * np.arange(300)


def data(count=60, seed=0):
    rng = np.random.default_rng(seed)
    contexts, arms = rng.uniform(-1, 1, (300, 2)), rng.integers(ARMS, size=300)
    rewards = np.sin(contexts[:, 0] * (1 + arms)) + 0.1 * rng.normal(size=300)
    return contexts[:count], arms[:count], rewards[:count]


def filled(count=60, half_life=HALF_LIFE, prior_mean=0.3):
    model = AgeingModel(KERNEL, RIDGE, ARMS, prior_mean, half_life=half_life)
    model.observe_many(*data(count), noise=NOISE[:count])
    return model


def dense(points, count=60, known=None, half_life=HALF_LIFE, pending=None, now=None):
    """Mean and covariance at points now, from the first ``known`` of ``count`` observations."""
    contexts, arms, rewards = (each[: known or count] for each in data(count))
    times, noise = np.arange(len(arms)), NOISE[: len(arms)]
    now = count if now is None else now
    means, covariances = [], []
    for arm in EVERY:
        own = arms == arm
        x, t, n = contexts[own], times[own], noise[own]
        y = rewards[own] - 0.3
        late = (pending or {}).get(arm, [])
        if len(late):
            x, t = np.vstack([x, late]), np.append(t, np.full(len(late), now))
            n, y = np.append(n, np.zeros(len(late))), np.append(y, np.zeros(len(late)))
        cross = KERNEL(points, x) * 0.5 ** ((now - t) / half_life)
        gram = KERNEL(x, x) * 0.5 ** (np.abs(t[:, None] - t) / half_life)
        whole = np.linalg.inv(gram + np.diag(RIDGE + n))
        covariances.append(KERNEL(points, points) - cross @ whole @ cross.T)
        told = slice(0, own.sum())
        alone = np.linalg.inv((gram + np.diag(RIDGE + n))[told, told])
        means.append(0.3 + cross[:, told] @ alone @ y[told])
    return np.stack(means, 1), np.stack(covariances, 2)


def check(posterior, oracle):
    mean, covariance = oracle
    std = np.sqrt(np.maximum(np.einsum("iij->ij", covariance), 0))
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(posterior.std, std, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("half_life", [0.7, HALF_LIFE, 1e6])
def test_the_posterior_is_that_of_a_process_over_contexts_and_time(half_life):
    check(filled(half_life=half_life).posterior(NEW, EVERY), dense(NEW, half_life=half_life))


def test_one_by_one_is_all_at_once_and_in_parts():
    whole, single, parts = filled(), filled(1), filled(1)
    contexts, arms, rewards = data()
    for i in range(1, 60):
        single.posterior(contexts[i], EVERY)  # what is kept of an ask is used by the next reward
        single.observe(contexts[i], int(arms[i]), float(rewards[i]), float(NOISE[i]))
    for some in (slice(1, 20), slice(20, 60)):
        parts.observe_many(*(each[some] for each in data()), noise=NOISE[some])
    for model in (single, parts):
        np.testing.assert_allclose(
            model.posterior(NEW, EVERY).mean, whole.posterior(NEW, EVERY).mean, rtol=1e-9
        )
    for row, context in enumerate(NEW):
        one = whole.posterior(context, EVERY)
        np.testing.assert_allclose(one.std, whole.posterior(NEW, EVERY).std[row], rtol=1e-9)


def test_what_is_far_back_is_forgotten_and_no_ageing_is_the_exact_model():
    short = filled(half_life=0.001)
    np.testing.assert_allclose(short.posterior(NEW, EVERY).mean, 0.3)
    prior = np.sqrt(KERNEL.diagonal(NEW))
    np.testing.assert_allclose(short.posterior(NEW, EVERY).std, np.tile(prior, (ARMS, 1)).T)
    exact = ExactModel(KERNEL, RIDGE, ARMS, 0.3)
    exact.observe_many(*data(), noise=NOISE[:60])
    long = filled(half_life=1e12).posterior(NEW, EVERY)
    np.testing.assert_allclose(long.mean, exact.posterior(NEW, EVERY).mean, rtol=1e-7)


def test_rewards_of_another_arm_let_time_pass_and_nothing_else():
    model = filled(30)
    for _ in range(5):
        model.observe(NEW[0], 2, 0.4)
    mean, covariance = dense(NEW, 30, now=35)
    posterior = model.posterior(NEW, [0, 1])
    np.testing.assert_allclose(posterior.mean, mean[:, :2], rtol=1e-8)
    np.testing.assert_allclose(posterior.std**2, np.einsum("iij->ij", covariance)[:, :2], rtol=1e-6)


def test_pending_picks_are_of_now_whenever_they_were_made():
    model, context = filled(30), NEW[3]
    pending = {1: [context]}
    check(model.posterior(NEW, EVERY, pending), dense(NEW, 30, pending=pending))
    contexts, arms, rewards = data(31)
    arm = int(arms[30])
    model.posterior(context, EVERY, pending)
    model.observe(contexts[30], arm, float(rewards[30]), 0.1)
    fresh = filled(30)
    fresh.observe(contexts[30], arm, float(rewards[30]), 0.1)
    after, anew = (each.posterior(NEW, EVERY, pending) for each in (model, fresh))
    np.testing.assert_array_equal(after.std, anew.std)
    moves = model.moves(NEW[:4], 1, NEW, pending)
    np.testing.assert_allclose(moves, fresh.moves(NEW[:4], 1, NEW, pending))


def test_moves_and_look_aheads_are_covariances_over_deviations():
    model, (_, covariance) = filled(), dense(NEW)
    for arm in EVERY:
        here = covariance[:, :, arm]
        expected = here[:, :4] / np.sqrt(np.diag(here)[:4] + RIDGE)
        np.testing.assert_allclose(model.moves(NEW[:4], arm, NEW), expected, rtol=1e-6, atol=1e-9)
        ahead = model.follow().look_ahead(NEW[0], EVERY, NEW)
        np.testing.assert_allclose(ahead.move[:-1, arm], expected[:, 0], rtol=1e-6, atol=1e-9)


def test_history_is_what_fewer_observations_say_about_now():
    history = filled().history(NEW, EVERY, 7)
    for step in (0, 12, 53):
        check(history.at(step), dense(NEW, known=7 + step))


def test_predictors_know_the_mean_and_bound_the_deviation():
    model = AgeingModel(KERNEL, RIDGE, 1, 0.3, half_life=200.0)
    contexts, arms, rewards = data(300)
    model.observe_many(contexts, np.zeros_like(arms), rewards)
    predictor, posterior = model.predictor([0]), model.posterior(NEW, [0])
    bounds = predictor.bounds(NEW)
    np.testing.assert_allclose(predictor.means(NEW)[0], posterior.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(bounds.mean, posterior.mean, rtol=1e-8, atol=1e-9)
    assert (bounds.least <= posterior.std).all()
    assert (posterior.std <= bounds.most).all()


def test_sums_have_the_variance_of_the_dense_covariance():
    weights = np.random.default_rng(1).normal(size=(2, len(NEW), ARMS))
    model, (_, covariance) = filled(), dense(NEW)
    variance, moves = model.sums(NEW, EVERY, weights)
    np.testing.assert_allclose(
        variance, np.einsum("kia,ija,kja->k", weights, covariance, weights), rtol=1e-7
    )
    shifted = AgeingModel(KERNEL, RIDGE, ARMS, 0.3, half_life=HALF_LIFE)
    contexts, arms, rewards = data()
    rewards[17] += 1.0
    shifted.observe_many(contexts, arms, rewards, noise=NOISE[:60])
    change = shifted.posterior(NEW, EVERY).mean - model.posterior(NEW, EVERY).mean
    np.testing.assert_allclose(moves[:, 17], np.einsum("kia,ia->k", weights, change), rtol=1e-6)


def test_a_visit_left_out_is_predicted_as_of_its_own_time():
    contexts, arms, rewards = data()
    model, places = filled(), np.array([3, 20, 59])
    left = model.left_out(places, np.ones(3, dtype=int), EVERY)
    for row, place in enumerate(places):
        own = np.flatnonzero((arms == arms[place]) & (np.arange(60) != place))
        t = 0.5 ** (np.abs(own[:, None] - own) / HALF_LIFE)
        gram = KERNEL(contexts[own], contexts[own]) * t
        gram += np.diag(RIDGE + NOISE[own])
        cross = KERNEL(contexts[[place]], contexts[own]) * 0.5 ** (np.abs(place - own) / HALF_LIFE)
        predicted = 0.3 + (cross @ np.linalg.solve(gram, rewards[own] - 0.3))[0]
        np.testing.assert_allclose(left.error[row], rewards[place] - predicted, rtol=1e-8)


def test_files_hold_the_model():
    model = filled()
    again = restored_model(describe_model(model), model.arrays(), KERNEL, RIDGE, ARMS, 0.3)
    np.testing.assert_array_equal(
        again.posterior(NEW, EVERY).mean, model.posterior(NEW, EVERY).mean
    )
    for each in (model, again, copy := model.snapshot()):
        each.observe(NEW[0], 1, 0.7)
    for each in (again, copy):
        np.testing.assert_array_equal(
            each.posterior(NEW, EVERY).std, model.posterior(NEW, EVERY).std
        )


def test_supports_fold_the_time_of_freezing_into_plain_arrays():
    from scipy.linalg import solve_triangular

    model, posterior = filled(half_life=0.5), filled(half_life=0.5).posterior(NEW, EVERY)
    for arm, support in zip(EVERY, model.supports(EVERY), strict=True):
        k, size = KERNEL(support.points, NEW), len(support.points)
        lower = np.zeros((size, size))
        lower[np.tril_indices(size)] = support.factors[0][1]
        np.testing.assert_allclose(0.3 + support.weights @ k, posterior.mean[:, arm], rtol=1e-9)
        v = solve_triangular(lower, k, lower=True)
        variance = KERNEL.diagonal(NEW) - np.square(v).sum(0)
        np.testing.assert_allclose(variance, posterior.std[:, arm] ** 2, rtol=1e-8)
        np.testing.assert_allclose(
            support.innovations @ v, posterior.mean[:, arm] - 0.3, rtol=1e-7, atol=1e-10
        )


@pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, "soon", True])
def test_half_lives_are_positive_numbers(wrong):
    with pytest.raises((ValueError, TypeError), match="half_life"):
        Ageing(wrong)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("method", ["contextual-gap", "contextual-gap-history"])
def test_c_decides_as_the_policy(method, tmp_path):
    learner = cg.Learner(
        ARMS,
        kernel=KERNEL,
        ridge=RIDGE,
        method=method,
        half_life=HALF_LIFE,
        width=cg.PosteriorWidth(1),
    )
    learner.fit(*data())
    policy = learner.freeze()
    points = np.random.default_rng(3).uniform(-1, 1, (200, 2))
    policy.to_c(tmp_path)
    found = CompiledPolicy(tmp_path).recommend(points)
    np.testing.assert_array_equal(np.asarray(found), policy.recommend(points))


@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_hyperparameters_are_judged_by_the_process_over_contexts_and_time(criterion):
    contexts, arms, rewards = data(50)
    by_arm = [np.flatnonzero(arms == arm) for arm in EVERY]
    ageing, terms = Ageing(HALF_LIFE), Terms(cg.Gaussian((1.0, 1.0)), cg.Linear(), offset=1.0)
    search = Search(
        terms,
        [contexts[own] for own in by_arm],
        [rewards[own] for own in by_arm],
        criterion,
        aged=[ageing.correlations(own, own) for own in by_arm],
    )
    theta = np.array([-0.3, 0.2, -1.0, -0.5, -2.0])
    loss, slope = search.loss_and_slope(theta)
    assert loss == pytest.approx(search.loss(theta))
    for place, step in enumerate(1e-5 * np.eye(len(theta))):
        change = (search.loss(theta + step) - search.loss(theta - step)) / 2e-5
        assert slope[place] == pytest.approx(change, rel=1e-5, abs=1e-5)


def test_the_evidence_of_a_half_life_is_the_likelihood_of_the_rewards():
    contexts, arms, rewards = data(50)
    by_arm = [np.flatnonzero(arms == arm) for arm in EVERY]

    def likelihood(half_life):
        ageing = Ageing(half_life)
        correlations = [ageing.correlations(own, own) for own in by_arm]
        split = [[each[own] for own in by_arm] for each in (contexts, rewards)]
        search = Search(Terms(cg.Gaussian((1.0, 1.0))), *split, "evidence", aged=correlations)
        theta = search.start(0.0, 0.1)
        found = finished(search.hyperparameters(theta))
        total = 0.0
        for own, t in zip(by_arm, correlations, strict=True):
            x, y = contexts[own], rewards[own] - found.prior_mean
            gram = found.kernel(x, x) * t + found.ridge * np.eye(len(own))
            total -= 0.5 * (np.linalg.slogdet(gram)[1] + y @ np.linalg.solve(gram, y))
        # One more observation, worth the first guess of the reward scale, belongs to the loss.
        scale = float(found.kernel.diagonal(contexts[:1])[0])
        total -= 0.5 * (np.log(scale / search.guess) + search.guess / scale)
        return total, search.loss(theta)

    (one, one_loss), (two, two_loss) = likelihood(5.0), likelihood(500.0)
    assert one - two == pytest.approx(two_loss - one_loss, rel=1e-6)
