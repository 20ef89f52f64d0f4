"""Exports of arms that share what they learn decide as Python does, and cost what they say."""

import shutil

import numpy as np
import pytest

import contextgap as cg
from contextgap.export import ExportError
from contextgap.export.onnx import GraphPolicy
from tests.export.compilers import (
    COMPILERS,
    compiled,
    constant_bytes,
    self_test,
    stack_bytes,
)
from tests.export.test_c import (
    RULES,
    around,
    assert_same_decisions,
    explored,
    exported,
)

SHARED = sorted(set(RULES) - {"look-back", "short look-back"})
needs_c = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
rules = pytest.mark.parametrize("rule", SHARED)
FEATURES = [[0.0, 1.0], [0.2, 1.5], [1.0, 0.0], [9.0, 9.0]]


def shared(rule, kernel="nested", arms=4, steps=70, **settings):
    """A policy of arms that share, one of them retired."""
    settings = {"sharing": 0.7, "features": FEATURES[:arms] if arms <= 4 else None, **settings}
    learner = explored(rule, kernel, arms=arms, steps=steps, **settings)
    if arms > 2:
        learner.remove_arm(1)
    return learner.freeze()


@rules
@pytest.mark.parametrize("features", [None, FEATURES])
def test_onnx_believes_what_the_policy_believes(rule, features, tmp_path):
    policy = shared(rule, features=features)
    policy.to_onnx(tmp_path / "explained.onnx", explain=True)
    policy.to_onnx(tmp_path / "plain.onnx")
    contexts = around(300)
    explained = GraphPolicy(tmp_path / "explained.onnx").explain(contexts)
    for row in range(0, 300, 17):
        decision = policy.decide(contexts[row])
        for name in ("mean", "std", "lower", "upper", "gap"):
            np.testing.assert_allclose(
                explained[name][row], getattr(decision, name), rtol=1e-7, atol=1e-8
            )
    certificate = policy.certificate(contexts).bound
    np.testing.assert_allclose(explained["certificate"], certificate, atol=1e-8)
    wanted = [policy.arms.index(arm) for arm in policy.recommend(contexts)]
    assert GraphPolicy(tmp_path / "plain.onnx").recommend(contexts).tolist() == wanted


@needs_c
@rules
@pytest.mark.parametrize(("float32", "features"), [(False, None), (True, None), (False, FEATURES)])
def test_c_decides_as_python_does(rule, float32, features, tmp_path):
    policy = shared(rule, features=features)
    export = exported(policy, tmp_path, rule, float32=float32)
    assert_same_decisions(policy, export, around(400))
    assert self_test(export, COMPILERS[-1] if float32 else COMPILERS[0]).returncode == 0


@needs_c
@rules
def test_c_of_one_arm_and_of_one_reward(rule, tmp_path):
    assert_same_decisions(
        shared(rule, arms=1, steps=9),
        exported(shared(rule, arms=1, steps=9), tmp_path, rule),
        around(50),
    )
    learner = explored(rule, arms=3, steps=0, sharing=0.5)
    learner.ask([0.0, 0.0])
    learner.tell([0.0, 0.0], 1, 0.5)
    policy = learner.freeze()
    assert_same_decisions(policy, exported(policy, tmp_path / "one", rule), around(20))


@needs_c
@rules
def test_c_gives_the_fallback_where_numbers_are_not_finite(rule, tmp_path):
    export = exported(shared(rule, "polynomial"), tmp_path, rule)
    library = compiled(export)
    bad = np.array([[np.nan, 0.0], [1e200, -1e200], [0.1, 0.1]])
    got = library.decide(bad)
    assert got.status.tolist() == [1, 2, 0]
    assert got.arm[:2].tolist() == [export.default_arm] * 2


@needs_c
@pytest.mark.skipif(not shutil.which("size"), reason="needs binutils")
@rules
def test_rom_is_what_the_object_holds(rule, tmp_path):
    policy = shared(rule, "gaussian per dimension")
    export = exported(policy, tmp_path / "c", rule)
    assert abs(constant_bytes(export, COMPILERS[0], tmp_path) - export.rom_bytes) <= 256


@needs_c
@pytest.mark.skipif(not shutil.which("gcc"), reason="only gcc tells the size of stack frames")
@rules
def test_ram_is_what_the_stack_holds(rule, tmp_path):
    held, said = [], []
    for arms, steps in [(2, 20), (9, 200)]:
        policy = shared(rule, "gaussian", arms=arms, steps=steps)
        export = exported(policy, tmp_path / "c", rule)
        held.append(stack_bytes(export, tmp_path))
        said.append(export.ram_bytes)
    decision = 8 * (9 - 2) * 2 if rule == "mean explained" else 0
    assert abs((held[1] - held[0]) - (said[1] - said[0])) <= decision + 64


def test_one_factor_serves_all_arms(tmp_path):
    """Twice as many arms with the same observations need hardly more space."""
    few, many = (
        exported(shared("gap", "gaussian", arms=arms, steps=150), tmp_path / str(arms)).rom_bytes
        for arms in (3, 6)
    )
    assert many < 1.1 * few


@pytest.mark.parametrize("rule", ["look-back", "short look-back"])
def test_a_look_back_is_refused(rule, tmp_path):
    policy = shared(rule)
    for write in (policy.to_c, policy.to_onnx):
        with pytest.raises(ExportError, match="look-back over arms that share"):
            write(tmp_path / "x")


def test_a_learnt_policy_is_exported_as_it_is(tmp_path):
    """The learner's own choice of arms that share, learnt from the rewards."""
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-1, 1, (150, 2))
    arms = rng.integers(3, size=150)
    common = np.sin(4 * contexts[:, 0]) + np.cos(3 * contexts[:, 1])
    learner = cg.Learner(3, seed=0).fit(contexts, arms, 2 * common + 0.2 * arms * contexts[:, 0])
    assert learner.tuning.chosen == "shared"
    policy = learner.freeze()
    policy.to_onnx(tmp_path / "p.onnx")
    new = rng.uniform(-1, 1, (500, 2))
    assert (
        GraphPolicy(tmp_path / "p.onnx").recommend(new).tolist() == policy.recommend(new).tolist()
    )
    small = policy.compress(points=20)
    assert (small.recommend(new) == policy.recommend(new)).mean() > 0.8
