"""Methods by name."""

import re
from pathlib import Path

import numpy as np
import pytest

import contextgap as cg
from contextgap.methods.method import RECOMMENDED, read_method

PAGE = Path(__file__).parents[2] / "docs" / "leaderboard.md"


def test_no_method_on_the_leaderboard_is_much_better_than_auto():
    text = PAGE.read_text()
    assert "regret over auto's" in text  # what ratios below are to
    table = text[text.index("| method |") :].split("\n\n")[0]
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \([\d.]+ to [\d.]+\)", table, re.MULTILINE)
    found = {name: float(ratio) for name, ratio in rows}
    assert len(found) >= 2
    assert set(found) < set(cg.METHODS)
    assert all(ratio > 0.95 for ratio in found.values())


def test_auto_is_the_recommended_method():
    assert read_method("auto") == cg.METHODS[RECOMMENDED]
    assert cg.Learner(2, method="auto").method.name == RECOMMENDED


def test_auto_is_the_same_method_where_arms_have_features():
    described = cg.Learner(2, features=[[0.0], [1.0]])
    assert described.method == cg.METHODS[RECOMMENDED]
    chosen = cg.Learner(2, features=[[0.0], [1.0]], method="uniform")
    assert chosen.method == cg.METHODS["uniform"]


@pytest.mark.parametrize(
    ("settings", "rule"),
    [({}, cg.HighestMean()), ({"features": np.linspace(0, 1, 12)[:, None]}, cg.SmallestGap())],
    ids=["alone", "features"],
)
def test_auto_deploys_by_the_rule_that_suits_the_model(settings, rule, tmp_path):
    rng = np.random.default_rng(4)
    contexts, deployed = rng.uniform(size=(2, 60, 2))
    arms, rewards = rng.integers(12, size=60) // 2 * 2, rng.normal(size=60)  # half of the arms
    auto, given = (
        cg.Learner(12, method=method, kernel=cg.Gaussian(0.3), **settings)
        for method in ("auto", cg.Method(explorer=cg.explorers.GainOrGap(), recommender=rule))
    )
    for learner in (auto, given):
        learner.fit(contexts, arms, rewards)
    policy, beliefs = auto.freeze(), [given.decide(x) for x in deployed]
    assert policy.method == given.method
    assert policy.method.name == auto.method.name == "gain-or-gap"
    by_mean, by_gap = ([np.argmax(b.mean) for b in beliefs], [np.argmin(b.gap) for b in beliefs])
    assert by_mean != by_gap
    assert list(policy.recommend(deployed)) == (by_gap if settings else by_mean)
    assert list(auto.recommend(deployed)) == list(policy.recommend(deployed))
    auto.save(tmp_path / "auto.cgap")
    assert cg.Learner.load(tmp_path / "auto.cgap").freeze().method == policy.method
