"""Learning from sums over partitions, against the learner that is told all rows."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import polars as pl
import pytest

import contextgap as cg
from contextgap.learner import bulk
from contextgap.tables import files

ROWS, KEPT = 6000, 600


def make(rows=ROWS, seed=0):
    """Return a log with numbers, words, dates and gaps."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.uniform(-1, 1, rows), "y": rng.uniform(-1, 1, rows)})
    table["kind"] = rng.choice(["a", "b", "c"], rows)
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(60, size=rows), "D")
    table["day"] = table["day"].dt.strftime("%Y-%m-%d")
    table.loc[rng.random(rows) < 0.1, "y"] = np.nan
    table["arm"] = rng.choice(["left", "right", "rare"], rows, p=[0.6, 0.37, 0.03])
    table["reward"] = expected(table, table["arm"]) + 0.3 * rng.normal(size=rows)
    return table


def expected(table, arm):
    slope = np.where(arm == "left", 1.0, np.where(arm == "right", -1.0, 0.2))
    return slope * np.sin(3 * table["x"]) + np.where(table["kind"] == "b", slope, 0.0)


@pytest.fixture
def few(monkeypatch):
    """Have samples and blocks be small, so that little is much."""
    monkeypatch.setattr(bulk, "SAMPLE", KEPT)  # settings are learnt from these: most of the time
    monkeypatch.setattr(files.Part.blocks, "__defaults__", (700,))
    monkeypatch.setattr(bulk, "BLOCK", 700)


