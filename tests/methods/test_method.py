"""Methods by name."""

import re
from pathlib import Path

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


def test_auto_deploys_the_smallest_gap_where_arms_have_features():
    described = cg.Learner(2, features=[[0.0], [1.0]])
    assert described.method == read_method("auto", features=True) == cg.METHODS["contextual-gap"]
    chosen = cg.Learner(2, features=[[0.0], [1.0]], method="uniform")
    assert chosen.method == cg.METHODS["uniform"]
