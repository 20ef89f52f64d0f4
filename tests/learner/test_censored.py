"""Rewards that are censored, or have a known error, from ``tell`` to the policy's file."""

import io

import numpy as np
import pytest

import contextgap as cg

COUNT = 120


def expected(x, arm):
    return np.sin(3 * x + 2 * arm) + 0.3 * arm


def log(seed=0, count=COUNT):
    rng = np.random.default_rng(seed)
    x, arms = rng.uniform(-1, 1, count), rng.integers(3, size=count)
    return x[:, None], arms, expected(x, arms) + 0.2 * rng.normal(size=count)


def regret(learner):
    grid = np.linspace(-1, 1, 200)
    picks = np.array(learner.freeze().recommend(grid[:, None]), dtype=int)
    table = np.stack([expected(grid, arm) for arm in range(3)], axis=1)
    return float((table.max(axis=1) - table[np.arange(200), picks]).mean())


def test_a_log_censored_at_its_median_loses_less_than_imputing():
    """Costs above the median are known to be so, as of runs that were cut off."""
    lost = []
    for seed in range(12):
        x, arms, y = log(seed)
        costs, limit = -y, np.median(-y)
        cut = costs > limit
        told = np.minimum(costs, limit)
        learners = [cg.Learner(3, seed=0, reward="minimize") for _ in range(4)]
        learners[0].fit(x, arms, costs)
        learners[1].fit(x, arms, told, censored=cut)
        learners[2].fit(x, arms, told)
        learners[3].fit(x, arms, np.where(cut, limit + abs(limit), told))
        lost.append([regret(each) for each in learners])
    whole, censored, imputed, doubled = np.mean(lost, axis=0)
    assert whole <= censored < min(imputed, doubled)
    assert censored - whole < 0.7 * (min(imputed, doubled) - whole)


def test_minimized_costs_are_at_least_and_rewards_at_most_what_is_told():
    for sign, reward in ((1.0, "maximize"), (-1.0, "minimize")):
        learner = cg.Learner(1, kernel=cg.Gaussian(1.0), reward=reward)
        learner.tell([0.0], 0, sign * -1.0, censored=True)
        assert learner.state.model.posterior(np.zeros(1), [0]).mean[0] < -0.5
        assert learner.state.model.observed.limits.tolist() == [-1.0]


def test_telling_in_any_way_ends_with_the_same_beliefs():
    x, arms, y = log()
    limit = np.quantile(y, 0.4)
    cut, told = y < limit, np.maximum(y, limit)
    one, many, two = (cg.Learner(3, kernel=cg.Gaussian(0.5), ridge=0.04) for _ in range(3))
    for row in range(COUNT):
        one.tell(x[row], int(arms[row]), told[row], censored=bool(cut[row]))
    many.fit(x, arms, told, censored=cut)
    half = COUNT // 2
    for rows in (slice(None, half), slice(half, None)):
        two.tell(x[rows], arms[rows], told[rows], censored=cut[rows])
    grid = np.linspace(-1, 1, 20)[:, None]
    means = [each.freeze().state.model.posterior(grid, range(3)).mean for each in (one, many, two)]
    np.testing.assert_allclose(means[0], means[1], atol=0.01)
    np.testing.assert_allclose(means[2], means[1], atol=0.01)


@pytest.mark.parametrize("points", [None, 20])
@pytest.mark.parametrize("sharing", [0, None])
def test_a_learner_of_a_file_goes_on_as_the_saved_one(points, sharing):
    x, arms, y = log()
    learner = cg.Learner(3, seed=0, points=points, sharing=sharing)
    for row in range(70):
        about = {"censored": True} if row % 3 == 0 else {"noise": 0.1 * (row % 2)}
        learner.tell(x[row], int(arms[row]), y[row], **about)
    file = io.BytesIO()
    learner.save(file)
    file.seek(0)
    loaded = cg.Learner.load(file)
    for each in (learner, loaded):
        for row in range(70, COUNT):
            each.tell(x[row], int(arms[row]), y[row], censored=row % 4 == 0)
    before, after = (each.freeze() for each in (learner, loaded))
    grid = np.linspace(-1, 1, 20)[:, None]
    assert list(before.recommend(grid)) == list(after.recommend(grid))
    assert before.card == after.card
    assert "censored" in " ".join(before.card.warnings)
    assert before.probability is None


def test_a_failed_tell_changes_nothing():
    x, arms, y = log()
    learner = cg.Learner(3, seed=0).fit(x, arms, y)
    state = learner.state
    wrong = [
        ({"noise": -1.0}, ValueError, "noise"),
        ({"noise": "much"}, TypeError, "noise"),
        ({"noise": np.nan}, ValueError, "noise"),
        ({"censored": 1}, TypeError, "censored"),
        ({"censored": [True]}, TypeError, "censored"),
        ({"censored": True, "noise": 0.2}, ValueError, "censored"),
    ]
    for about, error, named in wrong:
        with pytest.raises(error, match=named):
            learner.tell(x[0], 0, 0.3, **about)
    for about in ({"noise": [0.1]}, {"censored": [True]}, {"censored": ["a", "b"]}):
        with pytest.raises((TypeError, ValueError), match=r"noise|censored"):
            learner.tell(x[:2], arms[:2], y[:2], **about)
    assert learner.state is state


def test_the_value_of_a_card_is_that_of_complete_rewards():
    x, arms, y = log(count=400)
    limit = np.quantile(y, 0.3)
    cut = y < limit
    complete = cg.Learner(3, seed=0).fit(x, arms, y).score()
    censored = cg.Learner(3, seed=0).fit(x, arms, np.maximum(y, limit), censored=cut).score()
    assert abs(censored.value.value - complete.value.value) < 3 * complete.value.error
    assert abs(censored.logged.value - complete.logged.value) < 2 * complete.logged.error
    taken = cg.Learner(3, seed=0).fit(x, arms, np.maximum(y, limit)).score()
    assert taken.logged.value - complete.logged.value > 2 * complete.logged.error
