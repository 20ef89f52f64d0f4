"""The leaderboard as it is started, small."""

import json

import pandas as pd
import pytest

from leaderboard import page as leaderboard_page
from leaderboard.contest import Contest
from leaderboard.run import app, command_line
from tests.cli.test_policies import call

SCRIPT = "python benchmarks/leaderboard/run.py"
TINY = [
    "--quick",
    *("--problems", "sinusoids,iris"),
    *("--methods", "contextual-gap,kernel-ucb,uniform"),
    *("--budgets", "30,60"),
    *("--seeds", "1"),
    *("--grid", "2"),
    *("--jobs", "1"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    page = folder / "docs" / "board.md"
    return folder, page, call(*TINY, "--out", folder, "--page", page, app=app)


def test_it_prints_ranks_and_writes_page_and_records(made):
    folder, page, shown = made
    assert shown.stderr == ""  # no progress bars where there is no terminal
    for words in ("average ranks", "lowest average rank", "not told apart", "posterior"):
        assert words in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines() if "┃" in line) <= 80
    records = pd.read_parquet(folder / "records.parquet")
    assert len(records) == 2 * 2 * 2 * 3  # problems, noise levels, budgets, methods
    assert len(pd.read_parquet(folder / "recommenders.parquet")) == 2 * 3 * 5
    assert "--budgets 30,60 --seeds 1 --grid 2 --page" in page.read_text()
    assert (page.parent / "images" / "leaderboard-recommenders.png").exists()


def test_again_as_json_without_work(made, monkeypatch):
    folder, _, _ = made
    parts = {path: path.stat().st_mtime_ns for path in (folder / "parts").rglob("*.json")}
    monkeypatch.setattr(leaderboard_page, "_draw", lambda *_: None)  # drawn once is enough
    found = json.loads(call(*TINY, "--out", folder, "--json", app=app).stdout)
    assert {path: path.stat().st_mtime_ns for path in (folder / "parts").rglob("*.json")} == parts
    records = pd.read_parquet(folder / "records.parquet")
    cells = {(c["problem"], c["noise"], c["budget"], c["method"]): c for c in found["cells"]}
    assert len(cells) == len(records)  # one seed
    for row in records.itertuples():
        cell = cells[row.problem, row.noise, row.budget, row.method]
        assert cell["average_regret"] == pytest.approx(row.average_regret)
    assert len(found["regret_ratios"]) == 3 * 2
    assert found["situations"][0]["best"] == found["ranks"][0]["method"]
    assert len(found["recommenders"]) == 2 * 3 * 5
    assert found["page"] == str(folder / "leaderboard.md")


def test_the_command_says_what_is_not_usual():
    assert command_line(Contest(), False, True, None) == SCRIPT
    contest = Contest(problems=("iris",), noise=(0.0, 0.25), seeds=7)
    assert command_line(contest, False, False, None) == (
        f"{SCRIPT} --problems iris --noise 0,0.25 --seeds 7 --no-recommenders"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--problems", "sines"], "problems must be among sinusoids"),
        (["--methods", "magic,uniform"], "method must be one of"),
        (["--budgets", "10,many"], "--budgets must be whole numbers such as 100,1000"),
        (["--noise", "loud"], "--noise must be numbers such as 0,0.5"),
    ],
)
def test_bad_options_are_named(tmp_path, options, words):
    shown = call(*options, "--jobs", "1", "--out", tmp_path, code=2, app=app)
    assert words in shown.stderr.replace("\n", " ")
