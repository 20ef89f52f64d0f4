from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from contextgap.learner import Learner
from contextgap.studies.experiments import select_algorithms, selection, summarise_selection
from contextgap.studies.experiments.selection import ratio
from contextgap.studies.problems import AlgorithmSelection, Scenario
from tests.studies.problems.algorithm_selection.writing import ASLIB


@pytest.fixture(scope="module")
def scenario():
    """Three solvers: the first is fast where x is small, the second where it is large."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (90, 2))
    logs = np.column_stack([2 * x[:, 0], -2 * x[:, 0], np.full(90, 1.5)]) + 1
    return Scenario(
        name="toy",
        contexts=1000 * x,  # units must not matter
        rewards=-logs,
        performance=10.0**logs,
        cutoff=1000,
        folds=np.arange(90) % 3 + 1,
        instances=[f"i{row}" for row in range(90)],
    )


@pytest.fixture(scope="module")
def table(scenario):
    return select_algorithms(scenario, methods=["contextual-gap", "uniform"], seeds=[0, 1])


def test_one_row_per_method_seed_and_fold(table):
    assert len(table) == 2 * 2 * 3
    assert not table[["method", "seed", "fold"]].duplicated().any()
    assert (table["runs_paid"] == 60).all()
    assert (table["runs_in_table"] == 180).all()
    assert (table["instances"] == 30).all()


def test_the_columns_agree_with_one_another(table):
    expected = (table["single_best"] - table["selected"]) / (
        table["single_best"] - table["virtual_best"]
    )
    np.testing.assert_allclose(table["closed_gap"], expected)
    assert (table["virtual_best"] <= table["selected"]).all()


def test_an_easy_scenario_is_learnt(table):
    assert (summarise_selection(table)["closed_gap"] > 0.95).all()


def test_the_summary_weighs_instances(table):
    summary = summarise_selection(table).set_index("method")
    mine = table[table["method"] == "uniform"]
    assert summary.loc["uniform", "average_regret"] == pytest.approx(mine["average_regret"].mean())
    assert summary.loc["uniform", "share_of_runs"] == pytest.approx(1 / 3)


def test_a_pool_gives_the_same(scenario, table):
    with ProcessPoolExecutor(2) as pool:
        pooled = select_algorithms(scenario, methods=["uniform"], seeds=[0], executor=pool)
    here = table[(table["method"] == "uniform") & (table["seed"] == 0)].reset_index(drop=True)
    for name in table.columns.drop("seconds"):
        assert (pooled[name] == here[name]).all()


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
    here, there = (select_algorithms(one_fold(each), **how) for each in (scenario, other))
    np.testing.assert_allclose(here["selected"], there["selected"])


@pytest.fixture
def heard(monkeypatch):
    """What learners were offered, what they chose, and what they were told."""

    class Recorder(Learner):
        offered: ClassVar[list[tuple[np.ndarray, np.ndarray]]] = []
        told: ClassVar[list[tuple[bytes, int, float]]] = []

        def ask(self, contexts=None, *, pool=None, index=False):
            answer = super().ask(contexts, pool=pool, index=index)
            if pool is not None:
                self.offered.append((pool, pool[answer[0]]))
            return answer

        def tell(self, contexts, arms, rewards):
            self.told.append((contexts.tobytes(), arms, rewards))
            super().tell(contexts, arms, rewards)

    monkeypatch.setattr(selection, "Learner", Recorder)
    return Recorder


def one_fold(scenario):
    return scenario.take(np.flatnonzero(scenario.folds <= 2))


def test_a_larger_budget_pays_for_more_runs_but_never_twice(scenario, heard):
    table = select_algorithms(one_fold(scenario), methods=["uniform"], budget=4, seeds=[0])
    assert (table["runs_paid"] > 50).all()
    assert (table["runs_paid"] <= table["runs_in_table"]).all()
    pairs = [(context, arm) for context, arm, _ in heard.told]
    assert len(pairs) == len(set(pairs)) == table["runs_paid"].sum()


def test_what_is_reached_on_the_way_is_what_smaller_budgets_reach(scenario):
    how = {"methods": ["contextual-gap"], "seeds": [0]}
    small = one_fold(scenario)
    both = select_algorithms(small, budget=[2, 0.5], **how)
    assert both["budget"].tolist() == [0.5, 2.0] * 2
    for budget in (0.5, 2):
        alone = select_algorithms(small, budget=budget, **how)
        mine = both[both["budget"] == budget].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine.drop(columns="seconds"), alone.drop(columns="seconds"))


@pytest.mark.parametrize("method", ["contextual-gap", "uniform"])
def test_a_learner_chooses_among_the_instances_left(scenario, heard, method):
    small = one_fold(scenario)  # 30 instances per fold: all are candidates
    table = select_algorithms(small, methods=[method], budget=1.5, seeds=[0], choose=True)
    assert table["choose"].all()
    rows = {context.tobytes(): row for row, context in enumerate(small.contexts)}
    for fold in range(2):
        left: set[int] = set()
        for pool, chosen in heard.offered[45 * fold : 45 * fold + 45]:
            left = left or set(np.flatnonzero(small.folds != fold + 1).tolist())
            assert {rows[context.tobytes()] for context in pool} == left
            left.remove(rows[chosen.tobytes()])
    assert len(heard.offered) == 90
    assert len(heard.told) == table["runs_paid"].sum()
    for context, arm, reward in heard.told:
        assert reward == small.observations[rows[context], arm]


def test_no_more_than_so_many_candidates(scenario, heard, monkeypatch):
    monkeypatch.setattr(selection, "CANDIDATES", 7)
    table = select_algorithms(
        one_fold(scenario), methods=["uniform"], budget=0.5, seeds=[0], choose=True
    )
    assert {len(pool) for pool, _ in heard.offered} == {7}
    assert (table["runs_paid"] == 15).all()


def test_the_change_against_uniform_is_paired(table):
    table = table.assign(average_regret=np.random.default_rng(0).uniform(1, 2, len(table)))
    summary = summarise_selection(table).set_index("method")
    regret = table.pivot_table(index=["fold", "seed"], columns="method", values="average_regret")
    expected = regret["contextual-gap"].mean() / regret["uniform"].mean() - 1
    assert summary.loc["contextual-gap", "regret_change"] == pytest.approx(expected)
    assert summary.loc["uniform", ["regret_change", "regret_change_error"]].tolist() == [0, 0]
    alone = summarise_selection(table[table["method"] == "contextual-gap"])
    assert alone["regret_change"].isna().all()
    shuffled = table.sample(frac=1, random_state=0)  # pairs are found, not taken in order
    again = summarise_selection(shuffled).set_index("method")
    columns = ["regret_change", "regret_change_error"]
    np.testing.assert_allclose(again.loc[summary.index, columns], summary[columns])


def test_the_error_of_a_ratio_is_that_of_the_jackknife():
    rng = np.random.default_rng(0)
    below = rng.uniform(1, 3, 60)
    above = 0.7 * below + rng.normal(0, 0.4, 60)
    weights = rng.integers(20, 40, 60).astype(float)
    left_out = [
        ratio(*(np.delete(column, i) for column in (above, below, weights)))[0] for i in range(60)
    ]
    jackknife = np.sqrt(59 * np.var(left_out))
    found, error = ratio(above, below, weights)
    assert found == pytest.approx((weights @ above) / (weights @ below))
    assert error == pytest.approx(jackknife, rel=0.05)
    assert np.isnan(ratio(above[:1], below[:1], weights[:1])[1])


def test_rewards_that_are_all_the_same(scenario):
    flat = Scenario(
        name="flat",
        contexts=scenario.contexts,
        rewards=np.ones((90, 3)),
        performance=np.ones((90, 3)),
        cutoff=1000,
        folds=scenario.folds,
        instances=scenario.instances,
    )
    table = select_algorithms(one_fold(flat), methods=["contextual-gap", "uniform"], seeds=[0])
    assert (table["average_regret"] == 0).all()
    assert summarise_selection(table)[["regret_change", "closed_gap"]].isna().all(axis=None)


@pytest.mark.parametrize("budget", [0, -1, [1, 0], [], float("nan")])
def test_the_budget_is_checked(scenario, budget):
    with pytest.raises(ValueError, match="budget"):
        select_algorithms(scenario, budget=budget)


@pytest.mark.slow
@pytest.mark.skipif(not ASLIB.is_dir(), reason="the shared scenarios are not here")
def test_a_real_scenario():
    scenario = AlgorithmSelection(ASLIB / "BNSL-2016").load()
    small = scenario.take(np.flatnonzero(scenario.folds <= 3))
    found = select_algorithms(small, methods=["contextual-gap"], seeds=[0])
    summary = summarise_selection(found).set_index("method")
    # A third of the data, one run each: far better than the single best solver already.
    assert summary.loc["contextual-gap", "closed_gap"] > 0.2
    assert summary.loc["contextual-gap", "share_of_runs"] == pytest.approx(1 / 8, rel=0.01)
