"""Exports of policies with a safe arm answer it where Python does, and say why."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import contextgap as cg
from contextgap.export import decision_rule, parity
from contextgap.export.c import CompiledPolicy, write_c
from contextgap.export.onnx import GraphPolicy, write_onnx
from contextgap.export.rule import answers_of, has_unknown_level, read_rows
from tests.export.compilers import (
    COMPILERS,
    compiled,
    constant_bytes,
    macros,
    run,
    self_test,
)
from tests.export.tables import learnt, table
from tests.export.test_c import RULES, around, explored, exported
from tests.export.test_shared import SHARED, shared

needs_c = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
rules = pytest.mark.parametrize("rule", RULES)
# Any bound is accepted by one rule of each form of code: without widths, with them, looking back.
safe_rules = pytest.mark.parametrize(
    ("rule", "share"),
    [*((rule, 0.5) for rule in RULES), ("mean", None), ("gap", None), ("look-back", None)],
)
IN_C = {0: 0, 1: 4, 2: 5}  # what C calls the statuses of Python


def safe(policy, rows, share=0.5):
    """The same policy with a safe arm for a share of the rows, and those outside what was seen."""
    if share is None:
        return policy.with_fallback(policy.arms[-1])
    bounds = policy.certificate(rows).bound
    return policy.with_fallback(policy.arms[-1], tolerance=float(np.quantile(bounds, share)))


def arms_of(policy, rows):
    return [policy.arms.index(arm) for arm in policy.recommend(rows)]


def assert_onnx_answers_as_python_does(policy, rows, folder):
    plain = GraphPolicy(write_onnx(policy, folder / "plain.onnx").path)
    explained = GraphPolicy(write_onnx(policy, folder / "why.onnx", explain=True).path)
    found, status = explained.explain(rows), policy.status(rows)
    assert len(set(status)) > 1  # so that agreement says something
    for arm in (plain.recommend(rows), found["arm"]):
        np.testing.assert_array_equal(arm, arms_of(policy, rows))
    for got in (plain.status(rows), found["status"]):
        np.testing.assert_array_equal(got, status)
    bound = policy.certificate(rows).bound
    np.testing.assert_allclose(found["certificate"], bound, rtol=1e-9, atol=1e-9)


def assert_c_answers_as_python_does(policy, rows, export, numbers=None):
    library = compiled(export)
    numbers = rows if numbers is None else numbers
    found, status = library.decide(numbers), policy.status(rows)
    wanted = np.array([IN_C[each] for each in status])
    unknown = has_unknown_level(decision_rule(policy).table, numbers)
    wanted[(status == 0) & unknown] = 3
    np.testing.assert_array_equal(found.status, wanted)
    np.testing.assert_array_equal(found.arm, arms_of(policy, rows))
    np.testing.assert_array_equal(library.recommend(numbers), found.arm)
    if library.has_widths:
        bound = policy.certificate(rows).bound
        np.testing.assert_allclose(found.certificate, bound, rtol=1e-9, atol=1e-9)


def assert_exports_answer_as_python_does(policy, rows, rule, folder, numbers=None):
    assert_onnx_answers_as_python_does(policy, rows, folder)
    if COMPILERS:
        export = exported(policy, folder / "c", rule)
        assert_c_answers_as_python_does(policy, rows, export, numbers)
        assert self_test(export, COMPILERS[0]).returncode == 0


@safe_rules
def test_plain_contexts(rule, share, tmp_path):
    rows = around(1000)
    policy = safe(explored(rule).freeze(), rows, share)
    assert_exports_answer_as_python_does(policy, rows, rule, tmp_path)


@safe_rules
def test_tables(rule, share, tmp_path):
    rows = table(1000, seed=9, unseen=0.1)
    policy = safe(learnt(rule).freeze(), rows, share)
    numbers = read_rows(policy.state.schema.table, rows)
    assert_exports_answer_as_python_does(policy, rows, rule, tmp_path, numbers)


@pytest.mark.parametrize("rule", SHARED)
def test_arms_that_share(rule, tmp_path):
    rows = around(1000)
    assert_exports_answer_as_python_does(safe(shared(rule), rows), rows, rule, tmp_path)


@rules
def test_single_precision(rule, tmp_path):
    rows = around(1000).astype(np.float32).astype(float)
    policy = safe(explored(rule).freeze(), rows)
    path = write_onnx(policy, tmp_path / "p.onnx", float32=True).path
    assert np.mean(GraphPolicy(path).status(rows) == policy.status(rows)) >= 0.99
    if COMPILERS:
        export = exported(policy, tmp_path / "c", rule, float32=True)
        found = compiled(export).decide(rows)
        assert np.mean(found.status == [IN_C[each] for each in policy.status(rows)]) >= 0.99
        assert self_test(export, COMPILERS[0]).returncode == 0


@rules
def test_nothing_seen_is_always_outside(rule, tmp_path):
    learner = explored(rule, "gaussian", arms=2, steps=0)
    learner.ask([0.0, 0.0])
    policy = learner.freeze(fallback=1)
    rows = np.array([[0.0, 0.0], [0.5, 1.0], [-3.0, 2.0]])
    assert policy.status(rows).tolist() == [2, 2, 2]
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx").path)
    assert (graph.status(rows).tolist(), graph.recommend(rows).tolist()) == ([2] * 3, [1] * 3)
    if COMPILERS:
        assert_c_answers_as_python_does(policy, rows, exported(policy, tmp_path / "c", rule))


@rules
def test_one_arm(rule, tmp_path):
    rows = around(200)
    policy = explored(rule, arms=1, steps=20).freeze().with_fallback(0, tolerance=0.0)
    assert_onnx_answers_as_python_does(policy, rows, tmp_path)
    if COMPILERS:
        assert_c_answers_as_python_does(policy, rows, exported(policy, tmp_path / "c", rule))


def test_a_cycle_that_never_changed_is_seen(tmp_path):
    """Its range has no length, and the target's sine may differ in the last digit."""
    columns = cg.Columns(hour=cg.Cyclic(24), load="number")
    for hour in np.linspace(0.1, 23.9, 4):
        learner = cg.Learner(2, columns=columns, kernel=cg.Gaussian(1.0), ridge=0.1)
        frame = table(20)[["hour", "load"]].assign(hour=hour)
        policy = learner.fit(frame, np.arange(20) % 2, frame["load"]).freeze().with_fallback(0)
        later = frame.assign(hour=np.where(np.arange(20) < 10, hour, hour + 0.001))
        assert policy.status(later).tolist() == [0] * 10 + [2] * 10
        assert_onnx_answers_as_python_does(policy, later, tmp_path)
        if COMPILERS:
            numbers = read_rows(policy.state.schema.table, later)
            assert_c_answers_as_python_does(policy, later, write_c(policy, tmp_path), numbers)


