"""Skewed columns on a logarithmic scale: which ones, what kernels see, and what learners do."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.insight.learnt import importance
from contextgap.kernels import Warped
from contextgap.kernels.categories import Warp, warp_for


def skewed_contexts(count, seed=0):
    """Amounts, amounts of which most are zero, and a column that is not skewed."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(count, 3))
    rare = np.where(logs[:, 1] > 0.5, np.exp(2 * logs[:, 1]), 0.0)
    return np.column_stack([1000 * np.exp(logs[:, 0]), rare, logs[:, 2]]), logs


def taught(count=300, low=0.0, **settings):
    """A learner of a classification that is smooth in the logarithms."""
    contexts, logs = skewed_contexts(count)
    arms = np.random.default_rng(1).integers(2, size=count)
    pays = (np.sin(2 * logs[:, 0]) + logs[:, 2] > 0) == (arms == 1)
    learner = cg.Learner(["no", "yes"], seed=0, **settings)
    return learner.fit(contexts, [learner.arms[arm] for arm in arms], np.where(pays, 1.0, low))


def test_skewed_columns_are_found_and_others_are_not():
    rng = np.random.default_rng(3)
    contexts, _ = skewed_contexts(500)
    others = np.column_stack(
        [
            rng.uniform(size=500),
            rng.normal(size=500),
            rng.exponential(size=500),
            np.where(rng.random(500) < 0.05, 50.0, 0.0),  # rare, of two values
            np.full(500, 3.0),
        ]
    )
    warp = warp_for(np.hstack([contexts, others]), 8)
    assert np.flatnonzero(warp.unit).tolist() == [0, 1]
    middle = np.median(contexts[:, 0])
    assert warp.centre[0] == middle
    assert warp.unit[0] == np.median(np.abs(contexts[:, 0] - middle))
    assert warp.centre[1] == 0  # most are zero; the unit is the median of the others
    assert warp.unit[1] == np.median(contexts[contexts[:, 1] > 0, 1])
    assert warp_for(others, 5) is None
    assert warp_for(contexts, 0) is None  # codes of categories are no numbers


def test_a_scale_has_the_columns_unit():
    contexts, _ = skewed_contexts(400)
    usual = warp_for(contexts, 3)(contexts)
    for factor, shift in ((1e6, 0.0), (1e-6, 0.0), (1.0, -300.0), (-2.0, 5.0)):
        moved = factor * contexts + shift
        assert np.allclose(warp_for(moved, 3)(moved)[:, :2], np.sign(factor) * usual[:, :2])


@given(x=st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=2))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_order_is_kept_and_the_centre_stays(x):
    warp = Warp((7.0,), (0.5,))
    low, high = warp(np.sort(x)[:, None])[:, 0]
    assert low <= high
    assert warp(np.array([[7.0]]))[0, 0] == 0.0
    expected = np.sign(x[0] - 7) * np.log(1 + abs(x[0] - 7) / 0.5)
    assert np.isclose(warp(np.array([[x[0]]]))[0, 0], expected, rtol=1e-9, atol=1e-9)


def test_the_kernel_is_that_of_changed_contexts():
    contexts, _ = skewed_contexts(20)
    inner = cg.Gaussian((0.5, 1.0, 2.0)) + cg.Linear()
    kernel = Warped(inner, (1000.0, 0.0, 0.0), (600.0, 4.0, 0.0))
    seen = kernel.warp(contexts)
    assert np.array_equal(seen[:, 2], contexts[:, 2])
    assert np.array_equal(kernel(contexts[:5], contexts), inner(seen[:5], seen))
    assert np.array_equal(kernel.diagonal(contexts), inner.diagonal(seen))


