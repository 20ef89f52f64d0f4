"""The learner against the dense oracle, and its promises one by one."""

import copy
import functools
import pickle
import sys
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import contextgap as cg
from contextgap.methods.explorers import (
    ContextualGap,
    EpsilonGreedy,
    KernelTS,
    KnowledgeGradient,
    Uniform,
)
from tests.oracle import DenseLearner

RANDOM = ("kernel-ts", "epsilon-greedy", "top-two-ts", "planned-sampling", "proportional-response")
DETERMINISTIC = [name for name in cg.METHODS if name not in RANDOM]


def random_problem(seed, n_arms, dimension):
    """Smooth random reward functions, one per arm."""
    rng = np.random.default_rng(seed)
    frequency = rng.normal(size=(dimension, n_arms, 5)) / np.sqrt(dimension)
    phase = rng.uniform(0, 2 * np.pi, size=(n_arms, 5))
    contexts = rng.normal(size=(300, dimension))
    rewards = np.cos(np.einsum("nd,dak->nak", contexts, frequency) + phase).sum(axis=-1)
    return contexts, rewards + 0.1 * rng.normal(size=rewards.shape)


def near_tie(oracle, context, picks):
    """Whether two picks are told apart by rounding alone."""
    belief = oracle.belief(context)
    keys = [belief.half_width[0], belief.upper[0], belief.gap[0]]
    if isinstance(oracle.method.explorer, KnowledgeGradient):
        keys.append(oracle.method.explorer.gain(oracle.moment(context)))
    return any(abs(key[picks[0]] - key[picks[1]]) < 1e-9 for key in keys)