@rules
def test_what_is_not_finite(rule, tmp_path):
    rows = around(300)
    policy = safe(explored(rule, "polynomial").freeze(), rows)
    bad = np.array([[np.nan, 0.0], [0.0, -np.inf], [1e200, -1e200]])
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", explain=True).path)
    found = graph.explain(bad)
    # What overflows lies outside what was seen, in Python too.
    assert found["arm"].tolist() == [-1, -1, 2]
    assert found["status"].tolist() == [-1, -1, 2]
    assert np.isinf(found["certificate"]).all()
    if COMPILERS:
        export = exported(policy, tmp_path / "c", rule)
        got = compiled(export).decide(bad)
        assert (got.arm.tolist(), got.status.tolist()) == ([2, 2, 2], [1, 1, 2])
        assert export.default_arm == 2


@needs_c
def test_the_header_says_when_the_safe_arm_is_answered(tmp_path):
    policy = explored().freeze()
    header = write_c(policy.with_fallback(1, tolerance=0.25), tmp_path).header.read_text()
    assert "certificate exceeds 0.25" in header
    assert (
        "certificate exceeds" not in write_c(policy.with_fallback(1), tmp_path).header.read_text()
    )
    known = macros(write_c(policy.with_fallback(1), tmp_path))
    assert (known["CONTEXTGAP_FALLBACK_ARM"], known["CONTEXTGAP_OUTSIDE"]) == ("1", "5")


@needs_c
@pytest.mark.parametrize("eligible", [False, True])
def test_without_a_safe_arm_programs_know_of_none(tmp_path, eligible):
    export = write_c(explored().freeze(), tmp_path, eligible=eligible)
    known = macros(export)
    assert not {"CONTEXTGAP_FALLBACK_ARM", "CONTEXTGAP_OUTSIDE"} & known.keys()
    assert ("CONTEXTGAP_HAS_ELIGIBLE" in known) == eligible
    assert known["CONTEXTGAP_DEFAULT_ARM"] == str(export.default_arm)
    with pytest.warns(DeprecationWarning, match="default_arm is the same"):
        assert export.fallback == export.default_arm


