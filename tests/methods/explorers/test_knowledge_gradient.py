"""The knowledge gradient's formula by simulation, its references, and its picks."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.methods.explorers import KnowledgeGradient, LookAhead
from contextgap.methods.explorers.base import spread_over
from contextgap.methods.explorers.knowledge_gradient import (
    _average_gains,
    _factors,
    _highest_gains,
    _several,
    distances,
    gain,
    highest_line,
)
from contextgap.studies.experiments import run
from contextgap.studies.problems import Sinusoids
from tests.methods.explorers import dense
from tests.oracle_model import DenseModel

SETTINGS = {"kernel": cg.Gaussian(0.4), "ridge": 0.02, "prior_mean": 0.3, "seed": 11}
EXPLORE, EXPLOIT = Sinusoids(n_arms=4, noise=0.1).sample(150, seed=3).split(130, 20)
GIVEN = np.linspace(0, 6, 25)[:, None]
EXPLORERS = {
    "seen": KnowledgeGradient(),
    "few seen": KnowledgeGradient(most=7),
    "local": KnowledgeGradient(local=True),
    "given": KnowledgeGradient(references=GIVEN),
}
REPEATED = {
    "seen, repeated": KnowledgeGradient(most=7, repeats=20),
    "given, repeated": KnowledgeGradient(references=GIVEN, repeats=16),
}
ALL = {**EXPLORERS, **REPEATED}


def expected_gain(ahead):
    """Every arm's gain, averaged over the reference contexts."""
    return gain(distances(ahead.mean), ahead.move).mean(axis=0)


def method(explorer):
    return cg.Method(explorer=explorer, recommender=cg.HighestMean())


def test_gain_against_simulation(rng):
    mean, move = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    draws = rng.normal(size=400_000)
    for arm in range(3):
        best_other = np.delete(mean, arm, axis=1).max(axis=1)
        after = np.maximum(mean[:, arm, None] + move[:, arm, None] * draws, best_other[:, None])
        gains = (after - mean.max(axis=1)[:, None]).mean(axis=0)
        error = 4 * gains.std() / np.sqrt(len(draws))
        assert expected_gain(LookAhead(mean, move))[arm] == pytest.approx(gains.mean(), abs=error)


@pytest.mark.parametrize("size", [1e-3, 0.1, 3.0])
def test_gains_of_several_rewards_at_once_are_those_one_by_one(rng, size):
    mean, move = rng.normal(size=(30, 4)), size * rng.normal(size=(30, 4)) ** 3
    factors = np.sort(rng.uniform(1, 16, (5, 4)), axis=0)
    want = [gain(distances(mean), move * factor).mean(axis=0) for factor in factors]
    found = _average_gains(distances(mean), move, factors)
    np.testing.assert_allclose(found, want, rtol=1e-14)
    assert (found > 0).any()


