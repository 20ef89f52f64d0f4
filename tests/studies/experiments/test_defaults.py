"""Comparisons of learners without settings."""

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.methods.method import read_method
from contextgap.studies.experiments.compare import (
    evaluate_defaults,
    explore_once,
    marked,
    same_rows,
    summarise_defaults,
)
from contextgap.studies.experiments.run import Store, Task

SETTINGS = {"kernel": cg.Gaussian(0.5), "ridge": 0.1, "width": cg.PosteriorWidth(2.0)}


@pytest.fixture(scope="module")
def rounds():
    maker = cg.problems.Sinusoids(n_arms=3, noise=0.1)
    return [maker.sample(50, seed=seed).split(30, 20) for seed in (5, 6)]


def own_loop(explore, exploit, steps, **how):
    """Regret after some steps, and how often each rank was tried."""
    learner, tried = cg.Learner(explore.arms, **how), np.zeros(explore.n_arms, dtype=int)
    for row in range(steps):
        arm = learner.ask(explore.contexts[row])
        place = explore.arms.index(arm)
        learner.tell(explore.contexts[row], arm, explore.observations[row, place])
        tried[explore.ranks[row, place] - 1] += 1
    chosen = [exploit.arms.index(arm) for arm in learner.recommend(exploit.contexts)]
    return exploit.regret(chosen), tried


@pytest.mark.parametrize("settings", [None, SETTINGS])
def test_methods_are_explored_as_by_hand(rounds, settings):
    results = evaluate_defaults(
        rounds,
        methods=["contextual-gap", "uniform"],
        checkpoints=[12, 30],
        yardsticks=(),
        seeds=[5, 6],
        settings=settings,
    )
    records = results.records.set_index(["method", "repetition", "checkpoint"])
    assert len(records) == 2 * 2 * 2
    for (method, repetition, steps), row in records.iterrows():
        how = {"method": method, "seed": 5 + repetition, **(settings or {})}
        regret, tried = own_loop(*rounds[repetition], steps, **how)
        assert row["average_regret"] == pytest.approx(regret.mean())
        assert row["worst_regret"] == pytest.approx(regret.max())
        if steps == 30:
            picks = results.picks
            own = picks[(picks["method"] == method) & (picks["repetition"] == repetition)]
            assert own["count"].tolist() == tried.tolist()
    assert len(results.timings) == 2 * 2


def test_full_information_takes_the_same_settings_at_its_own_checkpoints(rounds):
    records = evaluate_defaults(
        rounds, methods=["uniform"], checkpoints=[30], full_checkpoints=[10, 30], settings=SETTINGS
    ).records
    full = records[records["method"] == "full information"]
    assert sorted(full["checkpoint"].unique()) == [10, 30]
    for row in full.to_dict("records"):
        (explore, exploit), steps = rounds[row["repetition"]], row["checkpoint"]
        learner = cg.Learner(3, **SETTINGS)
        contexts, seen = np.tile(explore.contexts[:steps], (3, 1)), explore.observations[:steps]
        learner.fit(contexts, np.arange(3).repeat(steps), seen.T.ravel())
        regret = exploit.regret(learner.recommend(exploit.contexts).astype(int))
        assert row["average_regret"] == pytest.approx(regret.mean())


def test_the_best_single_arm_is_level(rounds):
    records = evaluate_defaults(
        rounds,
        methods=["uniform"],
        checkpoints=[10, 30],
        yardsticks=["best single arm"],
        settings=SETTINGS,
    ).records
    single = records[records["method"] == "best single arm"]
    for repetition, (_, exploit) in enumerate(rounds):
        own = single[single["repetition"] == repetition]["average_regret"]
        assert own.tolist() == [exploit.regret_table.mean(axis=0).min()] * 2


def test_an_unknown_yardstick_is_named(rounds):
    with pytest.raises(ValueError, match=r"yardsticks must be among .* got 'luck'"):
        evaluate_defaults(rounds, methods=["uniform"], checkpoints=[1], yardsticks=["luck"])


def test_a_store_tells_settings_apart(rounds):
    explore, exploit = rounds[0]
    shared = {"explore": explore, "exploit": exploit, "method": read_method("uniform")}
    shared |= {"checkpoints": [30], "seed": 0}
    tasks = [
        Task(explore_once, {**shared, "settings": {**SETTINGS, "kernel": kernel}})
        for kernel in (cg.Gaussian(0.5), cg.Gaussian(0.25))
    ]
    assert len({task.key() for task in [*tasks, Task(explore_once, shared)]}) == 3
    store = Store()
    asked = {"methods": ["uniform"], "checkpoints": [30], "yardsticks": (), "store": store}
    first = evaluate_defaults(rounds, settings=SETTINGS, **asked).records
    again = evaluate_defaults(rounds, settings=dict(SETTINGS), **asked).records
    pd.testing.assert_frame_equal(first, again)


def test_the_summary_has_means_standard_errors_and_ratios():
    rows = [
        ("mine", 0, 10, 9.0, 9.0),  # not the last step
        ("mine", 0, 20, 1.0, 3.0),
        ("mine", 1, 20, 2.0, 5.0),
        ("uniform", 0, 20, 1.0, 1.0),
        ("uniform", 1, 20, 1.0, 1.0),
    ]
    columns = ["method", "repetition", "checkpoint", "average_regret", "worst_regret"]
    records = pd.DataFrame(rows, columns=columns)
    first, second = summarise_defaults(records).to_dict("records")
    assert (first["method"], first["error"], first["ratio_to_uniform"]) == ("uniform", 0.0, 1.0)
    assert second["average_regret"] == 1.5
    assert second["error"] == pytest.approx(0.5)  # of 1 and 2: deviation √½ over √2
    assert second["worst_regret"] == 4.0
    assert second["ratio_to_uniform"] == 1.5
    alone = summarise_defaults(records[(records["method"] == "mine") & (records.repetition == 0)])
    assert alone[["error", "ratio_to_uniform"]].isna().all(axis=None)
    perfect = records.assign(average_regret=0.0)
    assert summarise_defaults(perfect)["ratio_to_uniform"].isna().all()


def test_the_default_is_marked_whatever_it_is():
    name = read_method("auto").name
    assert marked(name) == f"{name} (default)"
    assert marked("uniform" if name != "uniform" else "kernel-ucb").count("default") == 0


def test_rounds_of_the_same_rows_are_noticed(rounds):
    assert not same_rows(rounds)
    assert same_rows([rounds[0], rounds[0]])
    assert not same_rows(rounds[:1])
