"""learn and recommend on tables with text, truth values, codes, cycles and gaps."""

import json

import numpy as np
import pandas
import pytest

import contextgap as cg
from tests.cli.test_policies import call


def messy_log(path, count=400, seed=0):
    """A log with an index, text, truth values, codes, hours and gaps; b is better in DE at noon."""
    rng = np.random.default_rng(seed)
    country = rng.choice(["DE", "FR", ""], size=count)
    hour = rng.integers(24, size=count)
    arm = rng.choice(["a", "b"], size=count)
    side = np.where(country == "DE", 1.0, -1.0) * -np.cos(2 * np.pi * hour / 24)
    reward = np.where(arm == "b", side, -side) + 0.1 * rng.normal(size=count)
    frame = pandas.DataFrame(
        {
            "country": country,
            "vip": rng.choice([True, False], size=count),
            "shop": rng.integers(100, 104, size=count),
            "hour": hour,
            "age": np.where(rng.random(count) < 0.1, np.nan, rng.normal(size=count).round(2)),
            "user": [f"u{place:05}" for place in range(count)],
            "arm": arm,
            "reward": reward,
        }
    )
    frame.to_csv(path)
    return frame


GIVEN = ("--ridge", "0.1")  # so that nothing is tuned, where scales do not matter


def learn(folder, *more, **how):
    outcome = ["--arm", "arm", "--reward", "reward", "-o", folder / "p.cgap"]
    made = call("learn", folder / "log.csv", *outcome, *more, **how)
    return " ".join(made.output.split())


def test_a_messy_log_becomes_a_policy(tmp_path):
    messy_log(tmp_path / "log.csv")
    learn(tmp_path, "--exclude", "user", "--category", "shop", "--cyclic", "hour=24")
    policy = cg.Policy.load(tmp_path / "p.cgap")
    assert dict(policy.kinds) == {
        "country": cg.Category(missing=True),
        "vip": cg.Category(),
        "shop": cg.Category(),
        "hour": cg.Cyclic(24),
        "age": cg.Number(missing=True),
    }
    shown = " ".join(call("show", tmp_path / "p.cgap").output.replace("│", " ").split())
    assert "country: category with missing values" in shown
    fresh = messy_log(tmp_path / "fresh.csv", seed=1)
    answers = call("recommend", tmp_path / "p.cgap", tmp_path / "fresh.csv", "--json").output
    arms = np.array([answer["arm"] for answer in json.loads(answers)])
    side = np.where(fresh["country"] == "DE", 1, -1) * -np.cos(2 * np.pi * fresh["hour"] / 24)
    clear = np.abs(side) > 0.3
    assert (arms[clear] == np.where(side[clear] > 0, "b", "a")).mean() > 0.95


def test_levels_that_are_no_text_are_found_in_text_files(tmp_path):
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"flag": rng.random(60) < 0.5, "code": rng.integers(3, size=60)})
    arms = rng.integers(2, size=60)
    rewards = np.where(table["flag"], 1, -1) * (2 * arms - 1.0) + (table["code"] == 2) * arms
    columns = cg.Columns(flag="category", code="category")
    policy = cg.Learner(2, columns=columns).fit(table, arms, rewards).freeze()
    policy.save(tmp_path / "p.cgap")
    table.to_csv(tmp_path / "contexts.csv", index=False)
    answers = call("recommend", tmp_path / "p.cgap", tmp_path / "contexts.csv", "--json").output
    assert [each["arm"] for each in json.loads(answers)] == policy.recommend(table).tolist()


def test_truth_values_among_numbers_are_read_again(tmp_path):
    rng = np.random.default_rng(0)
    flag, arm = rng.random(60) < 0.5, rng.choice(["a", "b"], size=60)
    reward = np.where(flag == (arm == "a"), 1.0, 0.0) + 0.01 * rng.normal(size=60)
    frame = pandas.DataFrame({"flag": flag, "x": rng.normal(size=60), "arm": arm, "reward": reward})
    frame.to_csv(tmp_path / "log.csv", index=False)
    learn(tmp_path)
    answers = json.loads(
        call("recommend", tmp_path / "p.cgap", tmp_path / "log.csv", "--json").output
    )
    assert [each["arm"] for each in answers] == np.where(flag, "a", "b").tolist()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--exclude", "user,nobody"], "there is no column 'nobody'"),
        (["--cyclic", "hour"], "--cyclic must be such as hour=24, or when=day+week for dates, got"),
        (["--category", "reward"], "there is no context column 'reward'"),
        (["--category", "shop", "--ridge", "1"], "are learnt where columns are named"),
        (["--separator", ";"], "there is no column 'arm'"),
        (["--separator", ";;"], "separator must be one character"),
        (["--missing", "nobody"], "there is no context column 'nobody'"),
        (["--missing", "hour", "--ridge", "1"], "are learnt where columns are named"),
        (["--context", "arm"], "column 'arm' cannot be context and outcome at once"),
        (["--context", "user", "--exclude", "user"], "no column is left as context"),
    ],
)
def test_mistakes_about_columns_are_named(tmp_path, more, text):
    messy_log(tmp_path / "log.csv", count=30)
    assert text in learn(tmp_path, *more, code=2)


