"""learn on several files, and on more rows than are learnt from as a whole."""

import json

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.learner import bulk
from tests.cli.test_policies import call
from tests.learner.bulk.test_learning import KEPT, expected, make, regret, write

OPTIONS = ["--arm", "arm", "--reward", "reward"]


def learn(folder, *arguments, code=0):
    return call("learn", *arguments, *OPTIONS, "-o", folder / "policy.cgap", code=code)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(bulk, "SAMPLE", KEPT)


def test_files_are_learnt_from_as_if_they_were_one(tmp_path):
    table = make(300)
    (tmp_path / "one").mkdir()
    table.to_csv(tmp_path / "one" / "whole.csv", index=False)
    whole = json.loads(learn(tmp_path, tmp_path / "one" / "whole.csv", "--json").stdout)
    pattern = write(table, tmp_path, files=3)
    found = json.loads(learn(tmp_path, pattern, "--json").stdout)
    files = [tmp_path / f"log{place}.csv" for place in range(3)]
    listed = json.loads(learn(tmp_path, *files, "--json").stdout)
    data = {each["provenance"].pop("data") for each in (found, listed, whole)}
    assert len(data) == 1
    for each in (found, listed, whole):
        del each["provenance"]  # which says when
    assert found == listed == whole


def test_a_long_log_is_learnt_from_by_sums(few, tmp_path):
    pattern = write(make(), tmp_path, suffix="parquet")
    shown = learn(tmp_path, pattern, "--points", "64", "--fallback", "rare")
    assert "6000 trials" in shown.stdout.replace("\n", " ")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert sum(policy.counts.values()) == policy.card.rewards == 6000
    assert policy.card.looked_at == KEPT
    assert regret(policy, make(1000, seed=1)) < 0.1  # where the safe arm is not answered
    assert (tmp_path / "policy.cgap").stat().st_size < 2e6


def test_exact_beliefs_keep_all_rows(few, tmp_path):
    table = make(1800)
    pattern = write(table[["x", "arm", "reward"]], tmp_path)
    learn(tmp_path, pattern, "--points", "0", "--bandwidth", "0.5", "--card-rows", "300")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert (policy.card.looked_at, policy.card.rewards) == (300, 1800)
    assert policy.state.model.kind == "exact"
    assert len(policy.state.model.observed) == 1800


def test_many_arms_with_few_rows_each_stay_exact(few, tmp_path):
    table = make(2000)[["x", "reward"]].assign(arm=np.arange(2000) % 40)
    learn(tmp_path, write(table, tmp_path), "--bandwidth", "0.5")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert policy.state.model.kind == "exact"
    assert policy.arms == tuple(range(40))


def test_given_scales_and_costs(few, tmp_path):
    table = make()[["x", "arm", "reward"]].assign(reward=lambda each: -each["reward"])
    given = ["--bandwidth", "0.5", "--ridge", "0.1", "--minimize", "--points", "64"]
    learn(tmp_path, write(table, tmp_path), *given)
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert (policy.kernel.bandwidth, policy.ridge) == (0.5, 0.1)
    new = make(1000, seed=1).assign(kind="a")
    assert regret(policy, new) < 0.1
    assert policy.card.value.value < policy.card.best_single.value


def test_gaps_that_may_come_later(few, tmp_path):
    table = make()[["x", "kind", "arm", "reward"]]
    learn(tmp_path, write(table, tmp_path), "--missing", "x", "--points", "64")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert policy.kinds["x"].missing
    assert policy.recommend({"x": None, "kind": "a"}) in policy.arms


def test_a_saved_index_is_left_out_once(few, tmp_path):
    table = make()[["x", "arm", "reward"]]
    table.to_csv(tmp_path / "log.csv")
    shown = learn(tmp_path, tmp_path / "log.csv", "--bandwidth", "0.5", "--points", "64")
    assert shown.stderr.count("numbers the rows, as a saved index does; it is left out") == 1
    assert cg.Policy.load(tmp_path / "policy.cgap").columns == ("x",)


