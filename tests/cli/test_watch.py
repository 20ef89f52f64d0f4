"""The command watch on real files."""

import json

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from tests.cli.test_policies import call
from tests.team.service.test_watching import same


@pytest.fixture
def policy(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"load": rng.random(150), "spin": rng.random(150)})
    arms = rng.choice(["hull", "boom"], 150)
    rewards = np.where(arms == "hull", rows["load"], 0.5) + 0.1 * rng.standard_normal(150)
    learner = cg.Learner(["hull", "boom"], kernel=cg.Gaussian(0.5), ridge=0.1)
    path = tmp_path / "policy.cgap"
    learner.fit(rows, arms, rewards).freeze().save(path)
    return path


def written(path, rows, shift, seed=1):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"id": range(rows), "spin": rng.random(rows), "load": rng.random(rows)})
    table["load"] += shift
    table["may"] = "hull|boom"
    table.to_csv(path, index=False)
    return path


def test_contexts_like_the_logs_give_no_alarm(policy, tmp_path):
    same = written(tmp_path / "same.csv", 400, 0.0)
    said = call("watch", policy, same, "--eligible", "may").output
    assert "400 rows seen" in said
    assert "no alarm" in said


def test_an_alarm_says_what_to_do_and_is_an_exit_code(policy, tmp_path):
    files = [written(tmp_path / "a.csv", 300, 0.0), written(tmp_path / "b.csv", 100, 0.9)]
    figure = tmp_path / "watch.png"
    said = call("watch", policy, *files, "--figure", figure, code=3).output
    assert "load is outside what was seen in" in said
    assert figure.stat().st_size > 5000
    found = json.loads(call("watch", policy, *files, "--json", code=3).output)
    watch = cg.Policy.load(policy).watch()
    for file in files:
        watch.see(pd.read_csv(file)[["load", "spin"]])
    assert same(found, watch)
    assert found["alarm"]["row"] == watch.alarm.row > 300


def test_blocks_are_those_of_a_baseline(policy, tmp_path):
    file = written(tmp_path / "a.csv", 200, 0.0)
    usual = written(tmp_path / "b.csv", 400, 0.0, seed=2)
    said = call("watch", policy, file, "--block", 10, code=2).output
    assert "at least 20 different blocks of 10 rows, got 11; pass more as baseline" in said
    blocks = ("--block", 10, "--baseline", usual, "--json")
    found = json.loads(call("watch", policy, file, *blocks).output)
    watch = cg.Policy.load(policy).watch(block=10, baseline=pd.read_csv(usual)[["load", "spin"]])
    watch.see(pd.read_csv(file)[["load", "spin"]])
    assert same(found, watch)


def test_wrong_settings_are_one_line(policy, tmp_path):
    file = written(tmp_path / "a.csv", 10, 0.0)
    said = call("watch", policy, file, "--failure-probability", 2, code=2).output
    assert "failure" in said
    assert "Traceback" not in said


def test_a_kept_watch_goes_on_with_the_next_file(policy, tmp_path):
    files = [written(tmp_path / "a.csv", 300, 0.0), written(tmp_path / "b.csv", 100, 0.9)]
    state = tmp_path / "watch.cgap"
    assert "300 rows seen" in call("watch", policy, files[0], "--state", state).output
    said = call("watch", policy, files[1], "--state", state, code=3).output
    assert said == call("watch", policy, *files, code=3).output
    said = call("watch", policy, files[0], "--state", state, "--block", 2, code=2).output
    assert "blocks of 1 rows" in said
