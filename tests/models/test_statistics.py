import numpy as np

import contextgap as cg
from contextgap.models import Observations
from contextgap.models.bounded import BoundedModel
from contextgap.models.dictionary import Dictionary, Statistics, Whitened, sums_by_arm

KERNEL = cg.Gaussian(0.5)


def test_blocks_add_up():
    rng = np.random.default_rng(0)
    contexts, rewards = rng.uniform(-1, 1, (90, 2)), rng.normal(size=90)
    features, residual = Dictionary.of(KERNEL, contexts[:15]).whiten(KERNEL, contexts)
    parts = [
        Statistics.of(Whitened(features[:, own], residual[own]), rewards[own], 0.1)
        for own in np.split(np.arange(90), [10, 11, 60])
    ]
    added = parts[3] + (parts[0] + parts[2]) + parts[1]
    whole = Statistics.of(Whitened(features, residual), rewards, 0.1)
    weight = 1 / (0.1 + residual)
    np.testing.assert_allclose(whole.gram, (features * weight) @ features.T, atol=1e-12)
    np.testing.assert_allclose(whole.moments[0], features @ (weight * rewards), atol=1e-12)
    np.testing.assert_allclose(whole.moments[1], features @ weight, atol=1e-12)
    for name in ("gram", "moments", "unexplained", "count"):
        np.testing.assert_allclose(getattr(added, name), getattr(whole, name), rtol=1e-12)


def test_a_log_in_parts_is_the_log_at_once():
    rng = np.random.default_rng(1)
    contexts, arms = rng.uniform(-1, 1, (400, 2)), rng.integers(2, size=400)
    rewards, new = rng.normal(size=400), rng.uniform(-1, 1, (20, 2))
    models = [BoundedModel(KERNEL, 0.1, 2, 0.2, points=25) for _ in range(2)]
    for model in models:
        model._use(Dictionary.of(KERNEL, contexts[:25]))
        model._next_choice = 10**9
    models[0].observe_many(contexts, arms, rewards)
    for first in (0, 130, 250):
        rows = slice(first, {0: 130, 130: 250, 250: 400}[first])
        models[1].observe_many(contexts[rows], arms[rows], rewards[rows])
    one, two = (model.posterior(new, [0, 1]) for model in models)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(one.std, two.std, rtol=1e-10)


def test_averages_over_all_rows_are_those_of_predictions_at_each():
    rng = np.random.default_rng(2)
    contexts, arms = rng.uniform(-1, 1, (300, 2)), rng.integers(2, size=300)
    rewards, weights = rng.normal(1, 1, 300), rng.uniform(1, 5, 300)
    model, dictionary = BoundedModel(KERNEL, 0.1, 3, 0.2), Dictionary.of(KERNEL, contexts[:25])
    sums = sums_by_arm(dictionary, KERNEL, 0.1, contexts, arms, rewards, weights)
    log = Observations(3)
    log.extend(contexts, arms, rewards)
    model.take_sums(log, dictionary, sums, float(rewards.sum()))
    means = model.posterior(contexts, [0, 1, 2]).mean
    direct, robust = model.averages([0, 1, 2], sums)
    np.testing.assert_allclose(direct, means.mean(axis=0), rtol=1e-9)
    own = arms[:, None] == [0, 1, 2]
    added = own * weights[:, None] * (rewards[:, None] - means)
    np.testing.assert_allclose(robust, (means + added).mean(axis=0), rtol=1e-9)