def test_mistakes_name_file_and_line(few, tmp_path):
    table = make().astype(object)
    table.loc[4000, "x"] = "much"
    failed = learn(tmp_path, write(table, tmp_path), code=2)
    assert "log3.csv, line 402, column 'x': a number is needed, got 'much'" in failed.stderr
    failed = learn(tmp_path, tmp_path / "*.tsv", code=2)
    assert "no file is called like that" in failed.stderr
    assert not (tmp_path / "policy.cgap").exists()


def test_scales_are_those_of_all_contexts_and_not_of_the_first(few, tmp_path):
    """The first two thirds of the log know nothing of what makes a difference."""
    rng = np.random.default_rng(0)
    table = make()
    table["x"] = np.where(np.arange(len(table)) < 4000, 0.0, table["x"])
    table["reward"] = expected(table, table["arm"]) + 0.3 * rng.normal(size=len(table))
    learn(tmp_path, write(table, tmp_path), "--points", "64")
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert regret(policy, make(1000, seed=1)) < 0.1
    assert pd.Series(policy.recommend(make(1000, seed=1))).nunique() > 1


def test_rows_without_reward_are_counted_and_skipped_if_asked(few, tmp_path):
    """With and without sums; what is learnt is what the other rows alone would teach."""
    for count, suffix in ((300, "csv"), (3000, "csv"), (3000, "parquet")):
        table = make(count)[["x", "arm", "reward"]]
        missing = np.arange(count) % 7 == 3
        gappy = table.assign(reward=table["reward"].where(~missing))
        folder = tmp_path / f"{count}{suffix}"
        folder.mkdir()
        pattern, given = write(gappy, folder, suffix=suffix), ["--bandwidth", "0.5", "--points", 64]
        said = learn(folder, pattern, *given, code=2).stderr
        place = "line 5" if suffix == "csv" else "row 4"
        assert f"{place}, column 'reward': {missing.sum()} of {count} rows have no reward" in said
        assert "--skip-missing skips them" in said
        shown = learn(folder, pattern, *given, "--skip-missing")
        assert f"{missing.sum()} of {count} rows have no reward and are skipped" in shown.stderr
        found = cg.Policy.load(folder / "policy.cgap")
        assert sum(found.counts.values()) == count - missing.sum()
        if count == 300:
            rest = write(table[~missing], folder, suffix=suffix)
            learn(folder, rest, *given)
            alone, new = cg.Policy.load(folder / "policy.cgap"), make(50, seed=1)
            np.testing.assert_array_equal(found.recommend(new), alone.recommend(new))
            bounds = [each.certificate(new).bound for each in (found, alone)]
            np.testing.assert_array_equal(*bounds)
        else:
            assert regret(found, make(1000, seed=1).assign(kind="a")) < 0.1


def test_a_log_without_any_reward_is_refused(tmp_path):
    table = make(60)[["x", "arm"]].assign(reward="NA")
    said = learn(tmp_path, write(table, tmp_path), "--skip-missing", code=2).stderr
    assert "60 of 60 rows have no reward; there is nothing to learn from" in said


def test_python_names_its_own_keyword(tmp_path):
    table = make(60)[["x", "arm", "reward"]]
    table.loc[5, "reward"] = None
    pattern, columns = write(table, tmp_path), {"arm": "arm", "reward": "reward"}
    with pytest.raises(ValueError, match=r"1 of 60 rows have no reward.*skip_missing=True"):
        cg.learn_from(pattern, **columns)
    with pytest.warns(UserWarning, match="1 of 60 rows have no reward and are skipped"):
        assert cg.learn_from(pattern, **columns, skip_missing=True).rows == 59


