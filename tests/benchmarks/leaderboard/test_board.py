"""The leaderboard's protocol: what is tuned and compared on what, and how it goes on."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import contextgap as cg
from contextgap.experiments import Grid, run
from contextgap.experiments.reproduce import Workshop, thinned
from leaderboard.board import best_setting, leaderboard, round_task, tune_cells
from leaderboard.contest import MAKERS, Contest, cells_of
from leaderboard.recommender_grid import RECOMMENDERS, recommender_grid

SMALL = Contest(
    problems=("sinusoids", "iris"),
    methods=("contextual-gap", "uniform"),
    budgets=(60, 30),
    noise=(0.0, 0.5),
    seeds=2,
    grid=2,
    hold_outs=1,
    evaluate=50,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("leaderboard")


@pytest.fixture(scope="module")
def found(folder):
    return leaderboard(SMALL, Workshop(folder=folder))


def rows_of(pairs):
    return {row.tobytes() for pair in pairs for part in pair for row in part.contexts}


@pytest.mark.parametrize("name", ["sinusoids", "iris", "wine"])
def test_nothing_is_compared_on_rows_that_were_tuned_on(name):
    (cell,) = cells_of(name, (0.0,), Contest(seeds=3, budgets=(200,)))
    data = MAKERS[name].sample().contexts
    held, compared = rows_of(cell.hold_outs), rows_of(cell.rounds)
    duplicates = {row.tobytes() for row in data if (data == row).all(axis=1).sum() > 1}
    assert not (held & compared) - duplicates
    for explore, exploit in [*cell.hold_outs, *cell.rounds]:
        assert not (rows_of([(explore,)]) & rows_of([(exploit,)])) - duplicates
        assert len(explore) == 200


def test_few_rows_are_visited_again_with_fresh_noise():
    clean, noisy = cells_of("iris", (0.0, 0.5), Contest(budgets=(300,), seeds=2))
    explore, exploit = noisy.rounds[1]
    assert len(np.unique(explore.contexts, axis=0)) <= 38 < len(explore)
    assert_array_equal(explore.contexts, clean.rounds[1][0].contexts)
    assert exploit.observations is exploit.rewards
    heard = explore.observations - explore.rewards
    assert heard.std() == pytest.approx(0.5 * np.sqrt(2) / 3, rel=0.1)  # of 0, 0 and 1
    assert len(np.unique(heard)) == heard.size
    assert not np.array_equal(heard, noisy.rounds[0][0].observations - noisy.rounds[0][0].rewards)


def test_time_order_is_kept():
    (cell,) = cells_of("spacecraft", (0.0,), Contest(budgets=(40,), seeds=1, evaluate=20))
    whole = MAKERS["spacecraft"].sample(60, seed=0)
    explore, exploit = cell.rounds[0]
    assert_array_equal(np.vstack([explore.contexts, exploit.contexts]), whole.contexts)


def test_records_are_tidy(found):
    records = found.records
    keys = ["problem", "noise", "budget", "method", "seed"]
    assert len(records) == 2 * 2 * 2 * 2 * 2
    assert records.groupby(keys).size().max() == 1
    assert sorted(records["budget"].unique()) == [30, 60]
    assert (records["worst_regret"] >= records["average_regret"]).all()


def test_a_record_is_a_run_at_the_tuned_setting(found):
    cell = found.cells[1]
    held = cell.hold_outs[0]
    grid = thinned(Grid.of(held[0].contexts), 2)
    method = "contextual-gap"
    regret = [
        [run(*held, method=method, kernel=k, ridge=r).average_regret[-1] for r in grid.ridges]
        for k in grid.kernels
    ]
    best = best_setting(grid, np.array(regret))
    where = "problem == 'sinusoids' and noise == 0.5 and method == 'contextual-gap'"
    row = found.settings.query(where).iloc[0]
    assert row["ridge"] == best.ridge
    assert row["held_out_regret"] == pytest.approx(np.min(regret))
    trace = run(
        *cell.rounds[1],
        method=method,
        kernel=best.kernel,
        ridge=best.ridge,
        checkpoints=[30, 60],
        seed=1,
    )
    ours = found.records.query(where + " and seed == 1").sort_values("budget")
    np.testing.assert_allclose(ours["average_regret"], trace.average_regret)
    np.testing.assert_allclose(ours["worst_regret"], trace.worst_regret)


def test_tuning_takes_the_mean_over_hold_outs():
    contest = Contest(budgets=(40,), grid=2, hold_outs=2, seeds=1, evaluate=40)
    cells = tuple(cells_of("sinusoids", (0.5,), contest))
    methods = {"kernel-ucb": cg.METHODS["kernel-ucb"]}
    tuned = tune_cells(cells, methods, contest, Workshop(), "tuning")[0]["kernel-ucb"]
    each = [
        [
            [
                run(*pair, method="kernel-ucb", kernel=k, ridge=r, seed=seed).average_regret[-1]
                for r in tuned.grid.ridges
            ]
            for k in tuned.grid.kernels
        ]
        for seed, pair in enumerate(cells[0].hold_outs)
    ]
    assert not np.allclose(*each)
    np.testing.assert_allclose(tuned.regret, np.mean(each, axis=0))


def test_equal_settings_are_told_apart_by_their_neighbours():
    contexts = np.linspace(0, 1, 20)[:, None]
    grid = thinned(Grid.of(contexts), 5)
    regret = np.full((5, 5), 0.5)
    regret[0, 0] = 0.0  # a lucky corner
    regret[2:5, 1:4] = 0.1
    regret[3, 2] = 0.0
    best = best_setting(grid, regret)
    assert (best.kernel, best.ridge) == (grid.kernels[3], grid.ridges[2])
    regret[0, 0] = -0.1  # now simply the lowest
    best = best_setting(grid, regret)
    assert (best.kernel, best.ridge) == (grid.kernels[0], grid.ridges[0])


def test_it_goes_on_where_it_was(found, folder):
    parts = sorted((folder / "parts").rglob("*.json"))
    ages = {path: path.stat().st_mtime_ns for path in parts[5:]}
    for path in parts[:5]:
        path.unlink()
    starts = {}

    def watch(phase):
        return lambda done, total: starts.setdefault(phase, (done, total))

    again = leaderboard(SMALL, Workshop(folder=folder, progress=watch))
    assert sum(total - done for done, total in starts.values()) == 5
    assert all(path.stat().st_mtime_ns == age for path, age in ages.items())
    pd.testing.assert_frame_equal(
        again.records.drop(columns="seconds"), found.records.drop(columns="seconds")
    )


def test_a_row_of_the_recommender_grid_is_one_exploration(folder):
    contest = Contest(
        problems=("sinusoids",),
        methods=("kernel-ucb", "kernel-ucb-mod", "kernel-ts"),
        budgets=(60,),
        seeds=1,
        grid=2,
        hold_outs=1,
        evaluate=50,
    )
    table = recommender_grid(contest, Workshop(folder=folder))
    assert list(table["explorer"].unique()) == ["kernel-ucb", "kernel-ts"]
    assert len(table) == 2 * 2 * 5  # noise levels, explorers, recommenders
    cells = tuple(cells_of("sinusoids", (0.5,), contest))
    explorer = cg.METHODS["kernel-ts"].explorer
    tuned = {"x": cg.Method(explorer=explorer, recommender=cg.HighestMean())}
    setting = tune_cells(cells, tuned, contest, Workshop(folder=folder), "tuning")[0]["x"]
    arms = []
    rows = table[(table["noise"] == 0.5) & (table["explorer"] == "kernel-ts")]
    for label, recommender in RECOMMENDERS.items():
        trace = run(
            *cells[0].rounds[0],
            method=cg.Method(explorer=explorer, recommender=recommender),
            kernel=setting.kernel,
            ridge=setting.ridge,
            checkpoints=[60],
        )
        ours = rows[rows["recommender"] == label]["average_regret"]
        assert ours.tolist() == pytest.approx([trace.average_regret[-1]])
        arms.append(trace.arms)
    assert (np.array(arms) == arms[0]).all()


def test_no_place_of_the_recommender_grid_is_no_table(folder):
    contest = Contest(problems=("iris",), budgets=(60,))
    assert recommender_grid(contest, Workshop(folder=folder)).empty


def test_the_same_work_has_the_same_key():
    cell = cells_of("iris", (0.5,), SMALL)[0]
    again = cells_of("iris", (0.5,), SMALL)[0]
    tuning = best_setting(thinned(Grid.of(cell.rounds[0][0].contexts), 2), np.eye(2))
    keys = {
        round_task(each, cg.METHODS["uniform"], tuning, (30, 60), 1).key() for each in (cell, again)
    }
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"problems": ("sines",)}, "problems must be among sinusoids.*got 'sines'"),
        ({"problems": ()}, "problems must be among"),
        ({"methods": ("magic", "uniform")}, "method must be one of.*got 'magic'"),
        ({"methods": ("uniform",)}, "methods must be at least two"),
        ({"budgets": (0,)}, "budgets must be"),
        ({"budgets": ()}, "at least one value"),
        ({"noise": (-1.0,)}, "noise must be"),
        ({"seeds": 0}, "seeds must be"),
    ],
)
def test_bad_contests_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        Contest(**wrong)
