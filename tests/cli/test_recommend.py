"""recommend on tables of several blocks and files."""

import csv
import gzip
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import contextgap as cg
from contextgap.tables import files
from tests.cli.test_policies import call, rows


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    rng = np.random.default_rng(0)
    contexts = pd.DataFrame({"x": rng.normal(size=200), "kind": rng.choice(["a", "b"], 200)})
    arms = rng.choice(["left", "right"], 200)
    rewards = np.where(arms == "left", 1, -1) * contexts["x"] * (contexts["kind"] == "a")
    rewards += 0.3 * rng.normal(size=200)
    learner = cg.Learner(["left", "right"], seed=0).fit(contexts, arms, rewards)
    path = tmp_path_factory.mktemp("policy") / "policy.cgap"
    learner.freeze(fallback="left", tolerance=1.0).save(path)
    return path


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": 3 * rng.normal(size=100), "kind": rng.choice(["a", "b", "c"], 100)})
    frame["may"] = rng.choice(["left", "right", "left|right"], 100)
    frame.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


def answered(policy, *arguments):
    """Return all that was answered but bounds, and bounds, whose last digits depend on blocks."""
    text = call("recommend", policy, *arguments).stdout
    answers = json.loads(text) if "--json" in arguments else rows(text)
    return answers, np.array([float(answer.pop("regret_bound", 0)) for answer in answers])


