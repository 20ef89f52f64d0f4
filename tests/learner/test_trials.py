"""Trials with numbers, and whole runs of them."""

import io
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import contextgap as cg


def measure(context, arm):
    return float(context[0] if arm == "a" else -context[0])


def new(**settings):
    return cg.Learner(["a", "b"], kernel=cg.Gaussian(0.5), seed=0, **settings)


def saved(learner):
    file = io.BytesIO()
    learner.save(file)
    return file.getvalue()


@pytest.fixture
def contexts(rng):
    return rng.normal(size=(30, 1))


def test_a_trial_is_an_ask_and_a_tell(contexts):
    learner, other = new(), new()
    for number, context in enumerate(contexts):
        trial = learner.trial(context, metadata={"shift": "late"})
        assert (trial.number, trial.metadata) == (number, {"shift": "late"})
        assert trial.arm == other.ask(context)
        assert trial.context is context
        learner.tell(trial, measure(context, trial.arm))
        other.tell(context, trial.arm, measure(context, trial.arm))
    assert learner.pending == 0
    np.testing.assert_array_equal(learner.beliefs(contexts).mean, other.beliefs(contexts).mean)
    assert learner.ask([0.1]) == other.ask([0.1])


def test_trials_at_the_same_place_are_not_confused():
    learner = new(method="uniform", burn_in=0)
    first, _, second = (learner.trial([0.5], arms=arms) for arms in (["a"], ["b"], ["a", "b"]))
    assert first.arm == second.arm == "a"
    learner.tell(second, 1.0)
    assert [trial.number for trial in learner.pending_trials] == [0, 1]
    learner.tell(first, 2.0)
    log = learner.state.model.observed
    # Each reward is logged with the arms that its own trial could have had.
    assert log.eligible(np.arange(2)).tolist() == [[True, True], [True, False]]
    assert log.rewards.tolist() == [1.0, 2.0]


def test_a_cancelled_trial_leaves_nothing_but_its_number():
    learner = new()
    trial = learner.trial([0.0])
    trial.cancel()
    assert learner.pending == 0
    assert learner.trial([0.0]).number == 1
    for call in (trial.cancel, lambda: learner.tell(trial, 1.0)):
        with pytest.raises(ValueError, match="trial 0 is not pending"):
            call()


def test_trials_of_a_learner_that_was_loaded_go_on():
    learner = cg.Learner(["a", "b"], columns={"x": cg.Number(), "mode": cg.Category()}, seed=0)
    for mode in ("eco", "fast", "eco"):
        learner.trial({"x": 0.5, "mode": mode})
    copy = cg.Learner.load(io.BytesIO(saved(learner)))
    assert saved(copy) == saved(learner)
    assert [trial.context for trial in copy.pending_trials] == [
        {"x": 0.5, "mode": mode} for mode in ("eco", "fast", "eco")
    ]
    copy.tell(copy.pending_trials[2], 1.0)
    assert [trial.number for trial in copy.pending_trials] == [0, 1]
    with pytest.raises(ValueError, match="belongs to another learner"):
        copy.tell(learner.pending_trials[0], 1.0)


def test_trials_from_a_pool(contexts):
    learner, other = new(), new()
    table = pd.DataFrame(contexts, columns=["x"])
    trial = learner.trial(pool=table)
    context, arm = other.ask(pool=table)
    assert trial.context.equals(context)
    assert trial.arm == arm


def test_wrong_calls_change_nothing(contexts):
    learner = new()
    trial = learner.trial([0.0])
    before = saved(learner)
    with pytest.raises(TypeError, match="a trial and its reward, or a context"):
        learner.tell(trial, "a", 1.0)
    with pytest.raises(ValueError, match="trial takes one context"):
        learner.trial(contexts)
    with pytest.raises(TypeError, match="rewards must be a finite number, got 'high'"):
        learner.tell(trial, "high")
    with pytest.raises(TypeError, match="rewards must be a finite number, got None"):
        learner.tell([0.0], "a")
    assert saved(learner) == before


def test_a_run_is_the_loop_by_hand(contexts):
    learner, other = new(), new()
    assert learner.run(measure, contexts=contexts, n=25) is learner
    for context in contexts[:25]:
        arm = other.ask(context)
        other.tell(context, arm, measure(context, arm))
    assert len(learner.state.model) == 25
    np.testing.assert_array_equal(learner.means(contexts), other.means(contexts))


def test_a_second_run_begins_at_the_first_context_again(contexts):
    met = []
    learner = new().run(measure, contexts=contexts, n=3)
    learner.run(lambda x, _: met.append(x[0]) or 0.0, contexts=contexts, n=2)
    assert met == contexts[:2, 0].tolist()


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_runs_measure_in_parallel(contexts, kind):
    with kind(2) as executor:
        learner = new().run(measure, contexts=contexts, executor=executor, workers=3)
    assert len(learner.state.model) == 30
    assert sorted(learner.state.model.observed.contexts[:, 0]) == sorted(contexts[:, 0])
    assert learner.pending == 0


