"""The plain arrays give the decisions that the policy gives."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

import contextgap as cg
from contextgap.export import ExportError, decision_rule


def explored(method, width=None, steps=120, removed=False):
    rng = np.random.default_rng(3)
    learner = cg.Learner(
        ["a", "b", "c", "d"],
        kernel=0.7 * cg.Gaussian(0.6) + 0.1 * cg.Linear(),
        ridge=0.03,
        method=method,
        width=width or cg.PosteriorWidth(1.0),
        prior_mean=0.4,
        seed=0,
    )
    for x in rng.uniform(-1, 1, (steps, 2)):
        arm = learner.ask(x)
        learner.tell(x, arm, float(np.sin(3 * x[0] * (1 + "abcd".index(arm)))))
    if removed:
        learner.remove_arm("b")
    return learner.freeze()


def unpacked(table):
    factor = np.zeros((len(table.weights),) * 2)
    factor[np.tril_indices(len(factor))] = table.factor
    return factor


def by_hand(rule, contexts):
    """Arms and gaps, from the equations at the head of the module."""
    leaders, smallest = [], []
    for x in contexts[:, None]:
        v = [
            solve_triangular(unpacked(t), rule.kernel(t.support, x)[:, 0], lower=True)
            for t in rule.arms
        ]
        best = (np.inf, None)
        for step in range(rule.first_step, len(rule.pulls) + 1):
            n = [int((rule.pulls[:step] == i).sum()) for i in range(len(rule.arms))]
            mean = np.array(
                [
                    rule.prior + vi[:k] @ t.innovations[:k]
                    for vi, k, t in zip(v, n, rule.arms, strict=True)
                ]
            )
            std = np.sqrt(
                [rule.kernel.diagonal(x)[0] - vi[:k] @ vi[:k] for vi, k in zip(v, n, strict=True)]
            )
            half = std * [t.reach[k] for t, k in zip(rule.arms, n, strict=True)]
            gap = [np.delete(mean + half, i).max() - (mean - half)[i] for i in range(len(mean))]
            if min(gap) < best[0]:
                best = (min(gap), int(np.argmin(gap)))
        leaders.append(rule.labels[best[1]])
        smallest.append(best[0])
    return leaders, smallest


@pytest.mark.parametrize("method", ["contextual-gap", "contextual-gap-history"])
@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("width", [cg.RidgeWidth(0.1), cg.TheoremWidth(0.1, 1.0, 0.1, tight=True)])
def test_the_arrays_give_the_policys_decisions(method, removed, width):
    policy = explored(method, width, removed=removed)
    contexts = np.random.default_rng(9).uniform(-1, 1, (25, 2))
    arms, gaps = by_hand(decision_rule(policy), contexts)
    assert policy.recommend(contexts).tolist() == arms
    np.testing.assert_allclose(policy.certificate(contexts).bound, np.maximum(gaps, 0), atol=1e-9)


def test_weights_give_the_mean():
    policy = explored("uniform")
    rule = decision_rule(policy)
    x = np.array([[0.2, -0.3]])
    means = [rule.prior + t.weights @ rule.kernel(t.support, x)[:, 0] for t in rule.arms]
    np.testing.assert_allclose(means, policy.decide(x[0]).mean, atol=1e-10)


def test_an_arm_without_observations_and_a_single_arm_have_empty_tables():
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), seed=0)
    learner.tell([0.0], 0, 1.0)
    table = decision_rule(learner.freeze()).arms[1]
    assert table.support.shape == (0, 1)
    assert table.reach.tolist() == [1.0]


def test_what_cannot_be_expressed_is_refused():
    with pytest.raises(ExportError, match="PosteriorSample"):
        decision_rule(explored("kernel-ts"))
    with pytest.raises(ExportError, match="never saw a context"):
        decision_rule(cg.Learner(2, kernel=cg.Gaussian(1.0)).freeze(fallback=0))


@pytest.mark.parametrize("option", ["float32", "certificates", "explain"])
def test_options_are_true_or_false(option, tmp_path):
    policy = explored("uniform")
    write = policy.to_onnx if option == "explain" else policy.to_c
    with pytest.raises(TypeError, match=f"{option} must be True or False, got 1"):
        write(tmp_path / "export", **{option: 1})
    assert not (tmp_path / "export").exists()


def test_c_is_not_written_over_a_file(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(NotADirectoryError, match="taken is a file; name a folder"):
        explored("uniform").to_c(tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"