@needs_c
def test_exports_of_earlier_versions_are_compared():
    """They have another name for the default arm, and no runtime of their own."""
    library = CompiledPolicy(Path(__file__).parent / "earlier", COMPILERS[0])
    assert (library.default_arm, library.labels) == (1, ("0", "1"))
    assert library.recommend([[-0.8], [0.9]]).tolist() == [0, 1]


@needs_c
@pytest.mark.skipif(not shutil.which("size"), reason="needs binutils")
@rules
def test_rom_is_what_the_object_holds(rule, tmp_path):
    policy = safe(explored(rule, "gaussian per dimension").freeze(), around(100))
    export = exported(policy, tmp_path / "c", rule)
    assert abs(constant_bytes(export, COMPILERS[0], tmp_path) - export.rom_bytes) <= 256


@pytest.mark.parametrize("opset", [12, 13, 18, 21])
def test_files_are_valid_at_every_opset(opset, tmp_path):
    rows = around(300)
    policy = safe(explored("gap", steps=24).freeze(), rows)
    path = write_onnx(policy, tmp_path / "p.onnx", opset=opset).path
    onnx.checker.check_model(onnx.load(path), full_check=True)
    np.testing.assert_array_equal(GraphPolicy(path).status(rows), policy.status(rows))


def test_graphs_without_a_fallback_have_no_status(tmp_path):
    written = write_onnx(explored().freeze(), tmp_path / "p.onnx")
    assert written.outputs == ("arm",)
    with pytest.raises(ValueError, match="has no fallback"):
        GraphPolicy(written.path).status(around(2))


def test_compressed_policies_take_the_bytes_they_say(tmp_path):
    rows = around(400)
    policy = safe(explored("mean", "gaussian", steps=150).freeze(), rows, 0.7)
    small = policy.compress(bytes=9000, contexts=rows)
    export = write_c(small, tmp_path / "c", float32=True)
    assert export.rom_bytes == small.compression.bytes <= 9000
    if COMPILERS:
        assert_c_answers_as_python_does(small, rows, write_c(small, tmp_path / "d"))


def test_rounding_at_the_tolerance_is_a_near_tie():
    rows = around(200)
    plain = explored("mean").freeze()
    bound = plain.certificate(rows).bound
    inside = np.flatnonzero(
        (plain.with_fallback(2).status(rows) == 0) & (plain.recommend(rows) < 2)
    )
    at = inside[len(inside) // 2]
    for nudge, wanted in ((1e-12, 0), (-1e-12, 1)):
        policy = plain.with_fallback(2, tolerance=float(bound[at]) + nudge)
        assert policy.status(rows[at]) == wanted
        answers = np.array(arms_of(policy, rows))
        assert parity(policy, answers, rows).same == 200
        answers[at] = plain.recommend(rows[at]) if wanted else 2
        result = parity(policy, answers, rows)
        assert (result.same, result.near_ties, result.different) == (199, 1, 0)
        answers[at] = ({0, 1} - {plain.recommend(rows[at])}).pop()
        assert parity(policy, answers, rows).different == 1


def test_answers_are_the_policys():
    rows = around(300)
    policy = safe(explored("look-back").freeze(), rows)
    answers = answers_of(policy, decision_rule(policy), rows)
    np.testing.assert_array_equal(answers.arm, arms_of(policy, rows))
    np.testing.assert_array_equal(answers.status, policy.status(rows))
    np.testing.assert_allclose(answers.certificate, policy.certificate(rows).bound)


@needs_c
def test_a_level_called_like_a_status_has_another_name(tmp_path):
    columns = cg.Columns(bound="category")
    learner = cg.Learner(2, columns=columns, kernel=cg.Gaussian(1.0, categories=1), ridge=0.1)
    rows = [{"bound": "too large"}, {"bound": "small"}]
    for row, arm in zip(rows, (0, 1), strict=True):
        learner.tell(row, arm, 1.0)
    export = write_c(learner.freeze(fallback=1, tolerance=0.1), tmp_path)
    assert "CONTEXTGAP_BOUND_TOO_LARGE_2" in export.header.read_text()
    done = run(COMPILERS[0], "-std=c99", "-c", export.source, "-o", tmp_path / "p.o")
    assert done.returncode == 0, done.stderr