def test_a_gap_where_none_was_is_named(tmp_path):
    frame = messy_log(tmp_path / "log.csv", count=40)
    learn(tmp_path, "--exclude", "user", *GIVEN)
    frame.loc[3, "hour"] = None
    frame.to_csv(tmp_path / "new.csv")
    made = call("recommend", tmp_path / "p.cgap", tmp_path / "new.csv", code=2)
    said = " ".join(made.output.split())
    assert "new.csv: contexts must have no missing value in column 'hour', line 5;" in said
    assert "or contextgap learn --missing hour on the command line" in said
    learn(tmp_path, "--exclude", "user", "--missing", "hour,shop")
    kinds = cg.Policy.load(tmp_path / "p.cgap").kinds
    assert kinds["hour"] == kinds["shop"] == cg.Number(missing=True)
    assert kinds["vip"] == cg.Category()
    call("recommend", tmp_path / "p.cgap", tmp_path / "new.csv")


def test_dates_may_have_cycles(tmp_path):
    frame = messy_log(tmp_path / "log.csv", count=40)
    when = pandas.date_range("2024-05-01", periods=40, freq="7h")
    frame.assign(when=when).to_csv(tmp_path / "log.csv", index=False)
    learn(tmp_path, "--context", "when,age", "--cyclic", "when=day+week")
    policy = cg.Policy.load(tmp_path / "p.cgap")
    assert policy.kinds["when"] == cg.Date(("day", "week"))
    call("recommend", tmp_path / "p.cgap", tmp_path / "log.csv")


def test_a_saved_index_is_noted(tmp_path):
    messy_log(tmp_path / "log.csv", count=30)
    text = learn(tmp_path, *GIVEN)
    assert "numbers the rows, as a saved index does; it is left out" in text


def test_answers_are_further_columns_however_often(tmp_path):
    messy_log(tmp_path / "log.csv", count=30)
    learn(tmp_path, "--exclude", "user", *GIVEN)
    for given, output in (("log.csv", "once.csv"), ("once.csv", "twice.csv")):
        call("recommend", tmp_path / "p.cgap", tmp_path / given, "-o", tmp_path / output)
    names = list(pandas.read_csv(tmp_path / "twice.csv"))
    assert "recommended_arm" in names
    assert "recommended_recommended_arm" in names


def test_columns_that_are_no_context_are_warned_of(tmp_path):
    messy_log(tmp_path / "log.csv", count=60)
    text = learn(tmp_path, *GIVEN)
    assert "warning: the column 'user' has another value in nearly every row, as an id has" in text


def test_eligible_arms_and_a_safe_one(tmp_path):
    frame = messy_log(tmp_path / "log.csv", count=120)
    among = [arm if place % 3 == 0 else "a|b|never tried" for place, arm in enumerate(frame["arm"])]
    frame.assign(among=among).to_csv(tmp_path / "log.csv")
    safe = ["--fallback", "a", "--tolerance", "0.2"]
    learn(tmp_path, "--exclude", "user", "--eligible", "among", *safe, *GIVEN)
    policy = cg.Policy.load(tmp_path / "p.cgap")
    assert policy.fallback.arm == "a"
    assert "among" not in policy.columns
    shown = " ".join(call("show", tmp_path / "p.cgap").output.replace("│", " ").split())
    assert "fallback a (outside, or bound above 0.2)" in shown
    assert "bandwidths country" in shown
    machine = json.loads(call("show", tmp_path / "p.cgap", "--json").output)
    assert set(machine["fallback"]["seen"]["country"]) == {"DE", "FR", None}
    low, high = machine["fallback"]["seen"]["hour"]
    assert low < 0 < 23 < high
    assert set(machine["fallback"]) == {"arm", "tolerance", "seen"}
    assert len(machine["bandwidths"]["age"]) == 2
    how = ["--eligible", "among", "--json"]
    answers = json.loads(call("recommend", tmp_path / "p.cgap", tmp_path / "log.csv", *how).stdout)
    for place in range(0, 120, 3):
        assert answers[place]["arm"] == frame["arm"][place]
    found = {answer["status"] for answer in answers}
    assert found <= {"recommended", "bound_too_large", "outside", "no_fallback"}
    assert len(found) > 1


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--fallback", "c"], "--fallback must be one of ['a', 'b'], got 'c'"),
        (["--tolerance", "1"], "give that too"),
        (["--eligible", "country"], "none of the arms ['a', 'b'] is eligible, got"),
    ],
)
def test_mistakes_about_arms_are_named(tmp_path, more, text):
    messy_log(tmp_path / "log.csv", count=30)
    assert text in learn(tmp_path, *more, code=2)


def test_costs_are_kept_low(tmp_path):
    frame = messy_log(tmp_path / "log.csv", count=80)
    frame.assign(reward=-frame["reward"]).to_csv(tmp_path / "costs.csv")
    arms = []
    for log, more in (("log.csv", []), ("costs.csv", ["--minimize"])):
        how = ["--arm", "arm", "--reward", "reward", "--exclude", "user", "-o", tmp_path / "p.cgap"]
        call("learn", tmp_path / log, *how, *more)
        policy = cg.Policy.load(tmp_path / "p.cgap")
        fresh = frame.assign(country=frame["country"].replace({"": None}))
        arms.append(policy.recommend(fresh).tolist())
    assert arms[0] == arms[1]
