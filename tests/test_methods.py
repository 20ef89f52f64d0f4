"""Methods by name."""

import re
from pathlib import Path

import contextgap as cg
from contextgap.methods import RECOMMENDED, read_method

PAGE = Path(__file__).parents[1] / "docs" / "leaderboard.md"


def test_auto_is_what_the_leaderboard_recommends_in_every_situation():
    section = PAGE.read_text().split("## Which method in which situation")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (everywhere|noise .*?) \|.*?\*\*(.+?)\*\*", section, re.MULTILINE)
    winners = dict(rows)
    assert len(winners) == 5
    assert set(winners.values()) == {RECOMMENDED}
    assert read_method("auto") == cg.METHODS[RECOMMENDED]
    assert cg.Learner(2, method="auto").method.name == RECOMMENDED
