"""Posteriors at very many contexts, against those of solves and of more digits."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.models import BoundedModel
from contextgap.models import bounded_arm as predictor
from tests.models.test_bounded import ARMS, NEW, RIDGE, data, same, tell

MANY = 10**9  # contexts, for which preparing pays


@pytest.mark.parametrize("prior_mean", [0.0, 0.7, "auto"])
@pytest.mark.parametrize("points", [1, 5, 63, 64, 65, 130])
def test_products_are_the_solves(points, prior_mean, monkeypatch):
    model = BoundedModel(cg.Gaussian(0.2), RIDGE, ARMS, prior_mean, points=points)
    model.observe_many(*data(400))
    tell(model, *data(10, seed=1))  # rows that are not folded in yet
    for arms in (range(ARMS), [2], [2, 0]):
        want = model.posterior(NEW, arms)
        found = model.predictor(arms).posterior(NEW, among=MANY)
        same(found, want, rtol=1e-11, atol=1e-11)
        mean, slack = model.predictor(arms).means(NEW)
        assert (np.abs(mean - want.mean).max(axis=1) <= slack).all()
        with monkeypatch.context() as small:
            small.setattr(predictor, "_NUMBERS", 1)  # rows come in several blocks
            same(
                model.predictor(arms).posterior(np.tile(NEW, (4, 1)), among=MANY),
                model.posterior(np.tile(NEW, (4, 1)), arms),
                rtol=1e-11,
                atol=1e-11,
            )


def test_no_digits_are_lost_where_points_are_close_and_rewards_almost_exact():
    """The last support points differ from those before by a hundredth of a tiny ridge."""
    rng = np.random.default_rng(0)
    contexts, ridge = rng.uniform(0, 1, (3000, 1)), 1e-6
    model = BoundedModel(cg.Gaussian(0.3), ridge, 1, points=200)
    model.observe_many(contexts, np.zeros(3000, dtype=int), np.sin(9 * contexts[:, 0]))
    new = rng.uniform(-0.2, 1.2, (500, 1))
    want, found = model.posterior(new, [0]), model.predictor([0]).posterior(new, among=MANY)
    assert np.linalg.cond(model.dictionary.factor.square()) > 1e3
    np.testing.assert_allclose(found.mean, want.mean, atol=1e-9)
    # Variances are differences of numbers of size 1.
    np.testing.assert_allclose(found.std**2, want.std**2, rtol=1e-6, atol=1e-13)


def test_before_any_reward_there_is_nothing_to_prepare():
    model = BoundedModel(cg.Gaussian(1.0), RIDGE, ARMS)
    found = model.predictor(range(ARMS)).posterior(NEW, among=MANY)
    same(found, model.posterior(NEW, range(ARMS)), rtol=0, atol=0)


def test_policies_answer_the_same_at_many_contexts_as_at_few(monkeypatch):
    contexts, arms, rewards = data(700)
    learner = cg.Learner(ARMS, kernel=cg.Gaussian(0.4), ridge=RIDGE, points=64, seed=0)
    policy = learner.fit(contexts, arms, rewards).freeze()
    new = np.random.default_rng(3).uniform(-1, 1, (1000, 2))
    mask = np.random.default_rng(4).uniform(size=(1000, ARMS)) < 0.7
    mask[~mask.any(axis=1)] = True
    prepared = []
    times = predictor._Inverses.times
    monkeypatch.setattr(
        predictor._Inverses, "times", lambda self, x: prepared.append(x) or times(self, x)
    )
    many_rows = policy.answered(new, None, True), policy.answered(new, mask, True)
    assert prepared
    monkeypatch.setattr(predictor, "_MANY", 10**9)
    few_rows = policy.answered(new, None, True), policy.answered(new, mask, True)
    for one, two in zip(many_rows, few_rows, strict=True):
        assert one.arms.tolist() == two.arms.tolist()
        np.testing.assert_allclose(one.certificate.bound, two.certificate.bound, atol=1e-10)
