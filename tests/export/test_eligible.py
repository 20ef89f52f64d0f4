"""Exports that are told which arms are eligible choose among them as Python does."""

import numpy as np
import onnx
import pytest

from contextgap.export import ExportError
from contextgap.export.c import write_c
from contextgap.export.onnx import GraphPolicy, write_onnx
from contextgap.export.rule import has_unknown_level, read_rows
from tests.export.compilers import COMPILERS, compiled, self_test
from tests.export.tables import learnt, table
from tests.export.test_c import RULES, around, explored, exported
from tests.export.test_shared import shared

AT_LAST = sorted(set(RULES) - {"look-back", "short look-back"})
needs_c = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
rules = pytest.mark.parametrize("rule", AT_LAST)


def masks(count, arms, seed=5):
    """Which arms are eligible: at least one in every row, often an only one."""
    rng = np.random.default_rng(seed)
    mask = rng.random((count, arms)) < 0.6
    mask[np.arange(count), rng.integers(arms, size=count)] = True
    return mask


def policies(rule):
    """Policies of all sorts, with rows to ask them at.

    A safe arm that accepts any bound, and none at all, are for a rule without widths and for one
    with them, of one sort of policy each.
    """
    plain, frame = around(1000), table(1000, seed=9, unseen=0.1)
    four = explored(rule, "gaussian", arms=4).freeze()
    sorts = [(four, plain), (shared(rule), plain), (learnt(rule).freeze(), frame)]
    for policy, rows in sorts:
        bounds = policy.certificate(rows).bound
        yield policy.with_fallback(policy.arms[1], tolerance=float(np.median(bounds))), rows
    others = {"mean": sorts[0], "gap": sorts[2]}
    if rule in others:
        policy, rows = others[rule]
        yield policy, rows
        yield policy.with_fallback(policy.arms[0]), rows


def arms_of(policy, rows, mask):
    return [policy.arms.index(arm) for arm in policy.recommend(rows, arms=mask)]


