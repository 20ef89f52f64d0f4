"""export and verify with policies of tables that are not all numbers, and with prefixes."""

import json

import numpy as np
import pytest

import contextgap as cg
from contextgap.cli.policies import read_contexts
from contextgap.export.onnx import GraphPolicy
from contextgap.export.rule import read_rows
from tests.cli.test_deployment import call, called, explored, needs_compiler
from tests.export.tables import COLUMNS, learnt, table


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a policy of a table and a file of raw rows."""
    folder = tmp_path_factory.mktemp("tables")
    learnt("gap").freeze().save(folder / "policy.cgap")
    frame = table(400, seed=11, unseen=0.1)
    frame[list(COLUMNS)[::-1]].to_csv(folder / "rows.csv", index=False)
    texts = {name: frame[name].astype(str) for name in ("turned_on", "crew")}
    frame.assign(**texts).to_parquet(folder / "text.parquet")
    return folder


@needs_compiler
@pytest.mark.parametrize("kind", ["--c", "--onnx"])
@pytest.mark.parametrize("float32", [False, True])
def test_an_export_of_a_table_is_verified(kind, float32, place, tmp_path):
    target = tmp_path / "x.onnx"
    options = ["--float32"] if float32 else []
    call("export", place / "policy.cgap", kind, target, "--contexts", place / "rows.csv", *options)
    described = called(
        *("verify", place / "policy.cgap", target, "--count", 1000),
        *("--contexts", place / "rows.csv"),
    )
    assert described["passed"]
    rows = {name: each["contexts"] for name, each in described["contexts"].items()}
    assert rows == {"random": 1000, "rows.csv": 400}
    if not float32:
        assert all(each["different"] == 0 for each in described["contexts"].values())


def test_files_hold_levels_as_text(place, tmp_path):
    """Truth values and numbers that are levels are found by what they are called."""
    policy = cg.Policy.load(place / "policy.cgap")
    path = policy.to_onnx(tmp_path / "x.onnx").path
    frame = table(400, seed=11, unseen=0.1)
    for name in ("rows.csv", "text.parquet"):
        read = read_contexts(policy, place / name)
        got = GraphPolicy(path).recommend(read)
        assert got.tolist() == GraphPolicy(path).recommend(frame).tolist()
        codes = read_rows(policy.state.schema.table, read)[:, 2]
        assert codes.tolist() == read_rows(policy.state.schema.table, frame)[:, 2].tolist()


def test_cells_that_are_wrong_are_named(place, tmp_path):
    frame = table(3).astype(object)
    frame.loc[1, "load"] = "much"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ("export", place / "policy.cgap", "--onnx", tmp_path / "x.onnx")
    result = call(*arguments, "--contexts", tmp_path / "rows.csv", code=2)
    said = " ".join(result.stderr.split())
    assert "rows.csv, line 3, column 'load': a number is needed, got 'much'" in said


@needs_compiler
def test_a_compressed_table_fits(place, tmp_path):
    described = called(
        *("export", place / "policy.cgap", "--c", tmp_path / "c", "--max-bytes", 6000),
        *("--policy-out", tmp_path / "small.cgap", "--contexts", place / "rows.csv"),
    )
    assert described["c"]["rom_bytes"] <= 6000
    arguments = ("verify", tmp_path / "small.cgap", tmp_path / "c", "--count", 500)
    assert called(*arguments, "--contexts", place / "rows.csv")["passed"]


@needs_compiler
def test_prefixes(place, tmp_path):
    explored().save(tmp_path / "plain.cgap")
    call("export", place / "policy.cgap", "--c", tmp_path / "c", "--prefix", "sensors")
    call("export", tmp_path / "plain.cgap", "--c", tmp_path / "c", "--prefix", "modes")
    for prefix, policy in (("sensors", place / "policy.cgap"), ("modes", tmp_path / "plain.cgap")):
        arguments = ("verify", policy, tmp_path / "c", "--count", 50)
        assert called(*arguments, "--prefix", prefix)["passed"]
        assert "several exports" in call(*arguments, code=2).stderr
    failed = call("export", place / "policy.cgap", "--c", tmp_path / "c", "--prefix", "A", code=2)
    assert "prefix must be" in failed.stderr


def test_an_export_with_other_levels_is_refused(place, tmp_path):
    policy = cg.Policy.load(place / "policy.cgap")
    path = policy.to_onnx(tmp_path / "x.onnx").path
    other = learnt("gap", steps=89).freeze()
    assert json.dumps(other.state.schema.table.describe()) != json.dumps(
        policy.state.schema.table.describe()
    )
    other.save(tmp_path / "other.cgap")
    result = call("verify", tmp_path / "other.cgap", path, code=2)
    assert "is not of this policy: its kinds and levels" in " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def safe(place):
    """A policy with a safe arm, exported to be told which arms are eligible; and another one."""
    policy = cg.Policy.load(place / "policy.cgap")
    bounds = policy.certificate(table(100)).bound
    for name, share in (("safe", 0.5), ("other", 0.6)):
        tolerance = float(np.quantile(bounds, share))
        policy.with_fallback(1, tolerance=tolerance).save(place / f"{name}.cgap")
    call("export", place / "safe.cgap", "--c", place / "safe", "--eligible")
    call("export", place / "safe.cgap", "--onnx", place / "safe.onnx", "--eligible")
    return place


@needs_compiler
@pytest.mark.parametrize("target", ["safe", "safe.onnx"])
def test_statuses_and_masks_are_verified(target, safe):
    how = ("--count", 500, "--contexts", safe / "rows.csv")
    described = called("verify", safe / "safe.cgap", safe / target, *how)
    assert described["passed"]
    for sets in (described["contexts"], described["eligible"]):
        assert {name: each["contexts"] for name, each in sets.items()} == {
            "random": 500,
            "rows.csv": 400,
        }
        assert all(each["different"] == each["other_statuses"] == 0 for each in sets.values())
    other = called("verify", safe / "other.cgap", safe / target, *how, code=1)
    for sets in (other["contexts"], other["eligible"]):
        assert all(each["other_statuses"] > 5 for each in sets.values())
    text = " ".join(call("verify", safe / "other.cgap", safe / target, *how, code=1).stdout.split())
    assert "of 500 statuses differ" in text
    assert "random, some arms eligible:" in text


@needs_compiler
def test_a_level_that_is_said_to_be_unknown_is_compared(place, tmp_path):
    call("export", place / "policy.cgap", "--c", tmp_path / "c")
    source = tmp_path / "c" / "contextgap_policy.c"
    text = source.read_text()
    assert text.count("CONTEXTGAP_LEVEL_UNKNOWN") > 0
    source.write_text(text.replace("CONTEXTGAP_LEVEL_UNKNOWN", "CONTEXTGAP_OK"))
    how = ("verify", place / "policy.cgap", tmp_path / "c", "--count", 200)
    described = called(*how, code=1)["contexts"]["random"]
    assert described["different"] == 0
    assert described["other_statuses"] > 20


def test_masks_of_a_look_back_are_refused(place, tmp_path):
    learnt("look-back").freeze().save(tmp_path / "back.cgap")
    made = call("export", tmp_path / "back.cgap", "--c", tmp_path / "c", "--eligible", code=2)
    said = " ".join(made.stderr.split())
    assert "a look-back cannot choose among eligible arms in an export" in said
    assert "SmallestGap" in said
    assert not (tmp_path / "c").exists()


def test_masks_are_exported_where_asked_for(place, tmp_path):
    call("export", place / "policy.cgap", "--onnx", tmp_path / "x.onnx", "--eligible")
    policy = cg.Policy.load(place / "policy.cgap")
    frame = table(60, seed=12)
    mask = np.random.default_rng(0).random((60, len(policy.arms))) < 0.6
    mask[~mask.any(axis=1)] = True
    found = GraphPolicy(tmp_path / "x.onnx").recommend(frame, arms=mask)
    assert [policy.arms[arm] for arm in found] == policy.recommend(frame, arms=mask).tolist()