@given(
    method=st.sampled_from(DETERMINISTIC),
    n_arms=st.integers(2, 8),
    dimension=st.integers(1, 6),
    seed=st.integers(0, 1000),
    width=st.sampled_from([cg.PosteriorWidth(1.0), cg.PosteriorWidth(0.3), cg.RidgeWidth(0.5)]),
    prior_mean=st.sampled_from([0.0, 1.5, "auto"]),
    burn_in=st.integers(0, 3),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_picks_and_recommends_as_the_dense_oracle(
    method, n_arms, dimension, seed, width, prior_mean, burn_in
):
    contexts, rewards = random_problem(seed, n_arms, dimension)
    contexts, rewards = contexts[:100], rewards[:100]
    settings = {
        "kernel": cg.Gaussian(np.sqrt(dimension)),
        "ridge": 0.05,
        "width": width,
        "prior_mean": prior_mean,
        "burn_in": burn_in,
    }
    learner = cg.Learner(n_arms, method=method, **settings)
    oracle = DenseLearner(n_arms, method=cg.METHODS[method], **settings)
    for context, row in zip(contexts, rewards, strict=True):
        expected, found = oracle.ask(context), learner.ask(context)
        if expected != found:
            assert near_tie(oracle, context, (expected, found))
            learner.drop_pending()
        oracle.tell(context, expected, row[expected])
        learner.tell(context, expected, row[expected])
    queries = np.random.default_rng(seed + 1).normal(size=(15, dimension))
    belief = oracle.belief(queries)
    expected = {
        "contextual-gap": lambda: belief.leader,
        "contextual-gap-history": lambda: oracle.look_back(queries)[0],
        "kernel-ucb": lambda: belief.upper.argmax(axis=-1),
    }.get(method, lambda: belief.mean.argmax(axis=-1))()
    np.testing.assert_array_equal(learner.recommend(queries), expected)


@pytest.mark.parametrize("last", [None, 1, 2, 25, 10_000])
@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("steps", [1, 7, 60])
def test_look_back_against_a_refit_at_every_step(last, n_arms, steps):
    contexts, rewards = random_problem(7, n_arms, 2)
    method = cg.Method(explorer=ContextualGap(), recommender=cg.SmallestGapInHistory(last))
    settings = {"kernel": cg.Matern(1.5), "ridge": 0.02, "width": cg.PosteriorWidth(2.0)}
    learner = cg.Learner(n_arms, method=method, burn_in=2, prior_mean=0.3, **settings)
    oracle = DenseLearner(n_arms, method=method, burn_in=2, prior_mean=0.3, **settings)
    for context, row in zip(contexts[:steps], rewards, strict=False):
        arm = learner.ask(context)
        learner.tell(context, arm, row[arm])
        oracle.tell(context, arm, row[arm])
    queries = contexts[200:260]
    leader, gap = oracle.look_back(queries, last)
    policy = learner.freeze()
    np.testing.assert_array_equal(policy.recommend(queries), leader)
    np.testing.assert_allclose(policy.certificate(queries).bound, np.maximum(gap, 0), atol=1e-9)


def test_look_back_of_one_step_is_the_smallest_gap():
    contexts, rewards = random_problem(3, 4, 2)
    recommended = []
    for recommender in (cg.SmallestGap(), cg.SmallestGapInHistory(1)):
        method = cg.Method(explorer=ContextualGap(), recommender=recommender)
        learner = cg.Learner(4, method=method)
        for context, row in zip(contexts[:60], rewards, strict=False):
            arm = learner.ask(context)
            learner.tell(context, arm, row[arm])
        recommended.append(learner.recommend(contexts))
    np.testing.assert_array_equal(*recommended)


def taught(method="contextual-gap", steps=40, seed=0, arms=("a", "b", "c"), **settings):
    contexts, rewards = random_problem(seed, len(arms), 2)
    learner = cg.Learner(arms, method=method, seed=seed, **settings)
    for context, row in zip(contexts[:steps], rewards, strict=False):
        arm = learner.ask(context)
        learner.tell(context, arm, row[list(arms).index(arm)])
    return learner


def settings_with(method):
    """Hyperparameters are learnt with one method alone, since that takes most of the time."""
    learnt = method == "contextual-gap"
    return {"seed": 5} if learnt else {"seed": 5, "kernel": cg.Gaussian(1.0), "ridge": 0.1}


@functools.cache
def taught_once(method):
    return taught(method, **settings_with(method))


def taught_copy(method):
    """A learner of one's own, without learning once more."""
    return copy.deepcopy(taught_once(method))


@pytest.mark.parametrize("method", list(cg.METHODS))
def test_every_method_explores_decides_and_deploys(method):
    learner = taught_copy(method)
    queries = random_problem(1, 3, 2)[0]
    assert sum(learner.counts.values()) == 40
    assert set(learner.recommend(queries)) <= {"a", "b", "c"}
    decision = learner.decide(queries[0])
    assert decision.arm == learner.ask(queries[0])
    assert learner.method.name == method


@pytest.mark.parametrize("method", list(cg.METHODS))
def test_the_same_seed_gives_the_same_run(method):
    first, second = taught_copy(method), taught(method, **settings_with(method))
    queries = random_problem(1, 3, 2)[0]
    assert first.counts == second.counts
    np.testing.assert_array_equal(first.recommend(queries), second.recommend(queries))


@pytest.mark.parametrize("method", RANDOM)
def test_decide_changes_nothing(method):
    watched, plain = taught_copy(method), taught_copy(method)
    contexts = random_problem(2, 3, 2)[0][:30]
    for context in contexts:
        watched.decide(context)
    assert [watched.ask(x) for x in contexts] == [plain.ask(x) for x in contexts]


def test_burn_in_cycles_through_the_arms():
    learner = cg.Learner(3, burn_in=2)
    picks = []
    for x in np.linspace(0, 1, 6):
        picks.append(learner.ask([x]))
        assert learner.decide([x]).reason == "burn-in" or len(picks) == 6
        learner.tell([x], picks[-1], 0.0)
    assert picks == [0, 1, 2, 0, 1, 2]


def test_uniform_divides_the_budget_equally():
    assert taught("uniform", steps=42).counts == {"a": 14, "b": 14, "c": 14}


def test_random_uniform_tries_every_arm():
    method = cg.Method(explorer=Uniform(random=True), recommender=cg.HighestMean())
    counts = taught(method, steps=300).counts
    assert min(counts.values()) > 60
    assert len(set(counts.values())) > 1


def test_epsilon_greedy_explores_less_and_less():
    explorer = EpsilonGreedy(decay=0.95)
    method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
    learner = cg.Learner(["good", "bad"], method=method, kernel=cg.Gaussian(1.0), seed=3)
    picks = []
    for x in np.linspace(0, 1, 200):
        picks.append(learner.ask([x]))
        learner.tell([x], picks[-1], 1.0 if picks[-1] == "good" else 0.0)
    assert picks[:30].count("bad") > 3
    assert picks[120:].count("bad") == 0


def test_thompson_draws_follow_the_posterior():
    """With known means and widths, the share of picks is that of two normals compared."""
    method = cg.Method(explorer=KernelTS(), recommender=cg.PosteriorSample())
    learner = cg.Learner(2, method=method, kernel=cg.Gaussian(1.0), ridge=1.0, seed=0)
    learner.tell([[0.0], [0.0]], [0, 1], [1.0, 0.0])
    decision = learner.decide([0.0])
    gap = (decision.mean[0] - decision.mean[1]) / np.hypot(*decision.std)
    expected = ndtr(gap)
    picks = []
    for _ in range(4000):
        picks.append(learner.ask([0.0]))
        learner.drop_pending()
    assert picks.count(0) / 4000 == pytest.approx(expected, abs=0.03)
    deployed = learner.recommend(np.linspace(0, 1e-6, 4000)[:, None])
    assert (deployed == 0).mean() == pytest.approx(expected, abs=0.03)


def test_a_frozen_random_policy_is_a_function():
    policy = taught("kernel-ts").freeze()
    queries = random_problem(1, 3, 2)[0]
    whole = policy.recommend(queries)
    np.testing.assert_array_equal(policy.recommend(queries[::-1])[::-1], whole)
    assert [policy.recommend(x) for x in queries[:20]] == list(whole[:20])


def test_a_batch_spreads_over_the_arms():
    """Without accounting for pending picks, ten asks at one context would all agree."""
    learner = taught(steps=12)
    context = np.zeros(2)
    alone = learner.decide(context)
    batch = learner.ask(np.tile(context, (10, 1)))
    assert batch[0] == alone.arm
    assert len(set(batch)) > 1
    assert (learner.decide(context).pending_std < alone.std).any()
    np.testing.assert_allclose(learner.decide(context).mean, alone.mean)


def test_a_batch_is_one_ask_after_another():
    contexts = random_problem(2, 3, 2)[0][:25]
    one, batch = taught(), taught()
    assert [one.ask(x) for x in contexts] == list(batch.ask(contexts))


@pytest.mark.parametrize("method", ["gain-or-gap", "contextual-gap"])
@pytest.mark.parametrize(
    "settings", [{"sharing": 0.0}, {"sharing": 0.8}, {"points": 12}], ids=["exact", "joint", "few"]
)
def test_a_large_batch_is_one_ask_after_another(method, settings):
    contexts, rewards = random_problem(2, 3, 2)
    logged, arms = contexts[:90], np.arange(90) % 3
    batch, mask = contexts[90:], np.ones((len(contexts) - 90, 3), dtype=bool)
    mask[::4, 1] = False
    how = {"kernel": cg.Gaussian(0.7), "method": method, "seed": 0, **settings}
    one, many = (
        cg.Learner(3, **how).fit(logged, arms, rewards[:90][np.arange(90), arms]) for _ in range(2)
    )
    each = [one.ask(x, arms=np.flatnonzero(row)) for x, row in zip(batch, mask, strict=True)]
    assert list(many.ask(batch, arms=mask)) == each
    assert [one.ask(x) for x in batch[:12]] == list(many.ask(batch[:12]))
    np.testing.assert_allclose(
        many.decide(batch[0]).pending_std, one.decide(batch[0]).pending_std, rtol=1e-9
    )


def test_rewards_may_come_late_and_in_any_order():
    contexts, rewards = random_problem(4, 3, 2)
    prompt, late = (cg.Learner(3, kernel=cg.Gaussian(1.0)) for _ in range(2))
    picks = late.ask(contexts[:30])
    assert late.pending == 30
    order = np.random.default_rng(0).permutation(30)
    for i in order:
        late.tell(contexts[i], picks[i], rewards[i, picks[i]])
    assert late.pending == 0
    for i in range(30):
        prompt.tell(contexts[i], picks[i], rewards[i, picks[i]])
    first, second = prompt.decide(contexts[50]), late.decide(contexts[50])
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-9)
    np.testing.assert_allclose(first.std, second.std, rtol=1e-9)


