from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from contextgap.experiments.selection import select, summarise
from contextgap.problems import AlgorithmSelection, Scenario
from tests.problems.algorithm_selection.writing import ASLIB


@pytest.fixture(scope="module")
def scenario():
    """Three solvers: the first is fast where x is small, the second where it is large."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (150, 2))
    logs = np.column_stack([2 * x[:, 0], -2 * x[:, 0], np.full(150, 1.5)]) + 1
    return Scenario(
        name="toy",
        contexts=1000 * x,  # units must not matter
        rewards=-logs,
        performance=10.0**logs,
        cutoff=1000,
        folds=np.arange(150) % 5 + 1,
        instances=[f"i{row}" for row in range(150)],
    )


@pytest.fixture(scope="module")
def table(scenario):
    return select(scenario, methods=["contextual-gap", "uniform"], seeds=[0, 1])


def test_one_row_per_method_seed_and_fold(table):
    assert len(table) == 2 * 2 * 5
    assert not table[["method", "seed", "fold"]].duplicated().any()
    assert (table["runs_paid"] == 120).all()
    assert (table["runs_in_table"] == 360).all()
    assert (table["instances"] == 30).all()


def test_the_columns_agree_with_one_another(table):
    expected = (table["single_best"] - table["selected"]) / (
        table["single_best"] - table["virtual_best"]
    )
    np.testing.assert_allclose(table["closed_gap"], expected)
    assert (table["virtual_best"] <= table["selected"]).all()


def test_an_easy_scenario_is_learnt(table):
    assert (summarise(table)["closed_gap"] > 0.95).all()


def test_the_summary_weighs_instances(table):
    summary = summarise(table).set_index("method")
    mine = table[table["method"] == "uniform"]
    assert summary.loc["uniform", "average_regret"] == pytest.approx(mine["average_regret"].mean())
    assert summary.loc["uniform", "share_of_runs"] == pytest.approx(1 / 3)


def test_a_pool_gives_the_same(scenario, table):
    with ProcessPoolExecutor(2) as pool:
        pooled = select(
            scenario, methods=["contextual-gap", "uniform"], seeds=[0, 1], executor=pool
        )
    for name in table.columns.drop("seconds"):
        assert (pooled[name] == table[name]).all()


def test_rewards_in_other_units_give_the_same_picks(scenario):
    other = Scenario(
        name="toy",
        contexts=scenario.contexts,
        rewards=1000 * scenario.rewards - 5000,
        performance=scenario.performance,
        cutoff=1000,
        folds=scenario.folds,
        instances=scenario.instances,
    )
    how = {"methods": ["contextual-gap"], "seeds": [3]}
    np.testing.assert_allclose(
        select(scenario, **how)["selected"], select(other, **how)["selected"]
    )


def test_a_larger_budget_pays_for_more_runs_but_never_twice(scenario):
    table = select(scenario, methods=["uniform"], budget=4, seeds=[0])
    assert (table["runs_paid"] > 200).all()
    assert (table["runs_paid"] <= table["runs_in_table"]).all()


def test_rewards_that_are_all_the_same(scenario):
    flat = Scenario(
        name="flat",
        contexts=scenario.contexts,
        rewards=np.ones((150, 3)),
        performance=np.ones((150, 3)),
        cutoff=1000,
        folds=scenario.folds,
        instances=scenario.instances,
    )
    assert (select(flat, methods=["contextual-gap"], seeds=[0])["average_regret"] == 0).all()


def test_the_budget_is_checked(scenario):
    with pytest.raises(ValueError, match="budget"):
        select(scenario, budget=0)


@pytest.mark.skipif(not ASLIB.is_dir(), reason="the shared scenarios are not here")
def test_a_real_scenario():
    scenario = AlgorithmSelection(ASLIB / "BNSL-2016").load()
    small = scenario.take(np.flatnonzero(scenario.folds <= 3))
    summary = summarise(select(small, seeds=[0])).set_index("method")
    # A third of the data, one run each: far better than the single best solver already.
    assert summary.loc["contextual-gap", "closed_gap"] > 0.2
    assert summary.loc["contextual-gap", "share_of_runs"] == pytest.approx(1 / 8, rel=0.01)