def test_trials_under_way_count_as_made():
    """Three workers wait for each other, so they have three trials at once."""
    together, most = [], []

    def slow(context, arm):
        together.append(arm)
        most.append(len(together))
        time.sleep(0.05)
        together.pop()
        return 0.0

    with ThreadPoolExecutor(3) as executor:
        new().run(slow, contexts=np.zeros((9, 1)), executor=executor, workers=3)
    assert max(most) == 3


def test_runs_end_when_a_rule_is_met(contexts):
    rule = cg.StoppingRule(1.2, reference=contexts)
    learner = new().run(measure, pool=contexts, until=rule, n=500)
    made = len(learner.state.model)
    assert learner.done(rule)
    assert 2 < made < 500
    assert len(learner.run(measure, pool=contexts, until=rule).state.model) == made


def test_callbacks_see_every_reward_and_may_end_the_run(contexts):
    seen = []

    def note(learner, trial, reward):
        seen.append((trial.number, learner.pending, reward))
        return trial.number == 4

    new().run(lambda x, _: None if x[0] > 0 else 1.0, contexts=contexts, callbacks=[note])
    expected = [None if x > 0 else 1.0 for x in contexts[:5, 0]]
    assert seen == [(number, 0, reward) for number, reward in enumerate(expected)]


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, StoppedError])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(contexts, tmp_path, error):
    path, calls = tmp_path / "run.cgap", []

    def failing(context, arm):
        calls.append(arm)
        if len(calls) == 12:
            raise error
        return measure(context, arm)

    whole = new().run(measure, contexts=contexts)
    learner = new()
    with pytest.raises(error):
        learner.run(failing, contexts=contexts, save=path)
    assert (learner.pending, len(learner.state.model)) == (0, 11)
    for again in (learner, new()):  # in the same process, or in another one
        copy = tmp_path / "copy.cgap"
        copy.write_bytes(path.read_bytes())
        again.run(measure, contexts=contexts, save=copy)
        np.testing.assert_array_equal(again.means(contexts), whole.means(contexts))
        assert again.state.trials == 30
        loaded = cg.Learner.load(copy)
        np.testing.assert_array_equal(loaded.means(contexts), whole.means(contexts))


def test_trials_that_were_under_way_are_measured_again(contexts, tmp_path):
    path, calls = tmp_path / "run.cgap", []

    def failing(context, arm):
        if context[0] == contexts[1, 0]:
            time.sleep(0.2)  # others finish before
            raise StoppedError
        return measure(context, arm)

    with ThreadPoolExecutor(3) as executor, pytest.raises(StoppedError):
        new().run(failing, contexts=contexts, save=path, executor=executor, workers=3)
    new().run(lambda x, a: calls.append(x[0]) or measure(x, a), contexts=contexts, save=path)
    learner = cg.Learner.load(path)
    assert contexts[1, 0] in calls
    assert sorted(learner.state.model.observed.contexts[:, 0]) == sorted(contexts[:, 0])


def test_files_of_other_runs_are_refused(contexts, tmp_path):
    path = tmp_path / "run.cgap"
    new().run(measure, contexts=contexts, n=3, save=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="whose run is finished"):
        new().run(measure, contexts=contexts, save=path)

    def fails(context, arm):
        raise StoppedError

    other = tmp_path / "other.cgap"

    def one(context, arm):
        return fails(context, arm) if other.exists() else 1.0

    with pytest.raises(StoppedError):
        new().run(one, contexts=contexts, save=other)
    told = new().run(measure, contexts=contexts, n=2)
    with pytest.raises(ValueError, match="so it is another"):
        told.run(measure, contexts=contexts, save=other)
    assert path.read_bytes() == before


def test_arguments_of_runs_are_checked(contexts):
    learner = new()
    for kind, message, settings in [
        (TypeError, "contexts= to meet in order, or pool=", {}),
        (TypeError, "contexts= to meet", {"contexts": contexts, "pool": contexts}),
        (TypeError, "never ends", {"pool": contexts}),
        (ValueError, "n must be at most the number of contexts, 30", {"n": 31}),
        (TypeError, "until", {"until": 0.1}),
        (TypeError, "workers= is about an executor", {"workers": 2}),
        (FileNotFoundError, "no folder", {"save": "nowhere/run.cgap"}),
    ]:
        given = (
            settings
            if {"pool", "contexts"} & {*settings} or not settings
            else {**settings, "contexts": contexts}
        )
        with pytest.raises(kind, match=message):
            learner.run(measure, **given)
    assert learner.state.trials == 0


def test_a_bar_is_shown_in_terminals(contexts, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    new().run(measure, contexts=contexts)
    assert "30/30" in capsys.readouterr().err
    new().run(measure, contexts=contexts, progress=False)
    assert capsys.readouterr().err == ""