@pytest.mark.parametrize("size", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("ridge", [1e-3, 10.0])
def test_of_many_gains_those_left_out_are_not_the_highest(rng, size, ridge):
    distance, times = rng.exponential(size=(30, 200)), _several(256)[:, None]
    move = size * rng.normal(size=(30, 200)) ** 3
    factors = _factors(rng.uniform(0.1, 1, 200), ridge, times)
    want = (_average_gains(distance, move, factors) / times).max(axis=0)
    for best in (0.0, np.median(want), want.max(), 2 * want.max()):
        found = _highest_gains(distance, move, factors, times, np.ones(move.shape[1]), best)
        assert ((found == want) | (found == 0)).all()
        assert want[found == 0].max(initial=0.0) <= max(best, found.max())


def test_nothing_to_gain_where_nothing_moves():
    mean = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(expected_gain(LookAhead(mean, np.zeros((2, 3)))), 0)
    far = LookAhead(np.array([[0.0, 1e6]]), np.full((1, 2), 1e-9))
    np.testing.assert_array_equal(expected_gain(far), 0)
    np.testing.assert_array_equal(expected_gain(LookAhead(np.ones((4, 1)), np.ones((4, 1)))), 0)


def test_references_are_spread_over_what_was_seen():
    assert spread_over(0, 4).tolist() == []
    assert spread_over(4, 4).tolist() == [0, 1, 2, 3]
    assert spread_over(5, 4).tolist() == [0, 2, 4]
    assert spread_over(17, 4).tolist() == [0, 8, 16]
    for seen in range(1, 300):
        before, now = spread_over(seen - 1, 10), spread_over(seen, 10)
        assert 5 < len(now) <= 10 or len(now) == seen
        assert set(now) - set(before) <= {seen - 1}


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_learner_picks_by_the_dense_formula(name):
    explorer = EXPLORERS[name]
    learner = cg.Learner(4, method=method(explorer), **SETTINGS)
    told = []
    for step, context in enumerate(EXPLORE.contexts):
        arm = learner.ask(context)
        if step >= 4:
            places = spread_over(0 if explorer.local else len(told), explorer.most)
            seen = np.array([x for x, _, _ in told])[places]
            given = name == "given"
            ahead = dense.look_ahead(
                cg.Gaussian(0.4), 0.02, 0.3, told, [], 4, context, GIVEN if given else seen
            )
            end = -1 if given else None
            gains = expected_gain(LookAhead(ahead.mean[:end], ahead.move[:end]))
            assert gains[arm] >= gains.max() - 1e-9
        told.append((context, arm, float(EXPLORE.observations[step, arm])))
        learner.tell(*told[-1])


def gain_after(model, x, references, times):
    """By refitting: what an arm's reward explains of a variance is the square of its move."""
    before = model.posterior(references, range(4))
    moves = np.empty((len(references), 4))
    for arm in range(4):
        told = copy.deepcopy(model)
        for _ in range(times):
            told.observe(x, arm, 0.0)
        after = told.posterior(references, [arm]).std[:, 0]
        moves[:, arm] = np.sqrt(np.maximum(before.std[:, arm] ** 2 - after**2, 0))
    return expected_gain(LookAhead(before.mean, moves)) / times


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_rewards_are_compared_by_their_gain_per_reward(name):
    settings = {"kernel": cg.Gaussian(0.4), "ridge": 2.0, "prior_mean": 0.3}
    learner = cg.Learner(4, method=method(REPEATED[name]), seed=11, **settings)
    model, single = DenseModel(cg.Gaussian(0.4), 2.0, 4, 0.3), 0
    explored = EXPLORE.take(np.arange(60))
    every_arm = (
        np.repeat(explored.contexts, 4, axis=0),
        np.tile(np.arange(4), len(explored)),
        explored.observations.ravel(),
    )
    learner.fit(*every_arm)
    model.observe_many(*every_arm)
    for x in EXPLOIT.contexts:
        seen = model.observed.contexts[spread_over(len(model), 7)]
        references = GIVEN if "given" in name else np.vstack([seen, x])
        gains = [gain_after(model, x, references, times) for times in (1, 4, 16)]
        best, arm = np.max(gains, axis=0), learner.ask(x)
        single += best.argmax() == gains[0].argmax()
        assert best[arm] >= best.max() - 1e-9
        learner.drop_pending()
    assert single < len(EXPLOIT)  # so that repeats made a difference


@pytest.mark.parametrize("sharing", [0.0, 0.6])
@pytest.mark.parametrize("local", [False, True])
def test_a_pool_compares_gains_per_reward(sharing, local, rng):
    contexts, arms = rng.uniform(size=(30, 1)), rng.integers(3, size=30)
    explorer = KnowledgeGradient(local=local, repeats=64)
    learner = cg.Learner(
        3, kernel=cg.Gaussian(0.3), ridge=0.4, sharing=sharing, method=explorer, seed=0
    ).fit(contexts, arms, rng.normal(size=30))
    pool = rng.uniform(size=(12, 1))
    context, arm = learner.ask(pool=pool)
    picked = (int(np.flatnonzero(pool[:, 0] == context[0])[0]), arm)
    model = learner.state.model

    def gains(times):
        """The reward of every arm at every context of the pool, tried on a copy of the model."""
        found = np.empty((12, 3))
        for row, x in enumerate(pool):
            at = x[None] if local else pool
            belief = model.posterior(at, range(3))
            for tried in range(3):
                variance = model.posterior(x[None], [tried]).std[0, 0] ** 2
                moves = model.moves(x[None], tried, at)[:, 0] * np.sqrt(
                    (variance + 0.4) / (variance + 0.4 / times)
                )
                if moves.ndim == 1:
                    moves = np.eye(3)[tried] * moves[:, None]
                found[row, tried] = highest_line(belief.mean, moves).mean() / times
        return found

    learner.drop_pending()
    best = np.max([gains(times) for times in (1, 4, 16, 64)], axis=0)
    assert best[picked] >= best.max() - 1e-9


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("prior_mean", [0.0, "auto"])
def test_a_run_picks_as_a_learner(name, prior_mean):
    settings = {**SETTINGS, "prior_mean": prior_mean, "method": method(ALL[name])}
    learner = cg.Learner(4, burn_in=3, **settings)
    arms = []
    for context, rewards in zip(EXPLORE.contexts, EXPLORE.observations, strict=True):
        arms.append(learner.ask(context))
        learner.tell(context, arms[-1], rewards[arms[-1]])
    assert run(EXPLORE, EXPLOIT, burn_in=3, **settings).arms.tolist() == arms


def test_given_references_are_kept_in_files(tmp_path):
    table = pd.DataFrame({"x": [0.5, 1.5], "y": [2.0, 3.0]})
    explorer = KnowledgeGradient(references=table)
    assert explorer == KnowledgeGradient(references=((0.5, 2.0), (1.5, 3.0)))
    learner = cg.Learner(3, method=method(explorer), seed=0)
    learner.save(tmp_path / "l.cgap")
    assert cg.Learner.load(tmp_path / "l.cgap").method == learner.method


@pytest.mark.parametrize("name", ALL)
def test_a_loaded_learner_goes_on_as_the_saved_one(name, tmp_path, rng):
    learner = cg.Learner(3, method=method(ALL[name]), **SETTINGS)
    for x in rng.uniform(0, 6, size=(40, 1)):
        learner.tell(x, learner.ask(x), rng.normal())
    learner.ask(rng.uniform(0, 6, size=(5, 1)))
    learner.save(tmp_path / "l.cgap")
    loaded = cg.Learner.load(tmp_path / "l.cgap")
    for x, reward in zip(rng.uniform(0, 6, size=(60, 1)), rng.normal(size=60), strict=True):
        arm = learner.ask(x)
        assert loaded.ask(x) == arm
        learner.tell(x, arm, reward)
        loaded.tell(x, arm, reward)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"most": 0}, ValueError, "most must be at least 1, got 0"),
        ({"most": 1.5}, TypeError, "most must be a whole number"),
        ({"local": 1}, TypeError, "local must be True or False, got 1"),
        ({"references": []}, ValueError, "references"),
        ({"references": [1.0]}, ValueError, "references must be a table of contexts"),
        ({"references": np.empty((0, 2))}, ValueError, "references must be a table of contexts"),
        ({"references": [[np.nan]]}, ValueError, "references"),
        ({"references": [[1.0]], "local": True}, ValueError, "references must be None"),
    ],
)
def test_bad_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        KnowledgeGradient(**arguments)


