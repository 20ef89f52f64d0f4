"""Comparing an export's decisions with the policy's."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.export import parity
from contextgap.export.c import CompiledPolicy
from contextgap.export.onnx import GraphPolicy
from tests.export.compilers import COMPILERS

RULES = [cg.HighestMean(), cg.HighestUpper(), cg.SmallestGap(), cg.SmallestGapInHistory()]


def explored(rule, arms=3, steps=60):
    method = cg.Method(explorer=cg.explorers.Uniform(), recommender=rule)
    learner = cg.Learner(arms, kernel=cg.Gaussian(0.6), ridge=0.05, method=method, seed=0)
    rng = np.random.default_rng(8)
    for x in rng.uniform(-1, 1, (steps, 2)):
        arm = learner.ask(x)
        learner.tell(x, arm, float(np.sin(3 * x[0] * (1 + arm) + x[1])))
    return learner.freeze()


def somewhere(count, seed=1):
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (count, 2))


def on_boundaries(policy, count):
    """Contexts at which two arms are as close as bisection between two decisions gets them."""
    one, two = somewhere(40 * count, seed=2), somewhere(40 * count, seed=3)
    apart = np.flatnonzero(policy.recommend(one) != policy.recommend(two))[:count]
    one, two = one[apart], two[apart]
    arm = policy.recommend(one)
    for _ in range(60):
        middle = (one + two) / 2
        same = (policy.recommend(middle) == arm)[:, None]
        one, two = np.where(same, middle, one), np.where(same, two, middle)
    assert len(one) == count
    return one


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_counts_and_regrets_are_those_of_asking_one_by_one(rule):
    policy, contexts = explored(rule), somewhere(80)
    right = policy.recommend(contexts)
    exported = np.where(np.arange(80) % 4 == 0, (right + 1) % 3, right)
    result = parity(policy, exported, contexts)
    decisions = [policy.decide(x) for x in contexts]
    lost = [
        max(0.0, d.mean[arm] - d.mean[other])
        for d, arm, other in zip(decisions, right, exported, strict=True)
    ]
    assert (result.contexts, result.same, result.near_ties, result.different) == (80, 60, 0, 20)
    assert result.agreement == 0.75
    assert result.worst_added_regret == pytest.approx(max(lost))
    assert result.mean_added_regret == pytest.approx(np.mean(lost))
    assert max(lost) > 0.1


def test_no_answer_is_the_worst_answer():
    policy, contexts = explored(cg.SmallestGap()), somewhere(10)
    exported = policy.recommend(contexts)
    exported[4] = -1
    result = parity(policy, exported, contexts)
    assert (result.same, result.near_ties, result.different) == (9, 0, 1)
    assert result.worst_added_regret == result.mean_added_regret == np.inf


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_only_the_rival_of_a_near_tie_is_excused(rule):
    policy = explored(rule)
    contexts = on_boundaries(policy, 12)
    right = policy.recommend(contexts)
    counted = np.zeros(3, dtype=int)
    for turn in (1, 2):
        result = parity(policy, (right + turn) % 3, contexts)
        counted += (result.same, result.near_ties, result.different)
    # Of the two other arms one is as good and one is not.
    np.testing.assert_array_equal(counted, [0, 12, 12])


def test_arms_that_are_equal_everywhere_tie():
    learner = cg.Learner(2, kernel=cg.Gaussian(0.6), ridge=0.05, seed=0)
    xs = somewhere(10)
    for arm in (0, 1):
        learner.fit(xs, [arm] * 10, np.sin(xs[:, 0]))
    policy, contexts = learner.freeze(), somewhere(30, seed=4)
    other = 1 - policy.recommend(contexts)
    result = parity(policy, other, contexts)
    assert (result.same, result.near_ties, result.different) == (0, 30, 0)
    assert result.worst_added_regret < 1e-9


def masks(count, arms=3, seed=5):
    rng = np.random.default_rng(seed)
    mask = rng.random((count, arms)) < 0.6
    mask[np.arange(count), rng.integers(arms, size=count)] = True
    return mask


@pytest.mark.parametrize("rule", RULES[:3], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("tolerance", [None, 0.4])
def test_masks_and_statuses_are_compared(rule, tolerance):
    policy = explored(rule)
    policy = policy if tolerance is None else policy.with_fallback(2, tolerance=tolerance)
    contexts, mask = somewhere(80), masks(80)
    contexts[:5] = 3.0  # outside what was seen
    right, status = policy.recommend(contexts, arms=mask), policy.status(contexts, arms=mask)
    if tolerance is not None:
        assert set(status) == {0, 1, 2, 3}
    result = parity(policy, right, contexts, eligible=mask, status=status)
    assert (result.same, result.different, result.other_statuses) == (80, 0, 0)
    wrong = np.where(np.arange(80) % 4 == 0, status + 1, status)
    assert parity(policy, right, contexts, eligible=mask, status=wrong).other_statuses == 20
    # An arm that is not eligible is the worst answer.
    never = np.flatnonzero(~mask.all(axis=1))
    other = right.copy()
    other[never] = (~mask[never]).argmax(axis=1)
    result = parity(policy, other, contexts, eligible=mask)
    assert (result.same, result.different) == (80 - len(never), len(never))
    assert result.worst_added_regret == np.inf
    assert result.other_statuses is None


def test_statuses_may_differ_where_the_bound_is_the_tolerance():
    policy, contexts = explored(cg.SmallestGap()), 0.7 * somewhere(20)
    bounds = policy.certificate(contexts).bound
    row = int(np.argsort(bounds)[-3])
    assert bounds[row] > 0
    safe = policy.with_fallback(2, tolerance=float(bounds[row]))
    status = safe.status(contexts)
    status[row] = 1 - status[row]
    assert parity(safe, safe.recommend(contexts), contexts, status=status).other_statuses == 0


@pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_exports_differ_at_near_ties_at_most(rule, tmp_path):
    policy = explored(rule)
    contexts = np.vstack([somewhere(2000), on_boundaries(policy, 40)])
    graph = GraphPolicy(policy.to_onnx(tmp_path / "x.onnx").path, threads=1)
    code = CompiledPolicy(policy.to_c(tmp_path / "c").source.parent)
    for exported in (graph, code):
        result = parity(policy, exported.recommend(contexts), contexts)
        assert result.different == 0
        assert result.same >= 2000
        assert result.near_ties == 2040 - result.same


def test_single_precision_differs_where_doubles_do_not(tmp_path):
    """So that the comparison is fine enough to see it."""
    policy = explored(cg.HighestMean())
    contexts = on_boundaries(policy, 40) + 1e-8  # beyond near ties, below what float32 holds
    results = {}
    for float32 in (False, True):
        path = policy.to_onnx(tmp_path / "x.onnx", float32=float32).path
        chosen = GraphPolicy(path, threads=1).recommend(contexts)
        results[float32] = parity(policy, chosen, contexts)
    assert results[False].same == 40
    assert results[True].different > 5
    assert 1e-9 < results[True].worst_added_regret < 1e-6


@pytest.mark.parametrize("write", ["c", "onnx"])
def test_contexts_that_single_precision_cannot_hold_are_warned_of(write, tmp_path):
    rng = np.random.default_rng(0)
    seconds = 1_750_000_000 + rng.integers(0, 3600, size=(200, 1)).astype(float)
    arms = rng.integers(2, size=200)
    rewards = np.sin((seconds[:, 0] - seconds.min()) / 200) * (2 * arms - 1)

    def export(policy):
        if write == "c":
            policy.to_c(tmp_path, float32=True)
        else:
            policy.to_onnx(tmp_path / "p.onnx", float32=True)

    learner = cg.Learner(2, kernel=cg.Gaussian(200.0), ridge=0.01, method="uniform")
    with pytest.warns(UserWarning, match="single precision changes") as caught:
        export(learner.fit(seconds, arms, rewards).freeze())
    assert caught[0].filename == __file__
    learner = cg.Learner(2, kernel=cg.Gaussian(200.0), ridge=0.01, method="uniform")
    export(learner.fit(seconds - seconds.mean(), arms, rewards).freeze())  # warnings are errors


@pytest.mark.parametrize("scale", [1e-12, 1e9])
@pytest.mark.parametrize("rule", RULES[:3], ids=lambda rule: type(rule).__name__)
def test_units_of_rewards_do_not_excuse_wrong_decisions(rule, scale):
    kernel = scale**2 * cg.Gaussian(0.6)
    learner = cg.Learner(
        3,
        kernel=kernel,
        ridge=0.05 * scale**2,
        method=cg.Method(explorer=cg.explorers.Uniform(), recommender=rule),
    )
    xs = somewhere(60)
    arms = np.arange(60) % 3
    policy = learner.fit(xs, arms, scale * np.sin(3 * xs[:, 0] + arms)).freeze()
    contexts = somewhere(50, seed=4)
    wrong = (policy.recommend(contexts) + 1) % 3
    assert parity(policy, wrong, contexts).different == 50


def test_certificates_are_compared_where_decisions_are_the_same():
    policy, contexts = explored(cg.SmallestGap()), somewhere(40)
    right, bound = policy.recommend(contexts), policy.certificate(contexts).bound
    result = parity(policy, right, contexts, certificate=bound)
    assert (result.certificate_error, result.other_certificates) == (0.0, 0)
    wrong = np.where(np.arange(40) < 7, bound + 0.01, bound)
    result = parity(policy, right, contexts, certificate=wrong)
    assert result.certificate_error == pytest.approx(0.01)
    assert result.other_certificates == 7
    other = np.where(np.arange(40) < 7, (right + 1) % 3, right)
    assert parity(policy, other, contexts, certificate=wrong).other_certificates == 0
    assert parity(policy, right, contexts).certificate_error is None
