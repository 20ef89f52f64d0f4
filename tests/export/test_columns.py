"""Exports of tables with columns of all kinds decide as Python does on the raw rows."""

import json
import shutil

import numpy as np
import onnx
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.export import decision_rule, parity
from contextgap.export.c import write_c
from contextgap.export.onnx import GraphPolicy, write_onnx
from contextgap.export.rule import (
    comparison_contexts,
    has_unknown_level,
    observed_contexts,
    read_rows,
    rows_of,
    seen_by_kernels,
    spread_numbers,
)
from contextgap.tables.columns import MOST_LEVELS, TableSchema
from tests.export.compilers import (
    COMPILERS,
    compiled,
    constant_bytes,
    self_test,
    stack_bytes,
)
from tests.export.tables import COLUMNS, KERNELS, LEVELS, UNSEEN, learnt, table
from tests.export.test_c import RULES, exported

needs_c = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")


def schema(policy):
    return policy.state.schema.table


def indices(policy, frame):
    return [policy.arms.index(arm) for arm in policy.recommend(frame)]


def rows_with_anything(policy, count, seed=3):
    """Rows with codes and numbers of all sorts, and gaps where there may be some."""
    rng = np.random.default_rng(seed)
    rows = comparison_contexts(policy, decision_rule(policy), count, None, seed)
    for place, coding in enumerate(schema(policy).codings):
        if coding.levels:
            odd = rng.random(count) < 0.3
            rows[odd, place] = rng.choice([-1, 300, 1.5, -0.5, 1e30, 2, 3, 4], odd.sum())
    return rows


def test_kernels_see_what_the_schema_spreads():
    policy = learnt().freeze()
    frame = table(200, seed=5, unseen=0.2)
    rows = read_rows(schema(policy), frame)
    np.testing.assert_array_equal(
        seen_by_kernels(schema(policy), rows), policy.state.read(frame)[0]
    )
    assert len(spread_numbers(schema(policy))) == schema(policy).dimension == policy.dimension
    unseen = (frame[list(UNSEEN)] == pd.Series(UNSEEN)).any(axis=1)
    np.testing.assert_array_equal(has_unknown_level(schema(policy), rows), unseen)


def test_observed_rows_are_found_again():
    policy = learnt().freeze()
    observed = observed_contexts(decision_rule(policy))
    rows = rows_of(schema(policy), observed)
    np.testing.assert_allclose(seen_by_kernels(schema(policy), rows), observed, rtol=0, atol=1e-9)