def test_the_burn_in_counts_picks_that_are_pending():
    learner = cg.Learner(3)
    assert list(learner.ask(np.zeros((3, 1)))) == [0, 1, 2]


def test_rewards_nobody_asked_for_leave_pending_picks_alone():
    learner = cg.Learner(2)
    arm = learner.ask([0.0])
    learner.tell([1.0], arm, 1.0)
    assert learner.pending == 1
    learner.tell([0.0], arm, 1.0)
    assert learner.pending == 0


def test_fit_gives_the_posterior_of_telling_one_by_one():
    contexts, rewards = random_problem(0, 3, 2)
    arms = [["a", "b", "c"][i % 3] for i in range(300)]
    heard = rewards[np.arange(300), np.arange(300) % 3]
    settings = {"kernel": cg.Gaussian(1.0), "prior_mean": "auto"}
    told = cg.Learner(["a", "b", "c"], **settings)
    for context, arm, reward in zip(contexts, arms, heard, strict=True):
        told.tell(context, arm, reward)
    fitted = cg.Learner(["a", "b", "c"], **settings).fit(
        pd.DataFrame(contexts, columns=["x", "y"]), pd.Series(arms), pd.Series(heard)
    )
    first, second = told.decide([0.1, 0.2]), fitted.decide({"y": 0.2, "x": 0.1})
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-8)
    np.testing.assert_allclose(first.std, second.std, rtol=1e-8)
    assert told.information_gain == pytest.approx(fitted.information_gain)