def test_arms_may_have_features_in_a_file(tmp_path):
    """They are learnt from as by a learner that is given them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(size=90), "dose": rng.choice([5.0, 10.0, 20.0], 90)})
    table["reward"] = -((table["x"] - table["dose"] / 20) ** 2)
    pattern, output = write(table, tmp_path), ["-o", tmp_path / "policy.cgap"]
    features = tmp_path / "doses.tsv"
    features.write_text(
        "size\tdose\tform\n2\t10\tpill\n1\t5.0\tpill\n3\t20.0\tdrops\n9\t40\tdrops\n"
    )
    how = ["--arm", "dose", "--reward", "reward", "--arm-features", features, *output]
    said = call("learn", pattern, *how).stderr
    assert "the features of 40 are not used: the log has no such arm" in said
    found = cg.Policy.load(tmp_path / "policy.cgap")
    assert found.arms == (5.0, 10.0, 20.0)
    given = {5.0: [1, "pill"], 10.0: [2, "pill"], 20.0: [3, "drops"]}
    learner = cg.Learner([5.0, 10.0, 20.0], features=given, width=cg.PosteriorWidth(2.0), seed=0)
    learner.fit(table[["x"]], table["dose"].tolist(), table["reward"])
    expected, new = learner.freeze(), pd.DataFrame({"x": np.linspace(0, 1, 40)})
    np.testing.assert_array_equal(found.recommend(new), expected.recommend(new))
    bounds = found.certificate(new).bound
    np.testing.assert_allclose(bounds, expected.certificate(new).bound, rtol=1e-6)
    for text, message in [
        (
            "size\tdose\n1\t5\n2\t10\n",
            "a row for every arm of the log; 20.0 has none",
        ),
        ("size\tdose\n1\t5\n2\t5\n", "the arm '5' is there twice"),
        ("dose\n5\n", "no column is left as a feature beside 'dose'"),
        ("size\tdoes\n1\t5\n", "there is no column 'dose'"),
    ]:
        features.write_text(text)
        assert message in call("learn", pattern, *how, code=2).stderr


def test_features_need_all_rows(few, tmp_path):
    pattern = write(make()[["x", "arm", "reward"]], tmp_path)
    (tmp_path / "arms.tsv").write_text("arm\tsize\nleft\t1\nright\t2\nrare\t3\n")
    given = ["--arm-features", tmp_path / "arms.tsv", "--points", 64]
    said = learn(tmp_path, pattern, *given, code=2).stderr
    assert "this one has 6,000 rows, of which" in said


def test_a_column_says_which_rewards_are_censored(few, tmp_path):
    table = make(300)
    limit = table["reward"].median()
    low = table["reward"] < limit
    cut = table.assign(reward=table["reward"].clip(lower=limit), cut=low)
    cut.to_csv(tmp_path / "cut.csv", index=False)
    shown = learn(tmp_path, tmp_path / "cut.csv", "--censored", "cut")
    assert "50 % of the rewards are censored" in " ".join(shown.stdout.split())
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert "cut" not in policy.columns
    log = policy.state.model.observed
    assert len(log.censored) == int(low.sum())
    python = cg.learn_from(tmp_path / "cut.csv", arm="arm", reward="reward", censored="cut", seed=0)
    rows = table.drop(columns=["arm", "reward"])
    assert python.policy.recommend(rows).tolist() == policy.recommend(rows).tolist()
    table.assign(cut=0.5).to_csv(tmp_path / "half.csv", index=False)
    shown = learn(tmp_path, tmp_path / "half.csv", "--censored", "cut", code=2)
    assert "0 or 1" in shown.stderr
    make().assign(cut=0).to_csv(tmp_path / "long.csv", index=False)
    shown = learn(tmp_path, tmp_path / "long.csv", "--censored", "cut", code=2)
    assert "every row can be kept" in " ".join(shown.stderr.split())


def test_a_column_says_what_trials_cost(few, tmp_path):
    table = make(300)
    table.assign(seconds=range(1, 301)).to_csv(tmp_path / "paid.csv", index=False)
    shown = learn(tmp_path, tmp_path / "paid.csv", "--cost", "seconds")
    assert "spent" in shown.stdout
    policy = cg.Policy.load(tmp_path / "policy.cgap")
    assert "seconds" not in policy.columns
    assert policy.card.spent == 300 * 301 / 2
    table.assign(seconds=0).to_csv(tmp_path / "free.csv", index=False)
    shown = learn(tmp_path, tmp_path / "free.csv", "--cost", "seconds", code=2)
    assert "costs must be positive" in shown.stderr
    make().assign(seconds=1).to_csv(tmp_path / "long.csv", index=False)
    shown = learn(tmp_path, tmp_path / "long.csv", "--cost", "seconds", code=2)
    assert "every row can be kept" in " ".join(shown.stderr.split())