@rules
def test_onnx_chooses_as_python_does(rule, tmp_path):
    for policy, rows in policies(rule):
        mask = masks(len(rows), len(policy.arms))
        plain = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", eligible=True).path)
        np.testing.assert_array_equal(plain.recommend(rows, arms=mask), arms_of(policy, rows, mask))
        why = write_onnx(policy, tmp_path / "w.onnx", eligible=True, explain=True).path
        found = GraphPolicy(why).explain(rows, arms=mask)
        np.testing.assert_array_equal(found["arm"], arms_of(policy, rows, mask))
        bound = policy.certificate(rows, arms=mask).bound
        np.testing.assert_allclose(found["certificate"], bound, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(np.isnan(found["gap"]), ~mask)
        if policy.fallback is not None:
            status = policy.status(rows, arms=mask)
            assert {0, 2, 3} <= set(status)
            np.testing.assert_array_equal(plain.status(rows, arms=mask), status)


@needs_c
@rules
def test_c_chooses_as_python_does(rule, tmp_path):
    for policy, rows in policies(rule):
        mask = masks(len(rows), len(policy.arms))
        export = exported(policy, tmp_path / "c", rule, eligible=True)
        library, table = compiled(export), policy.state.schema.table
        numbers = rows if table is None else read_rows(table, rows)
        found, status = library.decide(numbers, eligible=mask), policy.status(rows, arms=mask)
        np.testing.assert_array_equal(found.arm, arms_of(policy, rows, mask))
        wanted = np.array([0, 4, 5, 6])[status]
        wanted[(status == 0) & has_unknown_level(table, numbers)] = 3
        np.testing.assert_array_equal(found.status, wanted)
        if library.has_widths:
            bound = policy.certificate(rows, arms=mask).bound
            np.testing.assert_allclose(found.certificate, bound, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(np.isinf(found.gap), ~mask)
        everything, alone = np.ones_like(mask), library.decide(numbers)
        for one, other in zip(library.decide(numbers, eligible=everything), alone, strict=True):
            np.testing.assert_array_equal(one, other)
        assert self_test(export, COMPILERS[0]).returncode == 0


@needs_c
@pytest.mark.parametrize("rule", ["mean", "gap"])
def test_c_without_an_eligible_arm_has_no_answer(rule, tmp_path):
    library = compiled(write_c(explored(rule).freeze(fallback=0), tmp_path, eligible=True))
    mask = np.array([[False] * 3, [False, True, True], [True, False, True], [False, True, False]])
    rows = np.array([[0.0, 0.0], [np.nan, 0.0], [np.inf, 0.0], [9.0, 9.0]])
    found = library.decide(rows, eligible=mask)
    assert found.arm.tolist() == [-1, -1, 0, 1]
    assert found.status.tolist() == [7, 1, 1, 6]
    if found.certificate is not None:
        np.testing.assert_array_equal(found.certificate, [np.inf, np.inf, np.inf, 0.0])


@rules
def test_all_arms_are_eligible_by_default(rule, tmp_path):
    policy, rows = explored(rule).freeze(), around(300)
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", eligible=True).path)
    np.testing.assert_array_equal(graph.recommend(rows), policy.recommend(rows))
    wanted = policy.recommend(rows, arms=[2, 0])
    np.testing.assert_array_equal(graph.recommend(rows, arms=[2, 0]), wanted)


def test_rows_without_an_eligible_arm_get_no_answer(tmp_path):
    policy, rows = explored().freeze(fallback=0, tolerance=0.1), around(50)
    path = write_onnx(policy, tmp_path / "p.onnx", eligible=True, explain=True).path
    mask = np.zeros((50, 3), dtype=bool)
    mask[::2, 1] = True
    found = GraphPolicy(path).explain(rows, arms=mask)
    assert found["arm"].tolist() == [1, -1] * 25
    assert set(found["status"][1::2]) == {-1}
    assert np.isinf(found["certificate"][1::2]).all()
    assert not found["certificate"][::2].any()  # an only arm misses nothing


def test_one_arm(tmp_path):
    policy = explored(arms=1, steps=9).freeze()
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", eligible=True).path)
    assert graph.recommend(around(2), arms=np.array([[True], [False]])).tolist() == [0, -1]


@pytest.mark.parametrize("opset", [12, 13, 18, 21])
@pytest.mark.parametrize("float32", [False, True])
def test_files_are_valid_at_every_opset(opset, float32, tmp_path):
    policy, rows, mask = shared("gap").with_fallback(0), around(300), masks(300, 3)
    path = tmp_path / "p.onnx"
    write_onnx(policy, path, eligible=True, explain=True, opset=opset, float32=float32)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    found = GraphPolicy(path).recommend(rows, arms=mask)
    assert np.mean(found == arms_of(policy, rows, mask)) >= (0.98 if float32 else 1)


def test_what_takes_no_masks(tmp_path):
    graph = GraphPolicy(write_onnx(explored().freeze(), tmp_path / "p.onnx").path)
    with pytest.raises(ValueError, match="write it with eligible=True"):
        graph.recommend(around(2), arms=[0])
    for rule in set(RULES) - set(AT_LAST):
        with pytest.raises(ExportError, match="a look-back cannot choose among eligible arms"):
            write_onnx(explored(rule).freeze(), tmp_path / "p.onnx", eligible=True)
        with pytest.raises(ExportError, match="a look-back cannot choose among eligible arms"):
            write_c(explored(rule).freeze(), tmp_path / "c", eligible=True)
    assert not (tmp_path / "c").exists()


@needs_c
def test_c_that_takes_no_masks(tmp_path):
    library = compiled(write_c(explored().freeze(), tmp_path))
    with pytest.raises(ValueError, match="write it with eligible=True"):
        library.decide(around(2), eligible=masks(2, 3))
    library = compiled(write_c(explored().freeze(), tmp_path / "among", eligible=True))
    with pytest.raises(ValueError, match=r"eligible must have shape \(2, 3\), got \(3, 2\)"):
        library.decide(around(2), eligible=masks(3, 2))
