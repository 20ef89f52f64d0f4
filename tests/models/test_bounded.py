import numpy as np
import pytest

import contextgap as cg
from contextgap.models import BoundedModel, ExactModel, bounded, describe_model, restored_model
from contextgap.models.bounded_arm import FOLD
from tests.models.fitc import Fitc

KERNEL, RIDGE, ARMS = cg.Gaussian((0.5, 0.8)), 0.05, 3
NEW = np.random.default_rng(9).uniform(-1, 1, (40, 2))


def data(count, seed=0):
    rng = np.random.default_rng(seed)
    contexts, arms = rng.uniform(-1, 1, (count, 2)), rng.integers(ARMS, size=count)
    return contexts, arms, np.sin(3 * contexts[:, 0] + arms) + 0.2 * rng.normal(size=count)


def filled(count, points=20, prior_mean=0.3):
    model = BoundedModel(KERNEL, RIDGE, ARMS, prior_mean, points=points)
    model.observe_many(*data(count))
    return model


def tell(model, contexts, arms, rewards):
    for context, arm, reward in zip(contexts, arms.tolist(), rewards.tolist(), strict=True):
        model.observe(context, arm, reward)


def same(one, two, **tolerance):
    for name in ("mean", "std", "information_gain"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), **tolerance)


@pytest.mark.parametrize("prior_mean", [0.0, 0.7, "auto"])
@pytest.mark.parametrize("late", [1, FOLD - 1, 4 * FOLD + 10])
def test_it_is_fitc_written_out(prior_mean, late):
    model = filled(300, 20, prior_mean)
    points = model.dictionary.points
    tell(model, *data(late, seed=1))
    if model.dictionary.points is not points:
        assert late > 200  # chosen anew at the doubling
    contexts, arms, rewards = (
        np.concatenate(pair) for pair in zip(data(300), data(late, seed=1), strict=True)
    )
    found = model.posterior(NEW, range(ARMS))
    for arm in range(ARMS):
        own = arms == arm
        oracle = Fitc(
            KERNEL, RIDGE, model.dictionary.points, contexts[own], rewards[own], model.prior()
        )
        mean, std = oracle.posterior(NEW)
        np.testing.assert_allclose(found.mean[:, arm], mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.std[:, arm], std, rtol=1e-6)


@pytest.mark.parametrize("points", [5, 20, 60])
def test_the_information_gain_is_bracketed(points):
    exact = ExactModel(KERNEL, RIDGE, ARMS)
    exact.observe_many(*data(400))
    model, gain = filled(400, points), exact.information_gain(range(ARMS))
    assert ([model.arm(arm).gain_bracket[0] for arm in range(ARMS)] <= gain).all()
    assert (gain <= model.information_gain(range(ARMS))).all()


def test_with_points_enough_it_is_the_exact_model():
    exact = ExactModel(KERNEL, RIDGE, ARMS, 0.3)
    exact.observe_many(*data(600))
    model = filled(600, points=200)
    assert len(model.dictionary) < 100  # the tolerance was reached
    one, two = model.posterior(NEW, range(ARMS)), exact.posterior(NEW, range(ARMS))
    assert np.abs(one.mean - two.mean).max() < 0.02 * two.std.max()
    assert 0.97 < (one.std / two.std).min() <= (one.std / two.std).max() < 1.2


def test_points_are_chosen_anew_where_contexts_go_elsewhere():
    model = filled(100, points=30)
    far = data(100, seed=2)[0] + 3.0
    tell(model, far[:99], *(values[:99] for values in data(100, seed=2)[1:]))
    assert model.dictionary.points.max() < 1  # not yet
    assert model.posterior(far, [0]).std.min() > 0.5
    tell(model, far[99:], *(values[99:] for values in data(100, seed=2)[1:]))
    assert model.dictionary.points.max() > 2
    assert model.posterior(far, [0]).std.max() < 0.5


def test_points_stay_where_others_would_be_no_better():
    model = filled(400, points=25)
    before = model.dictionary
    tell(model, *data(400, seed=4))
    assert model.dictionary is before


def test_a_single_observation_replays_no_long_log(monkeypatch):
    monkeypatch.setattr(bounded, "MOST_REPLAYED", 150)
    model = filled(100, points=30)
    before, far = model.dictionary, data(100, seed=2)[0] + 3.0
    tell(model, far, *data(100, seed=2)[1:])
    assert model.dictionary is before
    model.observe_many(far, *data(100, seed=2)[1:])
    assert model.dictionary.points.max() > 2


@pytest.mark.parametrize("later", [1, FOLD + 3, 450])
def test_rewinding_undoes_folds_and_choices(later):
    model = filled(400, points=25)
    tell(model, *data(50, seed=3))
    before, mark, dictionary = model.posterior(NEW, range(ARMS)), model.mark(), model.dictionary
    tell(model, *(values + (3.0 if values.ndim == 2 else 0) for values in data(later, seed=5)))
    model.rewind(mark)
    assert model.dictionary is dictionary
    same(model.posterior(NEW, range(ARMS)), before, rtol=0, atol=0)


