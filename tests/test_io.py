"""Logs of other tools: files that those tools wrote, and what they themselves read in them."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.tables.files import read_sheet

LOGS = Path(__file__).parent / "logs"
ARTICLES = ("food", "music", "politics", "sports")


def vowpal(options):
    """Vowpal Wabbit itself, as the oracle of its formats."""
    pyvw = pytest.importorskip("vowpalwabbit.pyvw", reason="Vowpal Wabbit is not installed")
    return pyvw, pyvw.Workspace(f"{options} --quiet")


def labels_by_vowpal(pyvw, example):
    label = example.get_label(pyvw.LabelType.CONTEXTUAL_BANDIT)
    return [
        (each.action, each.partial_prediction, each.cost, each.probability) for each in label.costs
    ]


def test_cb_is_read_as_vowpal_wabbit_reads_it():
    pyvw, learner = vowpal("--cb 3")
    log = cg.io.read_vw(LOGS / "cb.vw")
    lines = (LOGS / "cb.vw").read_text().splitlines()
    assert len(log) == len(lines) == 60
    for place, line in enumerate(lines):
        example = learner.parse(line)
        example = example if not isinstance(example, list) else example[0]
        ((action, _, cost, chance),) = labels_by_vowpal(pyvw, example)
        assert (log.arms[place], -log.rewards[place]) == pytest.approx((action, cost), abs=1e-6)
        assert log.propensities[place] == pytest.approx(chance, rel=1e-6)
        features = sorted(value for _, value in example.iter_features())
        context = log.contexts[place]
        own = [context["state.hour"], context["state.load"], 1.0, 1.0]  # mode, and the constant
        written = sorted(value for value in own if value)  # it leaves out zeros
        np.testing.assert_allclose(features, written, rtol=1e-6)
        learner.finish_example(example)
    learner.finish()
    assert log.labels == (1, 2, 3)
    assert log.eligible is None
    assert set(log.contexts["mode"]) == {"eco", "fast"}


def test_adf_is_read_as_vowpal_wabbit_reads_it():
    pyvw, learner = vowpal("--cb_adf")
    log = cg.io.read_vw(LOGS / "adf.vw")
    events = (LOGS / "adf.vw").read_text().strip().split("\n\n")
    assert len(log) == len(events) == 60
    assert log.labels == ARTICLES
    for place, event in enumerate(events):
        examples = learner.parse(event)
        costs = [labels_by_vowpal(pyvw, each) for each in examples[1:]]
        (taken,) = [i for i, found in enumerate(costs) if found and found[0][3] > 0]
        _, _, cost, chance = costs[taken][0]
        assert log.arms[place] == ["politics", "sports", "music", "food"][taken]
        assert log.rewards[place] == -cost
        assert log.propensities[place] == pytest.approx(chance, rel=1e-6)
        learner.finish_example(examples)
    learner.finish()
    assert sorted(log.eligible[0]) == sorted(ARTICLES)
    assert set(log.contexts["User.user"]) == {"Tom", "Anna"}


def test_dsjson_says_the_same_as_text():
    text, events = cg.io.read_vw(LOGS / "adf.vw"), cg.io.read_vw(LOGS / "log.dsjson.gz")
    assert events.arms == text.arms
    assert events.labels == text.labels
    assert events.eligible == text.eligible
    np.testing.assert_array_equal(events.rewards, text.rewards)
    np.testing.assert_allclose(events.propensities, text.propensities, rtol=1e-12)
    assert list(events.contexts) == list(text.contexts)


def test_dsjson_is_what_vowpal_wabbit_takes():
    pyvw, learner = vowpal("--cb_adf --dsjson")
    log = cg.io.read_vw(LOGS / "log.dsjson.gz")
    total = 0.0
    with gzip.open(LOGS / "log.dsjson.gz", "rt") as file:
        for line in file:
            examples = learner.parse(line)
            costs = [each for one in examples for each in labels_by_vowpal(pyvw, one)]
            total += sum(cost for *_, cost, chance in costs if chance > 0)
            learner.finish_example(examples)
    learner.finish()
    assert total == pytest.approx(-log.rewards.sum())


def test_a_log_of_the_decision_service_is_read_as_vowpal_wabbit_reads_it():
    pyvw, learner = vowpal("--cb_adf --dsjson")
    path = LOGS / "service.dsjson"
    log, lines = cg.io.read_vw(path), path.read_text().splitlines()
    assert len(log) == len(lines) == 10
    for place, line in enumerate(lines):
        shared, *actions = learner.parse(line)
        assert [each.get_tag() for each in actions] == list(log.eligible[place])
        labelled = {
            each.get_tag(): label for each in actions for label in labels_by_vowpal(pyvw, each)
        }
        ((arm, (_, _, cost, chance)),) = labelled.items()
        assert (arm, -cost) == (log.arms[place], log.rewards[place])
        assert log.propensities[place] == pytest.approx(chance, rel=1e-6)
        features = len(list(shared.iter_features())) - 1  # without the constant
        assert features == len(log.contexts[place])
        learner.finish_example([shared, *actions])
    learner.finish()


def test_names_in_a_log_of_the_decision_service():
    log = cg.io.read_vw(LOGS / "service.dsjson")
    assert log.labels == ("Cappucino", "Cold brew", "Iced mocha", "Latte")
    assert log.contexts.names == ["FromUrl.timeofday", "FromUrl.weather", "FromUrl.name"]
    assert log.fit(seed=0).score().rewards == 10


def test_lines_of_dsjson_that_are_no_events_are_skipped(tmp_path):
    """Vowpal Wabbit skips lines that do not begin with a brace, and rewards that came late."""
    events = (LOGS / "service.dsjson").read_text()
    path = tmp_path / "log.dsjson"
    path.write_text(f'[CHECKPOINT]\n{events}\n{{"RewardValue":1.0,"EventId":"4f23"}}\nend\n')
    found, expected = cg.io.read_vw(path), cg.io.read_vw(LOGS / "service.dsjson")
    assert found.arms == expected.arms
    np.testing.assert_array_equal(found.rewards, expected.rewards)


def event(**changes):
    """A line of dsjson; a change to None leaves a name out."""
    whole = {
        "_label_cost": -1.0,
        "_label_probability": 0.5,
        "_label_Action": 2,
        "_labelIndex": 1,
        "c": {
            "Geo": {"city": "Oslo", "_cf": 8},
            "j": [{"x": 1.5}, {"_expires": "now"}],
            "_multi": [{"a": {"id": "p", "_title": "P"}}, {"a": {"id": "q", "_title": "Q"}}],
        },
        **changes,
    }
    return json.dumps({name: value for name, value in whole.items() if value is not None}) + "\n"


def test_names_with_an_underscore_are_no_features(tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_text(event() + event(_skipLearn=True) + event(_label_cost=None))
    log = cg.io.read_vw(path)
    assert list(log.contexts) == [{"Geo.city": "Oslo", "j.0.x": 1.5}]
    assert (log.arms, log.labels) == (["q"], ("p", "q"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (event() + event(_outcomes=[], _label_cost=None), "line 2 has slots"),
        (event(c={"_multi": [], "_slots": []}), "line 1 has slots"),
        (event(_label_ca={"action": 1.0}), "continuous action"),
        (event(_labelIndex=0), "line 1 has _labelIndex 0 for action 2"),
        (event(pdrop=0.5) * 2 + event(), "line 3 has pdrop 0.0 after 0.5"),
        (event(_label_Action=3), "line 1 takes action 3 of 2"),
    ],
)
def test_events_that_are_no_single_choice_are_refused(tmp_path, lines, message):
    path = tmp_path / "log.dsjson"
    path.write_text(lines)
    with pytest.raises(ValueError, match=message):
        cg.io.read_vw(path)


def test_learners_take_everything_along():
    log = cg.io.read_vw(LOGS / "adf.vw")
    learner = log.fit(seed=0)
    card = learner.score()
    assert card.estimator == "doubly robust"
    assert card.rewards == 60
    assert card.logged.value == pytest.approx(log.rewards.mean())
    assert learner.state.model.observed.has_eligible


def test_what_vowpal_wabbit_writes_otherwise(tmp_path):
    path = tmp_path / "log.vw"
    path.write_text(
        "1:2:0.4 2 3 'tag|a:2 x:3 y |b z=w arm=q\n"
        "\n"
        "| only:1 features\n"
        "4:1e-1:0.25 1 | :5\n"
        "2:0:1 4 |a x:-1 |b z=v\n"
    )
    log = cg.io.read_vw(path)
    assert log.arms == [1, 4, 2]
    assert log.labels == (1, 2, 3, 4)
    assert log.rewards.tolist() == [-2.0, -0.1, 0.0]
    assert log.eligible == [[1, 2, 3], [4, 1], [2, 4]]
    rows = list(log.contexts)
    assert {name: rows[0][name] for name in ("a.x", "a.y", "b.z", "b.arm")} == {
        "a.x": 6.0,
        "a.y": 2.0,
        "b.z": "w",
        "b.arm": "q",
    }
    assert rows[1]["0"] == 5.0
    assert rows[1]["a.x"] == 0.0  # a number that is left out
    assert rows[1]["b.z"] is None  # text that is left out
    assert rows[2]["a.x"] == -1.0


def feedback():
    with np.load(LOGS / "obp_men.npz") as arrays:
        found = {name: arrays[name] for name in arrays.files}
    return {**found, "n_actions": int(found["n_actions"]), "n_rounds": len(found["reward"])}


def test_obp_and_back():
    given = feedback()
    log = cg.io.read_obp(given)
    assert len(log) == 1500
    assert log.rewards.sum() == 9
    assert log.labels == tuple(range(34))
    assert log.arms == given["action"].tolist()
    np.testing.assert_array_equal(log.contexts[:, :-1], given["context"])
    np.testing.assert_array_equal(log.contexts[:, -1], given["position"])
    back = cg.io.to_obp(log)
    for name in ("action", "reward", "pscore", "n_actions", "n_rounds", "action_context"):
        np.testing.assert_array_equal(back[name], given[name])
    assert cg.io.to_obp(cg.io.read_obp(back))["context"].shape == back["context"].shape
    without = cg.io.read_obp({**given, "position": None})
    assert without.contexts.shape == given["context"].shape
    np.testing.assert_array_equal(without.features[3], given["action_context"][3])


@pytest.mark.parametrize("form", [list, np.array, pd.DataFrame])
def test_contexts_of_any_form_go_to_obp(form):
    rows = [[0.0, 2.0], [1.0, 3.0]]
    log = cg.io.read_mabwiser(["a", "b"], [0.1, 0.4], form(rows))
    assert cg.io.to_obp(log)["context"].tolist() == rows


def test_tables_of_numbers_go_to_obp_and_text_does_not(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"x": 1.5, "arm": "a", "reward": 0}\n{"x": 2, "arm": "b", "reward": 1}\n')
    back = cg.io.to_obp(cg.io.read_jsonl(path))
    assert back["context"].tolist() == [[1.5], [2.0]]
    assert back["action"].tolist() == [0, 1]
    assert back["pscore"] is None
    with pytest.raises(TypeError, match="obp takes no text"):
        cg.io.to_obp(cg.io.read_vw(LOGS / "adf.vw"))


def test_arrays_of_mabwiser():
    """Their own greedy ridge regression, and ours, choose the same where the choice is clear."""
    mabwiser = pytest.importorskip("mabwiser.mab", reason="MABWiser is not installed")
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(200, 2))
    decisions = rng.choice(["one", "two"], 200)
    rewards = np.where(decisions == "one", contexts[:, 0], -contexts[:, 0])
    theirs = mabwiser.MAB(["one", "two"], mabwiser.LearningPolicy.LinGreedy(epsilon=0.0))
    theirs.fit(decisions, rewards, contexts)
    ours = cg.io.read_mabwiser(decisions, rewards, contexts).fit(seed=0)
    clear = contexts[np.abs(contexts[:, 0]) > 0.2]
    assert theirs.predict(clear) == ours.recommend(clear).tolist()


def test_a_bandit_without_contexts():
    log = cg.io.read_mabwiser([1, 1, 2, 2], [0, 1, 5, 6])
    assert log.fit(seed=0).recommend([[0.0]]).tolist() == [2]


def test_json_lines(tmp_path):
    rows = [
        {"user": {"age": 20 + i, "tags": [i % 2, "x"]}, "arm": "ab"[i % 2], "pay": i, "p": 0.5}
        for i in range(8)
    ]
    del rows[3]["user"]["tags"]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("log.jsonl", "log.ndjson", "log.jsonl.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        log = cg.io.read_jsonl(path, reward="pay", propensity="p", exclude=["user.tags.1"])
        assert log.contexts.names == ["user.age", "user.tags.0"]
        assert log.contexts["user.age"].tolist() == list(range(20, 28))
        assert np.isnan(log.contexts["user.tags.0"][3])
        assert log.arms == [row["arm"] for row in rows]
        assert log.rewards.tolist() == list(range(8))
        assert log.propensities.tolist() == [0.5] * 8


def test_compressed_tables_are_tables(tmp_path):
    table = pd.DataFrame({"x": [1.5, 2.5], "arm": ["a", "b"], "reward": [0.0, 1.0]})
    for name, separator in (("t.csv.gz", ","), ("t.tsv.gz", "\t")):
        table.to_csv(tmp_path / name, index=False, sep=separator)
        assert read_sheet(tmp_path / name).numbers(["x", "reward"]).tolist() == [[1.5, 0], [2.5, 1]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.vw", "1:x:0.5 | a\n", "after|beginning.*could not convert"),
        ("a.vw", "1:1:2 | a\n1:1:0.5 | a\n", "propensities must be above 0 and at most 1, got 2"),
        ("a.vw", "| a\n", "empty"),
        ("a.dsjson", "{}\n[1]\n", "empty"),
        ("a.jsonl", "{}\n[1]\n", "no object"),
        ("a.dsjson", '{"_label_cost": 1, "c": {}}\n', "lacks '_multi'"),
        ("a.jsonl", '{"arm": 1}\n{"arm": \n', "after line 1: not what .jsonl holds"),
        ("a.jsonl", '{"arm": 1, "x": 1}\n', "there is no column 'reward'"),
        ("a.csv", "x\n1\n", "the suffix '.csv' is unknown"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    reader = cg.io.read_jsonl if name.endswith("l") else cg.io.read_vw
    with pytest.raises(ValueError, match=message):
        reader(path)


def test_compressed_parquet_is_to_be_decompressed(tmp_path):
    path = tmp_path / "t.parquet.gz"
    path.write_bytes(gzip.compress(b"PAR1"))
    with pytest.raises(ValueError, match="decompress it; such files are compressed inside"):
        read_sheet(path)


def test_damaged_archives_are_said(tmp_path):
    path = tmp_path / "log.vw.gz"
    path.write_bytes(gzip.compress(b"1:1:0.5 | a\n" * 100)[:40])
    with pytest.raises(ValueError, match=r"log\.vw\.gz"):
        cg.io.read_vw(path)


def test_what_is_wrong_with_arrays_is_said():
    with pytest.raises(ValueError, match="bandit_feedback must have 'context'"):
        cg.io.read_obp({"action": [0], "reward": [1]})
    with pytest.raises(ValueError, match="decisions"):
        cg.io.read_mabwiser([1, 2], [0.0])