def test_comparison_rows_are_rows_that_may_be_met():
    policy = learnt().freeze()
    rows = comparison_contexts(policy, decision_rule(policy), 2000, None)
    for place, coding in enumerate(schema(policy).codings):
        gap = np.isnan(rows[:, place])
        assert gap.any() == coding.kind.missing
        if coding.levels:
            assert set(rows[~gap, place]) == set(range(-1, len(coding.levels)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("float32", [False, True])
def test_onnx_decides_as_python_does(rule, float32, tmp_path):
    policy = learnt(rule).freeze()
    path = write_onnx(policy, tmp_path / "p.onnx", float32=float32).path
    graph, frame = GraphPolicy(path, threads=1), table(2000, seed=9, unseen=0.1)
    agree = np.mean(graph.recommend(frame) == indices(policy, frame))
    assert agree >= (0.99 if float32 else 1)
    rows = rows_with_anything(policy, 1000)
    result = parity(policy, graph.recommend(rows), rows)
    assert result.same >= (990 if float32 else 1000)


@needs_c
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("float32", [False, True])
def test_c_decides_as_python_does(rule, float32, tmp_path):
    policy = learnt(rule).freeze()
    export = exported(policy, tmp_path, rule, float32=float32)
    library, frame = compiled(export), table(2000, seed=9, unseen=0.1)
    rows = read_rows(schema(policy), frame)
    agree = np.mean(library.recommend(rows) == indices(policy, frame))
    assert agree >= (0.99 if float32 else 1)
    got = library.decide(rows)
    np.testing.assert_array_equal(got.status == 3, has_unknown_level(schema(policy), rows))
    assert set(got.status) == {0, 3}
    np.testing.assert_array_equal(got.arm, library.recommend(rows))
    odd = rows_with_anything(policy, 1000)
    result = parity(policy, library.recommend(odd), odd)
    assert result.same >= (990 if float32 else 1000)
    done = self_test(export, COMPILERS[-1] if float32 else COMPILERS[0])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_believed_is_what_the_policy_believes(kernel, tmp_path):
    policy = learnt("gap", kernel).freeze()
    frame = table(60, seed=4, unseen=0.2)
    rows = read_rows(schema(policy), frame)
    belief = policy.chooser.evidence(policy.state.read(frame)[0]).belief
    found = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", explain=True).path).explain(rows)
    for name in ("mean", "std", "gap"):
        np.testing.assert_allclose(found[name], getattr(belief, name), rtol=1e-7, atol=1e-8)
    if COMPILERS:
        got = compiled(write_c(policy, tmp_path / "c")).decide(rows)
        np.testing.assert_allclose(got.mean, belief.mean, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(got.gap, belief.gap, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("rule", ["mean", "upper", "gap"])
@pytest.mark.parametrize("float32", [False, True])
def test_arms_that_share(rule, float32, tmp_path):
    policy = learnt(rule, sharing=0.6).freeze()
    rows = rows_with_anything(policy, 2000)
    path = write_onnx(policy, tmp_path / "p.onnx", float32=float32).path
    least = 1980 if float32 else 2000
    assert parity(policy, GraphPolicy(path).recommend(rows), rows).same >= least
    if COMPILERS:
        export = exported(policy, tmp_path / "c", rule, float32=float32)
        assert parity(policy, compiled(export).recommend(rows), rows).same >= least
        assert self_test(export, COMPILERS[0]).returncode == 0


@pytest.mark.parametrize("kernel", [cg.Gaussian(0.7, categories=2), cg.Linear(categories=2)])
def test_codes_and_nothing_else(kernel, tmp_path):
    columns = cg.Columns(country=cg.Category(missing=True), crew="category")
    policy = learnt("gap", kernel, columns=columns).freeze()
    frame = table(300, seed=2, unseen=0.2)[list(columns)]
    rows, wanted = read_rows(schema(policy), frame), indices(policy, frame)
    result = parity(policy, np.array(wanted), rows)
    assert result.same == 300
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx").path)
    assert parity(policy, graph.recommend(rows), rows).different == 0
    if COMPILERS:
        export = write_c(policy, tmp_path / "c")
        assert parity(policy, compiled(export).recommend(rows), rows).different == 0
        assert self_test(export, COMPILERS[0]).returncode == 0


@pytest.mark.filterwarnings("ignore:the column")
def test_numbers_with_gaps_and_nothing_else(tmp_path):
    frame = table(80)[["x", "load"]]
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), ridge=0.1)
    paid = frame["load"] + np.random.default_rng(2).normal(0, 0.3, 80)
    policy = learner.fit(frame, np.arange(80) % 2, paid).freeze()
    rows = rows_with_anything(policy, 500)
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx").path)
    assert parity(policy, graph.recommend(rows), rows).same == 500
    if COMPILERS:
        export = write_c(policy, tmp_path / "c")
        assert parity(policy, compiled(export).recommend(rows), rows).same == 500
        assert "encode" not in export.header.read_text()


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_kinds_in_any_order(data, tmp_path_factory):
    kinds = {
        "country": [cg.Category(missing=True)],
        "crew": [cg.Category()],
        "hour": [cg.Cyclic(24, missing=True), cg.Number(missing=True)],
        "tilt": [cg.Cyclic(360), cg.Cyclic(360, missing=True), cg.Number()],
        "when": [cg.Date(("day",), missing=True), cg.Date(missing=True)],
    }
    names = data.draw(st.permutations(list(kinds)).map(lambda p: p[: 1 + len(p) // 2]))
    columns = cg.Columns({name: data.draw(st.sampled_from(kinds[name])) for name in names})
    seen = TableSchema.of(columns)
    kernel = cg.Gaussian(20.0, categories=seen.layout.categories)
    policy = learnt("gap", kernel, columns=columns, steps=30).freeze()
    rows = rows_with_anything(policy, 300)
    path = tmp_path_factory.mktemp("any") / "p.onnx"
    found = GraphPolicy(write_onnx(policy, path).path).recommend(rows)
    assert parity(policy, found, rows).different == 0


def test_what_has_no_answer(tmp_path):
    policy = learnt().freeze()
    good = read_rows(schema(policy), table(1, gaps=0.0))[0]
    gaps = [coding.kind.missing for coding in schema(policy).codings]
    rows, bad = [], []
    for place, may_be_gap in enumerate(gaps):
        for value in (np.nan, np.inf, -np.inf):
            rows.append(np.where(np.arange(len(good)) == place, value, good))
            bad.append(not (np.isnan(value) and may_be_gap))
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", explain=True).path)
    found = graph.explain(np.array(rows))
    np.testing.assert_array_equal(found["arm"] == -1, bad)
    np.testing.assert_array_equal(np.isinf(found["certificate"]), bad)
    if COMPILERS:
        export = write_c(policy, tmp_path / "c")
        got = compiled(export).decide(np.array(rows))
        np.testing.assert_array_equal(got.status == 1, bad)
        assert (got.arm[bad] == export.default_arm).all()


@pytest.mark.filterwarnings("ignore:the column")
def test_a_gap_in_a_category_is_its_level_or_unknown(tmp_path):
    policy = learnt().freeze()
    country = schema(policy).codings[0]
    frame = table(50)
    rows = read_rows(schema(policy), frame)
    as_gap = np.where(rows == country.levels.index(None), np.nan, rows)
    as_gap[:, 1:] = rows[:, 1:]
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx").path)
    np.testing.assert_array_equal(graph.recommend(as_gap), graph.recommend(rows))
    without = learnt_without_gaps_in_country()
    if COMPILERS:
        got = compiled(write_c(without, tmp_path / "c")).decide(
            read_rows(schema(without), table(5, gaps=0.0).assign(country=None))
        )
        assert got.status.tolist() == [3] * 5


def learnt_without_gaps_in_country():
    frame = table(25).assign(country="de")  # so few that a column which never changes is no news
    learner = cg.Learner(2, kernel=KERNELS["gaussian"], columns=COLUMNS, ridge=0.1)
    return learner.fit(frame, np.arange(25) % 2, frame["load"]).freeze()


@pytest.mark.filterwarnings("ignore:the column")
@needs_c
def test_rare_levels_are_one(tmp_path):
    names = [f"n{i}" for i in range(MOST_LEVELS + 20)]
    columns = cg.Columns(name="category", load="number")
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0, categories=1), columns=columns, ridge=0.1)
    frame = pd.DataFrame({"name": names, "load": 0.1})
    paid = np.where(np.arange(len(names)) >= MOST_LEVELS, 5.0, -5.0)
    learner.fit(frame[:20], [0] * 20, paid[:20])  # a first table of all would look like ids
    policy = learner.fit(frame[20:], [0] * (len(names) - 20), paid[20:]).freeze()
    asked = pd.DataFrame({"name": ["n0", "n310", "never"], "load": 0.1})
    wanted = policy.chooser.evidence(policy.state.read(asked)[0]).belief.mean
    assert wanted[1, 0] > 1 > 0 > wanted[0, 0]
    rows = read_rows(schema(policy), asked)
    rows[2, 0] = -1  # as the function that finds codes says
    found = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx", explain=True).path).explain(rows)
    got = compiled(write_c(policy, tmp_path / "c")).decide(rows)
    for mean in (found["mean"], got.mean):
        np.testing.assert_allclose(mean, wanted, atol=1e-9)


def test_the_runner_takes_raw_cells_and_numbers(tmp_path):
    policy = learnt().freeze()
    graph = GraphPolicy(write_onnx(policy, tmp_path / "p.onnx").path)
    frame = table(40, seed=8, unseen=0.2)
    wanted = indices(policy, frame)
    shuffled = frame[frame.columns[::-1]].assign(other="surplus")
    assert graph.recommend(shuffled).tolist() == wanted
    assert graph.recommend(read_rows(schema(policy), frame)).tolist() == wanted
    assert graph.recommend(frame[list(COLUMNS)].to_numpy(dtype=object)).tolist() == wanted
    assert graph.recommend(frame.iloc[3].to_dict()).tolist() == [wanted[3]]
    with pytest.raises(ValueError, match="lack the column 'tilt'"):
        graph.recommend(frame.drop(columns="tilt"))
    with pytest.raises(ValueError, match=r"shape \(n, 8\), got \(40, 7\)"):
        graph.recommend(np.zeros((40, 7)))


def test_the_metadata_says_what_columns_and_codes_mean(tmp_path):
    policy = learnt().freeze()
    write_onnx(policy, tmp_path / "p.onnx")
    model = onnx.load(tmp_path / "p.onnx")
    stored = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(stored["contextgap.table"]) == json.loads(
        json.dumps(schema(policy).describe())
    )
    assert json.loads(stored["contextgap.columns"]) == list(COLUMNS)
    country = json.loads(stored["contextgap.table"])[0]
    assert (country["name"], set(country["levels"])) == ("country", set(LEVELS["country"]))
    assert model.graph.input[0].type.tensor_type.shape.dim[1].dim_value == len(COLUMNS)


@pytest.mark.parametrize("opset", [12, 13, 18, 21])
@pytest.mark.parametrize("float32", [False, True])
def test_files_are_valid_at_every_opset(opset, float32, tmp_path):
    policy = learnt("gap", "trend", steps=24).freeze()
    path = write_onnx(policy, tmp_path / "p.onnx", opset=opset, float32=float32).path
    onnx.checker.check_model(onnx.load(path), full_check=True)
    frame = table(300, seed=2, unseen=0.1)
    assert np.mean(GraphPolicy(path).recommend(frame) == indices(policy, frame)) >= 0.99


@needs_c
@pytest.mark.skipif(not shutil.which("size"), reason="needs binutils")
def test_rom_is_what_the_object_holds(tmp_path):
    export = write_c(learnt("gap", "trend").freeze(), tmp_path / "c")
    # As for plain policies, and seven tables more that are aligned to 32 bytes each.
    allowed = 256 + 7 * 32
    assert abs(constant_bytes(export, COMPILERS[0], tmp_path) - export.rom_bytes) <= allowed


@needs_c
@pytest.mark.skipif(not shutil.which("gcc"), reason="only gcc tells the size of stack frames")
def test_ram_is_what_the_stack_holds(tmp_path):
    export = write_c(learnt().freeze(), tmp_path / "c")
    held = stack_bytes(export, tmp_path)
    # Both functions that users call spread a row; only one of them does at a time.
    held -= 8 * schema(learnt().freeze()).dimension
    assert export.ram_bytes < held < export.ram_bytes + 1600


@needs_c
def test_compressed_policies(tmp_path):
    policy = learnt().freeze()
    small = policy.compress(points=20, contexts=table(400, seed=6, unseen=0.2))
    rows = rows_with_anything(small, 1000)
    graph = GraphPolicy(write_onnx(small, tmp_path / "p.onnx").path)
    assert parity(small, graph.recommend(rows), rows).same == 1000
    assert (
        parity(small, compiled(write_c(small, tmp_path / "c")).recommend(rows), rows).same == 1000
    )


def test_a_learnt_policy_is_exported_as_it_is(tmp_path):
    """All scales learnt from the rewards, and columns guessed from the table."""
    frame = table(150).drop(columns="when")
    arms = np.random.default_rng(1).integers(3, size=150)
    learner = cg.Learner(3, seed=0).fit(frame, arms, np.sin(arms + frame["load"]))
    policy = learner.freeze()
    later = table(500, seed=3, unseen=0.1).drop(columns="when")
    later["turned_on"] = later["turned_on"].replace("perhaps", True)
    later["crew"] = later["crew"].astype(int)
    path = write_onnx(policy, tmp_path / "p.onnx").path
    assert GraphPolicy(path).recommend(later).tolist() == indices(policy, later)
