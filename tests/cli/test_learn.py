"""learn on several files, and on more rows than are learnt from as a whole."""

import json

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.cli import duration
from contextgap.partitions import sample
from tests.cli.test_policies import call
from tests.partitions.test_learning import expected, make, regret, write

OPTIONS = ["--arm", "arm", "--reward", "reward"]


def learn(folder, *arguments, code=0):
    return call("learn", *arguments, *OPTIONS, "-o", folder / "policy.cgap", code=code)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE", 1500)


def test_files_are_learnt_from_as_if_they_were_one(tmp_path):
    table = make(300)
    (tmp_path / "one").mkdir()
    table.to_csv(tmp_path / "one" / "whole.csv", index=False)
    whole = json.loads(learn(tmp_path, tmp_path / "one" / "whole.csv", "--json").stdout)
    pattern = write(table, tmp_path, files=3)
    found = json.loads(learn(tmp_path, pattern, "--json").stdout)
    files = [tmp_path / f"log{place}.csv" for place in range(3)]
    listed = json.loads(learn(tmp_path, *files, "--json").stdout)
    assert found == listed == whole


def test_a_long_log_is_learnt_from_by_sums(few, tmp_path):
    pattern = write(make(), tmp_path, suffix="parquet")
    shown = learn(tmp_path, pattern, "--points", "64", "--fallback", "rare")
    assert "6000 trials" in shown.stdout.replace("\n", " ")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert sum(policy.counts.values()) == policy.card.rewards == 6000
    assert policy.card.looked_at == 1500
    assert regret(policy, make(1000, seed=1)) < 0.1  # where the safe arm is not answered
    assert (tmp_path / "policy.cgap").stat().st_size < 2e6


def test_exact_beliefs_keep_all_rows(few, tmp_path):
    table = make(1800)
    pattern = write(table[["x", "arm", "reward"]], tmp_path)
    learn(tmp_path, pattern, "--points", "0", "--bandwidth", "0.5", "--card-rows", "300")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert (policy.card.looked_at, policy.card.rewards) == (300, 1800)
    assert policy._model.kind == "exact"
    assert len(policy._model.observed) == 1800


def test_many_arms_with_few_rows_each_stay_exact(few, tmp_path):
    table = make(2000)[["x", "reward"]].assign(arm=np.arange(2000) % 40)
    learn(tmp_path, write(table, tmp_path), "--bandwidth", "0.5")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert policy._model.kind == "exact"
    assert policy.arms == tuple(range(40))


def test_given_scales_and_costs(few, tmp_path):
    table = make()[["x", "arm", "reward"]].assign(reward=lambda each: -each["reward"])
    given = ["--bandwidth", "0.5", "--ridge", "0.1", "--minimize", "--points", "64"]
    learn(tmp_path, write(table, tmp_path), *given)
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert (policy.kernel.bandwidth, policy.ridge) == (0.5, 0.1)
    new = make(1000, seed=1).assign(kind="a")
    assert regret(policy, new) < 0.1
    assert policy.card.value.value < policy.card.best_single.value


def test_gaps_that_may_come_later(few, tmp_path):
    table = make()[["x", "kind", "arm", "reward"]]
    learn(tmp_path, write(table, tmp_path), "--gaps", "x", "--points", "64")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert policy.kinds["x"].gaps
    assert policy.recommend({"x": None, "kind": "a"}) in policy.arms


def test_a_saved_index_is_left_out_once(few, tmp_path):
    table = make()[["x", "arm", "reward"]]
    table.to_csv(tmp_path / "log.csv")
    shown = learn(tmp_path, tmp_path / "log.csv", "--bandwidth", "0.5", "--points", "64")
    assert shown.stderr.count("numbers the rows, as a saved index does; it is left out") == 1
    assert cg.Policy.load(tmp_path / "policy.cgap").columns == ("x",)


def test_mistakes_name_file_and_line(few, tmp_path):
    table = make().astype(object)
    table.loc[4000, "x"] = "much"
    failed = learn(tmp_path, write(table, tmp_path), code=2)
    assert "log3.csv, line 402, column 'x': a number is needed, got 'much'" in failed.stderr
    failed = learn(tmp_path, tmp_path / "*.tsv", code=2)
    assert "no file is called like that" in failed.stderr
    assert not (tmp_path / "policy.cgap").exists()


def test_long_work_is_announced(few, tmp_path, monkeypatch):
    table = make()[["x", "arm", "reward"]]
    pattern, given = write(table, tmp_path), ["--bandwidth", "0.5", "--points", "64"]
    monkeypatch.setattr(duration, "SAMPLE", 1500)
    assert "6,000 rows: about 2" in learn(tmp_path, pattern, *given).stderr
    monkeypatch.setattr(duration, "SAMPLE", 10_000)
    assert "about" not in learn(tmp_path, pattern, *given).stderr


def test_scales_are_those_of_all_contexts_and_not_of_the_first(few, tmp_path):
    """The first two thirds of the log know nothing of what makes a difference."""
    rng = np.random.default_rng(0)
    table = make()
    table["x"] = np.where(np.arange(len(table)) < 4000, 0.0, table["x"])
    table["reward"] = expected(table, table["arm"]) + 0.3 * rng.normal(size=len(table))
    learn(tmp_path, write(table, tmp_path), "--points", "64")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert regret(policy, make(1000, seed=1)) < 0.1
    assert pd.Series(policy.recommend(make(1000, seed=1))).nunique() > 1