def test_files_continue_to_the_last_bit():
    model = filled(400, points=25, prior_mean="auto")
    tell(model, *data(50, seed=3))
    model.posterior(NEW[0], range(ARMS), {1: [NEW[1]]})
    arrays = {name: values.copy() for name, values in model.arrays().items()}
    again = restored_model(describe_model(model), arrays, KERNEL, RIDGE, ARMS, "auto")
    for each in (model, again):
        for context in NEW:
            each.posterior(context, range(ARMS), {0: [NEW[2]]})
            each.observe(context, 1, 0.5)
        tell(each, *data(400, seed=6))
    same(again.posterior(NEW, range(ARMS)), model.posterior(NEW, range(ARMS)), rtol=0, atol=0)
    assert np.array_equal(again.dictionary.points, model.dictionary.points)


def test_followers_keep_up_over_folds_and_choices():
    model = BoundedModel(KERNEL, RIDGE, ARMS, 0.3, points=20)
    follower, ahead = model.follow(NEW), model.follow()
    for step, (context, arm, reward) in enumerate(zip(*data(500), strict=True)):
        model.observe(context, int(arm), float(reward))
        if step % 37 == 5:
            expected = model.posterior(NEW, [0, 2])
            same(follower.posterior([0, 2]), expected, rtol=1e-9, atol=1e-11)
            reference, pending = np.arange(0, step, 8), {2: [NEW[3]], 0: [NEW[4], NEW[5]]}
            found = ahead.look_ahead(NEW[0], [0, 2], reference, pending)
            points = np.vstack([model.observed.contexts[reference], NEW[:1]])
            table = model.posterior(points, [0, 2], pending)
            np.testing.assert_allclose(found.mean, table.mean, rtol=1e-8, atol=1e-10)
            moves = model.moves(NEW[:1], 2, points, pending)[:, 0]
            np.testing.assert_allclose(found.move[:, 1], moves, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(("points", "late"), [(20, 1), (1, 5), (20, 5)])
def test_looking_at_all_rows_folded_changes_nothing(points, late):
    """One row, or rows of one number, are in LAPACK's order already and must be copied."""
    model, other = (filled(100, points) for _ in range(2))
    for each in (model, other):
        tell(each, *data(late, seed=1))
    model.supports(range(ARMS))
    for name, values in other.arrays().items():
        np.testing.assert_array_equal(model.arrays()[name], values, err_msg=name)


def test_what_a_policy_keeps_decides_the_same():
    model = filled(9000, points=40)
    small = model.deployed()
    assert len(small) == len(model) == 9000
    assert len(small.observed) <= 8192 + 4
    assert [small.observed.count(arm) for arm in range(ARMS)] == [
        model.observed.count(arm) for arm in range(ARMS)
    ]
    for side in (np.min, np.max):
        assert np.array_equal(
            side(small.observed.contexts, axis=0), side(model.observed.contexts, axis=0)
        )
    again = restored_model(describe_model(small), small.arrays(), KERNEL, RIDGE, ARMS, 0.3)
    assert len(again) == 9000
    same(again.posterior(NEW, range(ARMS)), model.posterior(NEW, range(ARMS)), rtol=0, atol=0)


def test_more_points_where_they_pay():
    model = filled(600, points=10)
    larger = model.with_points(100)
    exact = ExactModel(KERNEL, RIDGE, ARMS, 0.3)
    exact.observe_many(*data(600))
    truth = exact.posterior(NEW, range(ARMS)).mean
    errors = [
        np.abs(each.posterior(NEW, range(ARMS)).mean - truth).max() for each in (model, larger)
    ]
    assert errors[1] < 0.1 * errors[0]
    assert len(model.dictionary) == 10  # unchanged
    assert larger.with_points(200) is None


def test_many_single_updates_lose_no_digits():
    model = filled(200, points=30)
    model._next_choice = 10**9
    tell(model, *data(20_000, seed=1))
    fresh = BoundedModel(KERNEL, RIDGE, ARMS, 0.3, points=30)
    fresh.observed.extend(model.observed.contexts, model.observed.arms, model.observed.rewards)
    fresh._use(model.dictionary)
    one, two = model.posterior(NEW, range(ARMS)), fresh.posterior(NEW, range(ARMS))
    np.testing.assert_allclose(one.std**2, two.std**2, rtol=1e-10)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("root0", lambda x: x[:-1]),
        ("root0", lambda x: -x),
        ("fit1", lambda x: np.full_like(x, np.nan)),
        ("lower", lambda x: -x),
        ("points", lambda x: x[:, :1]),
        ("forgotten", lambda x: x - 1),
        ("next_choice", lambda x: x * 0),
        ("corner2", lambda x: -x),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, wrong):
    model = filled(100)
    tell(model, *data(30, seed=1))
    arrays = model.arrays()
    with pytest.raises(ValueError, match=r"expected|diagonal|do not match|next_choice"):
        model.restore({**arrays, name: wrong(arrays[name])})