def test_phases_may_alternate_at_any_time():
    contexts, rewards = random_problem(0, 3, 2)
    with_breaks, without = (cg.Learner(3, seed=1) for _ in range(2))
    for context, row in zip(contexts[:50], rewards, strict=False):
        for learner in (with_breaks, without):
            arm = learner.ask(context)
            learner.tell(context, arm, row[arm])
        with_breaks.recommend(contexts[100:110])
    assert with_breaks.counts == without.counts


def test_an_added_arm_gets_its_burn_in():
    learner = taught(steps=20, burn_in=2)
    learner.add_arm("late")
    picks = []
    for x in random_problem(3, 3, 2)[0][:3]:
        picks.append(learner.ask(x))
        learner.tell(x, picks[-1], 0.0)
    assert picks[:2] == ["late", "late"]
    assert learner.arms == ("a", "b", "c", "late")
    assert len(learner.decide([0.0, 0.0]).mean) == 4


@pytest.mark.parametrize("method", list(cg.METHODS))
def test_a_removed_arm_is_never_chosen_again(method, tmp_path):
    learner = taught_copy(method)
    before = learner.counts["b"]
    learner.remove_arm("b")
    contexts = random_problem(5, 3, 2)[0]
    asked = {learner.ask(x) for x in contexts[:40]}
    assert asked <= {"a", "c"}
    assert set(learner.recommend(contexts)) <= {"a", "c"}
    assert learner.decide(contexts[0]).arms == ("a", "c")
    learner.tell(contexts[0], "b", 1.0)  # a late reward is still welcome
    learner.save(tmp_path / "l.cgap")
    again = cg.Learner.load(tmp_path / "l.cgap")
    assert again.arms == ("a", "c")
    assert again.state.model.observed.count(1) == before + 1


def test_a_removed_arm_does_not_distort_the_others():
    learner = taught(steps=30)
    before = learner.decide([0.3, 0.1])
    learner.remove_arm("b")
    after = learner.decide([0.3, 0.1])
    np.testing.assert_allclose(after.mean, before.mean[[0, 2]])


def test_a_policy_stays_as_it_was():
    learner = taught(steps=30)
    policy = learner.freeze()
    queries = random_problem(1, 3, 2)[0]
    before, bound = policy.recommend(queries), policy.certificate(queries).bound
    counts = policy.counts
    for x in queries:
        learner.tell(x, learner.ask(x), 5.0)
    learner.add_arm("d")
    learner.remove_arm("a")
    np.testing.assert_array_equal(policy.recommend(queries), before)
    np.testing.assert_array_equal(policy.certificate(queries).bound, bound)
    assert (policy.counts, policy.arms) == (counts, ("a", "b", "c"))
    for name in ("arms", "_model", "anything"):
        with pytest.raises(AttributeError):
            setattr(policy, name, None)
    with pytest.raises(AttributeError):
        del policy.state.model


def test_a_policy_recommends_as_its_learner():
    for method in cg.METHODS:
        learner = taught_copy(method)
        queries = random_problem(1, 3, 2)[0]
        np.testing.assert_array_equal(
            learner.freeze().recommend(queries), learner.recommend(queries)
        )


@pytest.mark.parametrize("method", ["contextual-gap", "contextual-gap-history", "kernel-ts"])
def test_blocks_do_not_show(method, monkeypatch):
    policy = taught_copy(method).freeze()
    queries = random_problem(1, 3, 2)[0]
    whole = policy.recommend(queries)
    monkeypatch.setattr("contextgap.policy.answers._BLOCK", 400)
    np.testing.assert_array_equal(policy.recommend(queries), whole)


