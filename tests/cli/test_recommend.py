"""recommend on tables of several blocks and files."""

import json

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.problems import blocks
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
    monkeypatch.setattr(blocks.read_blocks, "__defaults__", (None, 7))
    check_same(answered(policy, table, *options), whole)
    frame = pd.read_csv(table, dtype=str)
    for place, part in enumerate(np.array_split(np.arange(100), 3)):
        frame.iloc[part].to_csv(tmp_path / f"part{place}.csv", index=False)
    check_same(answered(policy, tmp_path / "part*.csv", *options), whole)
    files = [tmp_path / f"part{place}.csv" for place in range(3)]
    check_same(answered(policy, *files, *options), whole)


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


def test_a_later_block_that_is_wrong_is_named_and_nothing_is_written(
    policy, table, tmp_path, monkeypatch
):
    monkeypatch.setattr(blocks.read_blocks, "__defaults__", (None, 7))
    lines = table.read_text().splitlines()
    lines[60] = "much,a,left"
    table.write_text("\n".join(lines))
    failed = call("recommend", policy, table, "-o", tmp_path / "out.csv", code=2)
    assert "new.csv, line 61, column 'x': a number is needed, got 'much'" in failed.stderr
    assert not (tmp_path / "out.csv").exists()


def test_files_with_other_columns_are_both_named(policy, table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("x,kind\n1,a\n")
    failed = call("recommend", policy, table, other, code=2)
    for part in ("other.csv has the columns ['x', 'kind']", "new.csv ['x', 'kind', 'may']"):
        assert part in failed.stderr


def test_long_work_is_announced(policy, table, monkeypatch):
    monkeypatch.setattr(blocks.read_blocks, "__defaults__", (None, 7))
    assert "about" not in call("recommend", policy, table).stderr
    monkeypatch.setattr("contextgap.cli.terminal._LONG", 0.0)
    assert "100 rows: about 0 s" in call("recommend", policy, table).stderr
