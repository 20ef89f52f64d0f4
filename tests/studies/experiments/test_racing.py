"""Races within budgets of CPU time, and what is selected after them."""

import numpy as np
import pytest

from contextgap.studies.experiments import select_algorithms, summarise_cpu
from contextgap.studies.experiments.selection import MARGIN, PAR10_MARGIN, Runs, races
from contextgap.studies.problems import Scenario

CUTOFF = 1000.0


@pytest.fixture(scope="module")
def scenario():
    """Three solvers: each of two is fast on one side, the third hardly ever ends."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (120, 2))
    logs = np.column_stack([2 * x[:, 0], -2 * x[:, 0], np.full(120, 3.2)]) + 0.5
    logs += 0.1 * rng.normal(size=logs.shape)
    seconds = 10.0**logs
    performance = np.where(seconds > CUTOFF, 10 * CUTOFF, seconds)
    return Scenario(
        name="toy",
        contexts=x,
        rewards=-np.log10(performance),
        performance=performance,
        cutoff=CUTOFF,
        folds=np.arange(120) % 3 + 1,
        instances=[f"i{row}" for row in range(120)],
        feature_cost=np.full(120, 0.01),
    )


def test_a_race_spends_what_it_says_and_no_more(scenario):
    """Run by run: all solvers to the limit of each instance, and features."""
    runs = Runs(scenario)
    budgets = [0.001 * runs.whole, 0.02 * runs.whole, 0.2 * runs.whole, 2 * runs.whole]
    before = np.zeros(120)
    for budget, (limits, spent) in zip(
        budgets, races(runs, budgets, np.random.default_rng(0)), strict=True
    ):
        total = 120 * 0.01
        for row in range(120):
            for arm in range(3):
                total += min(runs.seconds[row, arm], limits[row])
        assert spent == pytest.approx(total)
        assert spent <= budget or not limits.any()
        assert (limits >= before).all()
        before = limits
    # With enough to spend every run is made to its end.
    assert spent == pytest.approx(runs.whole + runs.features)


def test_instances_are_raced_to_a_limit_before_any_goes_far_beyond(scenario):
    runs = Runs(scenario)
    (limits, _), *_ = races(runs, [0.002 * runs.whole], np.random.default_rng(0))
    best = np.where(runs.solved, runs.seconds, np.inf).min(axis=1)
    going_on = limits[limits < 0.99 * np.minimum(MARGIN * best, CUTOFF)]
    assert going_on.max() <= 2.001 * going_on.min()


def test_runs_that_were_stopped_count_ten_times(scenario):
    runs = Runs(scenario)
    logs, done = runs.logs(np.full(120, 5.0))
    assert done.tolist() == (runs.solved & (runs.seconds <= 5)).tolist()
    np.testing.assert_allclose(logs[~done], np.log10(50.0))
    np.testing.assert_allclose(logs[done], np.log10(runs.seconds[done]))


@pytest.fixture(scope="module")
def table(scenario):
    return select_algorithms(scenario, cpu=(0.005, 0.05), seeds=[0, 1])


def test_rows_have_the_columns_promised(scenario, table):
    assert {"method", "fold", "seed", "cpu", "regret", "par10"} <= set(table.columns)
    counts = table.groupby("method").size().to_dict()
    assert counts == {"race": 12, "extra-trees": 12, "uniform": 12, "full table": 6}
    raced = table[table["method"] == "race"]
    assert (raced["spent"] <= raced["cpu"]).all()
    assert (table[table["method"] == "full table"]["spent"] >= 1).all()


def test_a_race_learns_more_from_as_many_seconds(table):
    summary = summarise_cpu(table).set_index(["method", "cpu"]).sort_index()
    assert summary.loc[("race", 0.05), "regret"] < 0.05
    assert summary.loc[("extra-trees", 0.05), "ratio"] == 1
    assert summary.loc[("race", 0.05), "regret"] < summary.loc[("uniform", 0.05), "regret"]


def test_the_summary_weighs_instances_and_pairs_folds(table):
    row = summarise_cpu(table).set_index(["method", "cpu"]).sort_index().loc[("race", 0.05)]
    part = table[(table["method"] == "race") & (table["cpu"] == 0.05)]
    assert row["regret"] == pytest.approx(np.average(part["regret"], weights=part["instances"]))
    trees = table[(table["method"] == "extra-trees") & (table["cpu"] == 0.05)]
    assert row["ratio"] == pytest.approx(part["regret"].mean() / trees["regret"].mean())


def test_seconds_are_shares_of_each_fold(scenario):
    found = select_algorithms(scenario, seconds=[300.0], seeds=[0], methods=["race"])
    assert (found["cpu"] == 300.0).all()
    wholes = [Runs(scenario.take(scenario.folds != fold)).whole for fold in (1, 2, 3)]
    assert (found["spent"] * wholes <= 300).all()


def test_what_makes_no_sense_is_refused(scenario):
    for wrong in ({"cpu": 2.0}, {"cpu": 0.0}, {"cpu": []}, {"cpu": 0.1, "methods": ["gap"]}):
        with pytest.raises(ValueError, match=r"cpu|methods"):
            select_algorithms(scenario, **wrong)
    with pytest.raises(TypeError, match="place of budget"):
        select_algorithms(scenario, cpu=0.1, budget=2)
    with pytest.raises(ValueError, match="cpu must be more"):
        select_algorithms(scenario, cpu=1e-9, methods=["race"], seeds=[0])
    endless = Scenario(
        name="endless",
        contexts=scenario.contexts,
        rewards=scenario.rewards,
        performance=scenario.performance,
        cutoff=np.inf,
        folds=scenario.folds,
        instances=scenario.instances,
    )
    with pytest.raises(ValueError, match="times and a cutoff"):
        select_algorithms(endless, cpu=0.1)


def test_the_aim_decides_between_fast_and_safe():
    """The first solver is fastest on most instances and fails on the others."""
    rng = np.random.default_rng(0)
    hard = np.arange(120) % 5 == 0
    seconds = np.column_stack([np.where(hard, 2000.0, 0.1), np.where(hard, 10.0, 1.0)])
    seconds *= np.exp(0.05 * rng.normal(size=seconds.shape))
    performance = np.where(seconds > CUTOFF, 10 * CUTOFF, seconds)
    scenario = Scenario(
        name="risky",
        contexts=rng.uniform(size=(120, 1)),
        rewards=-np.log10(performance),
        performance=performance,
        cutoff=CUTOFF,
        folds=np.arange(120) % 3 + 1,
        instances=[f"i{row}" for row in range(120)],
    )
    how = {"cpu": 0.2, "methods": ["race", "extra-trees"], "seeds": [0]}
    fast, safe = (select_algorithms(scenario, aim=aim, **how) for aim in ("regret", "par10"))
    assert set(safe["method"]) == {"race for PAR10", "extra-trees"}
    trees = [each[each["method"] == "extra-trees"]["par10"].tolist() for each in (fast, safe)]
    assert trees[0] == trees[1]
    fast, safe = (each[each["method"] != "extra-trees"] for each in (fast, safe))
    assert (safe["spent"] <= 0.2).all()
    assert (safe["par10"] < 0.1 * fast["par10"].mean()).all()
    assert (safe["regret"] > fast["regret"]).all()


def test_races_for_par10_decide_hard_instances_earlier(scenario):
    runs = Runs(scenario)
    budget, decided = [0.002 * runs.whole], []
    for margin in (MARGIN, PAR10_MARGIN):
        ((limits, _),) = races(runs, budget, np.random.default_rng(0), margin)
        decided.append(runs.logs(limits)[1].any(axis=1))
    assert PAR10_MARGIN < MARGIN
    assert decided[1].sum() > decided[0].sum()


def test_aims_that_make_no_sense_are_refused(scenario):
    with pytest.raises(ValueError, match="aim must be one of"):
        select_algorithms(scenario, cpu=0.1, aim="speed")
    with pytest.raises(TypeError, match="aim is about races"):
        select_algorithms(scenario, aim="par10")