def test_policies_may_be_asked_from_many_threads():
    policy = taught("contextual-gap-history", steps=200).freeze()
    queries = random_problem(1, 3, 2)[0]
    expected = policy.recommend(queries)
    wrong = []

    def work():
        for _ in range(5):
            if not np.array_equal(policy.recommend(queries), expected):
                wrong.append(1)
            policy.decide(queries[0])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_certificates_are_gaps_of_the_recommended_arm():
    policy = taught().freeze()
    queries = random_problem(1, 3, 2)[0][:40]
    certificate = policy.certificate(queries)
    assert certificate.probability is None
    for x, bound in zip(queries, certificate.bound, strict=True):
        decision = policy.decide(x)
        place = decision.arms.index(decision.arm)
        assert bound == pytest.approx(max(0.0, decision.gap[place]), abs=1e-9)


def test_one_arm_is_simply_chosen():
    for method in cg.METHODS:
        learner = taught(method, arms=("only",), steps=5)
        assert learner.ask([0.0, 0.0]) == "only"
        assert list(learner.recommend(np.zeros((3, 2)))) == ["only"] * 3
        np.testing.assert_array_equal(learner.freeze().certificate(np.zeros((3, 2))).bound, 0)


def test_labels_come_back_as_they_were_given():
    labels = ["text", 3, 2.5, None, ("tuple", 1), frozenset({1})]
    learner = cg.Learner(labels)
    picked = [learner.ask([float(i)]) for i in range(6)]
    assert picked == labels
    assert all(a is b for a, b in zip(picked, labels, strict=True))
    assert learner.ask(np.zeros((4, 1))).dtype == object
    assert cg.Learner(4).ask(np.zeros((4, 1))).dtype == np.int64
    assert type(cg.Learner(4).ask([0.0])) is int


def test_recommending_before_anything_was_seen():
    learner = cg.Learner(["a", "b"])
    with pytest.raises(ValueError, match="there is no reward yet"):
        learner.freeze()
    with pytest.warns(UserWarning, match="there is no reward yet"):
        assert learner.recommend([0.0, 1.0]) == "a"
    with pytest.warns(UserWarning, match="there is no reward yet"):
        assert [each.arm for each in learner.rank([0.0])] == ["a", "b"]
    with (
        pytest.warns(UserWarning, match="there is no reward yet"),
        pytest.raises(TypeError, match=r"must be numbers, got 'x'.*tell rewards first"),
    ):
        learner.recommend({"m": "x"})
    learner.tell([0.0, 1.0], "b", 1.0)
    assert learner.freeze().arms == ("a", "b")


def test_a_learner_can_be_pickled_and_copied():
    learner = taught(steps=30)
    rule = cg.StoppingRule(0.5, reference=np.zeros((2, 2)))
    learner.done(rule)
    contexts = random_problem(5, 3, 2)[0][:20]
    expected = [taught(steps=30).ask(x) for x in contexts[:1]]
    for twin in (pickle.loads(pickle.dumps(learner)), copy.copy(learner), copy.deepcopy(learner)):
        assert [twin.ask(x) for x in contexts][:1] == expected
        assert twin.pending == 20
    assert learner.pending == 0


@pytest.mark.parametrize(
    ("context", "reward", "message"),
    [
        ([1.0], 1e200, "rewards must be at most 1e\\+45"),
        ([1e60], 1.0, "contexts must be smaller"),
        ([1e160], 1.0, "contexts must be at most 1e\\+100"),
    ],
)
def test_what_would_overflow_is_refused_and_changes_nothing(context, reward, message, tmp_path):
    learner = cg.Learner(2, kernel=cg.Linear(), seed=0)
    learner.tell([2.0], 0, 1.0)
    with pytest.raises(ValueError, match=message):
        learner.tell(context, 1, reward)
    assert learner.counts == {0: 1, 1: 0}
    learner.save(tmp_path / "l.cgap")
    assert cg.Learner.load(tmp_path / "l.cgap").counts == learner.counts


def test_masked_entries_are_refused():
    learner = cg.Learner(2)
    hidden = np.ma.array([1.0, 2.0], mask=[0, 1])
    with pytest.raises(ValueError, match="contexts must have no missing values"):
        learner.ask(hidden)
    with pytest.raises(ValueError, match="rewards must have no missing values"):
        learner.tell(np.zeros((2, 1)), [0, 1], hidden)


