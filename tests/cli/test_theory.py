"""plan: how long to explore."""

import json

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from tests.cli.test_policies import call


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


def test_plan_takes_categories_cycles_and_excluded_columns(tmp_path):
    rng = np.random.default_rng(0)
    path, frame = tmp_path / "contexts.csv", pd.DataFrame({"x": rng.uniform(size=60)})
    frame["mode"], frame["code"] = rng.choice(["eco", "sport"], 60), rng.integers(3, size=60)
    wanted = ["--arms", 3, "--noise", 0.1, "--tolerance", 0.3, "--exclude", "id"]
    small = ["--budget", 20, "--repetitions", 2, "--jobs", 1, "--out", tmp_path, "--json"]

    def planned(*more, **columns):
        frame.assign(id=np.arange(60), **columns).to_csv(path, index=False)
        return json.loads(call("plan", path, *wanted, *small, "--category", "code", *more).stdout)

    table = frame.assign(code=frame["code"].astype(str))
    kernel = cg.Gaussian.from_contexts(table)
    how = {"n_arms": 3, "noise": 0.1, "tolerance": 0.3, "budget": 20, "repetitions": 2}
    plan = cg.experiments.plan(table, kernel=kernel, **how)
    found = planned()
    assert kernel.categories == 2
    assert found["effective dimension"] == plan.spectrum.effective_dimension
    assert found["pilot: share within after 20 steps"] == plan.pilot_probability
    hours = rng.integers(24, size=60)
    one = planned("--cyclic", "hour=24", hour=hours)
    other = planned("--cyclic", "hour=24", hour=(hours + 5) % 24)  # it begins elsewhere
    assert one["eigenvalue floor"] == pytest.approx(other["eigenvalue floor"], rel=1e-6)
    assert one["eigenvalue floor"] != found["eigenvalue floor"]
    said = call("plan", path, *wanted, "--cyclic", "our=24", code=2).stderr
    assert "there is no context column 'our'" in said
    said = call("plan", path, *wanted, "--columns", "y", code=2).stderr
    assert "there is no column 'y'" in said