@pytest.fixture
def quarter(few, monkeypatch):
    """Have samples be a quarter of the rows, so that errors of a card are at most doubled."""
    monkeypatch.setattr(bulk, "SAMPLE", ROWS // 4)


def write(table, folder, files=5, suffix="csv"):
    for place, part in enumerate(np.array_split(np.arange(len(table)), files)):
        path = folder / f"log{place}.{suffix}"
        if suffix == "csv":
            table.iloc[part].to_csv(path, index=False)
        else:
            table.iloc[part].to_parquet(path)
    return str(folder / f"*.{suffix}")


def learn(pattern, **how):
    how = {"arm": "arm", "reward": "reward", "points": 64, "seed": 0, **how}
    return cg.learn_from(pattern, **how)


def regret(policy, new):
    values = np.stack([expected(new, arm) for arm in ("left", "right", "rare")], axis=1)
    chosen = expected(new, policy.recommend(new))
    return float(np.mean(values.max(axis=1) - chosen))


def beliefs(policy, table):
    rows, _ = policy.state.read(table)
    posterior = policy.state.model.posterior(rows, range(len(policy.arms)))
    return np.stack([posterior.mean, posterior.std])


def test_a_short_log_is_learnt_from_as_a_whole(tmp_path):
    table = make(300)
    learnt = learn(write(table, tmp_path))
    contexts = table.drop(columns=["arm", "reward"])
    learner = cg.Learner(["left", "rare", "right"], points=64, seed=0)
    policy = learner.fit(contexts, table["arm"], table["reward"]).freeze()
    np.testing.assert_array_equal(beliefs(learnt.policy, contexts), beliefs(policy, contexts))
    assert learnt.policy.card == policy.card
    assert learnt.rows == 300


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_sums_are_those_of_a_model_told_all_rows(few, tmp_path, suffix):
    table = make()
    if suffix == "parquet":  # which has types of its own
        table["day"] = pd.to_datetime(table["day"])
        table["kind"] = table["kind"].astype("category")
    learnt = learn(write(table, tmp_path, suffix=suffix))
    policy = learnt.policy
    assert (learnt.rows, sum(policy.counts.values())) == (ROWS, ROWS)
    assert policy.counts["rare"] == (table["arm"] == "rare").sum()
    assert [type(kind).__name__ for kind in policy.kinds.values()] == [
        "Number",
        "Number",
        "Category",
        "Date",
    ]
    assert policy.kinds["y"].missing
    # The oracle: all rows, encoded in the same way, with the same scales and support points.
    rows, _ = policy.state.read(table)
    arms = np.array([policy.arms.index(arm) for arm in table["arm"]])
    like = policy.state.model
    whole = type(like)(like.kernel, like.ridge, 3, like.prior_mean, like.points)
    log = type(like.observed)(3)
    log.extend(rows, arms, table["reward"].to_numpy())
    whole.take_over(log, like.dictionary)
    new = policy.state.read(make(200, seed=1))[0]
    for mine, theirs in zip(
        like.posterior(new, range(3))[:2], whole.posterior(new, range(3))[:2], strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert policy.prior_mean == pytest.approx(whole.prior())
    assert regret(policy, make(2000, seed=1)) < 0.05


@pytest.mark.slow
def test_the_card_is_close_to_that_of_all_rows(quarter, tmp_path):
    table = make()
    card = learn(write(table, tmp_path)).policy.card
    contexts = table.drop(columns=["arm", "reward"])
    learner = cg.Learner(["left", "rare", "right"], points=64, seed=0)
    whole = learner.fit(contexts, table["arm"], table["reward"]).score()
    assert card.rewards == whole.rewards == ROWS
    for name in ("value", "best_single", "gain", "logged"):
        mine, theirs = getattr(card, name), getattr(whole, name)
        assert mine.value == pytest.approx(theirs.value, abs=4 * theirs.error)
        assert 0.5 < mine.error / theirs.error < 2
    assert card.error == pytest.approx(whole.error, rel=0.05)
    assert card.best_single_arm == whole.best_single_arm


def test_the_card_rests_on_sums_over_all_rows(quarter, tmp_path):
    table = make()[["x", "arm", "reward"]]
    table["chance"] = table["arm"].map({"left": 0.6, "right": 0.37, "rare": 0.03})
    given = {"propensity": "chance", "kernel": cg.Gaussian(0.5), "ridge": 0.2}
    card = learn(write(table, tmp_path), **given, card_rows=800).policy.card
    assert (card.looked_at, card.rewards) == (800, ROWS)
    assert card.logged.value == pytest.approx(table["reward"].mean())
    assert card.logged.error == pytest.approx(table["reward"].std() / np.sqrt(ROWS), rel=0.05)
    weights = ((table["arm"] == card.best_single_arm) / table["chance"]).to_numpy()
    rewards = table["reward"].to_numpy()
    average = weights @ rewards / weights.sum()
    error = np.sqrt(weights**2 @ (rewards - average) ** 2) / weights.sum()
    assert card.best_single.error < 1.2 * error  # of 800 rows alone it would be 2.7 times as much
    assert abs(card.best_single.value - average) < 3 * error
    table.loc[5432, "chance"] = 1.5
    with pytest.raises(ValueError, match="propensities must be above 0 and at most 1, got 1"):
        learn(write(table, tmp_path), **given)


def test_what_a_log_gets_wrong_about_arms_is_named(few, tmp_path):
    table, given = make()[["x", "arm", "reward"]], {"kernel": cg.Gaussian(0.5), "ridge": 0.2}
    table.loc[4321, "arm"] = "Left"  # one row of a log that is learnt from by sums
    with pytest.warns(UserWarning, match="the arm 'Left' was tried once, and 'left' "):
        learn(write(table, tmp_path), **given)
    with pytest.warns(UserWarning, match=r"all 300 rows tried one arm, 'left', .* column 'arm'"):
        learn(write(table[:300].assign(arm="left"), tmp_path), **given)


@pytest.mark.slow
def test_a_sorted_log_teaches_as_much_as_a_shuffled_one(few, tmp_path):
    table, new = make(), make(2000, seed=1)
    orders = ("x", "arm", "day", "reward")
    for name in ("shuffled", *orders):
        (tmp_path / name).mkdir()
    shuffled = learn(write(table, tmp_path / "shuffled")).policy
    for order in orders:
        ordered = learn(write(table.sort_values(order), tmp_path / order)).policy
        assert regret(ordered, new) < regret(shuffled, new) + 0.01, order
        assert ordered.card.value.value == pytest.approx(shuffled.card.value.value, abs=0.1)


def test_how_rows_are_divided_into_blocks_does_not_matter(few, tmp_path, monkeypatch):
    pattern = write(make(), tmp_path)
    one = learn(pattern).policy
    monkeypatch.setattr(files.Part.blocks, "__defaults__", (331,))
    two, new = learn(pattern).policy, make(100, seed=1)
    assert one.state.model.observed.contexts.tolist() == two.state.model.observed.contexts.tolist()
    np.testing.assert_allclose(beliefs(one, new), beliefs(two, new), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("pool", ["threads", "processes"])
def test_pools_give_the_serial_policy(tmp_path, few, pool):
    pattern = write(make(), tmp_path, files=11)
    given = {"context": ["x"], "kernel": cg.Gaussian(0.5), "ridge": 0.1}
    serial = learn(pattern, **given).policy
    executor = (
        ThreadPoolExecutor(2)
        if pool == "threads"
        else ProcessPoolExecutor(2, mp_context=get_context("fork"))  # with samples as small
    )
    with executor:
        policy = learn(pattern, executor=executor, **given).policy
    new = make(100, seed=1)
    np.testing.assert_allclose(beliefs(policy, new), beliefs(serial, new), rtol=1e-10, atol=1e-12)
    assert policy.card.value.value == pytest.approx(serial.card.value.value, rel=1e-9)


def test_a_policy_of_sums_goes_through_files_and_exports(few, tmp_path):
    policy = learn(write(make(), tmp_path), fallback="left", tolerance=0.5).policy
    policy.save(tmp_path / "policy.cgap")
    loaded, new = cg.Policy.load(tmp_path / "policy.cgap"), make(500, seed=1)
    np.testing.assert_array_equal(loaded.recommend(new), policy.recommend(new))
    np.testing.assert_array_equal(loaded.status(new), policy.status(new))
    assert loaded.card == policy.card
    assert loaded.counts == policy.counts
    assert loaded.fallback == policy.fallback
    again = loaded.with_fallback("left", tolerance=0.5)
    assert again.fallback == policy.fallback  # the outermost rows are kept
    assert again.card.value.value == pytest.approx(policy.card.value.value, abs=0.1)
    smaller = policy.compress(points=48)
    assert np.mean(smaller.recommend(new) == policy.recommend(new)) > 0.9


def test_levels_and_ranges_outside_the_sample_count_as_seen(few, tmp_path):
    table = make()
    table["kind"] = table["kind"].astype(object)
    table.loc[17, "kind"] = "only once"
    table.loc[4321, "x"] = 5.0
    policy = learn(write(table, tmp_path), fallback="left").policy
    assert "only once" in policy.state.schema.table.codings[2].levels
    strange = make(2, seed=1)
    strange["kind"] = ["only once", "never"]
    strange.loc[0, "x"] = 4.9
    assert policy.status(strange).tolist() == [0, 2]


def test_costs_propensities_and_eligible_arms(few, tmp_path):
    table = make()
    table["reward"] = -table["reward"]
    table["chance"] = table["arm"].map({"left": 0.6, "right": 0.37, "rare": 0.03})
    table["may"] = np.where(table["arm"] == "rare", "rare|left|right", "left|right")
    policy = learn(
        write(table, tmp_path), minimize=True, propensity="chance", eligible="may"
    ).policy
    assert list(policy.columns) == ["x", "y", "kind", "day"]
    assert policy.card.estimator == "doubly robust"
    assert policy.card.value.value < policy.card.best_single.value
    assert regret(policy, make(2000, seed=1)) < 0.05


def test_rewards_that_are_yes_and_no_in_every_block(few, tmp_path):
    table = make()
    table["reward"] = np.where(table["reward"] > 0, "yes", "no")
    assert 0 < learn(write(table, tmp_path)).policy.card.logged.value < 1
    table.loc[4000, "reward"] = "0.5"
    with pytest.raises(ValueError, match=r"log3\.csv, line \d+, .*'reward': .* got '(yes|no)'"):
        learn(write(table, tmp_path))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("x", "much", r"log3\.csv, line 402, column 'x': a number is needed, got 'much'"),
        ("x", "inf", r"log3\.csv, line 402, column 'x': a finite number is needed"),
        ("day", "yesterday", r"log3\.csv, line 402, column 'day': a date such as"),
        ("arm", "", r"log3\.csv, line 402, column 'arm': the arm tried is missing"),
        ("reward", "good", r"log3\.csv, line 402, column 'reward': a number is needed, got 'good'"),
    ],
)
def test_a_wrong_cell_far_behind_is_named(few, tmp_path, column, value, message):
    table = make().astype(object)
    table.loc[4000, column] = value
    with pytest.raises(ValueError, match=message):
        learn(write(table, tmp_path))


def test_a_number_far_behind_makes_a_column_numbers(few, tmp_path):
    table = make().astype(object)
    table.loc[4000, "kind"] = "7"
    with pytest.raises(ValueError, match=r"column 'kind': a number is needed, got '[abc]'; is it"):
        learn(write(table, tmp_path))
    policy = learn(write(table, tmp_path), columns={"kind": "category"}).policy
    assert "7" in policy.state.schema.table.codings[2].levels


def test_files_that_do_not_belong_together(few, tmp_path):
    pattern = write(make(), tmp_path)
    (tmp_path / "log9.csv").write_text("x,arm,reward\n1,left,2\n")
    with pytest.raises(ValueError, match=r"log9\.csv has the columns .*, but .*log0\.csv"):
        learn(pattern)


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"executor": 3}, TypeError, "executor must be a Dask client or an Executor, got 3"),
        ({"fallback": "up"}, ValueError, "fallback must be one of .*, got 'up'"),
        ({"tolerance": 1.0}, ValueError, "tolerance says when fallback is answered"),
        ({"columns": {"z": "date"}}, ValueError, "there is no context column 'z'"),
        ({"arm": "robot"}, ValueError, "no column 'robot'"),
    ],
)
def test_mistakes_are_named(few, tmp_path, how, kind, message):
    with pytest.raises(kind, match=message):
        learn(write(make(200), tmp_path), **how)