@pytest.mark.parametrize("one", [True, np.True_, Decimal("1"), np.int8(1), np.float32(1), 1])
def test_rewards_may_be_any_kind_of_number(one):
    told, expected = (cg.Learner(2, kernel=cg.Gaussian(1.0)) for _ in range(2))
    told.tell([0.0], 0, one)
    told.tell([[1.0], [2.0]], [0, 1], [one, one])
    told.tell([[1.0], [2.0]], [0, 1], np.array([one, one]))
    expected.tell([0.0], 0, 1.0)
    for _ in range(2):
        expected.tell([[1.0], [2.0]], [0, 1], [1.0, 1.0])
    np.testing.assert_array_equal(told.decide([0.5]).mean, expected.decide([0.5]).mean)


def raising_at(count):
    """A trace function that raises KeyboardInterrupt at a line of the library, once."""
    seen = [0]

    def trace(frame, event, _):
        if "contextgap" not in frame.f_code.co_filename:
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == count:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    return trace


def interrupted(count, call, *arguments):
    """Call, and interrupt at a line; whether there were as many lines."""
    before = sys.gettrace()
    sys.settrace(raising_at(count))
    try:
        call(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    ("method", "bulk"),
    [
        ("contextual-gap", True),
        ("knowledge-gradient", False),  # which keeps what it computed from one reward to the next
        pytest.param("contextual-gap", False, marks=pytest.mark.slow),
        pytest.param("knowledge-gradient", True, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_step_happened_wholly_or_not_at_all(method, bulk):
    def learner():
        started = cg.Learner(3, kernel=cg.Gaussian(1.0), ridge=0.1, method=method, seed=0)
        started.fit(np.linspace(0, 3, 12)[:, None], np.arange(12) % 3, np.sin(np.arange(12.0)))
        started.ask([[0.5], [1.5]])  # pending picks, of which one is told below
        return started

    rows = ([[0.5], [2.5]], [0, 1], [0.3, -0.2]) if bulk else ([0.5], 0, 0.3)
    query = np.linspace(-1, 4, 7)[:, None]
    twin = learner()
    untold = cg.Policy(twin.state.policy()).chooser.evidence(query).belief.mean
    twin.tell(*rows)
    told = cg.Policy(twin.state.policy()).chooser.evidence(query).belief.mean
    count, lines = 0, True
    while lines:
        count += 1
        once = learner()
        lines = interrupted(count, once.tell, *rows)
        found = cg.Policy(once.state.policy()).chooser.evidence(query).belief.mean
        wholly = len(once.state.model) == len(twin.state.model)
        np.testing.assert_allclose(found, told if wholly else untold, rtol=0, atol=1e-12)
        if not wholly:
            interrupted(count // 2 + 1, once.ask, [0.7])
            once.drop_pending()
            once.tell(*rows)
            again = cg.Policy(once.state.policy()).chooser.evidence(query).belief.mean
            np.testing.assert_allclose(again, told, rtol=0, atol=1e-12)
    assert count > 30


def test_threads_take_turns():
    learner = cg.Learner(4, kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
    failed = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for x in rng.uniform(0, 3, (150, 1)):
                learner.tell(x, learner.ask(x), float(np.sin(x[0])))
                learner.recommend([[1.0]])
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sum(learner.counts.values()) == 600
    assert learner.pending == 0
    model = learner.state.model
    fresh = cg.Learner(4, kernel=cg.Gaussian(1.0), ridge=0.1)
    fresh.fit(model.observed.contexts, model.observed.arms.tolist(), model.observed.rewards)
    np.testing.assert_allclose(learner.decide([1.5]).mean, fresh.decide([1.5]).mean, atol=1e-9)


def test_propensities_of_a_log_are_kept(rng, tmp_path):
    x, arms = rng.normal(size=(40, 1)), rng.integers(2, size=40)
    rewards, chances = rng.normal(size=40), rng.uniform(0.2, 0.8, 40)
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0)).fit(x, arms, rewards, propensities=chances)
    without = cg.Learner(2, kernel=cg.Gaussian(1.0)).fit(x, arms, rewards)
    assert learner.score() == without.score(chances)
    learner.save(tmp_path / "l.cgap")
    assert cg.Learner.load(tmp_path / "l.cgap").score() == learner.score()
    before = learner.state
    with pytest.raises(ValueError, match=r"propensities must be above 0 and at most 1, got 1\.5"):
        learner.fit(x, arms, rewards, propensities=np.full(40, 1.5))
    assert learner.state is before
