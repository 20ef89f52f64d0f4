"""The search for hyperparameters, a little at a time: optimiser, stacks, continuation."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

import contextgap as cg
from contextgap.kernels import Constant
from contextgap.models.tuning import AmortisedSearch, learn
from contextgap.models.tuning.descent import Evaluation, descend, finished
from contextgap.models.tuning.search import Search, Terms


@pytest.mark.parametrize("upper", [9.0, 0.7])
@pytest.mark.parametrize("size", [2, 5])
def test_descends_as_low_as_scipy_within_bounds(size, upper):
    def evaluation(x):
        return Evaluation(1.0, lambda: np.append(rosen(x), rosen_der(x)))

    start, bounds = np.linspace(-1.2, 0.5, size), [(-2.0, upper)] * size
    loss, found = finished(descend(evaluation, start, bounds, 500, 1e-12))
    wanted = minimize(rosen, start, jac=rosen_der, bounds=bounds, method="L-BFGS-B")
    assert loss == pytest.approx(rosen(found))
    assert (found <= upper).all()
    assert loss <= wanted.fun + 1e-4


def data(sizes, seed=0):
    rng = np.random.default_rng(seed)
    contexts = [rng.normal(size=(n, 2)) * [1, 30] + 7 for n in sizes]
    return contexts, [np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=len(x)) for x in contexts]


KERNELS = [
    cg.Gaussian((1.0, 1.0)) + cg.Linear((1.0, 30.0), (7.0, 7.0)) + Constant(),
    cg.Matern((1.0, 1.0), 0.5),
    cg.Linear() + Constant(),
]


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    kernel=st.sampled_from(KERNELS),
    criterion=st.sampled_from(["evidence", "loo"]),
)
def test_arms_computed_with_together_give_what_they_give_alone(sizes, kernel, criterion):
    together = Search(Terms.of(kernel), *data(sizes), criterion)
    alone = copy.copy(together)
    alone.stacks = [[arm] for arm in range(len(sizes))]
    contexts, rewards = data(sizes)
    if len(together.reference):
        scaled = (np.vstack(contexts) - np.vstack(contexts).mean(axis=0)) / together.reference
        alone.contexts = [each[None] for each in np.split(scaled, np.cumsum(sizes)[:-1])]
    else:
        alone.fixed = alone._kernels(together.terms.main, contexts)
    if together.terms.trend is not None:
        alone.trends = alone._kernels(together.terms.trend, contexts)
    alone._set_rewards(rewards)
    theta = together.start(-0.3, 0.05)
    loss, slope = together.loss_and_slope(theta)
    wanted_loss, wanted_slope = alone.loss_and_slope(theta)
    assert loss == pytest.approx(wanted_loss, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(slope, wanted_slope, rtol=1e-7, atol=1e-8 * (1 + abs(loss)))
    together_errors, errors = (finished(s.hyperparameters(theta)).errors for s in (together, alone))
    for one, other in zip(together_errors, errors, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_duplicate_contexts_are_at_distance_zero():
    x = np.array([[1e3, 1e-3], [1e3, 1e-3], [2e3, 5e-3]])
    search = Search(Terms.of(cg.Matern((1.0, 1.0), 0.5)), [x], [np.arange(3.0)], "evidence")
    search.terms = search.terms.with_bandwidths(np.array([1e-2, 1e-2]))
    _, (part,) = search._score(search.start(-4.0, 0.1))
    assert part.steepness[0][0, 1] == 0.0


@pytest.mark.parametrize("portion", [2e6, 3e7, 1e9])
def test_the_result_does_not_depend_on_the_portions(portion):
    contexts, rewards = data((30, 30, 25))
    wanted, report = learn(contexts, rewards)
    search, operations, calls = AmortisedSearch(contexts, rewards), 0.0, 0
    while (found := search.result(operations)) is None:
        operations, calls = operations + portion, calls + 1
        if calls % 7 == 3:
            search = pickle.loads(pickle.dumps(search)) if calls % 2 else copy.deepcopy(search)
    assert calls > 3 or portion > 1e8
    assert found[0].kernel == wanted.kernel
    assert found[1] == report
    again = AmortisedSearch(contexts, rewards)
    assert again.result() is not None  # finished ahead of time,
    assert again.result(operations - portion) is None  # but not to be used before its time
    assert again.result(operations) == again.result()


def test_an_interrupted_search_goes_on(monkeypatch):
    contexts, rewards = data((20, 20))
    wanted = learn(contexts, rewards)[0].kernel
    search, whole, calls = AmortisedSearch(contexts, rewards), Search.loss_and_slope, []

    def interrupted(self, theta):
        calls.append(1)
        if len(calls) % 10 == 5:
            raise KeyboardInterrupt
        return whole(self, theta)

    monkeypatch.setattr(Search, "loss_and_slope", interrupted)
    found = None
    while found is None:
        try:
            found = search.result()
        except KeyboardInterrupt:
            continue
    assert found[0].kernel == wanted


def rewards_of(x, arm):
    return float(np.sin(3 * x[0] + 2 * arm) + 0.3 * x[1])


def play(learner, contexts):
    arms = []
    for x in contexts:
        arms.append(learner.ask(x))
        learner.tell(x, arms[-1], rewards_of(x, arms[-1]))
    return arms


def in_search(seed=0):
    """Return a learner that has begun a search and not finished it, and more contexts."""
    contexts = np.random.default_rng(seed).uniform(-1, 1, (160, 2))
    learner = cg.Learner(3, seed=seed)
    for step in range(40, 160):
        play(learner, contexts[:40] if step == 40 else contexts[step - 1 : step])
        if learner.state.searching is not None:
            return learner, contexts[step:]
    raise AssertionError("no search lasted longer than one tell")


def test_a_learner_saved_in_a_search_goes_on_as_the_saved_one(tmp_path):
    learner, contexts = in_search()
    learner.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    others = [again, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    wanted = play(learner, contexts)
    for other in others:
        assert play(other, contexts) == wanted
        assert other.kernel == learner.kernel
        assert other.tuning == learner.tuning


def test_freezing_and_scoring_finish_the_search_and_leave_the_learner_alone():
    learner, contexts = in_search()
    twin = copy.deepcopy(learner)
    began = learner.state.searching.search.rewards
    policy = learner.freeze()
    assert learner.state.searching is not None
    tuned = cg.Learner(3, seed=0)
    log = twin.state.model.observed
    kernel = learn(*log.by_arm(began), last=twin.tuning)[0].kernel
    assert policy.kernel == kernel != learner.kernel
    assert learner.score() == policy.score()
    assert play(learner, contexts) == play(twin, contexts)
    assert tuned.kernel != kernel


def test_arms_and_columns_that_are_added_begin_the_search_again():
    learner, contexts = in_search()
    learner.add_arm(3)
    assert learner.state.searching is None
    learner.tell(contexts[0], 3, 0.5)
    assert learner.state.searching.search.rewards == len(learner.state.model)


def test_a_few_rewards_at_a_time_pause_the_search_and_a_log_does_not():
    learner, contexts = in_search()
    learner.fit(contexts[:2], [0, 1], [0.1, 0.2])
    assert learner.state.searching is None
    assert learner.tuning.rewards == len(learner.state.model)
    learner, contexts = in_search()
    before = learner.tuning
    learner.tell(contexts[:2], [0, 1], [0.1, 0.2])
    assert learner.state.searching is not None or learner.tuning != before


def test_a_file_cannot_rest_a_search_on_rewards_that_it_does_not_have(tmp_path):
    learner, _ = in_search()
    search = learner.state.searching.search
    search._given[1][0] = np.append(search._given[1][0], np.zeros(500))
    learner.save(tmp_path / "l.cgap")
    with pytest.raises(cg.FileFormatError, match="more rewards than there are"):
        cg.Learner.load(tmp_path / "l.cgap")