def test_references_of_another_dimension():
    wrong = method(KnowledgeGradient(references=[[1.0, 2.0]]))
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), method=wrong, burn_in=0)
    with pytest.raises(ValueError, match="references must have 1 numbers each"):
        learner.ask([0.0])
    assert learner.pending == 0
    with pytest.raises(ValueError, match="references must have 1 numbers each"):
        run(EXPLORE, EXPLOIT, method=wrong)


@settings(max_examples=60, deadline=None)
@given(n_arms=st.integers(1, 5), seed=st.integers(0, 10**6), kind=st.sampled_from(["any", "ties"]))
def test_the_highest_of_several_lines_is_that_of_quadrature(n_arms, seed, kind):
    rng = np.random.default_rng(seed)
    mean, slope = rng.normal(size=(4, n_arms)), rng.normal(size=(4, n_arms))
    if kind == "ties":
        mean, slope = mean.round(), slope.round()
    z = np.linspace(-10, 10, 20001)
    lines = (mean[..., None] + slope[..., None] * z).max(axis=1)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    expected = (lines * density).sum(axis=-1) * (z[1] - z[0]) - mean.max(axis=1)
    np.testing.assert_allclose(highest_line(mean, slope), expected, atol=1e-6)


def test_the_highest_line_is_the_gain_where_one_arm_moves(rng):
    mean, move = rng.normal(size=(7, 4)), rng.normal(size=(7, 1))
    for arm in range(4):
        slope = move * (np.arange(4) == arm)
        expected = gain(distances(mean)[:, [arm]], move)[:, 0]
        np.testing.assert_allclose(highest_line(mean, slope), expected, atol=1e-12)


def burnt_in_on_equal_rewards(pool=None):
    """Three arms whose first rewards never vary, so that the learner believes to know them."""
    rng, learner = np.random.default_rng(1), cg.Learner(["a", "b", "c"], seed=0)

    def reward(x, arm):
        return {"a": 0.0, "b": 0.5, "c": 1.0 if x[0] < 0.85 else 0.0}[arm]

    for step in range(120):
        wanted = rng.uniform(0, 0.8 if step < 12 else 1.0, (1 if pool is None else pool, 2))
        x, arm = (wanted[0], learner.ask(wanted[0])) if pool is None else learner.ask(pool=wanted)
        learner.tell(x, arm, reward(x, arm))
    tested = rng.uniform(0, 1, (300, 2))
    missed = [max(reward(x, b) for b in "abc") - reward(x, learner.recommend(x)) for x in tested]
    return learner, float(np.mean(missed))


@pytest.mark.parametrize("pool", [None, 20])
def test_who_believes_that_nothing_is_to_be_gained_goes_on_exploring(pool):
    learner, missed = burnt_in_on_equal_rewards(pool)
    assert max(learner.counts.values()) < 90  # of 120; all but 8 went to the first arm
    assert missed < 0.03  # the best single arm misses 0.08


def test_without_gain_the_pick_is_that_of_contextual_gap(rng):
    contexts, arms = rng.uniform(size=(40, 2)), np.arange(40) % 3
    settings = {"kernel": cg.Gaussian(50.0), "ridge": 1e-9, "seed": 0}
    asked, picks = rng.uniform(size=(20, 2)), []
    for explorer in (KnowledgeGradient(repeats=16), cg.METHODS["contextual-gap"].explorer):
        learner = cg.Learner(3, method=method(explorer), **settings)
        learner.fit(contexts, arms, 1e3 * arms.astype(float))
        picks.append([learner.ask(x) for x in asked])
        learner.drop_pending()
    assert picks[0] == picks[1]
    assert 0 not in picks[0]  # the worst arm, and the first
