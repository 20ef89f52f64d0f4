"""Runs that are stopped: how long to let them go on, and what takes their place later."""

import io

import numpy as np
import pytest

import contextgap as cg
from contextgap.beliefs import Belief
from contextgap.learner.arguments import best_cutoffs, first_cutoff
from contextgap.models import Posterior

CONTEXTS = np.random.default_rng(1).uniform(size=(120, 1))


def times(contexts):
    x = np.atleast_2d(contexts)[:, 0]
    return np.stack([4 + 3 * np.sin(4 * x), 5 - 3 * np.sin(4 * x), 60 + 20 * x], axis=1)


def raced(count=60, most=100.0, **settings):
    learner = cg.Learner(3, reward="minimize", cutoff=most, seed=0, **settings)
    cutoffs, rng = [], np.random.default_rng(3)
    for x in CONTEXTS[:count]:
        arm, cutoff = learner.ask(x, cutoff=True)
        took = times(x)[0, arm] * np.exp(0.05 * rng.normal())
        learner.tell(x, arm, min(took, cutoff), censored=bool(took > cutoff))
        cutoffs.append((arm, cutoff))
    return learner, cutoffs


def test_runs_are_stopped_early_and_the_best_arm_is_found():
    learner, cutoffs = raced()
    assert all(0 < cutoff <= 100 for _, cutoff in cutoffs)
    truth = times(CONTEXTS)
    picks = np.array(learner.recommend(CONTEXTS), dtype=int)
    assert (truth[np.arange(len(truth)), picks] - truth.min(axis=1)).mean() < 0.5
    log = learner.state.model.observed
    told = np.where(np.isnan(log.limits), log.rewards, log.limits)
    assert learner.spent == pytest.approx(-told.sum())
    # The third arm takes 60 to 80 seconds, and is known to be slower long before that.
    slow = log.arms == 2
    assert slow.any()
    assert (-told[slow]).mean() < 40


def believed(mean, std):
    posterior = Posterior(-np.array(mean), np.array(std), np.zeros(2), 0.5, 2)
    return Belief(posterior, cg.PosteriorWidth(1.0))


def test_an_arm_that_was_always_cut_off_does_not_hide_what_others_show():
    learner, _ = raced(60)
    log = learner.state.model.observed
    assert (~np.isnan(log.limits[log.arms == 2])).all()
    assert learner.tuning.chosen not in ("constant", "cautious")
    assert learner.tuning.rewards in range(30, 61)  # all told by then, though some are not used


def gain_of(mean, other, variance, ridge, cutoff, rng):
    """Return the gain of a cutoff by simulation: f, then its time, then the mean given either."""
    f = rng.normal(mean, np.sqrt(variance), 400_000)
    time = f + rng.normal(0, np.sqrt(ridge), len(f))
    f, time = f[time > 0], time[time > 0]
    then = mean + variance / (variance + ridge) * (time - mean)
    cut = time > cutoff
    if cut.any():
        then = np.where(cut, f[cut].mean(), then)
    gain = min(f.mean(), other) - np.minimum(then, other).mean()
    return gain / np.minimum(np.maximum(time, 0), cutoff).mean()


@pytest.mark.parametrize(("mean", "other"), [(6.0, 5.0), (5.0, 6.0), (9.0, 5.0), (5.0, 5.0)])
def test_the_cutoff_gains_most_per_second_by_simulation(mean, other):
    rng, variance, ridge, most = np.random.default_rng(4), 4.0, 0.5, 64.0
    found = best_cutoffs(believed([mean, other], [2.0, 1.0]), ridge, most).cutoffs[0]
    grid = most * 0.5 ** np.arange(13.0)
    rates = [gain_of(mean, other, variance, ridge, cutoff, rng) for cutoff in grid]
    assert rates[list(grid).index(found)] > 0.9 * max(rates)


def test_where_nothing_is_to_be_gained_runs_are_short():
    found = best_cutoffs(believed([50.0, 1.0], [1.0, 0.1]), 0.5, 64.0)
    assert found.cutoffs.tolist() == [2.0, 2.0]
    assert found.expected[0] == pytest.approx(2.0)


def test_before_there_are_beliefs_cutoffs_double():
    assert first_cutoff(0.0, 128.0) == 1.0
    assert first_cutoff(3.0, 128.0) == 6.0
    assert first_cutoff(100.0, 128.0) == 128.0