def test_sources_that_are_none(tmp_path):
    with pytest.raises(TypeError, match="source must be files or a Dask DataFrame, got 3"):
        learn(3)
    with pytest.raises(ValueError, match="at least one file"):
        learn([])


def test_a_table_in_memory_is_sent_to_where_it_can_be_learnt_from():
    for table in (pd.DataFrame({"x": [1.0]}), pl.DataFrame({"x": [1.0]})):
        with pytest.raises(TypeError, match=r"Learner\(arms\)\.fit learns from one"):
            cg.learn_from(table, arm="arm", reward="r")


def test_names_are_no_letters(tmp_path):
    pd.DataFrame({"x": [1.0], "arm": "a", "r": 1.0}).to_csv(tmp_path / "log.csv", index=False)
    for argument in ("exclude", "context"):
        with pytest.raises(TypeError, match=f"{argument} must be a list of column names"):
            cg.learn_from(tmp_path / "log.csv", arm="arm", reward="r", **{argument: "x"})


def test_an_error_names_the_file_where_several_are_in_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"x": np.arange(9.0), "arm": list("ababababa"), "r": np.arange(9.0)})
    frame.to_csv("one.csv", index=False)
    frame.assign(x="u").to_csv("two.csv", index=False)
    with pytest.raises(ValueError, match=r"two\.csv, line 2, column 'x'") as caught:
        cg.learn_from(["one.csv", "two.csv"], arm="arm", reward="r")
    assert str(caught.value).startswith(str(tmp_path))


def test_text_and_parquet_of_one_table_are_one_log(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "vip": rng.random(60) < 0.5})
    frame["arm"], frame["r"] = rng.choice(["a", "b"], 60), rng.normal(size=60)
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.to_parquet(tmp_path / "two.parquet")
    learnt = cg.learn_from(
        [tmp_path / "one.csv", tmp_path / "two.parquet"], arm="arm", reward="r", seed=0
    )
    assert learnt.policy.kinds["vip"] == cg.Category()
    assert learnt.rows == 120