@pytest.mark.parametrize(
    ("centre", "unit", "message"),
    [
        ((0.0,), (-1.0,), "must not be negative"),
        ((0.0, 1.0), (1.0,), "one entry per number"),
        ((), (), "one entry per number"),
        ((np.nan,), (1.0,), r"centre\[0\]"),
        ((0.0,), ("a",), r"unit\[0\]"),
    ],
)
def test_bad_settings_are_named(centre, unit, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Warped(cg.Gaussian(1.0), centre, unit)


def test_contexts_of_another_dimension_are_refused():
    kernel = Warped(cg.Gaussian(1.0), (0.0, 0.0), (1.0, 0.0))
    with pytest.raises(ValueError, match="2 entries but contexts have 3"):
        cg.Learner(2, kernel=kernel, ridge=0.1).ask([0.0, 1.0, 2.0])


def test_learners_warp_where_rewards_have_two_values_and_no_kernel_is_given():
    assert isinstance(taught().kernel, Warped)
    assert "logarithmic scale because they are skewed: 2" in taught().tuning.reason
    contexts, logs = skewed_contexts(300)
    arms = np.arange(300) % 2
    continuous = cg.Learner(2, seed=0).fit(contexts, arms, logs[:, 0] * (1 - 2 * arms))
    assert not isinstance(continuous.kernel, Warped)
    given = taught(kernel=cg.Gaussian((1000.0, 5.0, 1.0)), ridge=0.05).tune()
    assert not isinstance(given.kernel, Warped)
    plain = cg.Learner(2, seed=0).fit(logs, arms, (logs[:, 0] > 0).astype(float))
    assert not isinstance(plain.kernel, Warped)


def test_it_decides_better_than_without():
    contexts, logs = skewed_contexts(2000, seed=5)
    best = np.where(np.sin(2 * logs[:, 0]) + logs[:, 2] > 0, "yes", "no")
    learner = taught()
    kernel = cg.Gaussian.from_contexts(skewed_contexts(300)[0])
    plain = taught(kernel=kernel, ridge=0.05)
    wrong, wrong_plain = (np.mean(each.recommend(contexts) != best) for each in (learner, plain))
    assert wrong < 0.5 * wrong_plain


def test_files_copies_and_further_rewards_keep_it(tmp_path):
    learner = taught()
    contexts, _ = skewed_contexts(50, seed=9)
    learner.save(tmp_path / "l.cgap")
    policy = learner.freeze()
    policy.save(tmp_path / "p.cgap")
    loaded, again = cg.Learner.load(tmp_path / "l.cgap"), cg.Policy.load(tmp_path / "p.cgap")
    assert loaded.kernel == again.kernel == learner.kernel
    assert np.array_equal(again.recommend(contexts), policy.recommend(contexts))
    for each in (learner, loaded):
        for x in contexts:
            each.tell(x, each.ask(x), float(x[0] > 1000))
    assert np.array_equal(loaded.beliefs(contexts).mean, learner.beliefs(contexts).mean)


def test_importance_is_of_what_the_kernel_sees():
    bandwidths = (0.5, 1.0, 2.0)
    kernel = Warped(cg.Gaussian(bandwidths), (1000.0, 0.0, 0.0), (600.0, 4.0, 0.0))
    contexts = skewed_contexts(300)[0]
    spread = importance(taught(kernel=kernel, ridge=0.05)).spread
    assert np.allclose(list(spread.values()), kernel.warp(contexts).std(axis=0) / bandwidths)


def test_tables_with_categories_and_missing_values():
    contexts, logs = skewed_contexts(240)
    frame = pd.DataFrame(contexts, columns=["amount", "rare", "x"])
    frame["kind"] = np.where(logs[:, 2] > 0, "a", "b")
    frame.loc[::17, "amount"] = np.nan
    arms = np.arange(240) % 2
    learner = cg.Learner(2, seed=0).fit(frame, arms, ((logs[:, 0] > 0) == arms).astype(float))
    unit = np.asarray(learner.kernel.unit)
    assert unit[0] > 0  # the amount
    assert (unit[-1:] == 0).all()  # codes of kinds stay
    assert learner.recommend(frame.head(5)).shape == (5,)
