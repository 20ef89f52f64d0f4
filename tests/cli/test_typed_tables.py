"""Studies of tables with text and gaps: run, compare and tune."""

import json

import numpy as np
import pandas
import pytest

import contextgap as cg
from contextgap.studies.problems import Table
from tests.cli.test_policies import call


@pytest.fixture
def table(tmp_path):
    """Which of two arms pays more depends on the country and on whether x is missing."""
    rng = np.random.default_rng(0)
    country = rng.choice(["DE", "FR", "IT"], size=240)
    x = np.where(rng.random(240) < 0.2, np.nan, rng.normal(size=240))
    side = np.where(country == "DE", 1.0, -0.5) + 1.2 * np.isnan(x)
    frame = pandas.DataFrame({"country": country, "x": x, "left": side, "right": -side})
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_typed_table_is_a_problem(table):
    problem = Table(table, rewards=["left", "right"]).sample()
    assert dict(problem.schema.kinds) == {"country": cg.Category(), "x": cg.Number(missing=True)}
    assert problem.columns == ("country", "x")
    assert problem.dimension == 3
    part, rest = problem.split(100, 140)
    assert part.schema is problem.schema
    learner = cg.Learner(problem.arms)
    learner.fit(part.inputs, ["left", "right"] * 50, part.rewards[np.arange(100), [0, 1] * 50])
    places = [problem.arms.index(arm) for arm in learner.recommend(rest.inputs)]
    assert rest.regret(places).mean() < 0.05
    raw = pandas.read_csv(table).iloc[100:]
    assert (learner.recommend(raw) == learner.recommend(rest.inputs)).all()
    with pytest.raises(TypeError, match="not all numbers"):
        problem.frame()


def test_run_makes_a_policy_of_a_typed_table(table, tmp_path):
    how = ["--rewards", "left,right", "--methods", "auto,uniform", "--out", tmp_path / "out"]
    found = json.loads(
        call("run", table, *how, "--jobs", "1", "--repetitions", "1", "--json").output
    )
    regrets = {row["method"]: row["average_regret"] for row in found["results"]}
    single = next(value for name, value in regrets.items() if "single" in name)
    assert min(regrets.values()) < 0.2 * single
    policy = cg.Policy.load(tmp_path / "out" / "policy.cgap")
    assert policy.columns == ("country", "x")
    assert policy.recommend({"country": "DE", "x": 0.3}) == "left"
    assert policy.recommend({"country": "FR", "x": 0.3}) == "right"
    assert policy.recommend({"country": "FR", "x": None}) == "left"


def test_studies_are_told_what_columns_hold(tmp_path):
    rng = np.random.default_rng(0)
    shop, hour = rng.integers(100, 104, size=120), rng.integers(24, size=120)
    side = np.where(shop % 2, 1.0, -1.0) * np.cos(2 * np.pi * hour / 24)
    frame = pandas.DataFrame({"id": range(120), "shop": shop, "hour": hour, "a": side, "b": -side})
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False, sep="|")
    how = ["--rewards", "a,b", "--category", "shop", "--cyclic", "hour=24", "--exclude", "id"]
    missing = ["--missing", "hour"]
    more = ["--methods", "uniform", "--repetitions", "1", "--out", tmp_path / "out", "--jobs", "1"]
    call("run", path, *how, *missing, *more)
    policy = cg.Policy.load(tmp_path / "out" / "policy.cgap")
    assert dict(policy.kinds) == {"shop": cg.Category(), "hour": cg.Cyclic(24, missing=True)}
    assert policy.recommend({"shop": 100, "hour": None}) in ("a", "b")
    with pytest.raises(ValueError, match="no missing value in column 'shop'"):
        policy.recommend({"shop": None, "hour": 12})
    call("compare", path, *how, *more, "--grid", "1", "--separator", "|")
    for wrong, text in (
        (["--category", "shops"], "there is no column 'shops'"),
        (["--exclude", "ids"], "there is no column 'ids'"),
        (["--missing", "hours"], "there is no column 'hours'"),
        (["--missing", "id", "--exclude", "id"], "there is no context column 'id'"),
        (["--separator", ","], "there is no column 'a'"),
    ):
        said = call("run", path, "--rewards", "a,b", *wrong, *more, code=2).output
        assert text in " ".join(said.split())


def test_compare_tunes_kernels_that_know_categories(table, tmp_path):
    how = ["--rewards", "left,right", "--methods", "uniform", "--grid", "2", "--jobs", "1"]
    how += ["--explore", "40", "--evaluate", "20"]
    made = call("compare", table, *how, "--repetitions", "1", "--out", tmp_path / "out")
    assert "uniform" in made.output
