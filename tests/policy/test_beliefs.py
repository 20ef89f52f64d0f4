"""What is believed of all arms at many contexts, as arrays and as DataFrames."""

import numpy as np
import pandas as pd
import pytest

import contextgap as cg

QUANTITIES = ("mean", "std", "lower", "upper")


@pytest.fixture(params=["maximize", "minimize"])
def learner(request, rng):
    learner = cg.Learner(["a", "b", "c"], kernel=cg.Gaussian(0.7), seed=0, reward=request.param)
    contexts = rng.normal(size=(60, 2))
    arms = rng.choice(["a", "b", "c"], 60)
    return learner.fit(contexts, arms, contexts[:, 0] + (arms == "b") * contexts[:, 1])


def test_beliefs_are_those_of_decisions(learner, rng):
    contexts, policy = rng.normal(size=(9, 2)), learner.freeze()
    beliefs = policy.beliefs(contexts)
    assert beliefs.arms == policy.arms
    for row, context in enumerate(contexts):
        decision, one = policy.decide(context), policy.beliefs(context)
        for name in QUANTITIES:
            np.testing.assert_allclose(getattr(beliefs, name)[row], getattr(decision, name), 1e-9)
            np.testing.assert_allclose(getattr(one, name), getattr(decision, name), 1e-9)
            of_learner = getattr(learner.beliefs(contexts), name)
            np.testing.assert_array_equal(of_learner, getattr(beliefs, name))


def test_means_are_the_quick_half(learner, rng):
    contexts, policy = rng.normal(size=(9, 2)), learner.freeze()
    expected = policy.beliefs(contexts).mean
    np.testing.assert_allclose(policy.means(contexts), expected, 1e-9, 1e-12)
    np.testing.assert_allclose(learner.means(contexts), expected, 1e-9, 1e-12)
    np.testing.assert_allclose(policy.means(contexts[3]), expected[3], 1e-9, 1e-12)


@pytest.mark.parametrize("sharing", [0.0, 0.5])
def test_models_without_cheap_means_answer_too(rng, sharing):
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), sharing=sharing)
    learner.fit(rng.normal(size=(20, 1)), rng.integers(2, size=20), rng.normal(size=20))
    contexts, policy = rng.normal(size=(5, 1)), learner.freeze()
    np.testing.assert_allclose(policy.means(contexts), policy.beliefs(contexts).mean, 1e-9, 1e-12)


def test_many_rows_are_answered_block_by_block(rng, monkeypatch):
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0))
    learner.fit(rng.normal(size=(20, 1)), rng.integers(2, size=20), rng.normal(size=20))
    contexts, policy = rng.normal(size=(50, 1)), learner.freeze()
    whole, means = policy.beliefs(contexts), policy.means(contexts)
    monkeypatch.setattr("contextgap.policy.answers._BLOCK", 100)
    np.testing.assert_allclose(policy.beliefs(contexts).std, whole.std, 1e-9)
    np.testing.assert_allclose(policy.means(contexts), means, 1e-9)


def test_a_frame_keeps_the_index(rng):
    table = pd.DataFrame(rng.normal(size=(6, 2)), columns=["x", "y"], index=list("uvwxyz"))
    learner = cg.Learner(["a", ("b", 1)], kernel=cg.Gaussian(1.0))
    learner.fit(table, ["a", ("b", 1)] * 3, rng.normal(size=6))
    beliefs = learner.freeze().beliefs(table)
    frame = beliefs.to_frame()
    assert frame.index.tolist() == list("uvwxyz")
    for name in QUANTITIES:
        np.testing.assert_array_equal(frame[name].to_numpy(), getattr(beliefs, name))
    assert frame["mean"].columns.tolist() == ["a", ("b", 1)]
    assert table.join(frame["mean"])["a"].tolist() == beliefs.mean[:, 0].tolist()
    assert learner.freeze().beliefs(table.to_numpy()).to_frame().index.tolist() == list(range(6))
    assert len(learner.freeze().beliefs(table.iloc[0]).to_frame()) == 1


def test_beliefs_cannot_be_changed(learner):
    beliefs = learner.freeze().beliefs([[0.0, 0.0]])
    with pytest.raises(ValueError, match="read-only"):
        beliefs.mean[0, 0] = 1.0


def test_wrong_contexts_are_named(learner):
    with pytest.raises(ValueError, match="contexts must have 2 numbers each"):
        learner.freeze().beliefs([[1.0]])
    with pytest.raises(ValueError, match="contexts must be finite"):
        learner.freeze().means([[1.0, np.nan]])
