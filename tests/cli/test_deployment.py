"""export and verify on real files."""

import csv
import json
import re
import shutil
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import contextgap as cg
from contextgap.cli.app import app
from contextgap.export import decision_rule
from contextgap.export.rule import comparison_contexts
from tests.export.compilers import COMPILERS

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
COLUMNS = ("tilt", "load")
LABELS = ("hull", "panel", "boom")


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def called(*arguments, code=0):
    return json.loads(call(*arguments, "--json", code=code).stdout)


def explored(shift=0.0, labels=LABELS, columns=COLUMNS, steps=75):
    rng = np.random.default_rng(5)
    learner = cg.Learner(labels, kernel=cg.Gaussian(0.5), ridge=0.05, seed=0)
    for x in rng.uniform(-1, 1, (steps, len(columns))):
        context = dict(zip(columns, x.tolist(), strict=True))
        arm = learner.ask(context)
        reward = np.sin(3 * (1 + labels.index(arm)) * (x[0] + shift)) + 0.1 * rng.standard_normal()
        learner.tell(context, arm, float(reward))
    return learner.freeze()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a policy, exports of it and contexts; tests write to ``tmp_path`` only."""
    folder = tmp_path_factory.mktemp("deployment")
    policy = explored()
    policy.save(folder / "policy.cgap")
    explored(shift=0.1).save(folder / "other.cgap")
    policy.to_c(folder / "c")
    policy.to_c(folder / "float", float32=True)
    policy.to_onnx(folder / "policy.onnx")
    with (folder / "contexts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["load", "note", "tilt"])  # another order, and a surplus column
        for tilt, load in np.random.default_rng(6).uniform(-1.2, 1.2, (300, 2)):
            writer.writerow([load, "x", tilt])
    return folder


def given_contexts(place):
    with (place / "contexts.csv").open() as file:
        return np.array([[float(row[name]) for name in COLUMNS] for row in csv.DictReader(file)])


def test_export_writes_what_the_methods_write(place, tmp_path):
    described = called(
        *("export", place / "policy.cgap", "--onnx", tmp_path / "x.onnx", "--c", tmp_path / "x")
    )
    assert (tmp_path / "x.onnx").read_bytes() == (place / "policy.onnx").read_bytes()
    for name in ("contextgap_policy.c", "contextgap_policy.h", "contextgap_selftest.c"):
        assert (tmp_path / "x" / name).read_text() == (place / "c" / name).read_text()
    export = explored().to_c(tmp_path / "y")
    assert described["c"]["rom_bytes"] == export.rom_bytes
    assert described["onnx"]["size"] == (tmp_path / "x.onnx").stat().st_size
    assert described["compression"] is None


def test_export_shows_sizes_in_80_columns(place, tmp_path):
    text = call(
        *("export", place / "policy.cgap", "--c", tmp_path / "x", "--float32", "--explain")
    ).stdout
    export = explored().to_c(tmp_path / "y", float32=True, certificates=True)
    for part in (
        *(f"{export.rom_bytes} bytes", f"{export.ram_bytes} bytes", "HighestMean", "float"),
        *(LABELS[export.default_arm], str(tmp_path / "x")),
    ):
        assert part in text
    table = text[: text.index("written to")]
    assert max(map(len, table.splitlines())) <= 80


def test_explain_puts_out_certificates(place, tmp_path):
    path = tmp_path / "x.onnx"
    described = called("export", place / "policy.cgap", "--onnx", path, "--explain")
    assert {"arm", "gap", "certificate"} <= set(described["onnx"]["outputs"])


def test_self_tests_use_the_contexts_given(place, tmp_path):
    contexts = place / "contexts.csv"
    call("export", place / "policy.cgap", "--c", tmp_path / "x", "--contexts", contexts)
    text = (tmp_path / "x" / "contextgap_selftest.c").read_text()
    assert "#define COUNT 200\n" in text  # of 300
    table = text[text.index("contexts[") : text.index("};")]
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", table)]
    got = np.reshape(numbers, (200, 2))
    rows = given_contexts(place)
    np.testing.assert_array_equal(got[[0, -1]], rows[[0, -1]])
    assert {tuple(row) for row in got} <= {tuple(row) for row in rows}


@needs_compiler
@pytest.mark.parametrize("export", ["c", "policy.onnx"])
def test_an_export_in_double_precision_is_the_policy(place, export):
    arguments = ("verify", place / "policy.cgap", place / export, "--count", 2000)
    described = called(*arguments, "--contexts", place / "contexts.csv")
    assert described["passed"]
    assert {name: (x["contexts"], x["same"]) for name, x in described["contexts"].items()} == {
        "random": (2000, 2000),
        "contexts.csv": (300, 300),
    }
    assert all(x["worst_added_regret"] == 0 for x in described["contexts"].values())
    assert all(x["microseconds"] > 0 for x in described["contexts"].values())
    if export == "c":
        assert described["self_test"]["passed"]
        assert described["self_test"]["output"].startswith("200 contexts")


def test_another_policy_is_told_apart(place):
    """Counts of different decisions are those of comparing the two policies directly."""
    arguments = ("verify", place / "other.cgap", place / "policy.onnx", "--count", 500)
    described = called(*arguments, "--seed", 3, code=1)["contexts"]["random"]
    policy, other = explored(), explored(shift=0.1)
    contexts = comparison_contexts(other, decision_rule(other), 500, None, 3)
    differ = policy.recommend(contexts) != other.recommend(contexts)
    assert 20 < described["different"] == differ.sum()
    text = call(*arguments, "--seed", 3, code=1).stdout
    assert f"FAILED: random: {differ.sum()} of 500 decisions differ" in text
    assert "--policy-out" in text
    assert max(map(len, text.splitlines())) <= 80


@needs_compiler
def test_single_precision_may_differ_as_far_as_asked(place):
    arguments = ("verify", place / "other.cgap", place / "float", "--count", 500)
    described = called(*arguments, "--agreement", 0.2)
    agreement = described["contexts"]["random"]["agreement"]
    assert described["float32"]
    assert 0.2 < agreement < 0.98
    different = described["contexts"]["random"]["different"]
    passed = call(*arguments, "--agreement", 0.2).stdout
    assert f"passed: all but {different} decisions are the policy's" in passed
    failed = called(*arguments, "--agreement", agreement + 0.001, code=1)
    assert failed["self_test"]["passed"]  # it compares with the policy exported, not with this one


@needs_compiler
def test_a_failing_self_test_is_reported(place, tmp_path):
    shutil.copytree(place / "c", tmp_path / "c")
    path = tmp_path / "c" / "contextgap_selftest.c"
    path.write_text(re.sub("(define TOLERANCE) .*", r"\1 -1.0", path.read_text()))
    result = call("verify", place / "policy.cgap", tmp_path / "c", "--count", 10, code=1)
    assert "200 with other numbers" in result.stdout.replace("\n", " ").replace("  ", " ")
    assert "FAILED: the self-test failed" in result.stdout


@needs_compiler
def test_a_compressed_policy_fits_and_is_what_was_exported(place, tmp_path):
    most = 600
    described = called(
        *("export", place / "policy.cgap", "--c", tmp_path / "c", "--max-bytes", most),
        *("--float32", "--policy-out", tmp_path / "small.cgap"),
        *("--contexts", place / "contexts.csv"),
    )
    report, small = described["compression"], cg.Policy.load(tmp_path / "small.cgap")
    assert 0.9 * most < described["c"]["rom_bytes"] <= most
    assert report["points"] == list(small.counts.values()) == described["points"]
    assert sum(report["points"]) < sum(report["points_before"]) == 75
    rows = given_contexts(place)[3::4]  # those that compressing holds out
    agreement = np.mean(small.recommend(rows) == explored().recommend(rows))
    assert report["agreement"] == pytest.approx(agreement)
    verified = called("verify", tmp_path / "small.cgap", tmp_path / "c", "--count", 500)
    assert verified["contexts"]["random"]["agreement"] > 0.99


@pytest.mark.parametrize(
    ("kind", "options", "most"),
    [("onnx", [], 3300), ("onnx", ["--explain"], 8000), ("c", ["--explain"], 2000)],
)
def test_what_an_export_takes_beyond_its_points_counts(place, tmp_path, kind, options, most):
    described = called(
        *("export", place / "policy.cgap", f"--{kind}", tmp_path / "x", *options),
        *("--max-bytes", most, "--float32"),
    )
    size = described["onnx"]["size"] if kind == "onnx" else described["c"]["rom_bytes"]
    assert 0.9 * most < size <= most
    assert 5 < sum(described["points"]) < 75


def test_compression_is_shown_in_80_columns(place, tmp_path):
    arguments = ("export", place / "policy.cgap", "--c", tmp_path / "c", "--float32")
    text = call(*arguments, "--max-bytes", 500).stdout
    assert "decisions unchanged, held out" in text
    table = text[: text.index("written to")]
    assert max(map(len, table.splitlines())) <= 80
    assert "small enough as it was" in call(*arguments, "--max-bytes", 10**6).stdout


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["export", "{place}/policy.cgap"], ["--onnx FILE, --c DIR"]),
        (
            ["export", "{place}/policy.cgap", "--c", "{new}/c", "--policy-out", "{new}/p.cgap"],
            ["--policy-out", "give --max-bytes too"],
        ),
        (
            ["export", "{place}/policy.cgap", "--c", "{new}/c", "--max-bytes", "20"],
            ["bytes must be at least", "20"],
        ),
        (
            ["export", "{place}/policy.cgap", "--onnx", "{new}/o", "--max-bytes", "900"],
            ["--max-bytes 900", "smallest found"],
        ),
        (["export", "{place}/policy.cgap", "--onnx", "{new}/none/o"], ["there is no folder"]),
        (["verify", "{place}/policy.cgap", "{place}/none"], ["there is no", "none"]),
        (["verify", "{place}/policy.cgap", "{place}"], ["holds no contextgap_policy.h"]),
        (["verify", "{place}/policy.cgap", "{place}/contexts.csv"], ["no exported policy"]),
        (["verify", "{place}/policy.cgap", "{new}/broken.onnx"], ["cannot be read as ONNX"]),
        (
            ["verify", "{place}/policy.cgap", "{place}/c", "--compiler", "no-such-cc"],
            ["no C compiler found", "no-such-cc"],
        ),
        (
            ["verify", "{new}/arms.cgap", "{place}/policy.onnx"],
            ["not of this policy", "arms are ['hull', 'panel', 'boom']", "'mast'"],
        ),
        (
            ["verify", "{new}/wider.cgap", "{place}/policy.onnx"],
            ["not of this policy", "numbers per context are 2, the policy's 3"],
        ),
        (
            ["verify", "{new}/names.cgap", "{place}/policy.onnx"],
            ["not of this policy", "columns are ['tilt', 'load']"],
        ),
        (
            ["verify", "{place}/policy.cgap", "{place}/policy.onnx", "--contexts", "{new}/few.csv"],
            ["few.csv", "no column 'load'"],
        ),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, parts, place, tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"not a graph")
    (tmp_path / "few.csv").write_text("tilt\n0.5\n")
    if "{new}/arms.cgap" in arguments:
        explored(labels=("hull", "panel", "mast"), steps=9).save(tmp_path / "arms.cgap")
    if "{new}/wider.cgap" in arguments:
        explored(columns=("a", "b", "c"), steps=9).save(tmp_path / "wider.cgap")
    if "{new}/names.cgap" in arguments:
        explored(columns=("a", "b"), steps=9).save(tmp_path / "names.cgap")
    before = set(tmp_path.iterdir())
    texts = [argument.format(place=place, new=tmp_path) for argument in arguments]
    result = call(*texts, code=2)
    for part in ("error:", *parts):
        assert part in result.stderr
    assert "Traceback" not in result.output
    assert set(tmp_path.iterdir()) == before


def test_files_of_two_exports_are_not_mixed(place, tmp_path):
    shutil.copytree(place / "c", tmp_path / "c")
    shutil.copy(place / "float" / "contextgap_selftest.c", tmp_path / "c")
    result = call("verify", place / "policy.cgap", tmp_path / "c", code=2)
    assert "different exports" in result.stderr


def test_a_missing_runtime_names_the_extra(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = call("verify", place / "policy.cgap", place / "policy.onnx", code=2)
    assert "pip install 'contextgap[onnx]'" in result.stderr


@pytest.mark.parametrize("lost", ["policy.cgap", "today.csv"])
@pytest.mark.parametrize("option", ["--onnx", "--policy-out"])
def test_an_export_replaces_nothing_that_it_reads(tmp_path, lost, option):
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(40, 1)), rng.integers(2, size=40)
    policy = cg.Learner(2, kernel=cg.Gaussian(1.0)).fit(contexts, arms, contexts[:, 0]).freeze()
    policy.save(tmp_path / "policy.cgap")
    (tmp_path / "today.csv").write_text("x\n0.5\n1.5\n")
    before = (tmp_path / lost).read_bytes()
    words = ["export", tmp_path / "policy.cgap", "--contexts", tmp_path / "today.csv"]
    words += ["--c", tmp_path / "c", "--max-bytes", 1500, option, tmp_path / lost]
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 2
    assert "is read here and would be replaced" in " ".join(result.stderr.split())
    assert (tmp_path / lost).read_bytes() == before
    assert not (tmp_path / "c").exists()


def test_a_warning_is_one_line_whatever_is_written(tmp_path):
    rng = np.random.default_rng(0)
    seconds = 1_750_000_000 + rng.integers(0, 3600, size=(200, 1)).astype(float)
    arms = rng.integers(2, size=200)
    rewards = np.sin((seconds[:, 0] - seconds.min()) / 200) * (2 * arms - 1)
    learner = cg.Learner(2, kernel=cg.Gaussian(200.0), ridge=0.01, method="uniform")
    learner.fit(seconds, arms, rewards).freeze().save(tmp_path / "policy.cgap")
    words = ["export", tmp_path / "policy.cgap", "--float32", "--max-bytes", 3000]
    words += ["--c", tmp_path / "c", "--onnx", tmp_path / "p.onnx"]
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0
    assert result.stderr.count("warning: rounding contexts to single precision changes") == 1
    assert "UserWarning" not in result.stderr