@pytest.mark.parametrize("settings", [{"kernel": cg.Gaussian(0.4)}, {}])
def test_a_longer_run_takes_the_place_of_the_one_cut_off(settings):
    rows, arms = CONTEXTS[:30], [row % 3 for row in range(30)]
    took = times(rows)[np.arange(30), arms]

    def learner():
        return cg.Learner(3, reward="minimize", cutoff=100, seed=0, **settings).fit(
            rows, arms, took
        )

    told_once, cut_before = learner(), learner()
    new = np.array([0.5])
    cut_before.tell(new, 2, 10.0, censored=True)
    cut_before.tell(new, 2, 40.0, censored=True)
    cut_before.tell(new, 2, 70.0)
    told_once.tell(new, 2, 70.0)
    limits = cut_before.state.model.observed.limits[30:]
    np.testing.assert_array_equal(limits, [np.inf, np.inf, np.nan])
    if "kernel" in settings:
        one, two = (each.beliefs(CONTEXTS) for each in (told_once, cut_before))
        np.testing.assert_allclose(one.mean, two.mean, atol=1e-3)
        np.testing.assert_allclose(one.std, two.std, atol=1e-3)
    assert cut_before.recommend(CONTEXTS).tolist() == told_once.recommend(CONTEXTS).tolist()
    assert np.isfinite(cut_before.score().value.value)


def test_a_shorter_run_takes_no_place():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), reward="minimize", cutoff=50)
    learner.tell([0.0], 0, 40.0, censored=True)
    learner.tell([0.0], 0, 10.0, censored=True)
    learner.tell([0.0], 1, 10.0, censored=True)
    learner.tell([0.5], 0, 50.0)
    assert learner.state.model.observed.limits.tolist()[:3] == [-40.0, -10.0, -10.0]


def test_without_a_cutoff_trials_at_the_same_context_are_different_ones():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), reward="minimize")
    learner.fit([[0.0], [0.0]], [0, 0], [5.0, 9.0], censored=[True, False])
    learner.tell([0.0], 0, 7.0)
    np.testing.assert_array_equal(learner.state.model.observed.limits, [-5.0, np.nan, np.nan])


def test_a_batch_is_superseded_in_its_order():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), reward="minimize", cutoff=50)
    rows = [[0.0], [0.0], [1.0], [0.0]]
    learner.fit(rows, [0, 0, 0, 0], [5.0, 9.0, 3.0, 12.0], censored=[True, True, True, False])
    np.testing.assert_array_equal(
        learner.state.model.observed.limits, [np.inf, np.inf, -3.0, np.nan]
    )


def test_files_keep_cutoffs():
    learner, _ = raced(40)
    x, again = CONTEXTS[0], io.BytesIO()
    learner.tell(x, 2, 90.0)
    learner.save(again)
    again.seek(0)
    other = cg.Learner.load(again)
    assert other.state.cutoff == 100.0
    for x in CONTEXTS[60:70]:
        assert other.ask(x, cutoff=True) == learner.ask(x, cutoff=True)


def test_several_contexts_have_several_picks():
    learner, _ = raced(40)
    picks = learner.ask(CONTEXTS[:4], cutoff=True)
    assert len(picks) == 4
    assert {pick.arm for pick in picks} <= {0, 1, 2}
    assert learner.pending == 4


def test_trials_have_cutoffs():
    learner, _ = raced(40)
    file = io.BytesIO()
    learner.save(file)
    file.seek(0)
    other = cg.Learner.load(file)
    trial = learner.trial(CONTEXTS[80], cutoff=True)
    assert (trial.arm, trial.cutoff) == other.ask(CONTEXTS[80], cutoff=True)
    learner.tell(trial, trial.cutoff, censored=True)
    assert learner.spent == pytest.approx(other.spent + trial.cutoff)
    assert learner.trial(CONTEXTS[81]).cutoff is None
    with pytest.raises(TypeError, match="cutoff=True needs"):
        learner.trial(pool=CONTEXTS, cutoff=True)
    assert (
        cg.Learner.resume(learner.freeze(), cutoff=100).ask(CONTEXTS[0], cutoff=True).cutoff <= 100
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cg.Learner(2, cutoff=3.0), "cutoff is about times"),
        (lambda: cg.Learner(2, cutoff=-1, reward="minimize"), "cutoff must be positive"),
        (lambda: cg.Learner(2).ask([0.0], cutoff=True), "cutoff=True needs"),
        (
            lambda: cg.Learner(2, cutoff=9, reward="minimize").tell([0.0], 0, -1.0),
            "rewards must be times above 0",
        ),
    ],
)
def test_bad_cutoffs_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