def check_same(one, two):
    assert one[0] == two[0]
    np.testing.assert_allclose(one[1], two[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [[], ["--no-bounds"], ["--eligible", "may"], ["--json"]])
def test_blocks_are_answered_as_the_whole(policy, table, tmp_path, monkeypatch, options):
    whole = answered(policy, table, *options)
    monkeypatch.setattr(files.read_blocks, "__defaults__", (None, 7))
    check_same(answered(policy, table, *options), whole)
    frame = pd.read_csv(table, dtype=str)
    for place, part in enumerate(np.array_split(np.arange(100), 3)):
        frame.iloc[part].to_csv(tmp_path / f"part{place}.csv", index=False)
    check_same(answered(policy, tmp_path / "part*.csv", *options), whole)
    paths = [tmp_path / f"part{place}.csv" for place in range(3)]
    check_same(answered(policy, *paths, *options), whole)


def test_answers_are_the_policys(policy, table, tmp_path):
    rule, frame = cg.Policy.load(policy), pd.read_csv(table)
    shown = call("recommend", policy, table, "-o", tmp_path / "out.csv").stdout
    answers = rows((tmp_path / "out.csv").read_text())
    arms = rule.recommend(frame)
    assert [row["arm"] for row in answers] == arms.tolist()
    bounds = [float(row["regret_bound"]) for row in answers]
    np.testing.assert_array_equal(bounds, rule.certificate(frame).bound)
    statuses = [cg.Status[row["status"].upper()] for row in answers]
    np.testing.assert_array_equal(statuses, rule.status(frame))
    assert len(set(statuses)) > 1
    assert "100" in shown
    listed = json.loads(call("recommend", policy, table, "--json").stdout)
    assert [answer["arm"] for answer in listed] == arms.tolist()


def test_a_level_never_met_has_a_status_without_a_fallback_too(policy, tmp_path):
    (tmp_path / "new.csv").write_text("x,kind\n0,a\n0,turbo\n0,b\n")
    result = call("recommend", policy, tmp_path / "new.csv")
    assert [row["status"] for row in rows(result.stdout)][1] == "outside"
    assert "never met: 'turbo' of kind; the status of their rows is outside" in result.stderr
    plain = cg.Policy(replace(cg.Policy.load(policy).state, fallback=None))
    plain.save(tmp_path / "plain.cgap")
    for more in ([], ["--json"]):
        result = call("recommend", tmp_path / "plain.cgap", tmp_path / "new.csv", *more)
        answers = json.loads(result.stdout) if more else rows(result.stdout)
        found = [answer["status"] for answer in answers]
        assert found == ["recommended", "new_level", "recommended"]
        assert "'turbo' of kind; the status of their rows is new_level" in result.stderr


@pytest.mark.parametrize("name", ["out.parquet", "out.pq", "out.tsv"])
def test_other_formats_hold_the_same_as_csv(policy, table, tmp_path, monkeypatch, name):
    monkeypatch.setattr(files.read_blocks, "__defaults__", (None, 7))
    call("recommend", policy, table, "-o", tmp_path / "out.csv")
    call("recommend", policy, table, "-o", tmp_path / name)
    want = pd.read_csv(tmp_path / "out.csv")
    if name == "out.tsv":
        found = pd.read_csv(tmp_path / name, sep="\t")
    else:
        found = pd.read_parquet(tmp_path / name)
        types = {field.name: str(field.type) for field in pq.read_schema(tmp_path / name)}
        assert (types["x"], types["kind"]) == ("double", "string")
    pd.testing.assert_frame_equal(found, want, check_dtype=False)


def test_gaps_in_columns_of_numbers_are_nulls_and_other_columns_stay_text(tmp_path):
    columns = cg.Columns({"x": cg.Number(missing=True), "code": cg.Category()})
    learner = cg.Learner(["a", "b"], columns=columns, seed=0)
    rows = [{"x": place / 7, "code": f"00{place % 2}"} for place in range(20)]
    learner.fit(pd.DataFrame(rows), ["a", "b"] * 10, np.arange(20) / 7)
    learner.freeze().save(tmp_path / "policy.cgap")
    (tmp_path / "new.csv").write_text("x;code;note\n1,5;001;7\n;000;\n-2;001;07\nNA;000;x\n")
    out = tmp_path / "out.parquet"
    call("recommend", tmp_path / "policy.cgap", tmp_path / "new.csv", "-o", out)
    found = pq.read_table(out).to_pydict()
    assert found["x"] == [1.5, None, -2.0, None]
    assert found["code"] == ["001", "000", "001", "000"]
    assert found["note"] == ["7", "", "07", "x"]


def test_columns_of_parquet_files_keep_their_types(policy, table, tmp_path, monkeypatch):
    monkeypatch.setattr(files.read_blocks, "__defaults__", (None, 7))
    frame = pd.read_csv(table)
    frame["arm"] = pd.array([None, *range(1, 100)], dtype="Int32")
    frame["day"] = pd.date_range("2026-01-01", periods=100, tz="UTC")
    frame["empty"] = pd.array([None] * 99 + [2**40], dtype="Int64")
    frame["kind"] = frame["kind"].astype("category")
    frame.iloc[:50].to_parquet(tmp_path / "one.parquet")
    frame.iloc[50:].astype({"arm": "Int64"}).to_parquet(tmp_path / "two.parquet")
    out = tmp_path / "out.parquet"
    call("recommend", policy, tmp_path / "one.parquet", tmp_path / "two.parquet", "-o", out)
    types = {field.name: str(field.type) for field in pq.read_schema(out)}
    assert types["x"] == types["recommended_regret_bound"] == "double"
    assert types["arm"] == types["empty"] == "int64"
    assert types["day"].startswith("timestamp")
    found = pd.read_parquet(out, dtype_backend="numpy_nullable")
    for name in frame.columns:
        assert found[name].dropna().tolist() == frame[name].dropna().tolist()
    assert found["recommended_arm"].tolist() == cg.Policy.load(policy).recommend(frame).tolist()
    assert pq.ParquetFile(out).num_row_groups > 10


@pytest.mark.parametrize(("arms", "kind"), [([1, 2], "int64"), ([1, "two"], "string")])
def test_arms_are_numbers_if_all_of_them_are(tmp_path, arms, kind):
    learner = cg.Learner(arms, kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
    for x, arm in ((0.0, arms[0]), (1.0, arms[1])):
        learner.tell({"x": x}, arm, 1.0)
    learner.freeze().save(tmp_path / "policy.cgap")
    (tmp_path / "new.csv").write_text("x\n0\n1\n")
    out = tmp_path / "out.parquet"
    call("recommend", tmp_path / "policy.cgap", tmp_path / "new.csv", "-o", out)
    assert str(pq.read_schema(out).field("arm").type) == kind
    found = pd.read_parquet(out)["arm"].tolist()
    assert found == (arms if kind == "int64" else [str(arm) for arm in arms])


def test_types_that_do_not_go_together_are_named(policy, table, tmp_path):
    frame = pd.read_csv(table)
    frame.to_parquet(tmp_path / "one.parquet")
    frame.assign(may=1).to_parquet(tmp_path / "two.parquet")
    paths = tmp_path / "one.parquet", tmp_path / "two.parquet"
    failed = call("recommend", policy, *paths, "-o", tmp_path / "out.parquet", code=2)
    assert "hold different things" in failed.stderr
    assert ".csv" in failed.stderr
    call("recommend", policy, *paths, "-o", tmp_path / "out.csv")


@pytest.mark.parametrize("name", ["out.txt", "out"])
def test_files_with_other_endings_are_csv(policy, table, tmp_path, name):
    call("recommend", policy, table, "-o", tmp_path / name)
    call("recommend", policy, table, "-o", tmp_path / "out.csv")
    assert (tmp_path / name).read_bytes() == (tmp_path / "out.csv").read_bytes()


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_answers_keep_the_separator_and_can_be_answered_again(policy, table, tmp_path, separator):
    frame = pd.read_csv(table, dtype=str).drop(columns="may")
    want = answered(policy, table)[0]
    if separator == ";":
        frame["x"] = frame["x"].str.replace(".", ",")
    frame.to_csv(tmp_path / "other.csv", sep=separator, index=False)
    out = tmp_path / "out.csv"
    call("recommend", policy, tmp_path / "other.csv", "-o", out)
    found = pd.read_csv(out, sep=separator, dtype=str)
    pd.testing.assert_frame_equal(found[["x", "kind"]], frame)
    assert found["arm"].tolist() == [row["arm"] for row in want]
    again = pd.read_csv(io.StringIO(call("recommend", policy, out).stdout), sep=separator)
    assert again["recommended_arm"].tolist() == found["arm"].tolist()
    call("recommend", policy, out, "-o", tmp_path / "out.tsv")
    tabs = pd.read_csv(tmp_path / "out.tsv", sep="\t", dtype=str)
    pd.testing.assert_frame_equal(tabs[["x", "kind"]], frame)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_a_later_block_that_is_wrong_is_named_and_nothing_is_written(
    policy, table, tmp_path, monkeypatch, output
):
    monkeypatch.setattr(files.read_blocks, "__defaults__", (None, 7))
    lines = table.read_text().splitlines()
    lines[60] = "much,a,left"
    table.write_text("\n".join(lines))
    failed = call("recommend", policy, table, "-o", tmp_path / output, code=2)
    assert "new.csv, line 61, column 'x': a number is needed, got 'much'" in failed.stderr
    assert not (tmp_path / output).exists()


def test_files_with_other_columns_are_both_named(policy, table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("x,kind\n1,a\n")
    failed = call("recommend", policy, table, other, code=2)
    for part in ("other.csv has the columns ['x', 'kind']", "new.csv ['x', 'kind', 'may']"):
        assert part in failed.stderr


def test_long_work_is_announced(policy, table, monkeypatch):
    monkeypatch.setattr(files.read_blocks, "__defaults__", (None, 7))
    assert "about" not in call("recommend", policy, table).stderr
    monkeypatch.setattr("contextgap.cli.terminal.LONG", 0.0)
    assert re.search(r"100 rows: about \d+ s", call("recommend", policy, table).stderr)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_text_is_compressed_if_its_name_says_so(policy, table, tmp_path, suffix):
    plain, compressed = tmp_path / f"out.{suffix}", tmp_path / f"out.{suffix}.gz"
    for path in (plain, compressed):
        call("recommend", policy, table, "-o", path)
    assert gzip.decompress(compressed.read_bytes()) == plain.read_bytes()


def test_nothing_that_is_read_is_written_over(tmp_path):
    log, policy = tmp_path / "log.csv", tmp_path / "p.cgap"
    log.write_text(
        "x,arm,reward\n" + "".join(f"{i / 40},{'ab'[i % 2]},{i % 3}\n" for i in range(40))
    )
    before = log.read_bytes()
    shown = call("learn", log, "--arm", "arm", "--reward", "reward", "-o", log, code=2)
    assert "log.csv is read here and would be replaced" in shown.stderr
    assert log.read_bytes() == before
    call("learn", log, "--arm", "arm", "--reward", "reward", "-o", policy)
    kept = policy.read_bytes()
    shown = call("recommend", policy, log, "-o", policy, code=2)
    assert "p.cgap is read here and would be replaced" in shown.stderr
    assert policy.read_bytes() == kept


def test_what_cannot_be_written_is_said_before_any_work(policy, table, tmp_path):
    for name in ("new.json", "new.XLSX", "new.jsonl", "new.jsonl.gz", "new.parquet.gz"):
        said = call("recommend", policy, table, "-o", tmp_path / name, code=2).stderr
        assert "known are .csv, .tsv and .parquet files" in " ".join(said.split())
    said = call("recommend", policy, table, "-o", tmp_path / "out.csv", "--json", code=2).stderr
    assert "nothing is written to" in " ".join(said.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv"]


def test_an_eligible_arm_that_the_policy_does_not_have_is_named(policy, tmp_path):
    (tmp_path / "slip.csv").write_text("x,kind,may\n1,a,left\n2,b,left|rihgt\n")
    result = call("recommend", policy, tmp_path / "slip.csv", "--eligible", "may")
    assert [row["arm"] for row in rows(result.stdout)] == ["left", "left"]
    warned = " ".join(result.stderr.split())
    assert (
        "--eligible may names arms that the policy does not have, which were passed over: 'rihgt'"
        in warned
    )
    (tmp_path / "right.csv").write_text("x,kind,may\n1,a,left\n2,b,left|right\n")
    assert call("recommend", policy, tmp_path / "right.csv", "--eligible", "may").stderr == ""


def test_where_numbers_have_decimal_commas_so_have_bounds(policy, tmp_path):
    (tmp_path / "new.csv").write_text("x;kind\n0,5;a\n-1,5;b\n")
    text = call("recommend", policy, tmp_path / "new.csv").stdout
    dotted = tmp_path / "dotted.csv"
    dotted.write_text("x,kind\n0.5,a\n-1.5,b\n")
    bounds = [row["regret_bound"] for row in csv.DictReader(text.splitlines(), delimiter=";")]
    same = [row["regret_bound"] for row in rows(call("recommend", policy, dotted).stdout)]
    assert [bound.replace(",", ".") for bound in bounds] == same
    assert all("." not in bound for bound in bounds)


def test_a_policy_without_names_of_columns_refuses_files(tmp_path):
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(80, 2))
    arms = rng.choice(["a", "b"], 80)
    learner = cg.Learner(["a", "b"], kernel=cg.Gaussian(0.3), seed=0)
    policy = learner.fit(x, arms, np.where(arms == "a", x[:, 0], 1 - x[:, 0])).freeze()
    policy.save(tmp_path / "unnamed.cgap")
    policy.with_columns(["x", "y"]).save(tmp_path / "named.cgap")
    (tmp_path / "new.csv").write_text("y,x\n0.1,0.9\n0.9,0.1\n")
    refused = call("recommend", tmp_path / "unnamed.cgap", tmp_path / "new.csv", code=2)
    assert "with_columns" in refused.stderr
    found = rows(call("recommend", tmp_path / "named.cgap", tmp_path / "new.csv").stdout)
    assert [row["arm"] for row in found] == ["a", "b"]
