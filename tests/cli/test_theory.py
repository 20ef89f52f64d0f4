"""plan, and stopping early."""

import json
from pathlib import Path

import numpy as np
import pytest

import contextgap as cg
from tests.cli.test_policies import call
from tests.cli.test_studies import SMALL


@pytest.fixture
def contexts(tmp_path):
    path = tmp_path / "contexts.csv"
    rows = np.random.default_rng(0).uniform(0, 1, (60, 2))
    np.savetxt(path, rows, delimiter=",", header="x,y", comments="")
    return path


def test_plan_says_how_long_to_explore(contexts, tmp_path):
    wanted = ["--arms", "3", "--noise", "0.1", "--tolerance", "0.3"]
    small = ["--budget", "60", "--repetitions", "4", "--jobs", "1", "--out", tmp_path]
    found = json.loads(call("plan", contexts, *wanted, *small, "--json").stdout)
    pilot, theorem = list(found.values())[:2]
    assert 0 < pilot <= 60
    assert theorem > 1000 * pilot  # the theorem's constants are that loose
    assert (tmp_path / "plan.png").exists()
    shown = call("plan", contexts, *wanted, *small).stdout
    assert "pilot: steps to 0.3 in 90 %" in shown


def test_plan_needs_noise(contexts, tmp_path):
    wanted = ["--arms", "3", "--noise", "0", "--tolerance", "0.3", "--out", tmp_path]
    assert "noise must be positive" in call("plan", contexts, *wanted, code=2).stderr


def test_run_stops_when_certificates_suffice(tmp_path):
    settings = ["--bandwidth", "1.0", "--ridge", "0.01", "--until", "0.9", "--share", "0.5"]
    found = json.loads(call("run", *SMALL, *settings, "--out", tmp_path, "--json").stdout)
    stopping = found["stopping"]
    assert 0 < stopping["stopped_after"] < stopping["of_steps"] == 80
    assert stopping["bounds"] == "heuristic"
    policy = cg.Policy.load(found["policy"])
    assert sum(policy.counts.values()) == stopping["stopped_after"]
    shown = call("run", *SMALL, *settings, "--out", tmp_path).stdout
    assert f"stopped after {stopping['stopped_after']} of 80 steps" in shown


@pytest.mark.parametrize("name", ["leaderboard", "coverage"])
def test_studies_that_left_the_package_say_where_they_went(name):
    done = call(name, "--jobs", "1", "--quick", code=2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    script = line.split("run python ")[1].split()[0]
    assert name in script
    assert (Path(__file__).parents[2] / script).is_file()
